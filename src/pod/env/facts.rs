//! Facts about node and pod network that a container can learn.

use crate::NodeName;
use std::net::IpAddr;

/// Facts about node and pod network that a container can learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFacts {
    /// `spec.nodeName`.
    pub node_name: NodeName,
    /// Suffix of the names of pods.
    pub cluster_domain: String,
    /// `status.hostIPs`, primary first.
    pub host_ips: Vec<IpAddr>,
    /// `status.podIPs`, primary first; those of the host for a pod on the host's network. Empty for a pod that has only `lo`.
    pub pod_ips: Vec<IpAddr>,
    /// Addresses of Services, at the time when the container is made.
    pub service_variables: Vec<(String, String)>,
    /// Stands for a container's missing cpu limit, in thousandths.
    pub allocatable_cpu_milli: u64,
    /// Stands for a container's missing memory limit, in bytes.
    pub allocatable_memory_bytes: u64,
    /// Stands for a container's missing ephemeral-storage limit, in bytes.
    pub allocatable_ephemeral_storage_bytes: u64,
}
