//! Commit of staged layers as a complete image that survives a power cut.
//!
//! The order is what makes it so: all content is written and verified in staging; one `syncfs` makes it durable; then it is renamed
//! into place and the directories are synced; then the reference is written. A reference therefore never names anything that is not
//! on disk, and what a crash leaves without a reference is removed at the next start.

use super::check::list::{FILES, write_list};
use super::document::{Configuration, DocumentError, Manifest};
use super::layer::StagedLayer;
use super::layout::{LAYER_RECORD, LayerRecord, Layout, VERSION};
use super::names::NamedLayer;
use super::policy::record::Subject;
use super::stack::LayerStack;
use super::staging::{Staging, StagingDirectory};
use podstead_container::digest::Digest;
use rustix::fs::{
    Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fsetxattr,
    fstat, futimens, openat2,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Bytes on disk of a layer's directory and its record: a block each.
const OWN_DISK_BYTES: u64 = 2 * 4096;

/// An image whose documents are known and whose missing layers are staged.
#[derive(Debug)]
pub(super) struct NewImage {
    /// As received, or as created for an image without one.
    pub(super) manifest: Vec<u8>,
    /// As it came.
    pub(super) config: Vec<u8>,
    /// Signatures of it, of its manifest and of indexes that lead to it.
    pub(super) signatures: Vec<Subject>,
    /// Layers that the store does not have, by their names.
    pub(super) staged: BTreeMap<Digest, StagedLayer>,
}

/// Reason why an image cannot be made durable.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommitError {
    /// Its documents.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A layer is neither staged nor in the store.
    #[error("layer {0} is missing")]
    Missing(Digest),
    /// A staged layer is not the one of the configuration.
    #[error("layer has diff ID {actual} instead of {expected}: the image is damaged")]
    DiffId {
        /// In the configuration.
        expected: Digest,
        /// Staged.
        actual: Digest,
    },
    /// A staged layer was not made of the bytes that the manifest names.
    #[error("layer has digest {actual} instead of {expected}: the image is damaged")]
    Blob {
        /// In the manifest.
        expected: Digest,
        /// Staged.
        actual: Digest,
    },
    /// The disk.
    #[error("{operation}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
}

fn failed(operation: &'static str) -> impl FnOnce(io::Error) -> CommitError {
    move |source| CommitError::Io { operation, source }
}

/// Makes the image durable, without a reference yet; returns the digest of its manifest.
pub(super) fn commit(layout: &Layout, staging: &Staging, image: NewImage) -> Result<Digest, CommitError> {
    let NewImage { manifest, config, signatures: _, staged } = image;
    let parsed = match Manifest::parse(&manifest)? {
        Manifest::Image(parsed) => parsed,
        Manifest::Index(_) => return Err(DocumentError::NotAnImage("an index".into()).into()),
    };
    let configuration = Configuration::parse(&config, parsed.layers.len())?;
    let blobs = [&manifest, &config].map(|content| (Digest::of(content), content));
    if parsed.config.digest != blobs[1].0 {
        return Err(DocumentError::NotAnImage("a manifest with another configuration".into()).into());
    }
    let layers = layout.layers_of(&parsed, &configuration);
    let publish = prepare_layers(layout, &layers, staged, Publication::WithImage)?;
    let documents = staging.directory().map_err(failed("write manifest and configuration"))?;
    let mut written = Vec::new();
    for (digest, content) in blobs {
        let path = documents.path().join(digest.hex());
        std::fs::write(&path, content).map_err(failed("write manifest and configuration"))?;
        written.push((path, layout.blob(digest)));
    }
    sync_file_system(staging.path()).map_err(failed("sync the image"))?;
    publish_layers(layout, publish)?;
    for (from, to) in written {
        std::fs::rename(from, to).map_err(failed("publish manifest and configuration"))?;
    }
    sync_directory(&layout.blobs()).map_err(failed("sync the blobs' directory"))?;
    Ok(blobs[0].0)
}

/// Makes those of the staged layers durable under which nothing is missing, so that a pull that failed need not fetch them again.
pub(super) fn salvage(
    layout: &Layout,
    staging: &Staging,
    layers: &[NamedLayer],
    mut staged: BTreeMap<Digest, StagedLayer>,
) -> Result<usize, CommitError> {
    let is_here = |layer: &&NamedLayer| staged.contains_key(&layer.name) || layout.has_layer(layer.name);
    let whole: Vec<NamedLayer> = layers.iter().take_while(is_here).copied().collect();
    staged.retain(|name, _| whole.iter().any(|layer| layer.name == *name));
    if staged.is_empty() {
        return Ok(0);
    }
    let publish = prepare_layers(layout, &whole, staged, Publication::Ahead)?;
    sync_file_system(staging.path()).map_err(failed("sync the layers"))?;
    let count = publish.len();
    publish_layers(layout, publish)?;
    Ok(count)
}

