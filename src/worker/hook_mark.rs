//! Progress of the hooks of a pod's containers, saved for the next daemon: one small file per container with a hook, below the pod's run
//! directory, which is in memory and is removed with the sandbox. So a hook whose end nobody saw is done again, and one that is done is
//! not.

use podstead_pod::{ContainerId, ContainerName, PodUid};
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// Saved mark of a container's newest run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mark {
    /// Its postStart hook is not done.
    OwesPostStart(ContainerId),
    /// Its preStop hook is over.
    PreStopDone(ContainerId),
}

/// Keeps a mark, or removes it. One that cannot be kept is no reason to stop: at worst the hook is done twice.
pub(super) async fn set(paths: &Paths, uid: &PodUid, container: &ContainerName, mark: Option<Mark>) {
    let (directory, name) = (paths.hook_marks(uid), container.to_string());
    let write = move || {
        let path = directory.join(name);
        match mark {
            Some(mark) => {
                fs::create_dir_all(&directory)?;
                atomic_file::write_atomic(&path, &serde_json::to_vec(&mark)?, 0o600)
            }
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    };
    if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
        tracing::warn!(pod_uid = %uid, %container, %error, "cannot save the progress of a hook");
    }
}

/// All marks of a pod. What cannot be read is not there.
pub(super) fn read(paths: &Paths, uid: &PodUid) -> Vec<Mark> {
    let entries = fs::read_dir(paths.hook_marks(uid)).into_iter().flatten().flatten();
    entries.filter_map(|entry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_mark_of_a_container_counts_until_it_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let (uid, web) = (PodUid::new("u"), ContainerName::new("web"));
        assert_eq!(read(&paths, &uid), []);
        for mark in [Mark::OwesPostStart(ContainerId::new("1")), Mark::PreStopDone(ContainerId::new("1"))] {
            set(&paths, &uid, &web, Some(mark.clone())).await;
            assert_eq!(read(&paths, &uid), [mark]);
        }
        set(&paths, &uid, &web, None).await;
        set(&paths, &uid, &web, None).await;
        assert_eq!(read(&paths, &uid), []);
    }
}
