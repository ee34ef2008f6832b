//! The accepted set of each source on disk, with which the daemon starts without network, directory or repository (promise P3), and the
//! revisions before it.
//!
//! ```text
//! sources/<name>/last-good.json          what is in force, and whether the source is held there
//! sources/<name>/revisions/<n>.json      what was in force before, by number: the same file under another name
//! ```
//!
//! The file of a large set has its [`changes`] to an earlier one, its base, which stays among the revisions as long as a file is based on it: an edit of one
//! file among a thousand writes that file. A base is itself a whole set.
//!
//! A start reads the first file and its base. It is replaced atomically, so that a crash leaves the state before or the state after; the file
//! that it replaces is linked into `revisions` before, so that history costs no writing. An accept is one sync where the
//! journal keeps the order, as those of ext4 and XFS do: that of the [log](podstead_sys::write_ahead), which has the link and the new file. On other file
//! systems each of the three is synced. A file is a line of JSON with version and hash,
//! and one with the [`State`] or the changes. The hash is there because a flipped bit in a set may well be another valid set. Secrets are
//! sealed in it with this host's key; directory and files are root's alone.

mod changes;
mod file;
mod revisions;

#[cfg(test)]
mod changes_tests;
#[cfg(test)]
mod tests;

pub use revisions::Unreadable;

use super::seal::{Sealer, has_secrets};
use super::undelta::KeptFiles;
use crate::history::{Hold, RefusedObject, RevisionState};
use changes::{Base, BaseName, Changes};
use file::{Body, Encoded, Head};
use jiff::Timestamp;
use podstead_artifact::{CommitSummary, Place};
use podstead_manifest::ObjectKey;
use podstead_pod::{Revision, SourceId};
use podstead_settings::PolicyRecord;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use podstead_sys::machine_key::{MachineKey, credentials};
use podstead_sys::write_ahead::{Change, WriteAheadLog};
use podstead_telemetry::error_chain;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const FILE: &str = "last-good.json";

/// Root's alone.
const FILE_MODE: u32 = 0o600;

/// The directory of earlier revisions.
const REVISIONS: &str = "revisions";

