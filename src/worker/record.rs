//! The pod record: what has to survive the daemon. One versioned JSON file per pod, [`Paths::pod_record`].
//!
//! It keeps the pod's UID through a restart, lets the pod run while its source cannot be read, and keeps a finished pod finished. Of an
//! update only the definition is on disk before it is acted on; if even that is lost, the source delivers it again.

use super::active::ActiveTime;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodSpec;
use podstead_container::ObservedPod;
use podstead_pod::{DesiredPod, Origin, Pod, PodUid, Position, Revision, SourceId};
use podstead_status::PodResult;
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::{Change, WriteAheadLog};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
/// Grace period of an orphan's containers (kubelet rule C7).
const ORPHAN_GRACE_SECS: i64 = 1;

/// Record of a pod on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodRecord {
    version: u32,
    /// The pod that is being worked on.
    pub desired: DesiredPod,
    /// `status.startTime`.
    pub started_at: Timestamp,
    /// Its active time at the last count, if `activeDeadlineSeconds` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveTime>,
    /// Its result, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<PodResult>,
    /// The last stop by an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halt: Option<Halt>,
    /// It is no longer wanted and being removed.
    #[serde(default)]
    pub is_removed: bool,
}

/// A stop by an operator. Containers that ended while it was in force ended because of it, so that their exit codes do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// The time of the order.
    pub since: Timestamp,
    /// The boot in which it was ordered.
    pub boot_id: String,
    /// The time at which the pod was started again; `None` while the stop is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Halt {
    /// Returns true while the pod is to stay stopped.
    pub const fn is_in_force(&self) -> bool {
        self.until.is_none()
    }

    /// The same stop, ended.
    pub fn ended(self, until: Timestamp) -> Self {
        Self { until: Some(self.until.unwrap_or(until)), ..self }
    }

    /// Returns true if the stop was in force at that time.
    pub fn covers(&self, at: Timestamp) -> bool {
        self.since <= at && self.until.is_none_or(|until| at <= until)
    }
}

/// Reason why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It could not be written.
    #[error("write pod record {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// It could not be read.
    #[error("read pod record {}", path.display())]
    Read {
        /// The file, or the directory of all pods.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// It cannot be understood: cut short by a power cut, or from a newer podstead.
    #[error("decode pod record {}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
    /// It is of a version that this podstead does not know.
    #[error("pod record {} has the unsupported version {version}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
}

/// The records of all pods, and the UIDs of those that could not be read.
#[derive(Debug, Default)]
pub struct Records {
    /// As read.
    pub records: Vec<PodRecord>,
    /// There, and of no use: see [`set_aside`].
    pub unreadable: Vec<(PodUid, RecordError)>,
    /// Directories of pods without a record.
    pub without: Vec<PodUid>,
}

impl PodRecord {
    /// A record of a pod that is not removed.
    pub const fn new(desired: DesiredPod, started_at: Timestamp) -> Self {
        Self { version: VERSION, desired, started_at, active: None, result: None, halt: None, is_removed: false }
    }

    /// Replacement of a lost record, from the sandbox's state. It keeps the pod's UID, so that containers that a source still wants as they
    /// are go on.
    pub fn rebuilt(observed: &ObservedPod) -> Option<Self> {
        let sandbox = observed.sandbox.as_ref()?;
        let full_name = sandbox.spec.full_name.clone();
        let mut pod = Pod::default();
        pod.metadata.name = Some(full_name.name.clone());
        pod.metadata.namespace = Some(full_name.namespace.clone());
        pod.metadata.uid = Some(observed.uid.to_string());
        pod.spec = Some(PodSpec { termination_grace_period_seconds: Some(ORPHAN_GRACE_SECS), ..PodSpec::default() });
        let desired = DesiredPod {
            uid: observed.uid.clone(),
            full_name,
            source: SourceId::new("unknown"),
            revision: Revision(String::new()),
            origin: Origin { file: "".into(), position: Position { line: 1, column: 1 } },
            pod: pod.into(),
        };
        Some(Self::new(desired, sandbox.created_at))
    }

    /// Writes it durably, making the pod's directory where needed.
    pub fn write(&self, paths: &Paths, log: &WriteAheadLog) -> Result<(), RecordError> {
        let path = paths.pod_record(&self.desired.uid);
        let written = self.changes(paths, &path).and_then(|changes| log.write(&changes));
        written.map_err(|source| RecordError::Write { path, source })
    }

    fn changes(&self, paths: &Paths, path: &Path) -> io::Result<Vec<Change>> {
        let uid = &self.desired.uid;
        let record = Change::Write { path: path.to_owned(), content: serde_json::to_vec(self)?, mode: 0o600 };
        // A record that is there was written after the names that lead to it were durable.
        if path.try_exists()? {
            return Ok(vec![record]);
        }
        let directory = Change::Directory { path: paths.pod(uid), mode: 0o755 };
        // Its name becomes durable with that of the record, so that it is for the records of containers in it.
        let of_containers = Change::Directory { path: paths.container_records(uid), mode: 0o750 };
        Ok(vec![directory, of_containers, record])
    }

    fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RecordError::Read { path: path.to_owned(), source }),
        };
        let record: Self =
            serde_json::from_slice(&bytes).map_err(|source| RecordError::Decode { path: path.to_owned(), source })?;
        match record.version {
            VERSION => Ok(Some(record)),
            version => Err(RecordError::Version { path: path.to_owned(), version }),
        }
    }
}

/// Keeps a record that cannot be understood as `pod.json.bad`, out of the way of a new one.
pub fn set_aside(paths: &Paths, uid: &PodUid) {
    let path = paths.pod_record(uid);
    // If even that fails, the new record replaces it.
    fs::rename(&path, path.with_extension("json.bad")).ok();
}

/// Reads the records of all pods, and changes nothing.
pub fn read_all(paths: &Paths) -> Result<Records, RecordError> {
    let directory = paths.pods();
    let failed = |source| RecordError::Read { path: directory.clone(), source };
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Records::default()),
        Err(source) => return Err(failed(source)),
    };
    let mut all = Records::default();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Some(uid) = entry.file_name().to_str().map(PodUid::new) else { continue };
        let path = paths.pod_record(&uid);
        match PodRecord::read(&path) {
            Ok(Some(record)) if record.desired.uid == uid => all.records.push(record),
            Ok(Some(_) | None) => all.without.push(uid),
            Err(error) => all.unreadable.push((uid, error)),
        }
    }
    Ok(all)
}

/// Removes a pod's record and its directory if nothing else is in it. NotFound is success.
pub fn remove(paths: &Paths, uid: &PodUid, log: &WriteAheadLog) -> Result<(), RecordError> {
    let path = paths.pod_record(uid);
    log.removes(&path);
    log.removes(&paths.container_records(uid));
    log.removes(&paths.pod(uid));
    fs::remove_file(path.with_extension("json.bad")).ok();
    // If it stays, so does the directory, which is looked at again.
    fs::remove_file(paths.pod_conditions(uid)).ok();
    let removed = match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    removed.map_err(|source| RecordError::Write { path, source })?;
    // Not empty or missing: both are handled elsewhere.
    fs::remove_dir(paths.container_records(uid)).ok();
    fs::remove_dir(paths.pod(uid)).ok();
    Ok(())
}
