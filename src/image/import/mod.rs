//! Images from archives: OCI layouts and what `docker save` writes, as tar, tar.gz or tar.zst.
//!
//! In: a file. Out: committed images with their references. Layers are unpacked as they stream by; no second copy of them is made.
//! A plain tar is read twice, the first time for its documents only (by seeking over the layers), so that nothing is unpacked that is
//! in the store already or is for other machines. A compressed one is read once, and everything in it that is a layer is unpacked;
//! only when a layer is needed a second time (on top of different ones) is the archive read again.

mod archive;
mod bundle;
mod plan;

pub use bundle::BundledImages;
pub(super) use bundle::import_bundle;

use super::commit::{CommitError, NewImage, commit};
use super::layer::{Bounds, LayerError, StagedLayer};
use super::layout::{LAYER_RECORD, LayerRecord, Layout};
use super::limits::{Budget, Exceeded, Limits};
use super::list_job::ListError;
use super::policy::archive::Found;
use super::policy::record::Subject;
use super::policy::{Asker, Gate, Refusal};
use super::room;
use super::space::{Space, SpaceError};
use super::staging::Staging;
use archive::{Archive, Want};
use plan::{PlanError, PlannedImage, PlannedLayer};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Reason why an archive cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    /// The file.
    #[error("open archive")]
    Open(#[source] io::Error),
    /// Not a file.
    #[error("not a regular file")]
    NotAFile,
    /// The archive itself.
    #[error(transparent)]
    List(#[from] ListError),
    /// Documents larger than any image's.
    #[error("its documents are larger than {0} bytes")]
    Documents(u64),
    /// It is compressed, and larger than an image may be.
    #[error(transparent)]
    Limit(#[from] Exceeded),
    /// It is larger than the disk.
    #[error("no space for the archive")]
    Space(#[from] SpaceError),
    /// An image in it.
    #[error("its image {name}")]
    Image {
        /// Its first reference.
        name: String,
        /// The exceeded limit.
        #[source]
        source: Exceeded,
    },
    /// Its documents about its images.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The policy refuses an image in it.
    #[error("its image {name}")]
    Refused {
        /// Its reference.
        name: String,
        /// The rule, and what was found.
        #[source]
        source: Refusal,
    },
    /// A layer.
    #[error("file {path:?} of the archive")]
    Layer {
        /// In the archive.
        path: String,
        /// The error of the layer.
        #[source]
        source: LayerError,
    },
    /// A file that the documents name is missing.
    #[error("the file {0:?} is missing from the archive or is not a layer")]
    Missing(String),
    /// A bundle leaves them out, and they are not here.
    #[error(
        "it leaves out layers that this host does not have: {0}; create it without --since, or with --since of a bundle that this host has"
    )]
    Omitted(String),
    /// A bundle that is not read from any place.
    #[error("it is compressed; a bundle is an uncompressed tar archive")]
    Compressed,
    /// The store.
    #[error("store the image")]
    Commit(#[from] CommitError),
}

impl ImportError {
    /// Returns true if a job ended for a reason that the archive may have no part in.
    pub(super) fn is_crash(&self) -> bool {
        let is_crash_of_list = |error: &ListError| matches!(error, ListError::Job(error) if error.is_crash());
        match self {
            Self::List(error) => is_crash_of_list(error),
            Self::Layer { source: LayerError::Job(error), .. } => error.is_crash(),
            // Content that a job decompressed.
            Self::Open(error) | Self::Layer { source: LayerError::Read(error), .. } => {
                error.get_ref().and_then(|error| error.downcast_ref()).is_some_and(is_crash_of_list)
            }
            _ => false,
        }
    }
}

/// A committed image, to be named.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) references: Vec<Reference>,
    pub(super) target: Digest,
    pub(super) manifest: Digest,
    pub(super) signatures: Vec<Subject>,
}

/// Imports the archive at `path`, if the policy accepts its images; blocks.
pub(super) fn import(
    layout: &Layout,
    staging: &Staging,
    limits: &Limits,
    space: &Space,
    path: &Path,
    gate: &Gate,
) -> Result<Vec<Imported>, ImportError> {
    let archive = Archive::open(path)?;
    let first = if archive.is_seekable() { Want::Documents } else { Want::Everything };
    let bounds = |image: Budget| Bounds { limits: *limits, image: Arc::new(image), space: space.clone() };
    let first_bounds = bounds(Budget::of_archive(*limits, usize::MAX));
    let mut pass = archive.read(&first, staging, &first_bounds)?;
    archive.add_digests(&mut pass, staging, &first_bounds)?;
    let names: plan::Names<'_> = &|manifest, configuration| layout.layers_of(manifest, configuration);
    let planned = plan::plan(&pass.documents, &super::platform::host(), names)?;
    let mut found = plan::signatures(&pass.documents);
    found.add_beside(path);
    let signatures = planned.iter().map(|image| accept(image, &found, gate)).collect::<Result<Vec<_>, _>>()?;
    planned.iter().try_for_each(|image| check_compressed(limits, image))?;
    // A layer that an image has several times takes a pass for each: they count together.
    let bounds = bounds(Budget::of_archive(*limits, planned.len()));
    let mut unassigned = pass.staged;
    let mut staged: BTreeMap<Digest, StagedLayer> = BTreeMap::new();
    loop {
        assign(&planned, layout, &mut unassigned, &mut staged);
        let missing: BTreeMap<String, u64> =
            missing(&planned, layout, &staged).map(|layer| (layer.path.clone(), layer.size)).collect();
        if missing.is_empty() {
            break;
        }
        // Unneeded layers free their space before more is unpacked.
        unassigned.clear();
        space.check(missing.values().fold(0, |sum, size| sum.saturating_add(*size)), missing.len() as u64)?;
        let paths = Want::Paths(missing.keys().cloned().collect());
        unassigned = archive.read(&paths, staging, &bounds)?.staged;
        if let Some(path) = missing.into_keys().find(|path| !unassigned.contains_key(path)) {
            return Err(ImportError::Missing(path));
        }
    }
    drop(unassigned);
    for image in &planned {
        room::check_whole(limits, taken(image, layout, &staged)).map_err(|source| too_large(image, source))?;
    }
    let signed = planned.into_iter().zip(signatures);
    signed.map(|(image, signatures)| finish(layout, staging, image, signatures, &mut staged)).collect()
}

/// The signatures of an image, which suffice for each of its references.
fn accept(image: &PlannedImage, found: &Found, gate: &Gate) -> Result<Vec<Subject>, ImportError> {
    let subjects = found.subjects(image.indexes.iter().chain([&image.manifest]).map(Vec::as_slice));
    for reference in &image.references {
        let refused = |source| ImportError::Refused { name: reference.to_string(), source };
        if let Some(wanted) = gate.wanted(reference, Asker::Archive).map_err(refused)? {
            wanted.judge_stored(&subjects, &found.problems).map_err(refused)?;
        }
    }
    Ok(subjects)
}

fn check_compressed(limits: &Limits, image: &PlannedImage) -> Result<(), ImportError> {
    let compressed = image.layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.size));
    limits.check_compressed(compressed).map_err(|source| too_large(image, source))
}

