//! The archive of a volume: tar in PAX format with owners, modes, times, extended attributes, hard links and holes, compressed with zstd.
//!
//! The tree belongs to containers, which may change it meanwhile and with the intent to mislead: each file is opened by name in an open directory
//! and never through a symlink, and nothing on another file system is read.

use anyhow::{Context as _, bail};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat, fgetxattr, flistxattr, fstat, openat, readlinkat, seek, statat,
};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use tar_core::builder::{EntryBuilder, ExtensionMode, HeaderBuilder};
use tar_core::{EntryType, SparseEntry};

const BLOCK: usize = 512;
const LEVEL: i32 = 3;
/// Directories inside each other; each is open while it is read.
const MAX_DEPTH: usize = 256;
/// A file with more pieces is written with its holes: the list of pieces has to fit into the headers that a reader accepts.
const MAX_PIECES: usize = 4000;

/// Counts of what was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Files, directories and links.
    pub(super) entries: u64,
    /// Bytes of content.
    pub(super) bytes: u64,
    /// Names that no archive of a volume has: sockets and devices.
    pub(super) skipped: Vec<String>,
}

/// Writes the tree below `root`.
pub(super) fn write(root: &Path, out: impl Write) -> anyhow::Result<Written> {
    let opened: OwnedFd = File::open(root).with_context(|| format!("open {}", root.display()))?.into();
    let device = fstat(&opened)?.st_dev;
    let encoder = zstd::Encoder::new(out, LEVEL)?;
    let mut archive = Archive { out: encoder, device, links: BTreeMap::new(), written: Written::default() };
    archive.directory(opened.as_fd(), b".", 0)?;
    archive.out.write_all(&[0; 2 * BLOCK])?;
    let mut out = archive.out.finish()?;
    out.flush()?;
    Ok(archive.written)
}

struct Archive<W: Write> {
    out: zstd::Encoder<'static, W>,
    device: u64,
    /// First names of files with several.
    links: BTreeMap<u64, Vec<u8>>,
    written: Written,
}

