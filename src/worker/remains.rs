//! Log directories of removed pods: they outlive the pod for a while, for readers (kubelet rule D17).
//!
//! Only directories that a pod of podstead left are removed, since a kubelet on the same host would use the same root. So each gets a
//! mark, an empty file of its name in [`Paths::gone`], when its pod goes.

use podstead_pod::{DesiredPod, PodUid};
use podstead_runtime::log_links;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use podstead_sys::quiet_look::paths_in;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why logs could not be marked or removed.
#[derive(Debug, thiserror::Error)]
pub enum RemainsError {
    /// The mark could not be made or read.
    #[error("mark logs of a removed pod in {}", path.display())]
    Mark {
        /// The mark, or the directory of all marks.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The log directory, or links to what was in it, could not be removed.
    #[error("delete logs {}", path.display())]
    Remove {
        /// The log directory, or the directory of links.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
}

/// Marks the pod's log directory, if it has one.
pub(super) fn mark_logs(paths: &Paths, desired: &DesiredPod) -> Result<(), RemainsError> {
    let logs = paths.pod_logs(&desired.full_name, &desired.uid);
    let Some(name) = logs.file_name() else { return Ok(()) };
    if !logs.try_exists().unwrap_or(true) {
        return Ok(());
    }
    mark(paths, name)
}

/// Marks the log directory of a pod of which only the UID is known. There must be something else of podstead's that carries the UID.
pub fn mark_logs_of(paths: &Paths, uid: &PodUid) -> Result<(), RemainsError> {
    let failed = |source| RemainsError::Mark { path: paths.logs.clone(), source };
    let entries = match fs::read_dir(&paths.logs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(source)),
    };
    let end = format!("_{uid}");
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if name.to_str().is_some_and(|name| name.ends_with(&end)) {
            mark(paths, &name)?;
        }
    }
    Ok(())
}

fn mark(paths: &Paths, name: &OsStr) -> Result<(), RemainsError> {
    let mark = paths.gone().join(name);
    let write = || {
        if !paths.gone().try_exists()? {
            atomic_file::make_directories(&paths.gone(), 0o755)?;
        }
        atomic_file::write_durable(&mark, b"", 0o600)
    };
    write().map_err(|source| RemainsError::Mark { path: mark.clone(), source })
}

/// Removes the log directories that were marked longer than `keep` ago.
pub fn remove_old_logs(paths: &Paths, keep: Duration) -> Result<(), RemainsError> {
    let directory = paths.gone();
    let failed = |source| RemainsError::Mark { path: directory.clone(), source };
    let marks = match paths_in(&directory) {
        Ok(marks) => marks,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(source)),
    };
    for mark in marks {
        let Some(name) = mark.file_name() else { continue };
        let modified = fs::symlink_metadata(&mark).and_then(|metadata| metadata.modified()).map_err(failed)?;
        // A clock that was set back makes a mark from the future: its time has come too.
        if modified.elapsed().is_ok_and(|age| age < keep) {
            continue;
        }
        let logs = paths.logs.join(name);
        match fs::remove_dir_all(&logs) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RemainsError::Remove { path: logs, source: error });
            }
            Ok(()) | Err(_) => {}
        }
        if let Some(links) = paths.log_links() {
            log_links::remove_all(&links, &logs).map_err(|source| RemainsError::Remove { path: links, source })?;
        }
        fs::remove_file(&mark).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::ContainerId;

    #[test]
    fn logs_of_a_pod_without_a_record_are_found_by_its_uid() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        mark_logs_of(&paths, &PodUid::new("1")).unwrap();
        for name in ["default_web_1", "default_other_11", "default_1_2"] {
            fs::create_dir_all(paths.logs.join(name)).unwrap();
        }
        mark_logs_of(&paths, &PodUid::new("1")).unwrap();
        let marks: Vec<_> = fs::read_dir(paths.gone()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(marks, ["default_web_1"]);
    }

    #[test]
    fn only_marked_logs_are_removed_and_only_after_their_time() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("pods") };
        fs::create_dir_all(paths.logs.join("default_web_1/web")).unwrap();
        let links = paths.log_links().unwrap();
        for (pod, id) in [("default_web_1", "a"), ("default_foreign_2", "b")] {
            log_links::create(&links, &paths.logs.join(pod).join("web/0.log"), &ContainerId::new(id)).unwrap();
        }
        fs::create_dir_all(paths.logs.join("default_foreign_2/web")).unwrap();
        fs::create_dir_all(paths.gone()).unwrap();
        fs::write(paths.gone().join("default_web_1"), b"").unwrap();

        remove_old_logs(&paths, Duration::from_secs(3600)).unwrap();
        assert!(paths.logs.join("default_web_1").is_dir(), "its time has not come");
        remove_old_logs(&paths, Duration::ZERO).unwrap();
        assert!(!paths.logs.join("default_web_1").is_dir());
        assert!(paths.logs.join("default_foreign_2").is_dir());
        let left: Vec<_> = fs::read_dir(&links).unwrap().map(|link| link.unwrap().file_name()).collect();
        assert_eq!(left, ["foreign_default_web-b.log"]);
        assert_eq!(fs::read_dir(paths.gone()).unwrap().count(), 0);
        remove_old_logs(&paths, Duration::ZERO).unwrap();
    }
}
