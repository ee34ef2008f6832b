//! The entries of a tree, read one after the other. Memory is needed for the names of the directories on the way, and for no other entry.

use super::list::Entry;
use flate2::Crc;
use rustix::fs::{
    Advice, AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat, fadvise, fgetxattr, flistxattr, openat, readlinkat, seek, statat,
};
use rustix::io::{Errno, pread};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Blocks of zeros count as holes, for a file system may make the one of the other.
const BLOCK: usize = 4096;
/// Bytes read at once.
const READ: usize = 64 * BLOCK;
/// Names and values of extended attributes.
const XATTR_MAX: usize = 64 << 10;
/// Levels of directories, more than any layer has that is unpacked as it says. A job that was taken over may leave more.
const LEVELS: usize = 400;

/// Place that a tree is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFrom {
    /// The memory, as far as it was written just now.
    Memory,
    /// The disk, whatever the memory has of it.
    Disk,
}

/// Passes each entry of a tree with its path to `take`, or the reason why it cannot be read: a directory before its entries, and these by their names.
/// Returns the bytes of content that were read.
pub(super) fn walk(tree: &Path, from: ReadFrom, take: &mut Take<'_>) -> io::Result<u64> {
    let mut walk = Walk { take, bytes: 0, linked: BTreeMap::new(), buffer: vec![0; READ], from, level: 0 };
    let root: OwnedFd = File::open(tree)?.into();
    let mut crc = Crc::new();
    xattrs(&root, &mut crc)?;
    (walk.take)(&[], Ok(entry(&rustix::fs::fstat(&root)?, crc.sum())))?;
    walk.directory(&root, &mut Vec::new())?;
    Ok(walk.bytes)
}

/// Receiver of entries. Its error ends the walk.
pub(super) type Take<'a> = dyn FnMut(&[u8], io::Result<Entry>) -> io::Result<()> + 'a;

/// A tree being read.
struct Walk<'a, 'b> {
    take: &'a mut Take<'b>,
    /// Bytes of content read.
    bytes: u64,
    /// Checksums of files with several names, by inode.
    linked: BTreeMap<u64, u32>,
    buffer: Vec<u8>,
    from: ReadFrom,
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
        let mut crc = Crc::new();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
                let opened = openat(directory, name, flags, Mode::empty())?;
                xattrs(&opened, &mut crc)?;
                return Ok((entry(&stat, crc.sum()), Some(opened)));
            }
            FileType::RegularFile => {
                let sum = match self.linked.get(&stat.st_ino) {
                    Some(sum) => *sum,
                    None => self.file(directory, name, &stat)?,
                };
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

    fn file(&mut self, directory: &OwnedFd, name: &std::ffi::CStr, stat: &Stat) -> io::Result<u32> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOATIME;
        let file = openat(directory, name, flags, Mode::empty())?;
        if self.from == ReadFrom::Disk {
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
        xattrs(&file, &mut crc)?;
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
            for (number, block) in self.buffer[..filled].chunks(BLOCK).enumerate() {
                if block.iter().any(|byte| *byte != 0) {
                    crc.update(&(at + (number * BLOCK) as u64).to_le_bytes());
                    crc.update(block);
                }
            }
            at += filled as u64;
            self.bytes += filled as u64;
        }
        Ok(at)
    }
}

/// Adds extended attributes, but labels that this host sets.
fn xattrs(file: &OwnedFd, crc: &mut Crc) -> io::Result<()> {
    // The length alone: most files have none.
    match flistxattr(file, &mut [0_u8; 0][..]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut names = vec![0_u8; XATTR_MAX];
    let length = flistxattr(file, &mut names[..])?;
    let mut names: Vec<&[u8]> = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    for name in names.into_iter().filter(|name| *name != b"security.selinux") {
        let mut value = vec![0_u8; XATTR_MAX];
        let length = fgetxattr(file, name, &mut value[..])?;
        crc.update(name);
        crc.update(&[0]);
        crc.update(&value[..length]);
    }
    Ok(())
}

fn entry(stat: &Stat, sum: u32) -> Entry {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = if kind == FileType::RegularFile { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 };
    let device = if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) { stat.st_rdev } else { 0 };
    Entry { mode: stat.st_mode, uid: stat.st_uid, gid: stat.st_gid, size, device, sum }
}
