//! Applies a layer archive to a directory, as an overlayfs lower layer, with no way out of it.
//!
//! In: a tar stream and an empty directory. Out: the directory, with whiteouts as overlayfs has them, and [`Unpacked`]: what was done, which
//! parents were made without an entry of their own, and which directories are to be marked opaque ([`mark_opaque`]), for which a job has no
//! rights. Nothing is synced.
//!
//! No way out: parents are opened by `openat2` with the target as root, so that neither `..` nor absolute paths nor symlinks lead
//! elsewhere; everything else is made exclusively, by name in an open directory; what overlayfs gives a meaning of its own
//! (0:0 devices, `trusted.overlay.*`) is refused or dropped. A [`Meter`] bounds everything that makes inodes, fills the disk or stays in
//! memory, and ends the layer before the disk is full.

mod meter;
mod path;
mod tree;
mod write_back;
mod xattr;

pub use meter::Meter;
pub use path::BadPath;
pub use xattr::OPAQUE;

use super::limits::Exceeded;
use super::space::SpaceError;
use super::tar::{Entry, EntryKind, Source, TarError, TarReader};
use rustix::fs::{Mode, OFlags, ResolveFlags, XattrFlags, fsetxattr, openat2};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use tree::Tree;

/// Result of unpacking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Entries of the archive.
    pub entries: u64,
    /// Bytes of content of all files.
    pub bytes: u64,
    /// Directories made because something in them has an entry and they have none. They should look as in the layer below.
    pub implicit: Vec<Vec<u8>>,
    /// Directories in which nothing of the layers below shows; they are not marked yet.
    pub opaque: Vec<Vec<u8>>,
    /// The root itself is opaque: nothing below this layer shows. overlayfs ignores such a mark on a root.
    pub opaque_root: bool,
    /// Extended attributes that the file system cannot store.
    pub lost_xattrs: u64,
    /// Checksums of files by their inodes, as [`super::check::sum`] has them, at most [`SUMS_MAX`]. Of a layer alone.
    pub sums: BTreeMap<u64, u32>,
}

/// Checksums that are kept of a layer: a bound of the memory for them. Files beyond are read once more.
pub const SUMS_MAX: usize = 1 << 18;

impl Unpacked {
    /// Entries and what was made without one.
    pub fn inodes(&self) -> u64 {
        self.entries + self.implicit.len() as u64
    }
}

/// Reason why a layer cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive.
    #[error(transparent)]
    Tar(#[from] TarError),
    /// A path that leads nowhere good.
    #[error("archive entry {entry:?}")]
    Path {
        /// As written.
        entry: String,
        /// The error in the path.
        #[source]
        source: BadPath,
    },
    /// Something that no layer may contain.
    #[error("archive entry {entry:?} {reason}")]
    Refused {
        /// As written.
        entry: String,
        /// The reason.
        reason: &'static str,
    },
    /// The file system.
    #[error("{operation} {entry:?}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// The entry's path.
        entry: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Too much of something.
    #[error(transparent)]
    Limit(#[from] Exceeded),
    /// The disk is needed for other things.
    #[error("no space for the layer")]
    Space(#[from] SpaceError),
}

/// The process that unpacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// It does other things, too: its working directory is not to be changed. It has `/proc`.
    Shared,
    /// A job, whose root is the directory. It has nothing else, `/proc` included.
    OfItsOwn,
}

/// Kinds of content of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// A layer of an image: some names are whiteouts.
    Layer,
    /// The data of a volume: all names mean themselves, and there are no devices.
    Volume,
}

/// Unpacks the layer `source` into the empty directory `root` and reads `source` to its end.
pub fn unpack<R: Source>(source: R, root: OwnedFd, meter: Meter) -> Result<Unpacked, UnpackError> {
    unpack_content(Content::Layer, Process::Shared, source, root, meter)
}

