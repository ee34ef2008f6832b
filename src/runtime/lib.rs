//! The container runtime: what the workers ask for, and the two that answer: the shim client and, for tests, a fake.
//!
//! Every pod has a *sandbox*: its cgroup, its pinned namespaces and its shim process. Containers run in it. All operations are
//! idempotent, name the pod by UID, and survive the death of the caller at any instruction: what they did can be seen again by
//! [`Runtime::recover`]. Exits are told as [`PodLifecycleEvent`]s and are durable before they are told.

pub mod client;
pub mod credentials;
mod error;
mod exec;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
mod images;
pub mod log_links;
mod network;
pub mod pull_secrets;
mod pulls;

pub use error::*;
pub use exec::*;
pub use images::{
    Collected, ImageError, ImageRecord, ImageService, ImageUsage, PruneReport, PrunedImage, PullProgress, Removed, Repair,
    StoreFigures, VerifiedImage, VerifyReport,
};
pub use network::{NetworkError, OwnRoute, PodNetwork, PodNetworkStatus};
pub use pull_secrets::PullSecrets;
pub use pulls::{HostFigures, PullFigures, PullHold, PullPhase, PullState, PulledLayer, WaitCause};

use async_trait::async_trait;
use podstead_container::{
    ContainerResources, ContainerSpec, ContainerStatus, ExecSpec, GivenDevice, ObservedPod, PodLifecycleEvent, SandboxSpec,
    SandboxStatus,
};
use podstead_pod::{ContainerId, PodUid};
use std::fmt;
use tokio::sync::mpsc;

/// Runs pods. Implemented by the shim client and by the fake.
#[async_trait]
pub trait Runtime: Send + Sync + fmt::Debug + 'static {
    /// Looks at disk and kernel once, at start: connects to every living shim, and lists every sandbox that left traces.
    /// A sandbox whose shim is gone is listed with [`SandboxState::Lost`](podstead_container::SandboxState::Lost).
    async fn recover(&self) -> Result<Vec<ObservedPod>, RuntimeError>;

    /// Makes cgroup, namespaces and shim. Succeeds without effect when a living sandbox with the same attempt exists.
    async fn create_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError>;

    /// Applies `spec.resources` to the pod's cgroup and to the sandbox's record; everything else of `spec` is as it was at creation.
    async fn update_sandbox(&self, spec: &SandboxSpec) -> Result<SandboxStatus, RuntimeError>;

    /// Changes the resources of a running container: its cgroup, and [`ObservedPod::given`]. Memory that is in use is not taken away: that
    /// is an error. The pod's cgroup has to have room before.
    async fn resize_container(&self, uid: &PodUid, id: &ContainerId, resources: &ContainerResources) -> Result<(), RuntimeError>;

    /// Gives a running container these devices, and no others of those that it was started with as [`GivenDevices::plugged`]: the rules of
    /// its cgroup, its nodes, and [`ObservedPod::plugged`].
    ///
    /// [`GivenDevices::plugged`]: podstead_container::GivenDevices::plugged
    async fn plug_devices(&self, uid: &PodUid, id: &ContainerId, devices: &[GivenDevice]) -> Result<(), RuntimeError>;

    /// Kills whatever runs in the sandbox and removes every trace in the kernel and under the run directory: processes, mounts,
    /// cgroups, namespaces, sockets. Container records, logs and volumes stay. NotFound is success.
    async fn stop_sandbox(&self, uid: &PodUid) -> Result<(), RuntimeError>;

    /// Returns the pod's present state from memory: the sandbox and all containers with a record, dead ones too.
    async fn observe(&self, uid: &PodUid) -> Result<Option<ObservedPod>, RuntimeError>;

    /// Creates and starts one container; returns when its process has been executed.
    async fn start_container(&self, spec: &ContainerSpec) -> Result<ContainerStatus, StartError>;

    /// Sends a signal to the container's first process. A container that has exited is success.
    async fn signal_container(&self, uid: &PodUid, id: &ContainerId, signal: i32) -> Result<(), RuntimeError>;

    /// Kills every process of the container at once (SIGKILL to its cgroup). A container that has exited is success.
    async fn kill_container(&self, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError>;

    /// Forgets a dead container: record, bundle, writable layer. Its logs stay.
    async fn remove_container(&self, uid: &PodUid, id: &ContainerId) -> Result<(), RuntimeError>;

    /// Forgets a pod whose sandbox is stopped: all that is left under the state directory but volumes, which are the volume
    /// store's to remove.
    async fn remove_pod(&self, uid: &PodUid) -> Result<(), RuntimeError>;

    /// Sets what all Burstable pods together weigh against the others, in `cpu.shares` (kubelet rule D24).
    fn weigh_burstable(&self, cpu_shares: u64) -> Result<(), RuntimeError>;

    /// Runs a process in a running container.
    async fn exec(&self, uid: &PodUid, id: &ContainerId, spec: &ExecSpec) -> Result<ExecSession, RuntimeError>;

    /// Connects to the stdio of a running container.
    async fn attach(&self, uid: &PodUid, id: &ContainerId) -> Result<ExecSession, RuntimeError>;

    /// The one stream of events; the first caller gets it, later callers get `None`.
    fn take_events(&self) -> Option<mpsc::UnboundedReceiver<PodLifecycleEvent>>;
}
