//! The accepted set of each source on disk, with which the daemon starts without network, directory or repository (promise P3), and the
//! revisions before it.
//!
//! ```text
//! sources/<name>/last-good.json          what is in force, and whether the source is held there
//! sources/<name>/revisions/<n>.json      what was in force before, by number: the same file under another name
//! ```
//!
//! A start reads the first file alone. It is replaced atomically, so that a crash leaves the state before or the state after; the file
//! that it replaces is linked into `revisions` before, so that history costs no writing. An accept is one sync where the
//! journal keeps the order, as those of ext4 and XFS do: the link and the new file are durable with its name. On other file systems each of the three
//! is synced. A file is a line of JSON with version and hash,
//! and one with the [`State`]. The hash is there because a flipped bit in a set may well be another valid set. Secrets are
//! sealed in it with this host's key; directory and files are root's alone.

mod file;
mod revisions;

#[cfg(test)]
mod tests;

pub use revisions::Unreadable;

use super::seal::{Sealer, has_secrets};
use super::undelta::KeptFiles;
use crate::history::{Hold, RefusedObject, RevisionState};
use jiff::Timestamp;
use podstead_artifact::{CommitSummary, Place};
use podstead_manifest::ObjectKey;
use podstead_pod::{Revision, SourceId};
use podstead_settings::PolicyRecord;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use podstead_sys::machine_key::{MachineKey, credentials};
use podstead_telemetry::error_chain;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FILE: &str = "last-good.json";

/// Root's alone.
const FILE_MODE: u32 = 0o600;

/// The directory of earlier revisions.
const REVISIONS: &str = "revisions";

/// The format that is written, and the only one that is read.
const VERSION: u32 = 2;

/// Unreadable records that are kept; the last one is overwritten.
const MAX_SET_ASIDE: u32 = 9;

/// Durable state of one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The hold of the source, if it is held.
    pub hold: Option<Hold>,
    /// The record in force; `None` before anything was accepted.
    pub in_force: Option<Record>,
}

/// An accepted set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its revision and time.
    pub stamp: Stamp,
    /// The objects by file, those that are kept from earlier revisions included.
    pub files: KeptFiles,
}

/// Identity of an accepted set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Counts what was put in force, from 1; never used twice.
    pub number: u64,
    /// The revision that the objects were read from.
    pub revision: Revision,
    /// Location that it was read from.
    pub place: Option<Place>,
    /// Time at which it was accepted.
    pub accepted_at: Timestamp,
    /// Number of the revision whose content it has, after a rollback.
    pub restored_from: Option<u64>,
    /// Revision that was accepted last from the source itself, after a rollback: the next one must not be older.
    pub newest: Option<Revision>,
    /// Configuration that its objects were checked with; `None` if the version of podstead that accepted it kept no record of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyRecord>,
    /// Result of accepting the revision.
    #[serde(default)]
    pub state: RevisionState,
    /// The refused objects, at most [`MAX_REFUSED`](crate::history::MAX_REFUSED).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedObject>,
    /// The commit's subject and author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitSummary>,
}

impl Stamp {
    /// The revision that was accepted last from the source itself, also after going back.
    pub fn newest(&self) -> &Revision {
        self.newest.as_ref().unwrap_or(&self.revision)
    }
}

