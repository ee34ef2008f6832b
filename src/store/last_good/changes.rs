//! A set as its changes to an earlier one, so that an edit of one file writes that file and not all of them. **Pure**.

use super::Stamp;
use crate::history::Hold;
use crate::undelta::KeptFiles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Bytes of a set below which all of it is written each time: a few blocks of the disk, to which changes would add a second file to read.
const SMALL: u64 = 32 << 10;

/// The file of an earlier set that has all of it, among the earlier revisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseName {
    /// Its number.
    pub(super) number: u64,
    /// Hash of its content.
    pub(super) sha256: String,
}

/// Content of a file that has the changes alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Changes {
    pub(super) hold: Option<Hold>,
    pub(super) stamp: Stamp,
    pub(super) base: BaseName,
    /// Bytes of all earlier files of changes to this base.
    pub(super) written: u64,
    /// Files that the base has not, or has otherwise.
    pub(super) files: KeptFiles,
    /// Files of the base that are gone.
    pub(super) removed: BTreeSet<String>,
}

impl Changes {
    /// The whole set, of that of the base.
    pub(super) fn on(&self, base: &KeptFiles) -> KeptFiles {
        let stays = |name: &&String| !self.removed.contains(*name);
        let mut files: KeptFiles =
            base.iter().filter(|(name, _)| stays(name)).map(|(name, file)| (name.clone(), file.clone())).collect();
        files.extend(self.files.clone());
        files
    }
}

/// A set that later ones can be written as changes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Base {
    pub(super) name: BaseName,
    /// Length of its file.
    pub(super) bytes: u64,
    pub(super) files: KeptFiles,
    /// Bytes of the files of changes to it so far.
    pub(super) written: u64,
}

impl Base {
    /// The file with a whole set, unless it is so small that the next one is written as a whole again.
    pub(super) fn new(name: BaseName, bytes: u64, files: KeptFiles, written: u64) -> Option<Self> {
        (bytes >= SMALL).then_some(Self { name, bytes, files, written })
    }

    /// The changes that lead to `files`.
    pub(super) fn changes(&self, files: &KeptFiles) -> (KeptFiles, BTreeSet<String>) {
        let differs = |name: &str, file| self.files.get(name) != Some(file);
        let changed = files.iter().filter(|(name, file)| differs(name, file));
        let removed = self.files.keys().filter(|name| !files.contains_key(*name));
        (changed.map(|(name, file)| (name.clone(), file.clone())).collect(), removed.cloned().collect())
    }

    /// Returns true if changes of so many bytes may be written: all files of changes to one base together are not larger than it, so that a start reads at most
    /// twice the set.
    pub(super) fn bears(&self, bytes: usize) -> bool {
        self.written.saturating_add(bytes as u64) <= self.bytes
    }
}
