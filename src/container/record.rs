//! Records on disk: what a later daemon knows about sandboxes and containers when nothing else is left. JSON, versioned.
//!
//! The shim writes container records: durably before a container's program is executed and before its exit is told, atomically in
//! between. Those of a container that is restarted after every exit are always written atomically only, as that of a sandbox, which does not outlive a
//! boot. The client writes sandbox records, and rewrites container records only when the shim is dead.

use crate::{ContainerStatus, SandboxStatus};
use podstead_sys::atomic_file;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Version of the records' form. Unknown fields are ignored, so it changes only with their meaning.
const VERSION: u32 = 1;

/// The record of one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// Form of this record.
    pub version: u32,
    /// The container.
    pub status: ContainerStatus,
}

/// The record of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// Form of this record.
    pub version: u32,
    /// The sandbox.
    pub status: SandboxStatus,
    /// The kernel's boot id at its making: in another boot, it is lost.
    pub boot_id: String,
    /// The pod's cgroup.
    pub cgroup: PathBuf,
}

/// Durability of a record: it survives a power cut, or only the death of its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Synced before the call returns.
    PowerCut,
    /// Old or new for every reader, never half.
    ProcessDeath,
}

/// Reason why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The disk said no.
    #[error("read record {}", path.display())]
    Read {
        /// The record.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// It is not what was written.
    #[error("decode record {}", path.display())]
    Decode {
        /// The record.
        path: PathBuf,
        /// The decoding error.
        #[source]
        source: serde_json::Error,
    },
    /// It was written by a later version that gave it another meaning.
    #[error("record {} has the unsupported version {found}", path.display())]
    Version {
        /// The record.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
    /// The disk said no.
    #[error("write record {}", path.display())]
    Write {
        /// The record.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
}

impl ContainerRecord {
    /// A record of the present form.
    pub fn new(status: ContainerStatus) -> Self {
        Self { version: VERSION, status }
    }

    /// Reads `path`.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let record: Self = read_json(path)?;
        known_version(path, record.version)?;
        Ok(record)
    }

    /// Writes to `path`, in an existing directory.
    pub fn write(&self, path: &Path, durability: Durability) -> Result<(), RecordError> {
        write_json(path, self, durability)
    }
}

impl SandboxRecord {
    /// A record of the present form.
    pub fn new(status: SandboxStatus, boot_id: String, cgroup: PathBuf) -> Self {
        Self { version: VERSION, status, boot_id, cgroup }
    }

    /// Reads `path`.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let record: Self = read_json(path)?;
        known_version(path, record.version)?;
        Ok(record)
    }

    /// Writes to `path`, in an existing directory.
    pub fn write(&self, path: &Path, durability: Durability) -> Result<(), RecordError> {
        write_json(path, self, durability)
    }
}

fn known_version(path: &Path, found: u32) -> Result<(), RecordError> {
    if found == VERSION { Ok(()) } else { Err(RecordError::Version { path: path.to_owned(), found }) }
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RecordError> {
    let bytes = std::fs::read(path).map_err(|source| RecordError::Read { path: path.to_owned(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| RecordError::Decode { path: path.to_owned(), source })
}

fn write_json<T: Serialize>(path: &Path, record: &T, durability: Durability) -> Result<(), RecordError> {
    let bytes = serde_json::to_vec(record).map_err(|source| RecordError::Decode { path: path.to_owned(), source })?;
    match durability {
        Durability::PowerCut => atomic_file::write_durable(path, &bytes, 0o600),
        Durability::ProcessDeath => atomic_file::write_atomic(path, &bytes, 0o600),
    }
    .map_err(|source| RecordError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContainerKind, ContainerState};
    use jiff::Timestamp;
    use podstead_pod::{ContainerId, ContainerName};

    fn record() -> ContainerRecord {
        ContainerRecord::new(ContainerStatus {
            id: ContainerId::new("c1"),
            name: ContainerName::new("web"),
            kind: ContainerKind::Main,
            attempt: 3,
            sandbox_attempt: 1,
            hash: "h".into(),
            image_ref: "web:1".into(),
            image_id: "sha256:0".into(),
            user: None,
            stop_signal: 15,
            created_at: Timestamp::from_second(1_700_000_000).unwrap(),
            log_path: "/logs/3.log".into(),
            state: ContainerState::Exited {
                started_at: None,
                finished_at: Timestamp::from_second(1_700_000_001).unwrap(),
                exit_code: 137,
                signal: Some(9),
                oom_killed: true,
                error: None,
                message: Some("bye".into()),
            },
        })
    }

    #[test]
    fn a_record_is_read_back_as_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c1.json");
        for durability in [Durability::PowerCut, Durability::ProcessDeath] {
            record().write(&path, durability).unwrap();
            assert_eq!(ContainerRecord::read(&path).unwrap(), record());
        }
    }

    #[test]
    fn a_record_of_a_later_meaning_is_refused_and_unknown_fields_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c1.json");
        let mut value = serde_json::to_value(record()).unwrap();
        value["later"] = "x".into();
        std::fs::write(&path, value.to_string()).unwrap();
        assert_eq!(ContainerRecord::read(&path).unwrap(), record());
        value["version"] = 2.into();
        std::fs::write(&path, value.to_string()).unwrap();
        assert!(matches!(ContainerRecord::read(&path), Err(RecordError::Version { found: 2, .. })));
    }

    #[test]
    fn half_a_record_is_an_error_and_not_a_default() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c1.json");
        std::fs::write(&path, "{\"version\":1,").unwrap();
        assert!(matches!(ContainerRecord::read(&path), Err(RecordError::Decode { .. })));
    }
}
