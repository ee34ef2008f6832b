//! Records of networks on disk, each a versioned JSON file: those of single pods lie in the pods' state directories. Says how records are
//! read and written; what is in them is the matter of whoever keeps them.

use podstead_pod::PodUid;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Version of all of them. Unknown fields are ignored, so it changes only with the meaning of known ones.
const VERSION: u32 = 1;

/// Reason why a record cannot be read or written.
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
    #[error("read {}: it has the unsupported version {version}", path.display())]
    Version { path: PathBuf, version: u32 },
}

impl RecordError {
    /// Returns true if the disk failed: the content is unknown, and may be right all the same.
    pub(super) const fn is_of_disk(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

/// Durability of a record that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The daemon's death: readers find the old record or the new one.
    Crash,
    /// A power cut too: it is synced.
    PowerCut,
}

/// Records of pods, and the pods with an unreadable record.
pub(super) type Found<T> = (Vec<(PodUid, T)>, Vec<(PodUid, RecordError)>);

#[derive(Debug, Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// Reads the records of all pods that have a directory. `place` says where a pod's is.
pub(super) fn read_all<T: DeserializeOwned>(paths: &Paths, place: impl Fn(&PodUid) -> PathBuf) -> Result<Found<T>, RecordError> {
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
        match read(&place(&uid)) {
            Ok(Some(record)) => records.push((uid, record)),
            Ok(None) => {}
            Err(error) => unreadable.push((uid, error)),
        }
    }
    Ok((records, unreadable))
}

/// Reads a record; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, RecordError> {
    let path = path.to_owned();
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecordError::Io { operation: "read", path, source }),
    };
    match serde_json::from_slice::<Versioned<T>>(&bytes) {
        Ok(Versioned { version: VERSION, content }) => Ok(Some(content)),
        Ok(Versioned { version, .. }) => Err(RecordError::Version { path, version }),
        Err(source) => Err(RecordError::Malformed { path, source }),
    }
}

/// Writes a record of a pod, which only podstead may read, and makes the pod's directory where needed.
pub(super) fn write_of_pod<T: Serialize>(
    paths: &Paths,
    uid: &PodUid,
    path: PathBuf,
    content: &T,
    proof: Proof,
) -> Result<(), RecordError> {
    let directory = paths.pod(uid);
    let made = fs::DirBuilder::new().recursive(true).mode(0o750).create(&directory);
    made.map_err(|source| RecordError::Io { operation: "make", path: directory, source })?;
    write(path, content, 0o600, proof)
}

/// Writes a record into a directory that exists.
pub(super) fn write<T: Serialize>(path: PathBuf, content: &T, mode: u32, proof: Proof) -> Result<(), RecordError> {
    let bytes = match serde_json::to_vec(&Versioned { version: VERSION, content }) {
        Ok(bytes) => bytes,
        Err(source) => return Err(RecordError::Malformed { path, source }),
    };
    let written = match proof {
        Proof::Crash => atomic_file::write_atomic(&path, &bytes, mode),
        Proof::PowerCut => atomic_file::write_durable(&path, &bytes, mode),
    };
    written.map_err(|source| RecordError::Io { operation: "write", path, source })
}

/// Keeps a record that cannot be understood beside its place, as `<name>.json.bad`, out of the way of a new one.
pub(super) fn set_aside(path: PathBuf) -> Result<(), RecordError> {
    match fs::rename(&path, path.with_extension("json.bad")) {
        Ok(()) => Ok(()),
        Err(source) => Err(RecordError::Io { operation: "set aside", path, source }),
    }
}

/// Removes a record, durably. One that is not there is success.
pub(super) fn remove(path: PathBuf) -> Result<(), RecordError> {
    match atomic_file::remove_durable(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RecordError::Io { operation: "remove", path, source }),
        Ok(()) | Err(_) => Ok(()),
    }
}