/// Makes damaged layers of an image durable that were made anew, in the place of those. `layout` takes them for missing.
pub(super) fn replace(
    layout: &Layout,
    staging: &Staging,
    layers: &[NamedLayer],
    staged: BTreeMap<Digest, StagedLayer>,
) -> Result<(), CommitError> {
    let publish = prepare_layers(layout, layers, staged, Publication::WithImage)?;
    sync_file_system(staging.path()).map_err(failed("sync the layers"))?;
    publish_layers(layout, publish)
}

/// The occasion on which layers are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Publication {
    /// A reference is written next.
    WithImage,
    /// Layers above them are missing yet.
    Ahead,
}

/// Completes the staged layers: looks of implicit parents, records. Lowest first, for each needs those below.
fn prepare_layers(
    layout: &Layout,
    layers: &[NamedLayer],
    mut staged: BTreeMap<Digest, StagedLayer>,
    publication: Publication,
) -> Result<Vec<(StagingDirectory, Digest)>, CommitError> {
    let mut below: Vec<PathBuf> = Vec::new();
    let mut publish = Vec::new();
    for NamedLayer { name: chain, is_old, blob: promised, diff_id } in layers.iter().copied() {
        let Some(layer) = staged.remove(&chain) else {
            match layout.has_layer(chain) {
                true => below.push(layout.tree(chain)),
                false => return Err(CommitError::Missing(chain)),
            }
            continue;
        };
        let StagedLayer { directory, blob, blob_size: _, diff_id: actual, unpacked } = layer;
        if actual != diff_id {
            return Err(CommitError::DiffId { expected: diff_id, actual });
        }
        if is_old {
            // It was here a moment ago.
            return Err(CommitError::Missing(chain));
        }
        // The name is made of it: this is what keeps a layer from passing for another one.
        if blob != promised {
            return Err(CommitError::Blob { expected: promised, actual: blob });
        }
        complete_implicit(&directory.tree(), &below, &unpacked.implicit).map_err(failed("set attributes of directories"))?;
        if unpacked.lost_xattrs > 0 {
            tracing::warn!(layer = %blob, count = unpacked.lost_xattrs, "the file system cannot store all extended attributes of the layer");
        }
        let list = directory.path().join(FILES);
        let list = write_list(&directory.tree(), &list, &unpacked.sums).map_err(failed("list the layer's files"))?;
        let record = LayerRecord {
            version: VERSION,
            files: Some(list.digest),
            boot_id: Some(layout.boot_id().to_owned()),
            diff_id: actual,
            blob,
            bytes: unpacked.bytes,
            entries: unpacked.inodes(),
            disk_bytes: list.on_disk.saturating_add(OWN_DISK_BYTES),
            opaque_root: unpacked.opaque_root,
            ahead: publication == Publication::Ahead,
        };
        let text = serde_json::to_vec(&record)
            .map_err(|error| CommitError::Io { operation: "write the layer's record", source: error.into() })?;
        std::fs::write(directory.path().join(LAYER_RECORD), text).map_err(failed("write the layer's record"))?;
        below.push(directory.tree());
        publish.push((directory, chain));
    }
    Ok(publish)
}

fn publish_layers(layout: &Layout, publish: Vec<(StagingDirectory, Digest)>) -> Result<(), CommitError> {
    if publish.is_empty() {
        return Ok(());
    }
    for (directory, chain) in publish {
        let target = layout.layer(chain);
        match layout.is_replaced(chain) {
            true => directory.exchange(&target, &layout.exchanged(chain)).map_err(failed("exchange a layer"))?,
            false => directory.publish(&target).map_err(failed("publish a layer"))?,
        }
    }
    sync_directory(&layout.layers()).map_err(failed("sync the layers' directory"))
}

/// Directories that have no entry of their own look as in the layers below, as if something had been written into them there.
fn complete_implicit(tree: &Path, below: &[PathBuf], implicit: &[Vec<u8>]) -> io::Result<()> {
    if implicit.is_empty() {
        return Ok(());
    }
    let root: OwnedFd = File::open(tree)?.into();
    let stack = LayerStack::new(below);
    // Deepest first, for completing one sets nothing of its parents; a path sorts after its parents.
    for path in implicit.iter().rev() {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = openat2(&root, &path[..], flags, Mode::empty(), resolve) else {
            // Replaced by something else later in the archive.
            continue;
        };
        match stack.directory(path)? {
            Some(model) => copy_looks(&model, &directory)?,
            None => futimens(&directory, &times(0, 0))?,
        }
    }
    Ok(())
}

fn copy_looks(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let stat = fstat(from)?;
    fchown(to, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    fchmod(to, Mode::from_raw_mode(stat.st_mode))?;
    let mut names = vec![0_u8; 64 << 10];
    let length = flistxattr(from, &mut names[..])?;
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty() && !name.starts_with(b"trusted.overlay.")) {
        let mut value = vec![0_u8; 64 << 10];
        let length = fgetxattr(from, name, &mut value[..])?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    futimens(to, &times(stat.st_mtime, stat.st_mtime_nsec as i64))?;
    Ok(())
}

fn times(seconds: i64, nanoseconds: i64) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Timestamps { last_access: time, last_modification: time }
}

fn sync_file_system(path: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(path)?)?;
    Ok(())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
