//! A blob on disk while it is fetched, so that a daemon that was killed and a power cut go on at its byte.
//!
//! ```text
//! <hex of the digest>-<size>/data        bytes from 0 on, without holes
//!                           /sums        SHA-256 of each whole block that is durable
//!                           /spool.json  what it is, and the boot in which it was written
//! ```
//!
//! Everything here blocks. One transfer has a spool open at a time.

use super::blocks::{self, BLOCK, SUM};
use podstead_container::digest::Digest;
use podstead_sys::atomic_file::{sync_directory, write_atomic};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const VERSION: u32 = 1;
const RECORD: &str = "spool.json";
/// A spool that nobody asked for in this time is removed.
pub(in super::super) const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// Identity of a blob. The size is promised by a manifest: one that lies has a transfer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct BlobKey {
    pub(in super::super) digest: Digest,
    pub(in super::super) size: u64,
}

impl BlobKey {
    fn name(&self) -> String {
        format!("{}-{}", self.digest.hex(), self.size)
    }

    fn parse(name: &str) -> Option<Self> {
        let (digest, size) = name.split_once('-')?;
        Some(Self { digest: Digest::from_hex(digest).ok()?, size: size.parse().ok()? })
    }
}

/// `spool.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    boot_id: String,
    digest: Digest,
    size: u64,
}

/// An open spool.
#[derive(Debug)]
pub(in super::super) struct Spool {
    directory: PathBuf,
    data: File,
    sums: File,
}

/// A spool as it was found.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) spool: Spool,
    /// Bytes that are kept.
    pub(super) have: u64,
    /// Blocks with a durable checksum.
    pub(super) durable_blocks: u64,
}

impl Spool {
    /// Opens the spool of a blob below `root`, made if missing. Of one that another boot has written each block is checked, and the first that is
    /// not what it was ends it.
    pub(super) fn open(root: &Path, key: &BlobKey, boot_id: &str) -> io::Result<Opened> {
        let directory = root.join(key.name());
        super::super::staging::private_directory(&directory)?;
        let file = |name: &str| {
            let mut options = File::options();
            options.create(true).truncate(false).read(true).write(true);
            options.open(directory.join(name))
        };
        let (data, sums) = (file("data")?, file("sums")?);
        let record = fs::read(directory.join(RECORD)).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        let record = record.filter(|record| record.version == VERSION && (record.digest, record.size) == (key.digest, key.size));
        let is_same_boot = record.as_ref().is_some_and(|record| record.boot_id == boot_id);
        let mut have = match record {
            Some(_) => blocks::kept(data.metadata()?.len(), sums.metadata()?.len(), key.size, is_same_boot),
            None => 0,
        };
        if !is_same_boot {
            let good = whole_blocks(&data, &sums, have)?;
            if good < have {
                tracing::warn!(blob = %key.digest, at = good, "a block of a partly fetched layer is damaged: fetched again from there");
            }
            have = good;
        }
        if data.metadata()?.len() > have {
            data.set_len(have)?;
        }
        let durable_blocks = (have / BLOCK).min(sums.metadata()?.len() / SUM);
        sums.set_len(durable_blocks * SUM)?;
        let record = Record { version: VERSION, boot_id: boot_id.to_owned(), digest: key.digest, size: key.size };
        write_atomic(&directory.join(RECORD), &serde_json::to_vec(&record)?, 0o600)?;
        Ok(Opened { spool: Self { directory, data, sums }, have, durable_blocks })
    }

    /// Writes what comes at `offset`, where the data ends.
    pub(super) fn append(&self, offset: u64, chunks: &[bytes::Bytes]) -> io::Result<()> {
        let mut at = offset;
        for chunk in chunks {
            self.data.write_all_at(chunk, at)?;
            at += chunk.len() as u64;
        }
        Ok(())
    }

    /// Reads from `offset` on.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.data.read_at(buffer, offset)
    }

    /// Makes whole blocks durable: the data first, then its checksums, so that these are never ahead. With `is_first` also that there is a spool.
    pub(super) fn sync(&self, blocks: Range<u64>, is_first: bool) -> io::Result<()> {
        if is_first {
            File::open(self.directory.join(RECORD))?.sync_all()?;
            sync_directory(&self.directory)?;
            podstead_sys::atomic_file::sync_parent(&self.directory)?;
        }
        let mut sums = Vec::new();
        let mut block = vec![0; BLOCK as usize];
        for index in blocks.clone() {
            self.data.read_exact_at(&mut block, index * BLOCK)?;
            sums.extend_from_slice(&sum(&block));
        }
        self.data.sync_data()?;
        self.sums.write_all_at(&sums, blocks.start * SUM)?;
        self.sums.sync_data()
    }

    /// Removes it. The record goes first: without it the rest is nothing.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.directory)?;
        // ext4 writes what a file still has in memory when it is closed, if its length was ever set to 0: even that of a file without a name.
        self.data.set_len(0)
    }
}

fn sum(block: &[u8]) -> [u8; SUM as usize] {
    Digest::of(block).bytes()
}

/// Bytes of the blocks before the first one that does not have its checksum.
fn whole_blocks(data: &File, sums: &File, have: u64) -> io::Result<u64> {
    let mut block = vec![0; BLOCK as usize];
    let mut expected = [0; SUM as usize];
    for index in 0..have / BLOCK {
        data.read_exact_at(&mut block, index * BLOCK)?;
        sums.read_exact_at(&mut expected, index * SUM)?;
        if sum(&block) != expected {
            return Ok(index * BLOCK);
        }
    }
    Ok(have / BLOCK * BLOCK)
}

