//! Taking away what a pod had: first every mount, then the directories. Nothing is deleted on the other side of a mount.

use super::nfs;
use podstead_sys::mounts::unmount_below;
use podstead_sys::remove_tree::remove_tree;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time to wait for busy mounts before they are detached.
const PATIENCE: Duration = Duration::from_secs(1);

/// Unmounts and deletes one directory, or one file. Returns what could not be done; the rest was.
pub(super) fn remove(directory: &Path) -> Vec<String> {
    // Mounts are listed by their real path. What is mounted at the directory itself is not asked for: it may be of a silent server.
    let real = match nfs::real(directory) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![format!("resolve {directory:?}: {error}")],
    };
    let remote = nfs::detach_below(&real);
    if !remote.is_empty() {
        return remote;
    }
    let failures = unmount_below(&real, PATIENCE);
    let mut left: Vec<String> = failures.into_iter().map(|(point, error)| format!("unmount {point:?}: {error}")).collect();
    // The pin of a file is a file.
    let removed = match fs::symlink_metadata(&real) {
        Ok(metadata) if !metadata.is_dir() => fs::remove_file(&real),
        Ok(_) | Err(_) => remove_tree(&real),
    };
    if let Err(error) = removed {
        left.push(format!("delete {directory:?}: {error}"));
    }
    left
}
