//! The list of a layer's entries, made when the layer is published: whatever the disk makes of them later is seen.
//!
//! Checksums are CRC-32 ([`super::sum`]). Those of files come from the job that wrote them: one that lies about them harms its own layer alone. They find
//! what a disk did: whoever can write into the store could write the list, too.
//!
//! One record for each entry, which ends with a zero byte: mode, user, group, size, device, checksum, path. All of it compressed with zstd, in the order
//! in which a tree is read. An image decides how many entries there are and how long their paths: neither the list nor the tree is ever in memory as a whole.

use super::walk::{ReadFrom, walk};
use podstead_container::digest::{Digest, Hasher};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Name of the list in a layer's directory.
pub(in super::super) const FILES: &str = "files";

/// Differences told of a layer; there may be as many as files.
const TOLD: usize = 10;
/// Bytes told of a path.
const PATH_TOLD: usize = 200;
/// Longest record. Deeper trees than paths of this length are not unpacked.
const RECORD_MAX: u64 = 256 << 10;
const LEVEL: i32 = 3;

/// An entry of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// With the type.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Of a file.
    pub(super) size: u64,
    /// Of a device.
    pub(super) device: u64,
    /// Of the content or target, and of extended attributes.
    pub(super) sum: u32,
}

/// A file whose content is digested while it is written.
struct DigestedFile {
    file: BufWriter<File>,
    hasher: Hasher,
}

impl Write for DigestedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A list that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct WrittenList {
    /// Of the list.
    pub(in super::super) digest: Digest,
    /// Bytes that the tree and the list take on disk.
    pub(in super::super) on_disk: u64,
}

/// Writes the list of a tree that was just written to `path`. Not durable. Files whose checksums are known, by their inodes, are not read.
pub(in super::super) fn write_list(tree: &Path, path: &Path, known: &BTreeMap<u64, u32>) -> io::Result<WrittenList> {
    let file = DigestedFile { file: BufWriter::new(File::create_new(path)?), hasher: Hasher::default() };
    let mut encoder = zstd::Encoder::new(file, LEVEL)?;
    let mut take = |path: &[u8], entry: io::Result<Entry>| {
        let entry = entry.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", shown(path))))?;
        let Entry { mode, uid, gid, size, device, sum } = entry;
        write!(encoder, "{mode:o} {uid} {gid} {size} {device} {sum:08x} ")?;
        encoder.write_all(path)?;
        encoder.write_all(&[0])
    };
    let walked = walk(tree, ReadFrom::Memory(known), &mut take)?;
    let mut written = encoder.finish()?;
    written.flush()?;
    let on_disk = walked.on_disk + written.file.get_ref().metadata()?.blocks().saturating_mul(512);
    Ok(WrittenList { digest: written.hasher.finish(), on_disk })
}

/// The digest of the list at `path`.
pub(super) fn digest_of(path: &Path) -> io::Result<Digest> {
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, Hasher::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// Ways in which a tree differs from its list.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// The first of them, for people.
    told: Vec<String>,
    /// The number of the others.
    more: usize,
    /// Bytes of content read.
    pub(super) bytes: u64,
}

impl Differences {
    /// For people; nothing if there is no difference.
    pub(super) fn told(self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("{} more", self.more));
        self.told.into_iter().chain(more).collect()
    }

    fn tell(&mut self, path: &[u8], what: &str) {
        match self.told.len() < TOLD {
            true => self.told.push(format!("{} {what}", shown(path))),
            false => self.more += 1,
        }
    }
}

/// Reads a tree from the disk and compares it with the list at `list`. An error is one of the list, or of the tree as a whole.
pub(super) fn compare(list: &Path, tree: &Path) -> io::Result<Differences> {
    let mut stored = Stored::new(BufReader::new(zstd::Decoder::new(File::open(list)?)?))?;
    let mut differences = Differences::default();
    let walked = walk(tree, ReadFrom::Disk, &mut |path, found| stored.meet(path, found, &mut differences))?;
    stored.end(&mut differences)?;
    Ok(Differences { bytes: walked.read, ..differences })
}

/// The records of a list, of which one is in memory.
struct Stored<R> {
    records: R,
    record: Vec<u8>,
    next: Option<Entry>,
    /// Of the next entry, in the record.
    path_at: usize,
}

impl<R: BufRead> Stored<R> {
    fn new(records: R) -> io::Result<Self> {
        let mut stored = Self { records, record: Vec::new(), next: None, path_at: 0 };
        stored.advance()?;
        Ok(stored)
    }

