//! The last good set of each source on disk: what a start without network, directory or repository begins with (promise P3).
//!
//! One file per source, `last-good.json` in the source's state directory, replaced atomically: a line of JSON with version and hash, and
//! one with the set. The hash is there because a flipped bit in a set may well be another valid set. It may hold secrets: directory
//! and file are root's alone.

use super::undelta::KeptFiles;
use crate::config::Paths;
use crate::pod::SourceId;
use crate::source::{Place, Revision};
use crate::sys::atomic_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FILE: &str = "last-good.json";

/// The format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Unreadable records that are kept; the last one is overwritten.
const MAX_SET_ASIDE: u32 = 9;

/// What was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The revision that the objects were read from.
    pub revision: Revision,
    /// What it was read from.
    pub place: Option<Place>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The objects by file, those that are kept from earlier revisions included.
    pub files: KeptFiles,
}

/// The first line; the same in every version.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    source: SourceId,
    /// Of the second line.
    sha256: String,
}

/// Why a last good set cannot be used or kept.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// The file is there and cannot be read.
    #[error("read {path}")]
    Read {
        /// The record.
        path: PathBuf,
        /// What the disk said.
        #[source]
        source: io::Error,
    },
    /// The file is not what was written.
    #[error("{path} is no record of a last good set")]
    Parse {
        /// The record.
        path: PathBuf,
        /// Where it differs.
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
        /// What the disk said.
        #[source]
        source: io::Error,
    },
}

/// The record of one source.
#[derive(Clone, Debug)]
pub struct LastGood {
    source: SourceId,
    directory: PathBuf,
}

impl LastGood {
    /// The record of `source`, which need not exist.
    pub fn new(paths: &Paths, source: SourceId) -> Self {
        Self { directory: paths.source(&source), source }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Reads it; `None` when nothing was ever accepted.
    pub fn load(&self) -> Result<Option<Record>, LastGoodError> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LastGoodError::Read { path, source }),
        };
        let parse = |source| LastGoodError::Parse { path: path.clone(), source };
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let (head, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
        let head: Head = serde_json::from_slice(head).map_err(parse)?;
        if head.version != VERSION {
            return Err(LastGoodError::Version { path, found: head.version });
        }
        if head.source != self.source {
            return Err(LastGoodError::OtherSource { path, found: head.source });
        }
        if head.sha256 != sha256(body) {
            return Err(LastGoodError::Damaged(path));
        }
        serde_json::from_slice(body).map(Some).map_err(parse)
    }

    /// Replaces it durably.
    pub fn save(&self, record: &Record) -> Result<(), LastGoodError> {
        let saved = self.encode(record).and_then(|bytes| {
            self.make_directory()?;
            atomic_file::write_durable(&self.path(), &bytes, 0o600)
        });
        saved.map_err(|source| LastGoodError::Write { path: self.path(), source })
    }

    fn encode(&self, record: &Record) -> io::Result<Vec<u8>> {
        let body = serde_json::to_vec(record)?;
        let mut bytes = serde_json::to_vec(&Head { version: VERSION, source: self.source.clone(), sha256: sha256(&body) })?;
        bytes.push(b'\n');
        bytes.extend(body);
        Ok(bytes)
    }

    fn make_directory(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Ok(()) => atomic_file::sync_parent(&self.directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().mode(0o700).recursive(true).create(&self.directory)?;
                // All of these may be new, and a record is only as durable as the names that lead to it.
                self.directory.ancestors().filter(|path| path.parent().is_some()).try_for_each(atomic_file::sync_parent)
            }
            Err(error) => Err(error),
        }
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

fn sha256(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
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
        let path: &Path = &paths.source(&id).join(FILE);
        if !configured.contains(&id) && fs::symlink_metadata(path).is_ok() {
            atomic_file::remove_durable(path)?;
            forgotten.push(id);
        }
    }
    Ok(forgotten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Limits;
    use crate::pod::{AdmitContext, NodeName};
    use crate::store::undelta::KeptFile;
    use crate::store::{CheckContext, check};
    use std::os::unix::fs::PermissionsExt;

    const TEXT: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {}, annotations: {a: b}}
