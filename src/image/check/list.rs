//! The list of a layer's entries, made when the layer is published: whatever the disk makes of them later is seen.
//!
//! Checksums are CRC-32. They find what a disk did: whoever can write into the store could write the list, too.
//!
//! One record for each entry, which ends with a zero byte: mode, user, group, size, device, checksum, path. All of it compressed with zstd.

use flate2::Crc;
use rustix::fs::{
    Advice, AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat, fadvise, fgetxattr, flistxattr, openat, readlinkat, seek, statat,
};
use rustix::io::{Errno, pread};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Name of the list in a layer's directory.
pub(in super::super) const FILES: &str = "files";

/// Blocks of zeros count as holes, for a file system may make the one of the other.
const BLOCK: usize = 4096;
/// Bytes read at once.
const READ: usize = 64 * BLOCK;
/// Names and values of extended attributes.
const XATTR_MAX: usize = 64 << 10;
/// Differences told of a layer; there may be as many as files.
const TOLD: usize = 10;
const LEVEL: i32 = 3;

/// An entry of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// With the type.
    mode: u32,
    uid: u32,
    gid: u32,
    /// Of a file.
    size: u64,
    /// Of a device.
    device: u64,
    /// Of the content or target, and of extended attributes.
    sum: u32,
}

/// Place that a tree is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadFrom {
    /// The memory, as far as it was written just now.
    Memory,
    /// The disk, whatever the memory has of it.
    Disk,
}

/// All entries of a layer, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct FileList(BTreeMap<Vec<u8>, Entry>);

/// Entries that were found, and those that cannot be read.
#[derive(Debug, Default)]
pub(in super::super) struct Found {
    list: FileList,
    unreadable: Vec<(Vec<u8>, io::Error)>,
    /// Bytes of content read.
    pub(in super::super) bytes: u64,
}

/// The list of a tree that was just written, as it is stored. Entries are not kept in memory: a layer may have many.
pub(in super::super) fn list_of(tree: &Path) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    let mut add = |path: &[u8], entry: Entry| {
        let Entry { mode, uid, gid, size, device, sum } = entry;
        write!(encoder, "{mode:o} {uid} {gid} {size} {device} {sum:08x} ")?;
        encoder.write_all(path)?;
        encoder.write_all(&[0])
    };
    let (unreadable, _) = Walk::new(ReadFrom::Memory, &mut add).tree(tree)?;
    match unreadable.into_iter().next() {
        None => encoder.finish(),
        Some((path, error)) => Err(io::Error::new(error.kind(), format!("{}: {error}", shown(&path)))),
    }
}

impl FileList {
    /// Reads all entries of a tree from the disk.
    pub(in super::super) fn read(tree: &Path) -> io::Result<Found> {
        let mut list = Self::default();
        let mut add = |path: &[u8], entry| {
            list.0.insert(path.to_vec(), entry);
            Ok(())
        };
        let (unreadable, bytes) = Walk::new(ReadFrom::Disk, &mut add).tree(tree)?;
        Ok(Found { list, unreadable, bytes })
    }

    /// The list that was stored.
    pub(in super::super) fn decode(stored: &[u8]) -> io::Result<Self> {
        let text = zstd::decode_all(stored)?;
        let records = text.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        let parsed: Option<BTreeMap<Vec<u8>, Entry>> = records.map(parse).collect();
        parsed.map(Self).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a record of it is not one"))
    }

    /// The ways in which a tree differs from the list, for people.
    pub(in super::super) fn differences(&self, found: &Found) -> Vec<String> {
        let unreadable = |path: &[u8]| found.unreadable.iter().find(|(other, _)| other == path).map(|(_, error)| error.to_string());
        let mut told = Vec::new();
        for (path, entry) in &self.0 {
            let what = match found.list.0.get(path) {
                Some(other) if other == entry => continue,
                Some(other) if other.mode != entry.mode || (other.uid, other.gid) != (entry.uid, entry.gid) => {
                    "has another type, mode or owner".to_owned()
                }
                Some(_) => "has another content".to_owned(),
                None => unreadable(path).unwrap_or_else(|| "is missing".to_owned()),
            };
            told.push(format!("{} {what}", shown(path)));
        }
        let known = |path: &&Vec<u8>| !self.0.contains_key(*path);
        told.extend(found.list.0.keys().filter(known).map(|path| format!("{} is not of the layer", shown(path))));
        if told.len() > TOLD {
            let more = told.len() - TOLD;
            told.truncate(TOLD);
            told.push(format!("{more} more"));
        }
        told
    }
}

fn shown(path: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(path).replace(char::is_control, "?"))
}

fn parse(record: &[u8]) -> Option<(Vec<u8>, Entry)> {
    let mut fields = record.splitn(7, |byte| *byte == b' ');
    let mut next = || std::str::from_utf8(fields.next()?).ok();
    let mode = u32::from_str_radix(next()?, 8).ok()?;
    let (uid, gid) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (size, device) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let sum = u32::from_str_radix(next()?, 16).ok()?;
    Some((fields.next()?.to_vec(), Entry { mode, uid, gid, size, device, sum }))
}

fn entry(stat: &Stat, sum: u32) -> Entry {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = if kind == FileType::RegularFile { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 };
    let device = if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) { stat.st_rdev } else { 0 };
    Entry { mode: stat.st_mode, uid: stat.st_uid, gid: stat.st_gid, size, device, sum }
}

/// Paths that cannot be read, with the reason.
type Unreadable = Vec<(Vec<u8>, io::Error)>;