fn remove(directory: &Path) -> io::Result<()> {
    for name in [RECORD, "sums", "data"] {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    podstead_sys::remove_tree::remove_tree(directory)
}

/// A spool that is on disk.
#[derive(Clone, Debug)]
pub(in super::super) struct Found {
    pub(in super::super) key: BlobKey,
    directory: PathBuf,
    /// Time since somebody asked for it.
    pub(in super::super) age: Duration,
}

impl Found {
    /// Bytes on disk.
    pub(in super::super) fn bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(self.directory.join("data")).map_or(0, |data| data.blocks() * 512)
    }

    /// Returns true if nobody asked for it for long.
    pub(in super::super) fn is_forgotten(&self) -> bool {
        self.age > FORGOTTEN
    }

    /// Removes it; no transfer may have it open.
    pub(in super::super) fn remove(&self) -> io::Result<()> {
        remove(&self.directory)
    }
}

/// Spools below `root`. What has the name of none is removed.
pub(in super::super) fn list(root: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let Some(key) = entry.file_name().to_str().and_then(BlobKey::parse) else {
            podstead_sys::remove_tree::remove_tree(&entry.path())?;
            continue;
        };
        let asked = fs::metadata(entry.path().join(RECORD)).and_then(|record| record.modified());
        // A clock that was set back makes nothing old.
        let age = asked.map_or(FORGOTTEN * 2, |asked| SystemTime::now().duration_since(asked).unwrap_or_default());
        found.push(Found { key, directory: entry.path(), age });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const SIZE: u64 = 3 * BLOCK + 1000;

    fn content() -> Vec<u8> {
        (0..SIZE).map(|index| (index * 7 + index / 251) as u8).collect()
    }

    fn key() -> BlobKey {
        BlobKey { digest: Digest::of(&content()), size: SIZE }
    }

    /// A spool with all bytes, of which so many blocks are synced.
    fn spool(root: &Path, blocks: u64) {
        let opened = Spool::open(root, &key(), "a").unwrap();
        assert_eq!((opened.have, opened.durable_blocks), (0, 0));
        opened.spool.append(0, &[Bytes::from(content())]).unwrap();
        if blocks > 0 {
            opened.spool.sync(0..blocks, true).unwrap();
        }
    }

    fn have(root: &Path, boot: &str) -> (u64, u64) {
        let opened = Spool::open(root, &key(), boot).unwrap();
        (opened.have, opened.durable_blocks)
    }

    #[test]
    fn same_boot_keeps_every_byte() {
        let root = tempfile::tempdir().unwrap();
        spool(root.path(), 2);
        assert_eq!(have(root.path(), "a"), (SIZE, 2));
        let opened = Spool::open(root.path(), &key(), "a").unwrap();
        let mut read = vec![0; SIZE as usize];
        opened.spool.data.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, content());
    }

    #[test]
    fn another_boot_keeps_synced_blocks() {
        let root = tempfile::tempdir().unwrap();
        spool(root.path(), 2);
        assert_eq!(have(root.path(), "b"), (2 * BLOCK, 2));
        assert_eq!(have(root.path(), "b"), (2 * BLOCK, 2));
    }

    #[test]
    fn damaged_block_ends_a_spool() {
        let root = tempfile::tempdir().unwrap();
        spool(root.path(), 3);
        let data = File::options().write(true).open(root.path().join(key().name()).join("data")).unwrap();
        data.write_all_at(&[0; 4096], BLOCK + 100).unwrap();
        assert_eq!(have(root.path(), "b"), (BLOCK, 1));
    }

    #[test]
    fn spool_without_its_record_is_empty() {
        let root = tempfile::tempdir().unwrap();
        for content in [None, Some("{"), Some(r#"{"version":9}"#)] {
            spool(root.path(), 3);
            let record = root.path().join(key().name()).join(RECORD);
            match content {
                None => fs::remove_file(record).unwrap(),
                Some(text) => fs::write(record, text).unwrap(),
            }
            assert_eq!(have(root.path(), "a"), (0, 0), "{content:?}");
        }
    }

    #[test]
    fn any_prefix_of_a_spool_is_recovered() {
        let root = tempfile::tempdir().unwrap();
        for (data, sums) in [(0, 0), (BLOCK - 1, SUM), (BLOCK, SUM - 1), (2 * BLOCK, SUM), (SIZE, 3 * SUM), (SIZE, 0)] {
            spool(root.path(), 3);
            let directory = root.path().join(key().name());
            File::options().write(true).open(directory.join("data")).unwrap().set_len(data).unwrap();
            File::options().write(true).open(directory.join("sums")).unwrap().set_len(sums).unwrap();
            let whole = (data / BLOCK).min(sums / SUM);
            assert_eq!(have(root.path(), "b"), (whole * BLOCK, whole), "{data} {sums}");
            Spool::open(root.path(), &key(), "b").unwrap().spool.remove().unwrap();
        }
    }

    #[test]
    fn spools_are_listed_and_strangers_removed() {
        let root = tempfile::tempdir().unwrap();
        spool(root.path(), 0);
        fs::create_dir(root.path().join("stranger")).unwrap();
        let found = list(root.path()).unwrap();
        assert_eq!(found.iter().map(|found| found.key).collect::<Vec<_>>(), [key()]);
        assert!(found[0].bytes() >= SIZE && !found[0].is_forgotten());
        found[0].remove().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
