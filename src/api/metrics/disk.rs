//! Disk space of pods, measured by walking when somebody asks: `GET .../disk` of podstead's own group.

use crate::Backend;
use crate::failure::ApiFailure;
use crate::respond::{self, Answer};
use podstead_sys::disk_usage::{WalkBudget, disk_usage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Files and directories looked at in one request; what is beyond them is not counted.
const MAX_ENTRIES: u64 = 2_000_000;

/// Disk space of one pod, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDisk {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Writable layers of its containers.
    pub layer_bytes: u64,
    /// Its emptyDir volumes on disk.
    pub volume_bytes: u64,
    /// Its logs.
    pub log_bytes: u64,
}

/// Disk space of all pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskAnswer {
    /// The pods.
    pub pods: Vec<PodDisk>,
    /// False if there are more files than were counted.
    pub is_complete: bool,
}

/// Measures.
pub(crate) async fn disk(backend: &Backend) -> Answer {
    let backend = backend.clone();
    let measured = tokio::task::spawn_blocking(move || measure(&backend)).await;
    respond::json(&measured.map_err(|error| ApiFailure::internal(format!("measure the disk space of pods: {error}")))?)
}

fn measure(backend: &Backend) -> DiskAnswer {
    let (_, published) = backend.published.pods().list();
    let mut budget = WalkBudget::of(MAX_ENTRIES);
    let mut of = |directory: PathBuf| {
        disk_usage(&directory, &mut budget).unwrap_or_else(|error| {
            tracing::warn!(directory = %directory.display(), %error, "cannot measure disk usage");
            0
        })
    };
    let mut pods = Vec::new();
    for pod in published {
        let (name, uid, paths) = (&pod.desired.full_name, &pod.desired.uid, &backend.paths);
        pods.push(PodDisk {
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: uid.to_string(),
            layer_bytes: of(paths.pod(uid).join("layers")),
            volume_bytes: of(paths.empty_dirs(uid)),
            log_bytes: of(paths.pod_logs(name, uid)),
        });
    }
    DiskAnswer { pods, is_complete: !budget.is_spent() }
}
