//! Facts about the host for admission.

use super::NodeName;
use super::host_files::DEFAULT_CLUSTER_DOMAIN;
use super::security::AllowedSysctls;

/// Facts about the host for admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmitContext {
    /// The name of this host.
    pub node: NodeName,
    /// The domain of pods that have a subdomain.
    pub cluster_domain: String,
    /// Sysctls that pods may set in addition to the safe ones.
    pub unsafe_sysctls: AllowedSysctls,
}

impl AdmitContext {
    /// A host outside any cluster.
    pub fn new(node: NodeName) -> Self {
        Self { node, cluster_domain: DEFAULT_CLUSTER_DOMAIN.to_owned(), unsafe_sysctls: AllowedSysctls::default() }
    }
}