/// As [`unpack`], in a process that does nothing else and whose root directory `root` is. Changes the working directory.
pub(super) fn unpack_alone<R: Source>(source: R, root: OwnedFd, meter: Meter) -> Result<Unpacked, UnpackError> {
    unpack_content(Content::Layer, Process::OfItsOwn, source, root, meter)
}

/// Unpacks the data of a volume as [`unpack`] does a layer, without whiteouts; devices are refused.
pub fn unpack_volume<R: Source>(source: R, root: OwnedFd, meter: Meter) -> Result<Unpacked, UnpackError> {
    unpack_content(Content::Volume, Process::Shared, source, root, meter)
}

/// Marks the directories `opaque` below `root` as overlayfs wants it. Whoever made the tree has no say in where the marks go: they stay below `root`, and
/// on its file system.
pub fn mark_opaque(root: &OwnedFd, opaque: &[Vec<u8>]) -> io::Result<()> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    for path in opaque {
        match openat2(root, &path[..], OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(directory) => fsetxattr(&directory, OPAQUE, b"y", XattrFlags::empty())?,
            // Replaced through another path (a symlink in between).
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn unpack_content<R: Source>(
    content: Content,
    process: Process,
    source: R,
    root: OwnedFd,
    meter: Meter,
) -> Result<Unpacked, UnpackError> {
    let mut reader = TarReader::new(source);
    let mut tree = Tree::new(content, process, root, meter);
    while let Some(entry) = reader.next_entry()? {
        tree.meter.entry(&entry)?;
        apply(content, &mut tree, &mut reader, &entry)?;
    }
    reader.drain()?;
    tree.finish()
}

fn apply<R: Source>(content: Content, tree: &mut Tree, reader: &mut TarReader<R>, entry: &Entry) -> Result<(), UnpackError> {
    let depth = tree.meter.depth();
    let bad_path = |source| UnpackError::Path { entry: lossy(&entry.path), source };
    let path = path::clean(&entry.path, depth).map_err(bad_path)?;
    if path.is_empty() {
        return match entry.kind {
            EntryKind::Directory => tree.root_attributes(entry),
            _ => Err(UnpackError::Refused { entry: lossy(&entry.path), reason: "is the root but not a directory" }),
        };
    }
    let whiteout = match content {
        Content::Layer => path::whiteout(&path).map_err(bad_path)?,
        Content::Volume => path::Whiteout::No,
    };
    match whiteout {
        path::Whiteout::No => {}
        path::Whiteout::Of(target) => return tree.whiteout(&target),
        path::Whiteout::Opaque(directory) => return tree.opaque(&directory),
        path::Whiteout::Ignored => return Ok(()),
    }
    match entry.kind {
        EntryKind::Directory => tree.directory(&path, entry),
        EntryKind::File => tree.file(&path, entry, reader),
        EntryKind::Symlink => match entry.link.is_empty() {
            false => tree.symlink(&path, entry),
            true => Err(UnpackError::Refused { entry: lossy(&entry.path), reason: "is a link without a target" }),
        },
        EntryKind::HardLink => {
            let target = path::clean(&entry.link, depth).map_err(bad_path)?;
            match target.is_empty() {
                false => tree.hard_link(&path, &target),
                true => Err(UnpackError::Refused { entry: lossy(&entry.path), reason: "is a hard link to the root" }),
            }
        }
        EntryKind::CharDevice | EntryKind::BlockDevice if content == Content::Volume => {
            Err(UnpackError::Refused { entry: lossy(&entry.path), reason: "is a device, which a volume cannot have" })
        }
        EntryKind::CharDevice | EntryKind::BlockDevice | EntryKind::Fifo => match (entry.kind, entry.device.unwrap_or_default()) {
            // This is overlayfs's whiteout: a layer that brings one hides files without saying so.
            (EntryKind::CharDevice, (0, 0)) => Err(UnpackError::Refused { entry: lossy(&entry.path), reason: "is a device 0:0" }),
            _ => tree.node(&path, entry),
        },
    }
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
