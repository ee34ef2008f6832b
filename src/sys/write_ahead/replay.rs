//! Bringing the files to the state of the log after a crash or a power cut.

use super::batch::{self, Batch, Logged, Sha256};
use crate::atomic_file;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Result of a replay.
#[derive(Debug)]
pub(super) struct Replayed {
    /// The log had changes, which are in the files now.
    pub(super) has_changes: bool,
    /// No batch has this generation or a later one.
    pub(super) next_generation: u64,
}

/// State that a file is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted<'a> {
    Directory {
        mode: u32,
    },
    /// The file with this content.
    Content {
        content: &'a [u8],
        mode: u32,
    },
    /// The same if it is missing: a name that was there when the log was written.
    ContentIfMissing {
        content: &'a [u8],
        mode: u32,
    },
    /// Another name for this file, if it has this hash and the name is missing.
    LinkTo {
        from: &'a Path,
        sha256: Sha256,
    },
    /// Nothing of this name.
    Missing,
}

/// Makes durable in the files what is in a log of two halves. What cannot be written is reported.
pub(super) fn replay(root: &Path, log: &[u8], half: u64) -> Replayed {
    let (first, second) = log.split_at(usize::try_from(half).map_or(log.len(), |half| half.min(log.len())));
    let mut halves = [batch::read_half(first), batch::read_half(second)];
    halves.sort_by_key(|batches| generation(batches));
    let wanted = wanted(halves.iter().flatten().flat_map(|batch| &batch.changes));
    for (path, wanted) in in_order(&wanted) {
        // One that is lost is delivered again by its source; the others count.
        if let Err(error) = bring(root, path, wanted) {
            tracing::error!(path = %root.join(path).display(), %error, "cannot bring back a record from the write-ahead log");
        }
    }
    Replayed { has_changes: !wanted.is_empty(), next_generation: halves.iter().map(|half| generation(half)).max().unwrap_or(0) + 1 }
}

/// The order in which files are brought to their states: those that get another name are still those before the replay, and directories go after
/// what was in them.
fn in_order<'a>(wanted: &BTreeMap<&'a Path, Wanted<'a>>) -> Vec<(&'a Path, Wanted<'a>)> {
    let all = wanted.iter().map(|(path, wanted)| (*path, *wanted));
    let (links, others): (Vec<_>, Vec<_>) = all.partition(|(_, wanted)| matches!(wanted, Wanted::LinkTo { .. }));
    let (removed, written): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, wanted)| *wanted == Wanted::Missing);
    links.into_iter().chain(written).chain(removed.into_iter().rev()).collect()
}

fn generation(batches: &[Batch<'_>]) -> u64 {
    batches.first().map_or(0, |batch| batch.generation)
}

/// The state that each file has after all changes. A path comes after those of the directories that lead to it.
fn wanted<'a>(changes: impl Iterator<Item = &'a Logged<'a>>) -> BTreeMap<&'a Path, Wanted<'a>> {
    let mut all: BTreeMap<&Path, Wanted<'_>> = BTreeMap::new();
    for change in changes {
        let wanted = match *change {
            Logged::Directory { mode, .. } => Wanted::Directory { mode },
            Logged::Write { content, mode, .. } => Wanted::Content { content, mode },
            Logged::Remove { .. } => Wanted::Missing,
            Logged::Link { from, to, sha256 } => match (all.get(to), all.get(from)) {
                // The name was there.
                (Some(Wanted::Content { .. } | Wanted::ContentIfMissing { .. } | Wanted::LinkTo { .. }), _) => continue,
                (_, Some(&Wanted::Content { content, mode })) if batch::sha256(content) == sha256 => {
                    Wanted::ContentIfMissing { content, mode }
                }
                (_, Some(_) | None) => Wanted::LinkTo { from, sha256 },
            },
        };
        all.insert(change.path(), wanted);
    }
    all
}

/// Brings one file to its state, durably.
fn bring(root: &Path, path: &Path, wanted: Wanted<'_>) -> io::Result<()> {
    let path = root.join(path);
    match wanted {
        Wanted::Directory { mode } if !path.is_dir() => atomic_file::make_directories(&path, mode),
        Wanted::Content { content, mode } if read(&path)?.as_deref() != Some(content) => write(&path, content, mode),
        Wanted::ContentIfMissing { content, mode } if !path.try_exists()? => write(&path, content, mode),
        Wanted::LinkTo { from, sha256 } if !path.try_exists()? => match read(&root.join(from))? {
            Some(content) if batch::sha256(&content) == sha256 => write(&path, &content, 0o600),
            Some(_) | None => Ok(()),
        },
        Wanted::Missing => match fs::symlink_metadata(&path) {
            Ok(found) => remove(&path, found.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        },
        _ => Ok(()),
    }
}

/// Removes a file, or a directory unless something is in it.
fn remove(path: &Path, is_directory: bool) -> io::Result<()> {
    match if is_directory { fs::remove_dir(path) } else { fs::remove_file(path) } {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        Err(error) => Err(error),
        Ok(()) => atomic_file::sync_parent(path),
    }
}

fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    atomic_file::write_durable_with_directories(path, content, mode, 0o700)
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        // The directory may be missing as well.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
