//! The entries of a tree, read one after the other. Memory is needed for the names of the directories on the way, and for no other entry.

use super::list::Entry;
use super::sum::{BLOCK, add_blocks, add_xattrs};
use flate2::Crc;
use rustix::fs::{Advice, AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat, fadvise, openat, readlinkat, seek, statat};
use rustix::io::{Errno, pread};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Bytes read at once.
const READ: usize = 64 * BLOCK;
/// Levels of directories, more than any layer has that is unpacked as it says. A job that was taken over may leave more.
const LEVELS: usize = 400;

/// Place that a tree is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFrom<'a> {
    /// The memory: the tree was written just now. Files whose checksums are known, by their inodes, are not read.
    Memory(&'a BTreeMap<u64, u32>),
    /// The disk, whatever the memory has of it.
    Disk,
}

/// Amounts of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// Bytes of content that were read.
    pub(super) read: u64,
    /// Bytes on disk, as `du` counts them: a file with several names once.
    pub(super) on_disk: u64,
}

/// Passes each entry of a tree with its path to `take`, or the reason why it cannot be read: a directory before its entries, and these by their names.
pub(super) fn walk(tree: &Path, from: ReadFrom<'_>, take: &mut Take<'_>) -> io::Result<Walked> {
    let (walked, linked, counted) = Default::default();
    let mut walk = Walk { take, walked, linked, counted, buffer: vec![0; READ], from, level: 0 };
    let root: OwnedFd = File::open(tree)?.into();
    let mut crc = Crc::new();
    add_xattrs(&mut crc, &root)?;
    let stat = rustix::fs::fstat(&root)?;
    walk.count(&stat);
    (walk.take)(&[], Ok(entry(&stat, crc.sum())))?;
    walk.directory(&root, &mut Vec::new())?;
    Ok(walk.walked)
}

/// Receiver of entries. Its error ends the walk.
pub(super) type Take<'a> = dyn FnMut(&[u8], io::Result<Entry>) -> io::Result<()> + 'a;

/// A tree being read.
struct Walk<'a, 'b> {
    take: &'a mut Take<'b>,
    walked: Walked,
    /// Checksums of files with several names, by inode.
    linked: BTreeMap<u64, u32>,
    /// Inodes with several names whose bytes on disk are counted.
    counted: BTreeSet<u64>,
    buffer: Vec<u8>,
    from: ReadFrom<'a>,
    /// Of the directory that is read.
    level: usize,
}

impl Walk<'_, '_> {
    fn directory(&mut self, directory: &OwnedFd, path: &mut Vec<u8>) -> io::Result<()> {
        if self.level == LEVELS {
            return (self.take)(path, Err(io::Error::other(format!("a layer has at most {LEVELS} levels of directories"))));
        }
        self.level += 1;
        // All names first, so that a deep tree needs one descriptor for each level.
        let names = Dir::read_from(directory).and_then(|names| names.map(|found| Ok(found?.file_name().to_owned())).collect());
        let mut names: Vec<_> = match names {
            Ok(names) => names,
            Err(error) => {
                self.level -= 1;
                return (self.take)(path, Err(error.into()));
            }
        };
        names.sort_unstable();
        for name in names.iter().filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            match self.read(directory, name) {
                Ok((entry, below)) => {
                    (self.take)(path, Ok(entry))?;
                    below.map_or(Ok(()), |below| self.directory(&below, path))?;
                }
                Err(error) => (self.take)(path, Err(error))?,
            }
            path.truncate(length);
        }
        self.level -= 1;
        Ok(())
    }

    /// Reads an entry; with a directory, it is opened.
    fn read(&mut self, directory: &OwnedFd, name: &CStr) -> io::Result<(Entry, Option<OwnedFd>)> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.count(&stat);
        let mut crc = Crc::new();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
                let opened = openat(directory, name, flags, Mode::empty())?;
                add_xattrs(&mut crc, &opened)?;
                return Ok((entry(&stat, crc.sum()), Some(opened)));
            }
            FileType::RegularFile => {
                let known = match self.from {
                    ReadFrom::Memory(sums) => sums.get(&stat.st_ino),
                    ReadFrom::Disk => None,
                };
                if let Some(sum) = known.or_else(|| self.linked.get(&stat.st_ino)) {
                    return Ok((entry(&stat, *sum), None));
                }
                let sum = self.file(directory, name, &stat)?;
                if stat.st_nlink > 1 {
                    self.linked.insert(stat.st_ino, sum);
                }
                return Ok((entry(&stat, sum), None));
            }
            FileType::Symlink => crc.update(readlinkat(directory, name, Vec::new())?.to_bytes()),
            _ => {}
        }
        Ok((entry(&stat, crc.sum()), None))
    }

    fn count(&mut self, stat: &Stat) {
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_directory || stat.st_nlink == 1 || self.counted.insert(stat.st_ino) {
            self.walked.on_disk += u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512);
        }
    }

    fn file(&mut self, directory: &OwnedFd, name: &CStr, stat: &Stat) -> io::Result<u32> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOATIME;
        let file = openat(directory, name, flags, Mode::empty())?;
        if matches!(self.from, ReadFrom::Disk) {
            // What is in memory says nothing of the disk. What is mapped stays.
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        let mut crc = Crc::new();
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        // The zeros of a hole are the same, and most files are small.
        let mut at = if size <= READ as u64 { self.extent(&file, 0, size, size, &mut crc)? } else { 0 };
        while at < size {
            let data = match seek(&file, SeekFrom::Data(at)) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let end = seek(&file, SeekFrom::Hole(data))?.min(size);
            at = self.extent(&file, data - data % BLOCK as u64, end, size, &mut crc)?;
        }
        add_xattrs(&mut crc, &file)?;
        Ok(crc.sum())
    }

    /// Adds what is between two offsets of a file of `size` bytes, in whole blocks; the first one is that of a block. Returns the offset after it.
    fn extent(&mut self, file: &OwnedFd, mut at: u64, end: u64, size: u64, crc: &mut Crc) -> io::Result<u64> {
        while at < end {
            let rest = (end.next_multiple_of(BLOCK as u64).min(size) - at).min(READ as u64);
            let (mut filled, wanted) = (0, usize::try_from(rest).unwrap_or(READ));
            while filled < wanted {
                match pread(file, &mut self.buffer[filled..wanted], at + filled as u64)? {
                    0 => break,
                    count => filled += count,
                }
            }
            if filled == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            add_blocks(crc, at, &self.buffer[..filled]);
            at += filled as u64;
            self.walked.read += filled as u64;
        }
        Ok(at)
    }
}

fn entry(stat: &Stat, sum: u32) -> Entry {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = if kind == FileType::RegularFile { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 };
    let device = if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) { stat.st_rdev } else { 0 };
    Entry { mode: stat.st_mode, uid: stat.st_uid, gid: stat.st_gid, size, device, sum }
}
