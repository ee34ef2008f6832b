//! Quality of service and cgroup values of a pod (kubelet rules D24, D25).

use serde::{Deserialize, Serialize};

/// Limits and weights of one cgroup, in the kernel's units. `None` leaves the kernel's default. Formulas: kubelet rule D24.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CgroupResources {
    /// cgroup v1 `cpu.shares` (2..=262144); converted to `cpu.weight` on v2.
    pub cpu_shares: Option<u64>,
    /// Microseconds per period; at least 1000.
    pub cpu_quota_us: Option<i64>,
    /// Microseconds; 100000 unless told otherwise.
    pub cpu_period_us: Option<u64>,
    /// Bytes.
    pub memory_limit: Option<i64>,
    /// Processes and threads.
    pub pids_limit: Option<i64>,
    /// Huge page limits: page size as the kernel spells it (`2MB`) and bytes.
    pub hugepages: Vec<(String, u64)>,
}

/// Quality of service class (kubelet rule D24); decides the parent cgroup and the OOM score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QosClass {
    /// Every container has equal requests and limits for cpu and memory.
    Guaranteed,
    /// Some request or limit is set.
    Burstable,
    /// None is set.
    BestEffort,
}
