//! Images from archives: OCI layouts and what `docker save` writes, as tar, tar.gz or tar.zst.
//!
//! In: a file. Out: committed images with their references. Layers are unpacked as they stream by; no second copy of them is made.
//! A plain tar is read twice, the first time for its documents only (by seeking over the layers), so that nothing is unpacked that is
//! in the store already or is for other machines. A compressed one is read once, and everything in it that is a layer is unpacked;
//! only when a layer is needed a second time (on top of different ones) is the archive read again.

mod archive;
mod plan;

use super::commit::{CommitError, NewImage, commit, manifest_of_saved};
use super::digest::Digest;
use super::layer::{LayerError, StagedLayer};
use super::layout::Layout;
use super::reference::Reference;
use super::staging::Staging;
use super::tar::TarError;
use super::unpack::Limits;
use archive::{Archive, Want};
use plan::{PlanError, PlannedImage};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Why an archive cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    /// The file.
    #[error("open archive")]
    Open(#[source] io::Error),
    /// Not a file.
    #[error("it is not a regular file")]
    NotAFile,
    /// The archive itself.
    #[error(transparent)]
    Tar(#[from] TarError),
    /// Documents larger than any image's.
    #[error("its documents are larger than {0} bytes")]
    Documents(u64),
    /// What it says about its images.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A layer.
    #[error("file {path:?} of the archive")]
    Layer {
        /// In the archive.
        path: String,
        /// What is wrong with it.
        #[source]
        source: LayerError,
    },
    /// A file that the documents name is missing.
    #[error("the archive lacks the file {0:?}, or it is not a layer")]
    Missing(String),
    /// The store.
    #[error("store the image")]
    Commit(#[from] CommitError),
}

/// A committed image, to be named.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) references: Vec<Reference>,
    pub(super) target: Digest,
    pub(super) manifest: Digest,
}

/// Imports the archive at `path`; blocks.
pub(super) fn import(layout: &Layout, staging: &Staging, limits: &Limits, path: &Path) -> Result<Vec<Imported>, ImportError> {
    let archive = Archive::open(path)?;
    let first = if archive.is_seekable() { Want::Documents } else { Want::Everything };
    let pass = archive.read(&first, staging, limits)?;
    let planned = plan::plan(&pass.documents, &super::platform::host())?;
    let mut unassigned = pass.staged;
    let mut staged: BTreeMap<Digest, StagedLayer> = BTreeMap::new();
    loop {
        assign(&planned, layout, &mut unassigned, &mut staged);
        let missing: BTreeSet<String> = missing(&planned, layout, &staged).map(|(path, _)| path.to_owned()).collect();
        if missing.is_empty() {
            break;
        }
        // What is not needed gives its space back before more is unpacked.
        unassigned.clear();
        unassigned = archive.read(&Want::Paths(missing.clone()), staging, limits)?.staged;
        if let Some(path) = missing.into_iter().find(|path| !unassigned.contains_key(path)) {
            return Err(ImportError::Missing(path));
        }
    }
    drop(unassigned);
    planned.into_iter().map(|image| finish(layout, staging, image, &mut staged)).collect()
}

/// Layers that are neither in the store nor staged: path in the archive and chain id.
fn missing<'a>(
    planned: &'a [PlannedImage],
    layout: &'a Layout,
    staged: &'a BTreeMap<Digest, StagedLayer>,
) -> impl Iterator<Item = (&'a str, Digest)> {
    let layers = planned.iter().flat_map(|image| &image.layers).map(|layer| (layer.path.as_str(), layer.chain));
    layers.filter(|(_, chain)| !staged.contains_key(chain) && !layout.layer(*chain).is_dir())
}

/// Gives each staged file to the first layer that lacks it.
fn assign(
    planned: &[PlannedImage],
    layout: &Layout,
    from: &mut BTreeMap<String, StagedLayer>,
    to: &mut BTreeMap<Digest, StagedLayer>,
) {
    let wanted: Vec<(String, Digest)> = missing(planned, layout, to).map(|(path, chain)| (path.to_owned(), chain)).collect();
    for (path, chain) in wanted {
        if !to.contains_key(&chain)
            && let Some(layer) = from.remove(&path)
        {
            to.insert(chain, layer);
        }
    }
}

fn finish(
    layout: &Layout,
    staging: &Staging,
    image: PlannedImage,
    staged: &mut BTreeMap<Digest, StagedLayer>,
) -> Result<Imported, ImportError> {
    let PlannedImage { references, target, manifest, config, layers } = image;
    let manifest = match manifest {
        Some(manifest) => manifest,
        None => manifest_of_saved(&config, &layers.iter().map(|layer| (layer.diff_id, layer.size)).collect::<Vec<_>>())?,
    };
    let mut own = BTreeMap::new();
    for layer in layers {
        let Some(staged) = staged.remove(&layer.chain) else { continue };
        if let Some(expected) = layer.blob
            && expected != staged.blob
        {
            return Err(ImportError::Layer { path: layer.path, source: LayerError::BlobDigest { expected, actual: staged.blob } });
        }
        own.insert(layer.chain, staged);
    }
    let digest = commit(layout, staging, NewImage { manifest, config, staged: own })?;
    Ok(Imported { references, target: target.unwrap_or(digest), manifest: digest })
}