    fn advance(&mut self) -> io::Result<()> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "a record of it is not one");
        self.record.clear();
        self.next = None;
        if self.records.by_ref().take(RECORD_MAX).read_until(0, &mut self.record)? == 0 {
            return Ok(());
        }
        let end = self.record.pop().filter(|last| *last == 0);
        let (entry, path_at) = end.and_then(|_| parse(&self.record)).ok_or_else(invalid)?;
        (self.next, self.path_at) = (Some(entry), path_at);
        Ok(())
    }

    fn path(&self) -> &[u8] {
        &self.record[self.path_at..]
    }

    /// Compares what was found at a path with the record of it.
    fn meet(&mut self, path: &[u8], found: io::Result<Entry>, differences: &mut Differences) -> io::Result<()> {
        while self.next.is_some() && order(self.path(), path) == Ordering::Less {
            differences.tell(self.path(), "is missing");
            self.advance()?;
        }
        let expected = self.next.as_ref().filter(|_| self.path() == path);
        let what = match (expected, &found) {
            (_, Err(error)) => Some(error.to_string()),
            (None, Ok(_)) => Some("is not of the layer".to_owned()),
            (Some(expected), Ok(found)) if expected == found => None,
            (Some(expected), Ok(found))
                if expected.mode != found.mode || (expected.uid, expected.gid) != (found.uid, found.gid) =>
            {
                Some("has another type, mode or owner".to_owned())
            }
            (Some(_), Ok(_)) => Some("has another content".to_owned()),
        };
        if let Some(what) = what {
            differences.tell(path, &what);
        }
        if expected.is_some() { self.advance() } else { Ok(()) }
    }

    /// Tells the records behind the last entry that was found.
    fn end(mut self, differences: &mut Differences) -> io::Result<()> {
        while self.next.is_some() {
            differences.tell(self.path(), "is missing");
            self.advance()?;
        }
        Ok(())
    }
}

/// The order in which a tree is read: a directory, its entries, and then the next name. **Pure**.
fn order(one: &[u8], other: &[u8]) -> Ordering {
    // No name has a zero byte.
    let key = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    one.iter().map(key).cmp(other.iter().map(key))
}

fn shown(path: &[u8]) -> String {
    let cut = if path.len() > PATH_TOLD { "..." } else { "" };
    format!("/{}{cut}", String::from_utf8_lossy(&path[..path.len().min(PATH_TOLD)]).replace(char::is_control, "?"))
}