/// Errors of reading or writing a last good set.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// The file is there and cannot be read.
    #[error("read {path}")]
    Read {
        /// The record.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The file is not what was written.
    #[error("{path} is not a valid record of a last good set")]
    Parse {
        /// The record.
        path: PathBuf,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// It changed since it was written.
    #[error("{0} is damaged: its hash does not match")]
    Damaged(PathBuf),
    /// Another version of podstead wrote it.
    #[error("{path} has format version {found}, not {VERSION}")]
    Version {
        /// The record.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It was copied from elsewhere.
    #[error("{path} belongs to source {found}")]
    OtherSource {
        /// The record.
        path: PathBuf,
        /// The source that it names.
        found: SourceId,
    },
    /// It cannot be written, so that nothing new is accepted.
    #[error("write {path}")]
    Write {
        /// The record.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
}

/// The files of one source.
#[derive(Clone, Debug)]
pub struct LastGood {
    source: SourceId,
    directory: PathBuf,
    machine_key: PathBuf,
}

impl LastGood {
    /// The files of `source`, which need not exist.
    pub fn new(paths: &Paths, source: SourceId) -> Self {
        Self { directory: paths.source(&source), machine_key: paths.machine_key(), source }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Reads what is in force; the default when nothing was ever accepted.
    pub fn load(&self) -> Result<State, LastGoodError> {
        Ok(self.read(&self.path())?.unwrap_or_default())
    }

    /// Replaces what is in force durably, and leaves earlier revisions alone: for a change of what is around the set.
    pub fn save(&self, state: &State) -> Result<(), LastGoodError> {
        let written = self.encode(state).and_then(|bytes| self.replace(&bytes));
        written.map_err(|source| LastGoodError::Write { path: self.path(), source })
    }

    /// `None` for a missing file.
    fn read(&self, path: &Path) -> Result<Option<State>, LastGoodError> {
        match fs::read(path) {
            Ok(bytes) => file::decode(&bytes, path, &self.source).map(|state| Some(self.opened(state))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LastGoodError::Read { path: path.to_owned(), source }),
        }
    }

    fn encode(&self, state: &State) -> io::Result<Vec<u8>> {
        let Some(record) = state.in_force.as_ref().filter(|record| has_secrets(&record.files)) else {
            return file::encode(state, &self.source);
        };
        make_directory(&self.directory)?;
        let key = MachineKey::load_or_make(&self.machine_key, credentials().as_deref())
            .map_err(|error| io::Error::other(error_chain(&error).to_string()))?;
        let files = Sealer::new(&key, self.source.clone())?.seal(&record.files)?;
        let sealed = State { hold: state.hold.clone(), in_force: Some(Record { stamp: record.stamp.clone(), files }) };
        file::encode(&sealed, &self.source)
    }

    /// The state with its Secrets decrypted. Those that cannot be decrypted are left out and reported; the pods beside them count.
    fn opened(&self, mut state: State) -> State {
        let Some(record) = state.in_force.as_mut().filter(|record| has_secrets(&record.files)) else { return state };
        let key = MachineKey::load(&self.machine_key, credentials().as_deref()).unwrap_or_else(|error| {
            tracing::error!(source = %self.source, error = %error_chain(&error), "cannot load the machine key");
            None
        });
        // Without the key that they were sealed with, any key opens none of them.
        let key = key.unwrap_or(MachineKey::new([0; 32]));
        if let Ok(sealer) = Sealer::new(&key, self.source.clone()) {
            let (files, lost) = sealer.open(std::mem::take(&mut record.files));
            record.files = files;
            for ObjectKey { kind, namespace, name } in lost {
                tracing::error!(source = %self.source, "{kind} {namespace}/{name} cannot be decrypted, because the machine key changed: \
                    pods that use it wait until the source delivers it again");
            }
        }
        state
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        make_directory(&self.directory)?;
        atomic_file::write_durable(&self.path(), bytes, FILE_MODE)
    }

    /// Renames a record that cannot be used to `last-good.json.corrupt-<n>`; returns the new path.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let free = |number: &u32| fs::symlink_metadata(self.aside(*number)).is_err();
        let target = self.aside((1..MAX_SET_ASIDE).find(free).unwrap_or(MAX_SET_ASIDE));
        fs::rename(self.path(), &target)?;
        atomic_file::sync_parent(&target)?;
        Ok(target)
    }

    fn aside(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{FILE}.corrupt-{number}"))
    }
}

/// Makes a directory that only root can look into, durably.
fn make_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => atomic_file::sync_parent(directory),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => atomic_file::make_directories(directory, 0o700),
        Err(error) => Err(error),
    }
}

/// Removes the records of sources that are not configured any more: should one come back under its old name, it shall begin with what
/// it holds then. Returns whose records were removed.
pub fn forget_others(paths: &Paths, configured: &[SourceId]) -> io::Result<Vec<SourceId>> {
    let entries = match fs::read_dir(paths.sources()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut forgotten = Vec::new();
    for entry in entries {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let id = SourceId::new(name);
        if configured.contains(&id) {
            continue;
        }
        let directory = paths.source(&id);
        for below in [directory.join(REVISIONS), paths.source_repository(&id), paths.source_objects(&id)] {
            match fs::remove_dir_all(below) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let path = directory.join(FILE);
        if fs::symlink_metadata(&path).is_ok() {
            atomic_file::remove_durable(&path)?;
            forgotten.push(id);
        }
    }
    Ok(forgotten)
}
