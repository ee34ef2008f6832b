//! Resource usage of one layer, against the limits of its image.

use super::super::limits::{Bound, Budget, Limits, check};
use super::super::space::{Space, SpaceWatch};
use super::super::tar::Entry;
use super::UnpackError;
use std::sync::Arc;

/// Memory for a path beside its bytes: a node's share of a map, its times, and the allocator's rounding.
const PATH_OVERHEAD: u64 = 96;
/// The same for an extended attribute. The parser has them all at once.
const XATTR_OVERHEAD: u64 = 32;

/// Counts what one layer takes.
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    image: Arc<Budget>,
    watch: Option<SpaceWatch>,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    implicit_directories: u64,
    path_memory: u64,
    xattr_bytes: u64,
}

impl Meter {
    /// A meter for a layer of the image whose budget is `image`, unpacked to `space`.
    pub fn new(limits: &Limits, image: &Arc<Budget>, space: &Space) -> Self {
        Self { watch: Some(SpaceWatch::new(space.clone())), ..Self::part_of(limits, image) }
    }

    /// A meter for a layer that is an image of its own, wherever it is unpacked to.
    pub fn alone(limits: &Limits) -> Self {
        Self::part_of(limits, &Arc::new(Budget::of(*limits, 1)))
    }

    /// A meter for a layer of the image whose budget is `image`. Somebody else looks at the disk.
    pub(in super::super) fn part_of(limits: &Limits, image: &Arc<Budget>) -> Self {
        let (limits, image) = (*limits, Arc::clone(image));
        Self { limits, image, watch: None, entries: 0, bytes: 0, implicit_directories: 0, path_memory: 0, xattr_bytes: 0 }
    }

    /// Components of a path at most.
    pub(super) fn depth(&self) -> usize {
        self.limits.depth
    }

    /// An entry of the archive, before anything of it is made.
    pub(super) fn entry(&mut self, entry: &Entry) -> Result<(), UnpackError> {
        self.entries += 1;
        // An archive with several images has a larger budget, one layer has not.
        check(Bound::Entries, self.entries, self.limits.entries)?;
        self.image.take_entries(1)?;
        self.bytes = self.bytes.saturating_add(entry.size);
        check(Bound::UnpackedBytes, self.bytes, self.limits.unpacked_bytes)?;
        if let Some(sparse) = &entry.sparse {
            check(Bound::FileBytes, sparse.real_size, self.limits.file_bytes)?;
        }
        let xattrs = entry.xattrs.iter().map(|(name, value)| (name.len() + value.len()) as u64 + XATTR_OVERHEAD).sum();
        check(Bound::EntryXattrs, xattrs, self.limits.xattr_bytes_per_entry)?;
        self.xattr_bytes += xattrs;
        check(Bound::LayerXattrs, self.xattr_bytes, self.limits.xattr_bytes)?;
        self.passes(0, 1)
    }

    /// A directory that is made without an entry, before it is made.
    pub(super) fn implicit(&mut self, path: &[u8]) -> Result<(), UnpackError> {
        self.implicit_directories += 1;
        check(Bound::ImplicitDirectories, self.implicit_directories, self.limits.implicit_directories)?;
        self.image.take_implicit(path_memory(path))?;
        self.keep(path)?;
        self.passes(0, 1)
    }

    /// A path that stays in memory until the layer is complete.
    pub(super) fn keep(&mut self, path: &[u8]) -> Result<(), UnpackError> {
        self.path_memory += path_memory(path);
        Ok(check(Bound::PathMemory, self.path_memory, self.limits.path_memory)?)
    }

    /// Content that is about to be written.
    pub(super) fn content(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.passes(bytes, 0)
    }

    fn passes(&mut self, bytes: u64, entries: u64) -> Result<(), UnpackError> {
        match &mut self.watch {
            Some(watch) => Ok(watch.passes(bytes, entries)?),
            None => Ok(()),
        }
    }
}

fn path_memory(path: &[u8]) -> u64 {
    path.len() as u64 + PATH_OVERHEAD
}