/// Bytes that a first line has at most.
const MAX_HEAD: u64 = 4 << 10;

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
    #[error("{path} has format version {found}, not {} or {}", file::WHOLE, file::CHANGES)]
    Version {
        /// The record.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It has the changes to another file, which is not there or is another one.
    #[error("{path} has changes to {base}, which is missing or was replaced")]
    NoBase {
        /// The record.
        path: PathBuf,
        /// The file that it needs.
        base: PathBuf,
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
    /// Makes the file in force durable.
    write_ahead: WriteAheadLog,
    /// The set that the next one may be written as changes to; `None` where none is known, and the next is written as a whole.
    base: Arc<Mutex<Option<Base>>>,
}

impl LastGood {
    /// The files of `source`, which need not exist.
    pub fn new(paths: &Paths, source: SourceId) -> Self {
        let (directory, machine_key) = (paths.source(&source), paths.machine_key());
        Self { source, directory, machine_key, write_ahead: WriteAheadLog::none(), base: Arc::default() }
    }

    /// Writes by way of this log.
    pub fn log_to(&mut self, write_ahead: WriteAheadLog) {
        self.write_ahead = write_ahead;
    }

    fn base(&self) -> MutexGuard<'_, Option<Base>> {
        self.base.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Reads what is in force; the default when nothing was ever accepted.
    pub fn load(&self) -> Result<State, LastGoodError> {
        let Some((state, base)) = self.read(&self.path())? else { return Ok(State::default()) };
        *self.base() = base;
        Ok(state)
    }

    /// Replaces what is in force durably, and leaves earlier revisions alone: for a change of what is around the set.
    pub fn save(&self, state: &State) -> Result<(), LastGoodError> {
        let base = self.base().take();
        let written = self.encode(state, base).and_then(|(bytes, base)| self.replace(bytes).map(|()| base));
        *self.base() = written.map_err(|source| LastGoodError::Write { path: self.path(), source })?;
        Ok(())
    }

    /// The set of a file with its base; `None` for a missing file.
    fn read(&self, path: &Path) -> Result<Option<(State, Option<Base>)>, LastGoodError> {
        match self.body(path)? {
            None => Ok(None),
            Some((Body::Whole(state, sha256), bytes)) => {
                let state = self.opened(*state);
                let base = state.in_force.as_ref().and_then(|record| {
                    let name = BaseName { number: record.stamp.number, sha256 };
                    Base::new(name, bytes, record.files.clone(), 0)
                });
                Ok(Some((state, base)))
            }
            Some((Body::Changes(changes), bytes)) => self.read_on_base(path, *changes, bytes).map(Some),
        }
    }

    fn read_on_base(&self, path: &Path, changes: Changes, bytes: u64) -> Result<(State, Option<Base>), LastGoodError> {
        let base_path = self.revision_path(changes.base.number);
        let (base_state, base_bytes) = match self.body(&base_path)? {
            Some((Body::Whole(state, sha256), bytes)) if sha256 == changes.base.sha256 => (state, bytes),
            Some(_) | None => return Err(LastGoodError::NoBase { path: path.to_owned(), base: base_path }),
        };
        let base_files = self.opened(*base_state).in_force.map(|record| record.files).unwrap_or_default();
        let Changes { hold, stamp, base, written, files, removed } = changes;
        let opened = self.opened(State { hold, in_force: Some(Record { stamp: stamp.clone(), files }) });
        let files = opened.in_force.map(|record| record.files).unwrap_or_default();
        let changes = Changes { hold: opened.hold, stamp, base, written, files, removed };
        let files = changes.on(&base_files);
        let base = Base::new(changes.base, base_bytes, base_files, written.saturating_add(bytes));
        Ok((State { hold: changes.hold, in_force: Some(Record { stamp: changes.stamp, files }) }, base))
    }

    /// Content and length of a file; `None` for a missing one.
    fn body(&self, path: &Path) -> Result<Option<(Body, u64)>, LastGoodError> {
        match fs::read(path) {
            Ok(bytes) => file::decode(&bytes, path, &self.source).map(|body| Some((body, bytes.len() as u64))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LastGoodError::Read { path: path.to_owned(), source }),
        }
    }

    /// The file for `state`, as changes to `base` where that is less, and the base of the next one.
    fn encode(&self, state: &State, base: Option<Base>) -> io::Result<(Vec<u8>, Option<Base>)> {
        if let (Some(record), Some(base)) = (&state.in_force, base)
            && let Some(bytes) = self.encode_changes(state.hold.as_ref(), record, &base)?
        {
            let written = base.written.saturating_add(bytes.len() as u64);
            return Ok((bytes, Some(Base { written, ..base })));
        }
        let Encoded { bytes, sha256 } = self.encode_whole(state)?;
        let base = state.in_force.as_ref().and_then(|record| {
            let name = BaseName { number: record.stamp.number, sha256 };
            Base::new(name, bytes.len() as u64, record.files.clone(), 0)
        });
        Ok((bytes, base))
    }

    /// `None` where the set is to be written as a whole: the base is not among the earlier revisions, or there are too many changes to it.
    fn encode_changes(&self, hold: Option<&Hold>, record: &Record, base: &Base) -> io::Result<Option<Vec<u8>>> {
        let is_there = base.name.number < record.stamp.number
            && self.head(base.name.number).is_some_and(|head| head.base.is_none() && head.sha256 == base.name.sha256);
        if !is_there {
            return Ok(None);
        }
        let (files, removed) = base.changes(&record.files);
        let changes = Changes {
            hold: hold.cloned(),
            stamp: record.stamp.clone(),
            base: base.name.clone(),
            written: base.written,
            files: self.sealed(&files)?,
            removed,
        };
        let bytes = file::encode_changes(&changes, &self.source)?.bytes;
        Ok(base.bears(bytes.len()).then_some(bytes))
    }

    fn encode_whole(&self, state: &State) -> io::Result<Encoded> {
        let Some(record) = state.in_force.as_ref().filter(|record| has_secrets(&record.files)) else {
            return file::encode(state, &self.source);
        };
        let files = self.sealed(&record.files)?;
        let sealed = State { hold: state.hold.clone(), in_force: Some(Record { stamp: record.stamp.clone(), files }) };
        file::encode(&sealed, &self.source)
    }

    /// The files as they lie on disk.
    fn sealed(&self, files: &KeptFiles) -> io::Result<KeptFiles> {
        if !has_secrets(files) {
            return Ok(files.clone());
        }
        make_directory(&self.directory)?;
        let key = MachineKey::load_or_make(&self.machine_key, credentials().as_deref()).map_err(io::Error::other)?;
        Sealer::new(&key, self.source.clone())?.seal(files)
    }

    /// The first line of an earlier revision; `None` for one that is not there or cannot be read.
    fn head(&self, number: u64) -> Option<Head> {
        head_of(&self.revision_path(number))
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

    fn replace(&self, bytes: Vec<u8>) -> io::Result<()> {
        make_directory(&self.directory)?;
        self.write_ahead.write(&[self.replacement(bytes)])
    }

    fn replacement(&self, content: Vec<u8>) -> Change {
        Change::Write { path: self.path(), content, mode: FILE_MODE }
    }

    /// Renames a record that cannot be used to `last-good.json.corrupt-<n>`; returns the new path.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let free = |number: &u32| fs::symlink_metadata(self.aside(*number)).is_err();
        let target = self.aside((1..MAX_SET_ASIDE).find(free).unwrap_or(MAX_SET_ASIDE));
        self.write_ahead.removes(&self.path());
        fs::rename(self.path(), &target)?;
        atomic_file::sync_parent(&target)?;
        Ok(target)
    }

    fn aside(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{FILE}.corrupt-{number}"))
    }
}

/// The first line of a file; `None` for one that is not there or cannot be read.
fn head_of(path: &Path) -> Option<Head> {
    let mut line = Vec::new();
    BufReader::with_capacity(1 << 10, File::open(path).ok()?).take(MAX_HEAD).read_until(b'\n', &mut line).ok()?;
    file::head(&line)
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
pub fn forget_others(paths: &Paths, configured: &[SourceId], write_ahead: &WriteAheadLog) -> io::Result<Vec<SourceId>> {
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
            write_ahead.write(&[Change::Remove { path }])?;
            forgotten.push(id);
        }
    }
    Ok(forgotten)
}
