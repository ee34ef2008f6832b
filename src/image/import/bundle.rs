//! Images of a bundle: an OCI layout in a tar archive, of which only what a document elsewhere names by digest is taken.
//!
//! The policy decides before any layer is read. Layers are published from the lowest one on, a few at a time, so that an import that was
//! interrupted goes on with the next ones. A layer that the archive leaves out must be in the store.

use super::super::commit::salvage;
use super::super::document::{Configuration, DocumentError, Manifest};
use super::super::layer_error::{Bounds, LayerError};
use super::super::layout::Layout;
use super::super::limits::{Budget, Limits};
use super::super::names::NamedLayer;
use super::super::platform;
use super::super::policy::Gate;
use super::super::room;
use super::super::space::Space;
use super::super::staging::Staging;
use super::archive::{Archive, Documents, Want};
use super::plan::{self, PlannedImage, PlannedLayer};
use super::{ImportError, Imported, accept, check_compressed, finish, missing, taken, too_large};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compressed bytes of layers that are published together, unless a single one has more.
const BATCH: u64 = 32 << 20;
/// Layers that a message lists.
const SHOWN: usize = 5;

/// Images of a bundle, as its document names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundledImages {
    /// The index or manifest that each reference means.
    pub images: BTreeMap<Reference, Digest>,
    /// Manifests of signatures of cosign in the archive.
    pub signatures: BTreeSet<Digest>,
    /// Bytes and entries of layers after unpacking, by digest, where they are known.
    pub unpacked: BTreeMap<Digest, (u64, u64)>,
}

/// Imports the images from the archive at `path`, if the policy accepts all of them; blocks.
pub(in super::super) fn import_bundle(
    layout: &Layout,
    staging: &Staging,
    limits: &Limits,
    space: &Space,
    path: &Path,
    wanted: &BundledImages,
    gate: &Gate,
) -> Result<Vec<Imported>, ImportError> {
    let archive = Archive::open(path)?;
    if !archive.is_seekable() {
        return Err(ImportError::Compressed);
    }
    let bounds = |images| {
        let image = Budget::of_archive(*limits, images).into();
        Bounds { limits: *limits, image, space: space.clone() }
    };
    let documents = archive.read(&Want::Documents, staging, &bounds(usize::MAX))?.documents;
    let names: plan::Names<'_> = &|manifest, configuration| layout.layers_of(manifest, configuration);
    let planned = plan::of_bundle(&documents, &wanted.images, &platform::host(), names)?;
    let found = plan::signatures_among(&documents, &wanted.signatures);
    let signatures = planned.iter().map(|image| accept(image, &found, gate)).collect::<Result<Vec<_>, _>>()?;
    planned.iter().try_for_each(|image| check_compressed(limits, image))?;
    check_omitted(&planned, &documents, layout)?;
    let needed = needed(&planned, layout, &wanted.unpacked);
    space.check(needed.0, needed.1)?;
    let bounds = bounds(planned.len());
    for image in &planned {
        publish(layout, staging, &archive, &bounds, image)?;
        room::check_whole(limits, taken(image, layout, &BTreeMap::new())).map_err(|source| too_large(image, source))?;
    }
    let signed = planned.into_iter().zip(signatures);
    signed.map(|(image, signatures)| finish(layout, staging, image, signatures, &mut BTreeMap::new())).collect()
}

/// Refuses an archive that leaves out layers which the store does not have.
fn check_omitted(planned: &[PlannedImage], documents: &Documents, layout: &Layout) -> Result<(), ImportError> {
    let nothing = BTreeMap::new();
    let absent = missing(planned, layout, &nothing).filter(|layer| !documents.sizes.contains_key(&layer.path));
    let absent: BTreeSet<&str> = absent.map(|layer| layer.path.as_str()).collect();
    if absent.is_empty() {
        return Ok(());
    }
    let mut shown: Vec<String> = absent.iter().take(SHOWN).map(|path| path.replace("blobs/sha256/", "sha256:")).collect();
    if absent.len() > SHOWN {
        shown.push(format!("{} more", absent.len() - SHOWN));
    }
    Err(ImportError::Omitted(shown.join(", ")))
}

