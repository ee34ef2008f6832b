//! Measuring what a pod uses of the host's disk. The portable way: by walking, since not every file system has project quotas.

use podstead_pod::PodUid;
use podstead_pod::storage::StorageUsage;
use podstead_sys::disk_usage::{WalkBudget, disk_usage};
use podstead_sys::layout::Paths;
use std::path::{Path, PathBuf};

/// Entries looked at in one measurement; what is beyond them is not counted.
const MAX_ENTRIES: u64 = 2_000_000;

/// Parts of a pod to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRequest {
    /// The pod.
    pub uid: PodUid,
    /// Its emptyDir volumes on disk.
    pub volumes: Vec<String>,
    /// Its containers by name, each with the directories that only it writes to.
    pub containers: Vec<(String, Vec<PathBuf>)>,
}

/// Walks all of it. A directory that cannot be read counts as empty, which is told in the log: it must not end a pod.
pub(super) fn measure(paths: &Paths, request: &UsageRequest) -> StorageUsage {
    let UsageRequest { uid, volumes, containers } = request;
    let mut budget = WalkBudget::of(MAX_ENTRIES);
    let mut of = |directory: PathBuf| {
        disk_usage(&directory, &mut budget).unwrap_or_else(|error| {
            tracing::warn!(directory = %directory.display(), %error, "cannot measure disk usage");
            0
        })
    };
    let volumes = volumes.iter().map(|volume| (volume.clone(), of(paths.empty_dir(uid, volume)))).collect();
    let containers = containers.iter().map(|(name, places)| (name.clone(), places.iter().cloned().map(&mut of).sum())).collect();
    StorageUsage { volumes, containers }
}

/// Bytes of one directory; `None` if it has more entries than are looked at, or cannot be read.
pub(super) fn whole(directory: &Path) -> Option<u64> {
    let mut budget = WalkBudget::of(MAX_ENTRIES);
    disk_usage(directory, &mut budget).ok().filter(|_| !budget.is_spent())
}
