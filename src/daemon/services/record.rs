//! Grants on disk: `services/<namespace>_<name>.json`.

use podstead_service::allocate::{Grant, Grants};
use podstead_service::name::ObjectName;
use podstead_sys::atomic_file;
use podstead_telemetry::error_chain;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
const MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
/// The largest file that is read: a Service has at most 100 ports.
const MOST_BYTES: u64 = 64 << 10;
const SUFFIX: &str = ".json";

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    #[serde(flatten)]
    name: ObjectName,
    grant: Grant,
}

/// Reads all records, before any is written. One that makes no sense is set aside and reported. Unfinished files, which an end of the daemon in the
/// middle of a write leaves, are removed: their Service may be gone, and nobody would write them again.
pub(super) fn read(directory: &Path) -> Grants {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Grants::new(),
        Err(error) => {
            tracing::error!(%error, directory = %directory.display(), "cannot read the addresses of Services");
            return Grants::new();
        }
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let (unfinished, paths): (Vec<PathBuf>, Vec<PathBuf>) = paths.partition(|path| path.to_str().is_some_and(is_unfinished));
    for path in unfinished {
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(%error, path = %path.display(), "cannot remove an unfinished record of the addresses of a Service");
        }
    }
    let is_record = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(SUFFIX));
    paths.into_iter().filter(is_record).filter_map(|path| read_one(&path)).collect()
}

/// A file that was to become a record, as [`atomic_file`] names it.
fn is_unfinished(path: &str) -> bool {
    path.ends_with(".json.tmp")
}

fn read_one(path: &Path) -> Option<(ObjectName, Grant)> {
    let read = fs::metadata(path).and_then(|metadata| {
        if metadata.len() > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too large"));
        }
        fs::read(path)
    });
    let parsed = read.and_then(|bytes| Ok(serde_json::from_slice::<Record>(&bytes)?));
    match parsed {
        Ok(record) if record.version == VERSION && path.file_name().is_some_and(|name| *name == *file_name(&record.name)) => {
            Some((record.name, record.grant))
        }
        Ok(_) => set_aside(path, "it is of another version or another Service"),
        Err(error) if error.kind() == io::ErrorKind::InvalidData || error.kind() == io::ErrorKind::UnexpectedEof => {
            set_aside(path, &error_chain(&error).to_string())
        }
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "cannot read the addresses of a Service");
            None
        }
    }
}

fn set_aside<T>(path: &Path, reason: &str) -> Option<T> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".damaged");
    tracing::error!(reason, path = %path.display(), "unusable record of the addresses of a Service set aside");
    if let Err(error) = fs::rename(path, &aside) {
        tracing::error!(%error, path = %path.display(), "cannot set the record aside");
    }
    None
}

/// Records a grant, durably.
pub(super) fn write(directory: &Path, name: &ObjectName, grant: &Grant) -> io::Result<()> {
    let record = Record { version: VERSION, name: name.clone(), grant: grant.clone() };
    atomic_file::write_durable_with_directories(
        &directory.join(file_name(name)),
        &serde_json::to_vec(&record)?,
        MODE,
        DIRECTORY_MODE,
    )
}

/// Removes a record. One that is not there is success.
pub(super) fn remove(directory: &Path, name: &ObjectName) -> io::Result<()> {
    atomic_file::remove_durable(&directory.join(file_name(name)))
}

/// Both are DNS labels: at most 63 letters without `_`.
fn file_name(name: &ObjectName) -> String {
    format!("{}_{}{SUFFIX}", name.namespace, name.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_back_and_damaged_ones_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("services");
        assert!(read(&directory).is_empty());
        let name = |name: &str| ObjectName { namespace: "shop".into(), name: name.into() };
        let grant = Grant { cluster_ips: vec!["10.202.1.7".parse().unwrap()], ..Grant::default() };
        for service in ["web", "gone", "bad", "other"] {
            write(&directory, &name(service), &grant).unwrap();
        }
        remove(&directory, &name("gone")).unwrap();
        remove(&directory, &name("gone")).unwrap();
        fs::write(directory.join("shop_bad.json"), "{\"version\":1,").unwrap();
        fs::write(directory.join(".shop_gone.json.tmp"), "{").unwrap();
        fs::rename(directory.join("shop_other.json"), directory.join("shop_copy.json")).unwrap();
        assert_eq!(read(&directory), Grants::from([(name("web"), grant)]));
        assert!(!fs::exists(directory.join(".shop_gone.json.tmp")).unwrap());
        assert!(fs::exists(directory.join("shop_bad.json.damaged")).unwrap());
        assert!(fs::exists(directory.join("shop_copy.json.damaged")).unwrap());
    }
}
