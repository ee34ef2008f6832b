//! One copy of a remote repository: packs, and a record of what in them is complete.
//!
//! ```text
//! objects/pack/pack-<hash>.{pack,idx}
//! incoming/       a pack that is being received; removed at start
//! state.json      which commits are here, and where their history ends
//! ```
//!
//! A job without rights writes `incoming`, which belongs to its user, and another one reads `objects`, which it cannot change. So what lies in `objects` may
//! be read by all users; the directory of the source, which it is in, is open to podstead alone.
//!
//! A pack is made durable before the record that names its commit, so that the record never promises what a power cut took. There are no
//! references and no lock files: the record is one file, replaced atomically.

use super::store::{Held, disk};
use super::{Objects, damage};
use crate::git::error::{DamageError, GitError};
use crate::git::job::{ObjectJobs, Owner, open_written};
use crate::git::protocol::ObjectId;
use podstead_sys::atomic_file::{sync_parent, write_durable};
use podstead_sys::remove_tree::remove_tree;
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const VERSION: u32 = 1;

/// Mode of directories that jobs read.
const OPEN_DIRECTORY: u32 = 0o755;
/// Mode of files that jobs read.
const OPEN_FILE: u32 = 0o444;

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
    held: Arc<Held>,
}

impl Copy {
    pub(super) fn new(directory: PathBuf, held: &Arc<Held>) -> Self {
        Self { directory, held: held.clone() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    pub(super) fn incoming(&self) -> PathBuf {
        self.directory.join("incoming")
    }

    pub(super) fn objects_path(&self) -> PathBuf {
        self.directory.join("objects")
    }

    pub(super) fn packs(&self) -> PathBuf {
        self.directory.join("objects/pack")
    }

    pub(super) fn jobs(&self) -> &Arc<ObjectJobs> {
        self.held.jobs()
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
        let state: State = serde_json::from_slice(&bytes).map_err(|error| damaged(DamageError::Record(error)))?;
        if state.version != VERSION {
            let reason = format!("state.json is not valid: unsupported version {}", state.version);
            return Err(damaged(DamageError::State(reason)));
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
        self.let_jobs_read()?;
        Objects::open(&self.objects_path(), &self.directory, Owner::Podstead, self.jobs(), shallow.clone())
    }

    /// Lets jobs read packs that an earlier version made for root alone.
    pub(super) fn let_jobs_read(&self) -> Result<(), GitError> {
        let open = |path: &Path, wanted: u32| {
            let metadata = fs::symlink_metadata(path)?;
            if !metadata.is_symlink() && metadata.permissions().mode() & wanted & 0o777 != wanted {
                fs::set_permissions(path, fs::Permissions::from_mode(wanted))?;
            }
            Ok(())
        };
        let opened = open(&self.objects_path(), OPEN_DIRECTORY).and_then(|()| open(&self.packs(), OPEN_DIRECTORY));
        opened.map_err(|error| damage(&self.directory, DamageError::Read(error)))?;
        for path in self.pack_files()? {
            open(&path, OPEN_FILE).map_err(|error| damage(&self.directory, DamageError::Read(error)))?;
        }
        Ok(())
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
        DirBuilder::new().mode(0o700).recursive(true).create(&self.directory).map_err(&failed)?;
        for path in [self.objects_path(), self.packs()] {
            DirBuilder::new().mode(OPEN_DIRECTORY).recursive(true).create(&path).map_err(&failed)?;
        }
        let (user, group) = self.jobs().owner_of_packs();
        let incoming = self.incoming();
        DirBuilder::new().mode(0o700).create(&incoming).map_err(&failed)?;
        chown(&incoming, Some(user), Some(group)).map_err(&failed)?;
        [self.packs(), self.directory.join("objects"), self.directory.clone()]
            .iter()
            .try_for_each(|path| sync_parent(path))
            .map_err(failed)
    }

    /// Moves a received pack to the others, durably. The job that wrote it has ended.
    pub(super) fn place(&self, name: &str) -> Result<(), GitError> {
        let failed = disk("move a pack into", &self.directory);
        // The index last: a pack without one is not looked at.
        for extension in ["pack", "idx"] {
            let file = format!("pack-{name}.{extension}");
            let from = self.incoming().join(&file);
            let take = || {
                let written = open_written(&from)?;
                fchown(&written, Some(geteuid().as_raw()), Some(getegid().as_raw()))?;
                written.set_permissions(fs::Permissions::from_mode(OPEN_FILE))?;
                written.sync_all()?;
                fs::rename(&from, self.packs().join(&file))
            };
            take().map_err(&failed)?;
        }
        File::open(self.packs()).and_then(|directory| directory.sync_all()).map_err(&failed)
    }
}
