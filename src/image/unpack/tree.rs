//! The directory that a layer is applied to.

use super::super::check::sum::WrittenSum;
use super::super::tar::{Entry, EntryKind, Source, TarReader};
use super::path::split;
use super::write_back::WriteBack;
use super::xattr::{self, Target};
use super::{Content, Meter, Process, SUMS_MAX, UnpackError, Unpacked, lossy};
use podstead_sys::remove_tree::remove_at;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chmodat, chownat, fchmod, fchown, fstat,
    ftruncate, futimens, linkat, makedev, mkdirat, mknodat, openat, openat2, statat, symlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::process::{fchdir, getcwd};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const IN_ROOT: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

/// A directory being filled.
pub(super) struct Tree {
    root: OwnedFd,
    content: Content,
    process: Process,
    pub(super) meter: Meter,
    /// The parent of the entry before: archives go directory by directory.
    parent: Option<(Vec<u8>, Rc<OwnedFd>)>,
    /// Times of directories are set at the end, since every change in one sets its time.
    times: BTreeMap<Vec<u8>, Timespec>,
    implicit: BTreeSet<Vec<u8>>,
    opaque: BTreeSet<Vec<u8>>,
    opaque_root: bool,
    lost_xattrs: u64,
    /// Checksums of files by their inodes.
    sums: BTreeMap<u64, u32>,
    write_back: WriteBack,
}

/// Existing entry that a new one replaces.
#[derive(PartialEq, Eq)]
enum Replaced {
    Nothing,
    Whiteout,
    Other,
}

/// Keeps a checksum, of at most [`SUMS_MAX`]: without it, the file is read once more. The inode may have been that of a file which is gone.
fn keep(sums: &mut BTreeMap<u64, u32>, inode: u64, sum: Option<u32>) {
    sums.remove(&inode);
    if let Some(sum) = sum.filter(|_| sums.len() < SUMS_MAX) {
        sums.insert(inode, sum);
    }
}

fn failed(operation: &'static str, path: &[u8], errno: Errno) -> UnpackError {
    UnpackError::Io { operation, entry: lossy(path), source: errno.into() }
}

/// Something of the archive up to an entry cannot be written to the disk.
fn unwritten(path: &[u8], source: std::io::Error) -> UnpackError {
    UnpackError::Io { operation: "write to the disk what came before", entry: lossy(path), source }
}

fn timespec(entry: &Entry) -> Timespec {
    Timespec { tv_sec: entry.mtime.0, tv_nsec: entry.mtime.1.into() }
}

fn timestamps(time: Timespec) -> Timestamps {
    Timestamps { last_access: time, last_modification: time }
}

fn owner(entry: &Entry) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)))
}

impl Tree {
    pub(super) fn new(content: Content, process: Process, root: OwnedFd, meter: Meter) -> Self {
        let (times, implicit, opaque, sums) = Default::default();
        let write_back = match process {
            Process::Shared => WriteBack::off(),
            Process::OfItsOwn => WriteBack::default(),
        };
        let (parent, opaque_root, lost_xattrs) = (None, false, 0);
        Self { root, content, process, meter, parent, times, implicit, opaque, opaque_root, lost_xattrs, sums, write_back }
    }

    /// Owner, mode and attributes of the root. Its time is set at the end, too.
    pub(super) fn root_attributes(&mut self, entry: &Entry) -> Result<(), UnpackError> {
        self.lost_xattrs += attributes(self.root.as_fd(), entry).map_err(|error| failed("set attributes of", b"/", error))?;
        self.times.insert(Vec::new(), timespec(entry));
        Ok(())
    }