/// The entry of a record, and the place of its path. **Pure**.
fn parse(record: &[u8]) -> Option<(Entry, usize)> {
    let mut fields = record.splitn(7, |byte| *byte == b' ');
    let mut next = || std::str::from_utf8(fields.next()?).ok();
    let mode = u32::from_str_radix(next()?, 8).ok()?;
    let (uid, gid) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (size, device) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let sum = u32::from_str_radix(next()?, 16).ok()?;
    let path = fields.next()?;
    Some((Entry { mode, uid, gid, size, device, sum }, record.len() - path.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::{FileExt, symlink};

    /// A tree and a place for its list.
    fn places(directory: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
        let tree = directory.join("fs");
        fs::create_dir(&tree).unwrap();
        (tree, directory.join(FILES))
    }

    fn told(list: &Path, tree: &Path) -> Vec<String> {
        compare(list, tree).unwrap().told()
    }

    #[test]
    fn each_change_of_a_tree_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (tree, list) = places(directory.path());
        fs::create_dir_all(tree.join("etc/empty")).unwrap();
        for name in ["content", "gone", "mode"] {
            fs::write(tree.join("etc").join(name), name.repeat(5000)).unwrap();
        }
        symlink("content", tree.join("etc/link")).unwrap();
        fs::hard_link(tree.join("etc/content"), tree.join("etc/other-name")).unwrap();
        fs::write(tree.join("etc-beside"), "").unwrap();
        assert_eq!(write_list(&tree, &list, &BTreeMap::new()).unwrap().digest, digest_of(&list).unwrap());
        assert_eq!(told(&list, &tree), [""; 0]);
        fs::write(tree.join("etc/content"), "content".repeat(5000).replacen("nt", "nx", 1)).unwrap();
        fs::remove_file(tree.join("etc/gone")).unwrap();
        fs::set_permissions(tree.join("etc/mode"), std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
        fs::remove_file(tree.join("etc/link")).unwrap();
        symlink("contend", tree.join("etc/link")).unwrap();
        fs::write(tree.join("new"), "").unwrap();
        rustix::fs::setxattr(tree.join("etc/empty"), "trusted.x", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        let wanted = [
            "/etc/content has another content",
            "/etc/empty has another content",
            "/etc/gone is missing",
            "/etc/link has another content",
            "/etc/mode has another type, mode or owner",
            "/etc/other-name has another content",
            "/new is not of the layer",
        ];
        assert_eq!(told(&list, &tree), wanted);
        fs::remove_dir_all(tree.join("etc")).unwrap();
        fs::remove_file(tree.join("etc-beside")).unwrap();
        let gone = told(&list, &tree);
        assert_eq!(gone.len(), 9, "the directory, its six entries, the file beside it, and the new one: {gone:?}");
        assert_eq!([&gone[0], &gone[7], &gone[8]], ["/etc is missing", "/etc-beside is missing", "/new is not of the layer"]);
    }

    #[test]
    fn holes_and_zeros_are_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let ((one, list), other) = (places(directory.path()), directory.path().join("other"));
        fs::create_dir(&other).unwrap();
        let file = fs::File::create(one.join("file")).unwrap();
        file.set_len(1 << 40).unwrap();
        file.write_at(b"x", 5 << 20).unwrap();
        let file = fs::File::create(other.join("file")).unwrap();
        file.write_at(&vec![0; 6 << 20], 0).unwrap();
        file.write_at(b"x", 5 << 20).unwrap();
        file.set_len(1 << 40).unwrap();
        write_list(&one, &list, &BTreeMap::new()).unwrap();
        let differences = compare(&list, &other).unwrap();
        assert!(differences.bytes < 8 << 20);
        assert_eq!(differences.told(), [""; 0]);
        file.write_at(b"x", (5 << 20) + 4096).unwrap();
        assert_eq!(told(&list, &other), ["/file has another content"]);
    }

    #[test]
    fn many_differences_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let (tree, list) = places(directory.path());
        write_list(&tree, &list, &BTreeMap::new()).unwrap();
        for number in 0..TOLD + 5 {
            fs::write(tree.join(number.to_string()), "").unwrap();
        }
        let told = told(&list, &tree);
        assert_eq!((told.len(), told.last().map(String::as_str)), (TOLD + 1, Some("5 more")));
    }

    #[test]
    fn deep_trees_end_at_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let (tree, list) = places(directory.path());
        fs::create_dir_all(tree.join(["d"; 300].join("/"))).unwrap();
        write_list(&tree, &list, &BTreeMap::new()).unwrap();
        assert_eq!(told(&list, &tree), [""; 0]);
        fs::create_dir_all(tree.join(["d"; 600].join("/"))).unwrap();
        assert!(
            told(&list, &tree)
                .last()
                .is_some_and(|told| told.ends_with("at most 400 levels of directories") || told.ends_with(" more"))
        );
        fs::remove_file(&list).unwrap();
        assert!(write_list(&tree, &list, &BTreeMap::new()).unwrap_err().to_string().contains("400 levels"));
    }

    #[test]
    fn long_paths_are_cut_and_long_records_refused() {
        assert_eq!(shown(&[b'x'; 60_000]).len(), PATH_TOLD + 4);
        let endless = io::repeat(b'7').take(1 << 40);
        assert!(Stored::new(BufReader::new(endless)).is_err());
    }

    proptest! {
        #[test]
        fn no_stored_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[0-7]{1,6} ([0-9]{1,3} ){4}[0-9a-f]{8} [a-z/ ]{0,9}") {
            if let Ok(stored) = Stored::new(&bytes[..]) {
                drop(stored.end(&mut Differences::default()));
            }
            let whole = [text.as_bytes(), &[0]].concat();
            let mut differences = Differences::default();
            Stored::new(&whole[..]).unwrap().end(&mut differences).unwrap();
            prop_assert_eq!(differences.told().len(), 1);
        }

        /// As a walk over directories with sorted names meets them.
        #[test]
        fn order_is_that_of_a_walk(paths in proptest::collection::btree_set("[a!.]{1,2}(/[a!.]{1,2}){0,2}", 1..12)) {
            let mut by_names: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
            by_names.sort();
            let mut by_order: Vec<&String> = paths.iter().collect();
            by_order.sort_by(|one, other| order(one.as_bytes(), other.as_bytes()));
            let by_names: Vec<String> = by_names.iter().map(|names| names.join("/")).collect();
            prop_assert_eq!(by_order, by_names.iter().collect::<Vec<_>>());
        }
    }
}
