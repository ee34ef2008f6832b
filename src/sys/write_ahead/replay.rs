//! Bringing the files to the state of the log after a crash or a power cut.

use super::batch::{self, Batch, Logged, Sha256};
use crate::atomic_file;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

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

/// The batches of a log, by their age.
#[derive(Debug)]
pub(super) struct LoggedBatches<'a>(Vec<Batch<'a>>);

/// Reads a log of two halves.
pub(super) fn read(log: &[u8], half: u64) -> LoggedBatches<'_> {
    let (first, second) = log.split_at(usize::try_from(half).map_or(log.len(), |half| half.min(log.len())));
    let mut batches: Vec<Batch<'_>> = [first, second].into_iter().flat_map(batch::read_half).collect();
    // Stable: those of a half stay in their order.
    batches.sort_by_key(|batch| batch.generation);
    LoggedBatches(batches)
}

impl<'a> LoggedBatches<'a> {
    fn changes(&self) -> impl Iterator<Item = &Logged<'a>> {
        self.0.iter().flat_map(|batch| &batch.changes)
    }

    /// The files that they are about.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.changes().map(Logged::path)
    }

    pub(super) fn has_changes(&self) -> bool {
        self.changes().next().is_some()
    }

    /// No batch has this generation or a later one.
    pub(super) fn next_generation(&self) -> u64 {
        self.0.last().map_or(0, |batch| batch.generation) + 1
    }
}

/// Makes durable in the files below `root` what was logged. What cannot be written is reported.
pub(super) fn replay(root: &Path, logged: &LoggedBatches<'_>) {
    let wanted = wanted(logged.changes());
    for (path, wanted) in in_order(&wanted) {
        // One that is lost is delivered again by its source; the others count.
        if let Err(error) = bring(root, path, wanted) {
            tracing::error!(path = %root.join(path).display(), %error, "cannot bring back a record from the write-ahead log");
        }
    }
}

/// The order in which files are brought to their states: those that get another name are still those before the replay, and directories go after
/// what was in them.
fn in_order<'a>(wanted: &BTreeMap<&'a Path, Wanted<'a>>) -> Vec<(&'a Path, Wanted<'a>)> {
    let all = wanted.iter().map(|(path, wanted)| (*path, *wanted));
    let (links, others): (Vec<_>, Vec<_>) = all.partition(|(_, wanted)| matches!(wanted, Wanted::LinkTo { .. }));
    let (removed, written): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, wanted)| *wanted == Wanted::Missing);
    links.into_iter().chain(written).chain(removed.into_iter().rev()).collect()
}

/// The state that each file has after all changes. A path comes after those of the directories that lead to it.
fn wanted<'a, 'b: 'a>(changes: impl Iterator<Item = &'a Logged<'b>>) -> BTreeMap<&'a Path, Wanted<'a>> {
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
        Wanted::Content { content, mode } if content_of(&path)?.as_deref() != Some(content) => write(&path, content, mode),
        Wanted::ContentIfMissing { content, mode } if !path.try_exists()? => write(&path, content, mode),
        Wanted::LinkTo { from, sha256 } if !path.try_exists()? => match content_of(&root.join(from))? {
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

/// The content of a file; `None` for a missing one.
fn content_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        // The directory may be missing as well.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
