//! The pod network, as the workers use it.

use crate::error::Cause;
use async_trait::async_trait;
use podstead_pod::host_files::NetworkDns;
use podstead_pod::{Pod, PodUid};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

/// Network status of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNetworkStatus {
    /// Addresses, primary first. Empty for a pod that has only `lo`.
    pub ips: Vec<IpAddr>,
    /// All interfaces, as the annotation `k8s.v1.cni.cncf.io/network-status` tells them; `None` where there is nothing to tell beside the addresses.
    pub report: Option<String>,
    /// DNS settings from the network; `None` where podstead made the pod's first interface, and its rules lead to the resolver.
    pub dns: Option<NetworkDns>,
}

/// A network, the length of its prefix, and the router that leads there.
pub type OwnRoute = ((IpAddr, u8), IpAddr);

/// Reason why a pod's network is not there.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// Something does not work; becomes `FailedCreatePodSandBox`.
    #[error("network of pod {uid}")]
    Failed {
        /// The pod.
        uid: PodUid,
        /// The error of the network in use.
        #[source]
        source: Cause,
    },
    /// A port of the host has an owner already; becomes `HostPortConflict`.
    #[error("{0}")]
    PortTaken(String),
    /// No pod can be connected at present; becomes `NetworkNotReady`.
    #[error("network is not ready: {0}")]
    NotReady(String),
    /// It takes long and goes on; the worker is poked at its end.
    #[error("the pod's network is still being set up or torn down")]
    UnderWay,
}

impl NetworkError {
    /// A failure with its cause.
    pub fn failed(uid: &PodUid, source: impl Into<Cause>) -> Self {
        Self::Failed { uid: uid.clone(), source: source.into() }
    }
}

/// Gives pods their network.
#[async_trait]
pub trait PodNetwork: Send + Sync + fmt::Debug + 'static {
    /// Sets the namespace up. Idempotent. `netns` is `None` for a pod on the host's network.
    async fn setup(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError>;

    /// Waits until what [`PodNetwork::setup`] gave the pod outlives a power cut. Called before a process of the pod starts, which might
    /// tell somebody of its addresses. Setup does not wait for disks: they do their work while the rest of the pod is being made.
    async fn settle(&self, _uid: &PodUid) -> Result<(), NetworkError> {
        Ok(())
    }

    /// The pod's sandbox ends: takes its connection away. Its addresses stay its own, for its next sandbox. NotFound is success.
    async fn teardown(&self, uid: &PodUid) -> Result<(), NetworkError>;

    /// The pod is gone for good: gives back all that [`PodNetwork::setup`] took. NotFound is success.
    async fn release(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.teardown(uid).await
    }

    /// Looks whether what pods need is still there, and repairs it. Called now and then, and cheap.
    async fn look_after(&self) {}

    /// Reason why pods cannot be connected at present, in the kubelet's words; `None` while nothing is known to be in the way. Tries
    /// nothing, may read small files.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Returns true if something happened, since the last call, for which the pod should be set up or taken down again at once.
    fn has_news(&self, _uid: &PodUid) -> bool {
        false
    }

    /// Networks that pods reach by the interface that this network makes, each with its router: a default route elsewhere must not take
    /// them away.
    fn own_routes(&self) -> Vec<OwnRoute> {
        Vec::new()
    }

    /// Network status of a pod that was set up before a restart of the daemon.
    async fn status(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError>;
}