fn too_large(image: &PlannedImage, source: Exceeded) -> ImportError {
    ImportError::Image { name: image.references.first().map(ToString::to_string).unwrap_or_default(), source }
}

/// Bytes and entries of the image's layers, of which each is staged or in the store.
fn taken(image: &PlannedImage, layout: &Layout, staged: &BTreeMap<Digest, StagedLayer>) -> impl Iterator<Item = (u64, u64)> {
    image.layers.iter().filter_map(|layer| match staged.get(&layer.chain) {
        Some(staged) => Some((staged.unpacked.bytes, staged.unpacked.inodes())),
        None => {
            let text = std::fs::read(layout.layer(layer.chain).join(LAYER_RECORD)).ok()?;
            let record: LayerRecord = serde_json::from_slice(&text).ok()?;
            Some((record.bytes, record.entries))
        }
    })
}

/// Layers that are neither in the store nor staged.
fn missing<'a>(
    planned: &'a [PlannedImage],
    layout: &'a Layout,
    staged: &'a BTreeMap<Digest, StagedLayer>,
) -> impl Iterator<Item = &'a PlannedLayer> {
    let layers = planned.iter().flat_map(|image| &image.layers);
    layers.filter(|layer| !staged.contains_key(&layer.chain) && !layout.has_layer(layer.chain))
}

/// Gives each staged file to the first layer that lacks it.
fn assign(
    planned: &[PlannedImage],
    layout: &Layout,
    from: &mut BTreeMap<String, StagedLayer>,
    to: &mut BTreeMap<Digest, StagedLayer>,
) {
    let wanted: Vec<(String, Digest)> = missing(planned, layout, to).map(|layer| (layer.path.clone(), layer.chain)).collect();
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
    signatures: Vec<Subject>,
    staged: &mut BTreeMap<Digest, StagedLayer>,
) -> Result<Imported, ImportError> {
    let PlannedImage { references, target, indexes: _, manifest, config, layers } = image;
    let mut own = BTreeMap::new();
    for layer in layers {
        let Some(staged) = staged.remove(&layer.chain) else { continue };
        if layer.blob != staged.blob {
            let source = LayerError::BlobDigest { expected: layer.blob, actual: staged.blob };
            return Err(ImportError::Layer { path: layer.path, source });
        }
        own.insert(layer.chain, staged);
    }
    let digest = commit(layout, staging, NewImage { manifest, config, signatures: Vec::new(), staged: own })?;
    Ok(Imported { references, target: target.unwrap_or(digest), manifest: digest, signatures })
}
