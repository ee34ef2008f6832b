//! The pod network behind a small trait, so that workers and tests don't know which one is in use.
//!
//! In: a pod, and its network namespace, which the runtime has made and pinned. Out: the pod's addresses. [`BuiltinNetwork`] gives every
//! pod an address of each family; [`HostOrLoopback`] gives none. [`CniNetwork`] stands before one of them, and has plugins make the first
//! interface or additional ones. All leave pods on the host's network alone, but for the ports that they take. The worker calls them;
//! housekeeping has them look whether all is still there.

mod builtin;
mod cni;
mod host_addresses;
mod host_or_loopback;
mod record;

pub use builtin::diagnosis;
pub use builtin::{BuiltinNetwork, LeaveError, NetworkLinks, leave};
pub use cni::{CniLinks, CniNetwork};
use host_addresses::assigned_ips;
pub use host_addresses::host_ips;
pub use host_or_loopback::HostOrLoopback;

use crate::pod::host_files::NetworkDns;
use crate::pod::{Pod, PodUid};
use async_trait::async_trait;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

/// Address of the resolver for pods on the host's network, at port 53.
pub const RESOLVER_ON_HOST: IpAddr = IpAddr::V4(builtin::RESOLVER_ON_HOST);
/// The host, as pods of the builtin network see it, whatever its other addresses are.
pub const GATEWAYS: [IpAddr; 2] = [IpAddr::V4(builtin::GATEWAY_V4), IpAddr::V6(builtin::GATEWAY_V6)];

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
    #[error("network of pod {uid}: {reason}")]
    Failed {
        /// The pod.
        uid: PodUid,
        /// The reason.
        reason: String,
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

/// DNS service at addresses of the host that networks determine.
pub trait NameService: Send + Sync + fmt::Debug + 'static {
    /// Has port 53 of an address of the host answered for pods that reach the host there. Idempotent. The error is for people: why nobody answers.
    fn answer_at(&self, address: IpAddr) -> Result<(), String>;

    /// Returns true if the service answers at the address.
    fn answers_at(&self, address: IpAddr) -> bool;
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
