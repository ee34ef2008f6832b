//! The pod network behind a small trait, so that workers and tests don't know which one is in use.
//!
//! For now: pods on the host's network, and pods with a network namespace of their own that has `lo` up.

mod host_addresses;
mod host_or_loopback;

pub use host_addresses::host_ips;
pub use host_or_loopback::HostOrLoopback;

use crate::pod::{Pod, PodUid};
use async_trait::async_trait;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

/// What a pod got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNetworkStatus {
    /// Addresses, primary first. Empty for a pod that has only `lo`.
    pub ips: Vec<IpAddr>,
}

/// Why a pod's network is not there; becomes `FailedCreatePodSandBox`.
#[derive(Debug, thiserror::Error)]
#[error("network of pod {uid}: {reason}")]
pub struct NetworkError {
    /// The pod.
    pub uid: PodUid,
    /// What failed.
    pub reason: String,
}

/// Gives pods their network.
#[async_trait]
pub trait PodNetwork: Send + Sync + fmt::Debug + 'static {
    /// Sets the namespace up. Idempotent. `netns` is `None` for a pod on the host's network.
    async fn setup(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError>;

    /// Gives back what [`PodNetwork::setup`] took. NotFound is success.
    async fn teardown(&self, uid: &PodUid) -> Result<(), NetworkError>;

    /// What a pod that was set up before a restart of the daemon has.
    async fn status(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError>;
}
