//! States of sandboxes and containers as a `Runtime` observes them, and their events.

use super::ProcessUser;
use super::spec::{ContainerKind, ContainerResources, ContainerSpec, GivenDevice, SandboxSpec};
use crate::reference::Reference;
use jiff::Timestamp;
use podstead_pod::{ContainerId, ContainerName, PodUid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// State of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SandboxState {
    /// The shim lives and answers.
    Ready,
    /// The shim is gone without having been asked: it was killed, or the host rebooted. Its containers are dead.
    Lost,
    /// Stopped on request.
    Stopped,
}

/// A sandbox as observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxStatus {
    /// The spec that it was created from.
    pub spec: SandboxSpec,
    /// Its state.
    pub state: SandboxState,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The shim's process id while it lives.
    pub shim_pid: Option<u32>,
    /// Path of the pinned network namespace; `None` with the host's network.
    pub netns: Option<PathBuf>,
}

/// A pod as observed.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPod {
    /// The pod.
    pub uid: PodUid,
    /// Its newest sandbox, if a record of one is left.
    pub sandbox: Option<SandboxStatus>,
    /// All containers with a record, oldest first.
    pub containers: Vec<ContainerStatus>,
    /// Recorded resources of living containers, where known. In boxes: a node of the map has room for eleven values.
    pub given: BTreeMap<ContainerId, Box<ContainerResources>>,
    /// Devices of containers that may be unplugged, as far as the container has them.
    pub plugged: BTreeMap<ContainerId, Vec<GivenDevice>>,
}

/// Lifecycle state of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum ContainerState {
    /// Being created; a crash in between leaves it so.
    Created,
    /// Its first process runs.
    Running {
        /// Process id on the host.
        pid: u32,
        /// The time of its execution.
        started_at: Timestamp,
    },
    /// Its first process ended, or it could not be started.
    Exited {
        /// The time of its execution; `None` if it was never executed.
        started_at: Option<Timestamp>,
        /// The time of its end.
        finished_at: Timestamp,
        /// Exit code; 128 + signal for a signal.
        exit_code: i32,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The kernel killed a process of it for want of memory.
        oom_killed: bool,
        /// Reason why it could not be started, or `None`.
        error: Option<String>,
        /// The termination message (at most 4096 bytes).
        message: Option<String>,
    },
    /// It was running when its sandbox was lost: how it ended is not known.
    Unknown {
        /// The time of its execution.
        started_at: Option<Timestamp>,
        /// The time at which the loss was found.
        found_at: Timestamp,
    },
}

/// A container as observed.
///
/// One type because it is the record of a container on disk and in the protocol of the shim: older versions read the same fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerStatus {
    /// Identity of this run.
    pub id: ContainerId,
    /// Name in the pod's spec.
    pub name: ContainerName,
    /// Role.
    pub kind: ContainerKind,
    /// Restart count at its start.
    pub attempt: u32,
    /// Attempt of the sandbox that it was started in.
    pub sandbox_attempt: u32,
    /// Hash of its definition.
    pub hash: String,
    /// Image reference as written.
    pub image_ref: String,
    /// The image by the digest of its manifest: `docker.io/library/nginx@sha256:...`; of a run that an older shim started, and of an image
    /// without a name, the digest alone.
    pub image_id: String,
    /// User of its first process; unknown for one that an older shim started.
    #[serde(default)]
    pub user: Option<ProcessUser>,
    /// Signal number that asks it to stop.
    pub stop_signal: i32,
    /// The time at which its record was made.
    pub created_at: Timestamp,
    /// The log file.
    pub log_path: PathBuf,
    /// Its lifecycle state.
    pub state: ContainerState,
}

impl ContainerStatus {
    /// Of a run that `spec` describes.
    pub fn of(spec: &ContainerSpec, created_at: Timestamp, state: ContainerState) -> Self {
        Self {
            id: spec.id.clone(),
            name: spec.name.clone(),
            kind: spec.kind,
            attempt: spec.attempt,
            sandbox_attempt: spec.sandbox_attempt,
            hash: spec.hash.clone(),
            image_ref: spec.image_ref.clone(),
            image_id: image_id(&spec.image_ref, &spec.image.digest),
            user: Some(spec.user.clone()),
            stop_signal: spec.stop_signal,
            created_at,
            log_path: spec.log_path.clone(),
            state,
        }
    }
}

/// The image as container runtimes name it in a status: scanners of running images look it up by that.
fn image_id(reference: &str, digest: &str) -> String {
    match (reference.parse::<Reference>(), digest.parse()) {
        (Ok(reference), Ok(digest)) => reference.at(digest).to_string(),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => digest.to_owned(),
    }
}

/// Something happened to a pod; the receiver looks again with `Runtime::observe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLifecycleEvent {
    /// The pod.
    pub uid: PodUid,
    /// Kind of event.
    pub kind: PodLifecycleEventKind,
}

/// Lifecycle event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodLifecycleEventKind {
    /// A container's process was executed.
    ContainerStarted(ContainerId),
    /// A container's process ended.
    ContainerDied(ContainerId),
    /// The shim went away without having been asked.
    SandboxLost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_repository_and_digest() {
        let digest = format!("sha256:{}", "1".repeat(64));
        for (reference, repository) in [
            ("nginx", "docker.io/library/nginx@"),
            ("nginx:1.27", "docker.io/library/nginx@"),
            ("ghcr.io/acme/web:1", "ghcr.io/acme/web@"),
            (&format!("localhost:5000/web@sha256:{}", "2".repeat(64)), "localhost:5000/web@"),
            ("no name", ""),
        ] {
            assert_eq!(image_id(reference, &digest), format!("{repository}{digest}"), "{reference}");
        }
        assert_eq!(image_id("nginx", "of a test"), "of a test");
    }
}