spec:
  activeDeadlineSeconds: 5
  containers:
  - name: web
    image: nginx
    command: []
    resources: {limits: {cpu: 500m, memory: 1Gi}}
    ports: [{containerPort: 80}]
    env: [{name: A, value: \"\"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {k: AAEC/w==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
binaryData: {k: AAEC/w==}
";

    fn record() -> Record {
        let context = CheckContext { limits: Limits::default(), admit: AdmitContext::new(NodeName::new("edge")) };
        let checked = check("web.yaml", TEXT.as_bytes(), &context);
        assert_eq!(checked.accepted.len(), 3, "{:?}", checked.problems);
        Record {
            revision: Revision("sha256:1".into()),
            place: Some(Place("device 1:2 inode 3".into())),
            accepted_at: "2025-01-01T00:00:00.123456789Z".parse().unwrap(),
            files: KeptFiles::from([
                ("web.yaml".into(), KeptFile { objects: checked.accepted, unclear: false }),
                ("x.yaml".into(), KeptFile { objects: Vec::new(), unclear: true }),
            ]),
        }
    }

    fn last_good(root: &Path) -> LastGood {
        let paths = Paths { state: root.join("deep/state"), run: root.into(), logs: root.into() };
        LastGood::new(&paths, SourceId::new("manifests"))
    }

    #[test]
    fn what_was_saved_is_loaded_to_the_last_field() {
        let root = tempfile::tempdir().unwrap();
        let last_good = last_good(root.path());
        assert_eq!(last_good.load().unwrap(), None);
        last_good.save(&record()).unwrap();
        assert_eq!(last_good.load().unwrap(), Some(record()));
    }

    #[test]
    fn nobody_else_can_read_it() {
        let root = tempfile::tempdir().unwrap();
        let last_good = last_good(root.path());
        last_good.save(&record()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&last_good.path()), mode(&last_good.directory)), (0o600, 0o700));
    }

    #[test]
    fn a_record_that_cannot_be_used_says_why_and_can_be_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let last_good = last_good(root.path());
        last_good.save(&record()).unwrap();
        let whole = fs::read_to_string(last_good.path()).unwrap();
        let replaced = |from: &str, to: &str| whole.replacen(from, to, 1).into_bytes();
        let bad = [
            (Vec::new(), "no record"),
            (vec![0; 4096], "no record"),
            (whole.as_bytes()[..whole.len() / 2].to_vec(), "is damaged"),
            (replaced("\"version\":1", "\"version\":2"), "version 2"),
            (replaced("\"source\":\"manifests\"", "\"source\":\"other\""), "source other"),
            (replaced("\"Pod\"", "\"Pot\""), "is damaged"),
        ];
        for (index, (bytes, word)) in bad.into_iter().enumerate() {
            fs::write(last_good.path(), bytes).unwrap();
            let error = last_good.load().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("last-good.json"), "{error}");
            let aside = last_good.set_aside().unwrap();
            assert!(aside.ends_with(format!("last-good.json.corrupt-{}", index + 1)), "{aside:?}");
            assert_eq!(last_good.load().unwrap(), None);
        }
    }

    #[test]
    fn records_set_aside_do_not_pile_up() {
        let root = tempfile::tempdir().unwrap();
        let last_good = last_good(root.path());
        for _ in 0..20 {
            last_good.save(&record()).unwrap();
            last_good.set_aside().unwrap();
        }
        assert_eq!(fs::read_dir(&last_good.directory).unwrap().count(), 9);
    }

    #[test]
    fn records_of_other_sources_are_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        assert_eq!(forget_others(&paths, &[]).unwrap(), []);
        let [kept, gone] = ["kept", "gone"].map(|name| LastGood::new(&paths, SourceId::new(name)));
        kept.save(&record()).unwrap();
        gone.save(&record()).unwrap();
        fs::write(gone.directory.join("objects"), "x").unwrap();
        assert_eq!(forget_others(&paths, &[SourceId::new("kept")]).unwrap(), [SourceId::new("gone")]);
        assert!(kept.load().unwrap().is_some() && gone.load().unwrap().is_none());
        assert_eq!(fs::read_dir(&gone.directory).unwrap().count(), 1, "what else a source keeps is not touched");
        assert_eq!(forget_others(&paths, &[SourceId::new("kept")]).unwrap(), []);
    }
}