impl<W: Write> Archive<W> {
    fn directory(&mut self, directory: BorrowedFd<'_>, path: &[u8], depth: usize) -> anyhow::Result<()> {
        if depth > MAX_DEPTH {
            bail!("{}: more than {MAX_DEPTH} directories inside each other", shown(path));
        }
        let stat = fstat(directory)?;
        let mut entry = self.entry(path, &stat, EntryType::Directory, 0)?;
        attributes(&mut entry, directory)?;
        self.out.write_all(&entry.finish_bytes())?;
        let mut names: Vec<CString> = Vec::new();
        for found in Dir::read_from(directory)? {
            let name = found?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.sort_unstable();
        for name in names {
            let mut below = path.to_vec();
            below.push(b'/');
            below.extend_from_slice(name.to_bytes());
            match self.child(directory, &name, &below, depth) {
                Ok(()) => {}
                // Removed since it was listed.
                Err(error) if error.downcast_ref::<Errno>() == Some(&Errno::NOENT) => {}
                Err(error) => return Err(error.context(format!("archive {}", shown(&below)))),
            }
        }
        Ok(())
    }

    fn child(&mut self, parent: BorrowedFd<'_>, name: &CString, path: &[u8], depth: usize) -> anyhow::Result<()> {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_dev != self.device {
            self.written.skipped.push(format!("{} (another file system)", shown(path)));
            return Ok(());
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match kind {
            FileType::Directory => {
                let opened = openat(parent, name, flags | OFlags::DIRECTORY, Mode::empty())?;
                self.directory(opened.as_fd(), path, depth + 1)
            }
            FileType::RegularFile => {
                if self.is_link(path, &stat)? {
                    return Ok(());
                }
                let opened = openat(parent, name, flags, Mode::empty())?;
                let stat = fstat(&opened)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    bail!("the file was replaced while it was read");
                }
                self.file(opened, path, &stat)
            }
            FileType::Symlink => {
                let target = readlinkat(parent, name, Vec::new())?;
                let mut entry = self.entry(path, &stat, EntryType::Symlink, 0)?;
                entry.link_name(target.to_bytes());
                Ok(self.out.write_all(&entry.finish_bytes())?)
            }
            FileType::Fifo => {
                let mut entry = self.entry(path, &stat, EntryType::Fifo, 0)?;
                Ok(self.out.write_all(&entry.finish_bytes())?)
            }
            FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
                self.written.skipped.push(format!("{} ({kind:?})", shown(path)));
                Ok(())
            }
        }
    }

    /// Writes a further name of a file that is in the archive already.
    fn is_link(&mut self, path: &[u8], stat: &Stat) -> anyhow::Result<bool> {
        if stat.st_nlink < 2 {
            return Ok(false);
        }
        match self.links.get(&stat.st_ino).cloned() {
            Some(first) => {
                let mut entry = self.entry(path, stat, EntryType::Link, 0)?;
                entry.link_name(&first);
                self.out.write_all(&entry.finish_bytes())?;
                Ok(true)
            }
            None => {
                self.links.insert(stat.st_ino, path.to_vec());
                Ok(false)
            }
        }
    }

    fn file(&mut self, opened: OwnedFd, path: &[u8], stat: &Stat) -> anyhow::Result<()> {
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        let pieces = pieces(opened.as_fd(), length)?;
        let stored: u64 = pieces.iter().map(|(_, length)| length).sum();
        let mut entry = self.entry(path, stat, EntryType::Regular, stored)?;
        attributes(&mut entry, opened.as_fd())?;
        if stored != length {
            let map: Vec<SparseEntry> =
                pieces.iter().map(|(offset, length)| SparseEntry { offset: *offset, length: *length }).collect();
            entry.sparse(&map, length);
        }
        self.out.write_all(&entry.finish_bytes())?;
        let mut file = File::from(opened);
        for (offset, length) in pieces {
            seek(&file, SeekFrom::Start(offset))?;
            let copied = io::copy(&mut Read::by_ref(&mut file).take(length), &mut self.out)?;
            // Cut off meanwhile: the archive keeps the length that its header has.
            io::copy(&mut io::repeat(0).take(length - copied), &mut self.out)?;
        }
        let padding = stored.next_multiple_of(BLOCK as u64) - stored;
        io::copy(&mut io::repeat(0).take(padding), &mut self.out)?;
        self.written.bytes += stored;
        Ok(())
    }

    fn entry(&mut self, path: &[u8], stat: &Stat, kind: EntryType, size: u64) -> anyhow::Result<EntryBuilder> {
        self.written.entries += 1;
        let mut entry = EntryBuilder::with_mode(HeaderBuilder::new_ustar(), ExtensionMode::Pax);
        entry.path(path).entry_type(kind);
        entry.mode(stat.st_mode & 0o7777)?;
        entry.uid(stat.st_uid.into())?;
        entry.gid(stat.st_gid.into())?;
        entry.size(size)?;
        entry.mtime(u64::try_from(stat.st_mtime).unwrap_or_default())?;
        Ok(entry)
    }
}

/// Adds extended attributes as PAX records, under the names that GNU tar uses.
fn attributes(entry: &mut EntryBuilder, file: BorrowedFd<'_>) -> anyhow::Result<()> {
    let mut names = vec![0; 64 << 10];
    let length = match flistxattr(file, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut value = vec![0; 64 << 10];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        match fgetxattr(file, name, &mut value[..]) {
            Ok(length) => {
                if let Ok(name) = std::str::from_utf8(name) {
                    entry.add_pax(&format!("SCHILY.xattr.{name}"), &value[..length]);
                }
            }
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The pieces of a file that have content; one piece for a file without holes, or with too many.
fn pieces(file: BorrowedFd<'_>, length: u64) -> io::Result<Vec<(u64, u64)>> {
    let whole = || if length == 0 { Vec::new() } else { vec![(0, length)] };
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < length {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // No content from here on.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(whole()),
            Err(error) => return Err(error.into()),
        };
        let end = seek(file, SeekFrom::Hole(begin))?.min(length);
        if begin >= length || end <= begin {
            break;
        }
        pieces.push((begin, end - begin));
        if pieces.len() > MAX_PIECES {
            return Ok(whole());
        }
        at = end;
    }
    Ok(pieces)
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
