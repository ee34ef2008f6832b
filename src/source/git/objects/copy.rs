//! One copy of a remote repository: packs, and a record of what in them is complete.
//!
//! ```text
//! objects/pack/pack-<hash>.{pack,idx}
//! incoming/       a pack that is being received; removed at start
//! state.json      which commits are here, and where their history ends
//! ```
//!
//! A pack is made durable before the record that names its commit, so that the record never promises what a power cut took. There are no
//! references and no lock files: the record is one file, replaced atomically.

use super::store::{Held, disk};
use super::{Objects, damage};
use crate::git::error::{DamageError, GitError};
use crate::git::protocol::ObjectId;
use podstead_sys::atomic_file::{sync_parent, write_durable};
use podstead_sys::remove_tree::remove_tree;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const VERSION: u32 = 1;

/// Content of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) struct State {
    version: u32,
    /// Commits whose files are here, with their history down to `shallow`; the newest first.
    pub(in crate::git) commits: Vec<ObjectId>,
    /// Commits that are here without their parents.
    pub(in crate::git) shallow: BTreeSet<ObjectId>,
    /// Size of the packs after the first fetch or the last compaction.
    pub(super) base_bytes: u64,
}

impl State {
    pub(super) fn new(commits: Vec<ObjectId>, shallow: BTreeSet<ObjectId>, base_bytes: u64) -> Self {
        Self { version: VERSION, commits, shallow, base_bytes }
    }
}

/// A copy, by where it lies.
///
/// One type because receiving and compacting replace the files that others read; each has a file of its own.
#[derive(Clone, Debug)]
pub(in crate::git) struct Copy {
    directory: PathBuf,
    /// Nobody else may work in it meanwhile.
    _held: Arc<Held>,
}

impl Copy {
    pub(super) fn new(directory: PathBuf, held: &Arc<Held>) -> Self {
        Self { directory, _held: held.clone() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    pub(super) fn incoming(&self) -> PathBuf {
        self.directory.join("incoming")
    }

    pub(super) fn packs(&self) -> PathBuf {
        self.directory.join("objects/pack")
    }

    fn state_path(&self) -> PathBuf {
        self.directory.join("state.json")
    }

    /// Removes what a reception that did not end left.
    pub(super) fn remove_leftovers(&self) -> Result<(), GitError> {
        remove_tree(&self.incoming()).map_err(disk("remove", &self.incoming()))
    }

    /// Reads the record of the copy; empty if no fetch was ever completed.
    pub(in crate::git) fn state(&self) -> Result<State, GitError> {
        let damaged = |source| damage(&self.directory, source);
        let bytes = match fs::read(self.state_path()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::new(Vec::new(), BTreeSet::new(), 0)),
            Err(error) => return Err(damaged(DamageError::Read(error))),
        };
        let unreadable = |reason: String| damaged(DamageError::State(format!("state.json is not valid: {reason}")));
        let state: State = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if state.version != VERSION {
            return Err(unreadable(format!("unsupported version {}", state.version)));
        }
        Ok(state)
    }

    /// Writes the record durably.
    pub(super) fn save(&self, state: &State) -> Result<(), GitError> {
        let path = self.state_path();
        let written = serde_json::to_vec(state).map_err(io::Error::from).and_then(|bytes| write_durable(&path, &bytes, 0o600));
        written.map_err(disk("write", &path))
    }

    /// Opens the objects for reading; `shallow` are the commits that are here without their parents.
    pub(in crate::git) fn objects(&self, shallow: &BTreeSet<ObjectId>) -> Result<Objects, GitError> {
        // libgit2 maps packs into memory, and a sector that cannot be read would then end the process by SIGBUS. Read first the ordinary
        // way, it is an error.
        for path in self.pack_files()? {
            File::open(&path)
                .and_then(|mut file| io::copy(&mut file, &mut io::sink()))
                .map_err(|error| damage(&self.directory, DamageError::Read(error)))?;
        }
        Objects::open(&self.directory.join("objects"), &self.directory, shallow.clone())
    }

    /// Packs and their indexes.
    fn pack_files(&self) -> Result<Vec<PathBuf>, GitError> {
        let packs = self.packs();
        let list = || fs::read_dir(&packs)?.map(|entry| entry.map(|entry| entry.path())).collect();
        match list() {
            Ok(files) => Ok(files),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(damage(&self.directory, DamageError::Read(error))),
        }
    }

    /// Number of packs, and the size of all that they take.
    pub(super) fn weight(&self) -> Result<(usize, u64), GitError> {
        let files = self.pack_files()?;
        let bytes = files.iter().filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).sum();
        Ok((files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "pack")).count(), bytes))
    }

    /// Makes the directories that packs go to, durably.
    pub(super) fn make_directories(&self) -> Result<(), GitError> {
        let failed = disk("create", &self.directory);
        self.remove_leftovers()?;
        for path in [self.packs(), self.incoming()] {
            DirBuilder::new().mode(0o700).recursive(true).create(&path).map_err(&failed)?;
        }
        [self.packs(), self.directory.join("objects"), self.directory.clone()]
            .iter()
            .try_for_each(|path| sync_parent(path))
            .map_err(failed)
    }

    /// Moves a received pack to the others, durably.
    pub(super) fn place(&self, name: &str) -> Result<(), GitError> {
        let failed = disk("move a pack into", &self.directory);
        // The index last: a pack without one is not looked at.
        for extension in ["pack", "idx"] {
            let file = format!("pack-{name}.{extension}");
            let from = self.incoming().join(&file);
            File::open(&from).and_then(|file| file.sync_all()).map_err(&failed)?;
            fs::rename(&from, self.packs().join(&file)).map_err(&failed)?;
        }
        File::open(self.packs()).and_then(|directory| directory.sync_all()).map_err(&failed)
    }
}