/// A tree being read.
struct Walk<'a> {
    /// Takes each entry.
    add: &'a mut dyn FnMut(&[u8], Entry) -> io::Result<()>,
    unreadable: Unreadable,
    /// Bytes of content read.
    bytes: u64,
    /// Checksums of files with several names, by inode.
    linked: BTreeMap<u64, u32>,
    buffer: Vec<u8>,
    from: ReadFrom,
}

impl<'a> Walk<'a> {
    fn new(from: ReadFrom, add: &'a mut dyn FnMut(&[u8], Entry) -> io::Result<()>) -> Self {
        Self { add, unreadable: Vec::new(), bytes: 0, linked: BTreeMap::new(), buffer: vec![0; READ], from }
    }

    /// Reads all of a tree; returns what cannot be read, and the bytes of content.
    fn tree(mut self, tree: &Path) -> io::Result<(Unreadable, u64)> {
        let root: OwnedFd = File::open(tree)?.into();
        let mut crc = Crc::new();
        xattrs(&root, &mut crc)?;
        (self.add)(&[], entry(&rustix::fs::fstat(&root)?, crc.sum()))?;
        self.directory(&root, &mut Vec::new())?;
        Ok((self.unreadable, self.bytes))
    }

    fn directory(&mut self, directory: &OwnedFd, path: &mut Vec<u8>) -> io::Result<()> {
        // All names first, so that a deep tree needs one descriptor for each level.
        let names = Dir::read_from(directory)?.map(|found| Ok(found?.file_name().to_owned())).collect::<Result<Vec<_>, Errno>>()?;
        for name in names.iter().filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            if let Err(error) = self.entry(directory, name, path) {
                self.unreadable.push((path.clone(), error));
            }
            path.truncate(length);
        }
        Ok(())
    }

    fn entry(&mut self, directory: &OwnedFd, name: &std::ffi::CStr, path: &mut Vec<u8>) -> io::Result<()> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mut crc = Crc::new();
        let mut below = None;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
                let opened = openat(directory, name, flags, Mode::empty())?;
                xattrs(&opened, &mut crc)?;
                below = Some(opened);
            }
            FileType::RegularFile => {
                let sum = match self.linked.get(&stat.st_ino) {
                    Some(sum) => *sum,
                    None => self.file(directory, name, &stat)?,
                };
                if stat.st_nlink > 1 {
                    self.linked.insert(stat.st_ino, sum);
                }
                return (self.add)(path, entry(&stat, sum));
            }
            FileType::Symlink => crc.update(readlinkat(directory, name, Vec::new())?.to_bytes()),
            _ => {}
        }
        (self.add)(path, entry(&stat, crc.sum()))?;
        below.map_or(Ok(()), |below| self.directory(&below, path))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::{FileExt, symlink};

    fn read(tree: &Path) -> Found {
        FileList::read(tree).unwrap()
    }

    fn list(tree: &Path) -> FileList {
        FileList::decode(&list_of(tree).unwrap()).unwrap()
    }

    #[test]
    fn each_change_of_a_tree_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path();
        fs::create_dir_all(tree.join("etc/empty")).unwrap();
        for name in ["content", "gone", "mode"] {
            fs::write(tree.join("etc").join(name), name.repeat(5000)).unwrap();
        }
        symlink("content", tree.join("etc/link")).unwrap();
        fs::hard_link(tree.join("etc/content"), tree.join("etc/other-name")).unwrap();
        let list = list(tree);
        assert_eq!(list.differences(&read(tree)), [""; 0]);
        fs::write(tree.join("etc/content"), "content".repeat(5000).replacen("nt", "nx", 1)).unwrap();
        fs::remove_file(tree.join("etc/gone")).unwrap();
        fs::set_permissions(tree.join("etc/mode"), std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
        fs::remove_file(tree.join("etc/link")).unwrap();
        symlink("contend", tree.join("etc/link")).unwrap();
        fs::write(tree.join("new"), "").unwrap();
        let wanted = [
            "/etc/content has another content",
            "/etc/gone is missing",
            "/etc/link has another content",
            "/etc/mode has another type, mode or owner",
            "/etc/other-name has another content",
            "/new is not of the layer",
        ];
        assert_eq!(list.differences(&read(tree)), wanted);
    }

    #[test]
    fn holes_and_zeros_are_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        for tree in [&one, &other] {
            fs::create_dir(tree).unwrap();
        }
        let file = fs::File::create(one.join("file")).unwrap();
        file.set_len(1 << 40).unwrap();
        file.write_at(b"x", 5 << 20).unwrap();
        let file = fs::File::create(other.join("file")).unwrap();
        file.write_at(&vec![0; 6 << 20], 0).unwrap();
        file.write_at(b"x", 5 << 20).unwrap();
        file.set_len(1 << 40).unwrap();
        let (list, found) = (list(&one), read(&other));
        assert_eq!(list.differences(&found), [""; 0]);
        assert!(found.bytes < 8 << 20);
        file.write_at(b"x", (5 << 20) + 4096).unwrap();
        assert_eq!(list.differences(&read(&other)), ["/file has another content"]);
    }

    #[test]
    fn many_differences_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let list = list(directory.path());
        for number in 0..TOLD + 5 {
            fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        let told = list.differences(&read(directory.path()));
        assert_eq!((told.len(), told.last().map(String::as_str)), (TOLD + 1, Some("5 more")));
    }

    proptest! {
        #[test]
        fn no_stored_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[0-7]{1,6} ([0-9]{1,3} ){4}[0-9a-f]{8} [a-z/ ]{0,9}") {
            drop(FileList::decode(&bytes));
            drop(FileList::decode(&zstd::encode_all(&bytes[..], 1).unwrap()));
            let whole = zstd::encode_all(text.as_bytes(), 1).unwrap();
            prop_assert_eq!(FileList::decode(&whole).unwrap().0.len(), 1);
        }
    }
}
