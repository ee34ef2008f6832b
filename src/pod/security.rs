//! Security context and namespaces of a pod, resolved.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which of the host's namespaces a pod uses, and whether its containers share one PID namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PodNamespaces {
    /// `spec.hostNetwork`; then the UTS namespace is the host's too (kubelet rule D23).
    pub host_network: bool,
    /// `spec.hostPID`.
    pub host_pid: bool,
    /// `spec.hostIPC`.
    pub host_ipc: bool,
    /// `spec.shareProcessNamespace`.
    pub share_process: bool,
}

/// Which system calls a container may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeccompProfile {
    /// The built-in default profile.
    RuntimeDefault,
    /// No filter.
    Unconfined,
    /// A profile file on the host, absolute path.
    Localhost(PathBuf),
}

/// What a container may do; computed from pod and container security context (pure).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    /// All devices, all capabilities, no masks.
    pub privileged: bool,
    /// Final list, e.g. `CAP_CHOWN`; for permitted, effective and bounding set.
    pub capabilities: Vec<String>,
    /// `allowPrivilegeEscalation: false`.
    pub no_new_privileges: bool,
    /// `readOnlyRootFilesystem`.
    pub read_only_root: bool,
    /// `procMount: Unmasked`.
    pub unmasked_proc: bool,
    /// Seccomp.
    pub seccomp: SeccompProfile,
    /// AppArmor profile name; `None` leaves it to the kernel.
    pub apparmor: Option<String>,
}
