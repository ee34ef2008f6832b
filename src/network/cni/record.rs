//! Records on disk: what CNI plugins gave each pod, in the pod's state directory.

use super::plan::Attachment;
use crate::config::Paths;
use crate::pod::host_ports::HostPort;
use crate::pod::{PodFullName, PodUid};
use crate::sys::atomic_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

const VERSION: u32 = 1;

/// Why a record cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The system refused.
    #[error("{operation} {}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It is not what was written.
    #[error("read {}", path.display())]
    Malformed {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// A later version wrote it.
    #[error("read {}: it is of version {version}", path.display())]
    Version { path: PathBuf, version: u32 },
}

/// What a pod has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodRecord {
    version: u32,
    /// The pod's name, for messages.
    pub(super) pod: PodFullName,
    /// Ports of the host that are its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ports: Vec<HostPort>,
    /// In the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attachments: Vec<Attachment>,
}

impl PodRecord {
    /// Of a pod that has nothing.
    pub(super) fn new(pod: PodFullName) -> Self {
        Self { version: VERSION, pod, ports: Vec::new(), attachments: Vec::new() }
    }

    /// Whether there is nothing to record.
    pub(super) fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.attachments.is_empty()
    }

    /// What has the interface of this name.
    pub(super) fn find(&mut self, interface: &str) -> Option<&mut Attachment> {
        self.attachments.iter_mut().find(|attachment| attachment.interface() == interface)
    }
}

/// All records, and the pods whose record cannot be read.
pub(super) type FoundRecords = (Vec<(PodUid, PodRecord)>, Vec<(PodUid, RecordError)>);

/// Reads the records of all pods that have a directory.
pub(super) fn read_all(paths: &Paths) -> Result<FoundRecords, RecordError> {
    let (mut records, mut unreadable) = (Vec::new(), Vec::new());
    let directory = paths.pods();
    let failed = |source| RecordError::Io { operation: "list", path: directory.clone(), source };
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((records, unreadable)),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let Some(uid) = name.to_str().map(PodUid::new) else { continue };
        match read(paths.pod_cni(&uid)) {
            Ok(Some(record)) => records.push((uid, record)),
            Ok(None) => {}
            Err(error) => unreadable.push((uid, error)),
        }
    }
    Ok((records, unreadable))
}

fn read(path: PathBuf) -> Result<Option<PodRecord>, RecordError> {
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecordError::Io { operation: "read", path, source }),
    };
    match serde_json::from_slice::<PodRecord>(&bytes) {
        Ok(record) if record.version == VERSION => Ok(Some(record)),
        Ok(record) => Err(RecordError::Version { path, version: record.version }),
        Err(source) => Err(RecordError::Malformed { path, source }),
    }
}

/// Writes a record, durably: plugins keep addresses on disk, and a power cut must not make podstead forget whose they are. One that has
/// nothing in it goes. Blocks.
pub(super) fn write(paths: &Paths, uid: &PodUid, record: &PodRecord) -> Result<(), RecordError> {
    let path = paths.pod_cni(uid);
    if record.is_empty() {
        return match atomic_file::remove_durable(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RecordError::Io { operation: "remove", path, source }),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    let directory = paths.pod(uid);
    let made = fs::DirBuilder::new().recursive(true).mode(0o750).create(&directory);
    made.map_err(|source| RecordError::Io { operation: "make", path: directory, source })?;
    let bytes = serde_json::to_vec(record).map_err(|source| RecordError::Malformed { path: path.clone(), source })?;
    // A configuration may hold a password.
    atomic_file::write_durable(&path, &bytes, 0o600).map_err(|source| RecordError::Io { operation: "write", path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_again_and_what_is_damaged_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        assert!(read_all(&paths).unwrap().0.is_empty(), "no pods yet");
        let (good, bad) = (PodUid::new("good"), PodUid::new("bad"));
        let ports = serde_json::from_str(r#"[{"protocol": "TCP", "hostPort": 8080, "containerPort": 80}]"#).unwrap();
        let record = PodRecord { ports, ..PodRecord::new(PodFullName { namespace: "default".into(), name: "a".into() }) };
        write(&paths, &good, &record).unwrap();
        write(&paths, &bad, &record).unwrap();
        fs::write(paths.pod_cni(&bad), "{").unwrap();
        let (found, unreadable) = read_all(&paths).unwrap();
        assert_eq!(found, [(good.clone(), record.clone())]);
        assert_eq!(unreadable[0].0, bad);
        fs::write(paths.pod_cni(&bad), r#"{"version": 2, "pod": {"name": "a", "namespace": "b"}}"#).unwrap();
        assert!(read_all(&paths).unwrap().1[0].1.to_string().ends_with("it is of version 2"));
        let empty = PodRecord { ports: Vec::new(), ..record };
        write(&paths, &good, &empty).unwrap();
        write(&paths, &good, &empty).unwrap();
        assert!(read_all(&paths).unwrap().0.is_empty());
    }
}