    pub(super) fn directory(&mut self, path: &[u8], entry: &Entry) -> Result<(), UnpackError> {
        let (parent, name) = self.parent_of(path)?;
        let mut replaced = Replaced::Nothing;
        let mode = Mode::from_raw_mode(0o700);
        match mkdirat(&*parent, name, mode) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                if self.type_of(&parent, name, path)? != Some(FileType::Directory) {
                    replaced = self.remove(&parent, path)?;
                    mkdirat(&*parent, name, mode).map_err(|error| failed("create directory", path, error))?;
                }
            }
            Err(error) => return Err(failed("create directory", path, error)),
        }
        let opened = openat(&*parent, name, DIRECTORY, Mode::empty()).map_err(|error| failed("open directory", path, error))?;
        self.lost_xattrs += attributes(opened.as_fd(), entry).map_err(|error| failed("set attributes of", path, error))?;
        if replaced == Replaced::Whiteout {
            self.mark_opaque(path)?;
        }
        self.implicit.remove(path);
        if !self.times.contains_key(path) {
            self.meter.keep(path)?;
        }
        self.times.insert(path.to_vec(), timespec(entry));
        Ok(())
    }

    pub(super) fn file<R: Source>(&mut self, path: &[u8], entry: &Entry, reader: &mut TarReader<R>) -> Result<(), UnpackError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = |parent: &OwnedFd, name: &[u8]| openat(parent, name, flags, Mode::from_raw_mode(0o600));
        let file = self.create(path, "create file", create)?;
        let written = |error: Errno| failed("write", path, error);
        let mut sum = (self.content == Content::Layer && entry.sparse.is_none()).then(WrittenSum::new);
        match &entry.sparse {
            None => self.write_content(file.as_fd(), reader, 0, entry.size, path, sum.as_mut())?,
            Some(map) => {
                ftruncate(&file, map.real_size).map_err(written)?;
                for (offset, length) in &map.regions {
                    self.write_content(file.as_fd(), reader, *offset, *length, path, None)?;
                }
            }
        }
        self.lost_xattrs += attributes(file.as_fd(), entry).map_err(|error| failed("set attributes of", path, error))?;
        futimens(&file, &timestamps(timespec(entry))).map_err(|error| failed("set times of", path, error))?;
        self.keep_sum(file.as_fd(), sum).map_err(|error| failed("inspect", path, error))?;
        self.write_back.complete(file).map_err(|error| unwritten(path, error))
    }

    /// Keeps the checksum of a complete file, if there is one.
    fn keep_sum(&mut self, file: BorrowedFd<'_>, sum: Option<WrittenSum>) -> rustix::io::Result<()> {
        if self.content == Content::Volume {
            return Ok(());
        }
        let inode = fstat(file)?.st_ino;
        keep(&mut self.sums, inode, sum.and_then(|sum| sum.finish(file).ok()));
        Ok(())
    }

    fn write_content<R: Source>(
        &mut self,
        file: BorrowedFd<'_>,
        reader: &mut TarReader<R>,
        mut offset: u64,
        mut length: u64,
        path: &[u8],
        mut sum: Option<&mut WrittenSum>,
    ) -> Result<(), UnpackError> {
        while length > 0 {
            let mut chunk = reader.chunk(length)?;
            self.meter.content(chunk.len() as u64)?;
            let written = chunk.len() as u64;
            length -= written;
            if let Some(sum) = &mut sum {
                sum.add(chunk);
            }
            while !chunk.is_empty() {
                match rustix::io::pwrite(file, chunk, offset) {
                    Ok(count) => {
                        chunk = &chunk[count..];
                        offset += count as u64;
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(failed("write", path, error)),
                }
            }
            self.write_back.grown(file, written).map_err(|error| unwritten(path, error))?;
        }
        Ok(())
    }

    pub(super) fn symlink(&mut self, path: &[u8], entry: &Entry) -> Result<(), UnpackError> {
        self.create(path, "create symlink", |parent, name| symlinkat(&entry.link[..], parent, name))?;
        self.attributes_by_name(path, entry, None)
    }

    pub(super) fn node(&mut self, path: &[u8], entry: &Entry) -> Result<(), UnpackError> {
        let (kind, device) = match (entry.kind, entry.device) {
            (EntryKind::CharDevice, Some((major, minor))) => (FileType::CharacterDevice, makedev(major, minor)),
            (EntryKind::BlockDevice, Some((major, minor))) => (FileType::BlockDevice, makedev(major, minor)),
            (EntryKind::CharDevice | EntryKind::BlockDevice, None) => {
                return Err(UnpackError::Refused { entry: lossy(path), reason: "is a device without a number" });
            }
            (EntryKind::Fifo | EntryKind::File | EntryKind::Directory | EntryKind::Symlink | EntryKind::HardLink, _) => {
                (FileType::Fifo, 0)
            }
        };
        self.create(path, "create device", |parent, name| mknodat(parent, name, kind, Mode::from_raw_mode(0o600), device))?;
        self.attributes_by_name(path, entry, Some(Mode::from_raw_mode(entry.mode)))
    }

    pub(super) fn hard_link(&mut self, path: &[u8], target: &[u8]) -> Result<(), UnpackError> {
        if path == target {
            return Ok(());
        }
        let (directory, target_name) = split(target);
        let from =
            self.open_directory(directory).map_err(|error| failed("open the target's directory of hard link", path, error))?;
        // The target's last component is not followed: a link to a symlink is another name of the symlink.
        let kind = self.type_of(&from, target_name, target)?;
        match kind {
            Some(FileType::Directory) => {
                return Err(UnpackError::Refused { entry: lossy(path), reason: "is a hard link to a directory" });
            }
            None => {
                return Err(UnpackError::Refused {
                    entry: lossy(path),
                    reason: "is a hard link to a file that is not in this layer",
                });
            }
            Some(_) => {}
        }
        self.create(path, "create hard link", |parent, name| linkat(&from, target_name, parent, name, AtFlags::empty()))
    }

    /// `path` of the layers below does not show. What this layer itself has at `path` stays, wherever the whiteout stands.
    pub(super) fn whiteout(&mut self, path: &[u8]) -> Result<(), UnpackError> {
        let (parent, name) = self.parent_of(path)?;
        match mknodat(&*parent, name, FileType::CharacterDevice, Mode::empty(), 0) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => match self.type_of(&parent, name, path)? {
                Some(FileType::Directory) => self.mark_opaque(path),
                _ => Ok(()),
            },
            Err(error) => Err(failed("create whiteout of", path, error)),
        }
    }

    /// Nothing below shows in the directory `path`.
    pub(super) fn opaque(&mut self, path: &[u8]) -> Result<(), UnpackError> {
        if path.is_empty() {
            self.opaque_root = true;
            return Ok(());
        }
        self.directory_at(path)?;
        self.mark_opaque(path)
    }

    /// Takes note of a mark, which only root may set.
    fn mark_opaque(&mut self, path: &[u8]) -> Result<(), UnpackError> {
        if !self.opaque.contains(path) {
            self.meter.keep(path)?;
            self.opaque.insert(path.to_vec());
        }
        Ok(())
    }

    /// Sets the times of directories.
    pub(super) fn finish(mut self) -> Result<Unpacked, UnpackError> {
        self.parent = None;
        self.write_back.finish().map_err(|error| unwritten(b"", error))?;
        // Deepest first: a path sorts after its parents.
        for (path, time) in self.times.iter().rev() {
            match self.open_directory(path) {
                Ok(directory) => futimens(&directory, &timestamps(*time)).map_err(|error| failed("set times of", path, error))?,
                // Replaced through another path (a symlink in between).
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(failed("open directory", path, error)),
            }
        }
        Ok(Unpacked {
            entries: self.meter.entries,
            bytes: self.meter.bytes,
            implicit: self.implicit.into_iter().collect(),
            opaque: self.opaque.into_iter().collect(),
            opaque_root: self.opaque_root,
            lost_xattrs: self.lost_xattrs,
            sums: self.sums,
        })
    }

    /// Creates an entry exclusively; an existing one (this layer has two entries of that name) is removed first.
    fn create<T>(
        &mut self,
        path: &[u8],
        operation: &'static str,
        make: impl Fn(&OwnedFd, &[u8]) -> rustix::io::Result<T>,
    ) -> Result<T, UnpackError> {
        let (parent, name) = self.parent_of(path)?;
        match make(&parent, name) {
            Err(Errno::EXIST) => {
                self.remove(&parent, path)?;
                make(&parent, name).map_err(|error| failed(operation, path, error))
            }
            result => result.map_err(|error| failed(operation, path, error)),
        }
    }

    /// Attributes of what cannot be opened without side effects. `mode` is `None` for a symlink.
    fn attributes_by_name(&mut self, path: &[u8], entry: &Entry, mode: Option<Mode>) -> Result<(), UnpackError> {
        let (parent, name) = self.parent_of(path)?;
        let error = |error| failed("set attributes of", path, error);
        let (uid, gid) = owner(entry);
        chownat(&*parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW).map_err(error)?;
        if let Some(mode) = mode {
            // fchmodat cannot be told not to follow; what was just made here is no symlink.
            chmodat(&*parent, name, mode, AtFlags::empty()).map_err(error)?;
        }
        if !entry.xattrs.is_empty() {
            let by_path = match self.process {
                Process::Shared => [format!("/proc/self/fd/{}/", parent.as_raw_fd()).as_bytes(), name].concat(),
                Process::OfItsOwn => {
                    fchdir(&*parent).map_err(error)?;
                    name.to_vec()
                }
            };
            let lost = xattr::set(&Target::Path(&by_path), &entry.xattrs);
            self.lost_xattrs +=
                lost.map_err(|source| UnpackError::Io { operation: "set attributes of", entry: lossy(path), source })?;
        }
        utimensat(&*parent, name, &timestamps(timespec(entry)), AtFlags::SYMLINK_NOFOLLOW).map_err(error)
    }

    fn type_of(&self, directory: &OwnedFd, name: &[u8], path: &[u8]) -> Result<Option<FileType>, UnpackError> {
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(failed("inspect", path, error)),
        }
    }

    fn remove(&mut self, parent: &OwnedFd, path: &[u8]) -> Result<Replaced, UnpackError> {
        let (_, name) = split(path);
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed("inspect", path, error))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if matches!(kind, FileType::Directory | FileType::Symlink) {
            // Paths through it lead elsewhere from now on.
            self.parent = None;
            self.forget(path);
        }
        remove_at(parent.as_fd(), name).map_err(|source| UnpackError::Io { operation: "replace", entry: lossy(path), source })?;
        match kind == FileType::CharacterDevice && stat.st_rdev == 0 {
            true => Ok(Replaced::Whiteout),
            false => Ok(Replaced::Other),
        }
    }

    /// A directory is gone with all that was known of it and below it.
    fn forget(&mut self, path: &[u8]) {
        // Exactly the paths that begin with `path/`: the byte after a slash is 0.
        let below = [path, b"/"].concat()..[path, b"0"].concat();
        let known: Vec<Vec<u8>> = self.times.range(below.clone()).map(|(path, _)| path.clone()).collect();
        for path in known.iter().map(Vec::as_slice).chain([path]) {
            self.times.remove(path);
        }
        for set in [&mut self.implicit, &mut self.opaque] {
            let known: Vec<Vec<u8>> = set.range(below.clone()).cloned().collect();
            for path in known.iter().map(Vec::as_slice).chain([path]) {
                set.remove(path);
            }
        }
    }

    /// The open parent directory of a clean path, made if missing, and the last component.
    fn parent_of<'p>(&mut self, path: &'p [u8]) -> Result<(Rc<OwnedFd>, &'p [u8]), UnpackError> {
        let (directory, name) = split(path);
        if let Some((known, opened)) = &self.parent
            && known == directory
        {
            return Ok((Rc::clone(opened), name));
        }
        let opened = Rc::new(self.directory_at(directory)?);
        self.parent = Some((directory.to_vec(), Rc::clone(&opened)));
        Ok((opened, name))
    }

    /// Opens a directory; makes it and its parents if missing.
    fn directory_at(&mut self, path: &[u8]) -> Result<OwnedFd, UnpackError> {
        let error = |error| failed("open directory", path, error);
        match self.open_directory(path) {
            Err(Errno::NOENT) => {}
            result => return result.map_err(error),
        }
        for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/').chain([(path.len(), &b'/')]) {
            let ancestor = &path[..end];
            match self.open_directory(ancestor) {
                Ok(_) => continue,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(error(errno)),
            }
            let (directory, name) = split(ancestor);
            let parent = self.open_directory(directory).map_err(error)?;
            self.meter.implicit(ancestor)?;
            match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => {}
                // A symlink that leads to nothing in this layer.
                Err(Errno::EXIST) => {
                    return Err(UnpackError::Refused { entry: lossy(path), reason: "is below a dangling symlink" });
                }
                Err(errno) => return Err(error(errno)),
            }
            let made = openat(&parent, name, DIRECTORY, Mode::empty()).map_err(error)?;
            // As the process's umask and a setgid parent would not have it.
            fchown(&made, Some(Uid::ROOT), Some(Gid::ROOT))
                .and_then(|()| fchmod(&made, Mode::from_raw_mode(0o755)))
                .map_err(error)?;
            self.implicit.insert(ancestor.to_vec());
        }
        self.open_directory(path).map_err(error)
    }

    /// Opens a directory below the root; symlinks on the way are resolved with this root as `/`.
    fn open_directory(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |resolve| {
            loop {
                // EAGAIN: something was renamed meanwhile, anywhere on the host.
                match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    result => return result,
                }
            }
        };
        match open(IN_ROOT | ResolveFlags::NO_SYMLINKS) {
            Err(Errno::LOOP) => {}
            result => return result,
        }
        let opened = open(IN_ROOT)?;
        // Links to links could build a tree deeper than any path in the archive.
        let depth = |fd: BorrowedFd<'_>| -> rustix::io::Result<usize> {
            let path = match self.process {
                Process::Shared => {
                    rustix::fs::readlinkat(rustix::fs::CWD, format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?
                }
                Process::OfItsOwn => {
                    fchdir(fd)?;
                    getcwd(Vec::new())?
                }
            };
            Ok(path.as_bytes().split(|byte| *byte == b'/').filter(|component| !component.is_empty()).count())
        };
        match depth(opened.as_fd())?.saturating_sub(depth(self.root.as_fd())?) > self.meter.depth() {
            true => Err(Errno::NAMETOOLONG),
            false => Ok(opened),
        }
    }
}

/// Owner first: changing it drops setuid bits and file capabilities.
fn attributes(fd: BorrowedFd<'_>, entry: &Entry) -> rustix::io::Result<u64> {
    let (uid, gid) = owner(entry);
    fchown(fd, uid, gid)?;
    fchmod(fd, Mode::from_raw_mode(entry.mode))?;
    let lost = xattr::set(&Target::Open(fd), &entry.xattrs);
    lost.map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_beyond_the_limit_are_left_out() {
        let mut sums: BTreeMap<u64, u32> = (0..SUMS_MAX as u64).map(|inode| (inode, 1)).collect();
        let most = SUMS_MAX as u64;
        keep(&mut sums, most, Some(2));
        assert_eq!((sums.len(), sums.get(&most)), (SUMS_MAX, None));
        // Another file has the inode of one that was replaced: the old checksum is never that of the new file.
        keep(&mut sums, 7, Some(3));
        keep(&mut sums, 8, None);
        assert_eq!((sums.get(&7), sums.get(&8)), (Some(&3), None));
        keep(&mut sums, most, Some(4));
        keep(&mut sums, 8, Some(5));
        assert_eq!((sums.get(&most), sums.get(&8), sums.len()), (Some(&4), None, SUMS_MAX));
    }
}