/// Bytes and entries of the layers that are still to be unpacked: as the document states them, at least their size in the archive.
fn needed(planned: &[PlannedImage], layout: &Layout, unpacked: &BTreeMap<Digest, (u64, u64)>) -> (u64, u64) {
    let nothing = BTreeMap::new();
    let layers: BTreeMap<Digest, &PlannedLayer> = missing(planned, layout, &nothing).map(|layer| (layer.chain, layer)).collect();
    layers.values().fold((0_u64, 0_u64), |(bytes, entries), layer| {
        let known = unpacked.get(&layer.blob).copied().unwrap_or((0, 1));
        (bytes.saturating_add(known.0.max(layer.size)), entries.saturating_add(known.1.max(1)))
    })
}

/// Makes all layers of an image durable that the store does not have.
fn publish(
    layout: &Layout,
    staging: &Staging,
    archive: &Archive,
    bounds: &Bounds,
    image: &PlannedImage,
) -> Result<(), ImportError> {
    let named = named(layout, image)?;
    loop {
        let batch = next_batch(image, |chain| layout.layer(chain).is_dir());
        let Some(lowest) = batch.first() else { return Ok(()) };
        let paths = batch.iter().map(|layer| layer.path.clone()).collect();
        let mut read = archive.read(&Want::Paths(paths), staging, bounds)?.staged;
        let mut staged = BTreeMap::new();
        for layer in &batch {
            // A file that is a layer twice is read again for the second one.
            let Some(found) = read.remove(&layer.path) else { continue };
            if layer.blob != found.blob {
                let source = LayerError::BlobDigest { expected: layer.blob, actual: found.blob };
                return Err(ImportError::Layer { path: layer.path.clone(), source });
            }
            staged.insert(layer.chain, found);
        }
        if !staged.contains_key(&lowest.chain) {
            return Err(ImportError::Missing(lowest.path.clone()));
        }
        salvage(layout, staging, &named, staged)?;
    }
}

/// The layers of an image by their names in the store.
fn named(layout: &Layout, image: &PlannedImage) -> Result<Vec<NamedLayer>, ImportError> {
    let document = |path: &str| {
        let path = path.to_owned();
        move |source| plan::PlanError::Document { path, source }
    };
    let Manifest::Image(manifest) = Manifest::parse(&image.manifest).map_err(document("the manifest"))? else {
        return Err(document("the manifest")(DocumentError::NotAnImage("an index".to_owned())).into());
    };
    let configuration = Configuration::parse(&image.config, image.layers.len()).map_err(document("the configuration"))?;
    Ok(layout.layers_of(&manifest, &configuration))
}

/// The lowest layers that are not present: one, and those above it as long as all of them have at most [`BATCH`] bytes.
fn next_batch(image: &PlannedImage, is_present: impl Fn(Digest) -> bool) -> Vec<&PlannedLayer> {
    let mut batch: Vec<&PlannedLayer> = Vec::new();
    let mut bytes = 0_u64;
    for layer in image.layers.iter().filter(|layer| !is_present(layer.chain)) {
        bytes = bytes.saturating_add(layer.size);
        if !batch.is_empty() && bytes > BATCH {
            break;
        }
        batch.push(layer);
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(number: u8, size: u64) -> PlannedLayer {
        let digest = Digest::of(&[number]);
        PlannedLayer { path: format!("blobs/sha256/{}", digest.hex()), chain: digest, blob: digest, size }
    }

    fn image(layers: Vec<PlannedLayer>) -> PlannedImage {
        let (manifest, config) = (Vec::new(), Vec::new());
        PlannedImage { references: Vec::new(), target: None, indexes: Vec::new(), manifest, config, layers }
    }

    #[test]
    fn batches_begin_with_the_lowest_missing_layer() {
        let image = image(vec![layer(0, 1), layer(1, BATCH + 1), layer(2, 10), layer(3, BATCH - 10), layer(4, 1)]);
        let batch = |present: &[u8]| {
            let present: Vec<Digest> = present.iter().map(|number| Digest::of(&[*number])).collect();
            let chains = next_batch(&image, |chain| present.contains(&chain));
            chains.iter().map(|layer| (0..5).find(|number| Digest::of(&[*number]) == layer.chain).unwrap()).collect::<Vec<u8>>()
        };
        assert_eq!(batch(&[]), [0]);
        assert_eq!(batch(&[0]), [1]);
        assert_eq!(batch(&[0, 1]), [2, 3]);
        assert_eq!(batch(&[0, 1, 2, 3]), [4]);
        assert_eq!(batch(&[0, 1, 2, 3, 4]), Vec::<u8>::new());
    }
}
