//! Quality of service and cgroup values of a pod (kubelet rules D24, D25).
//!
//! In: a defaulted pod (requests follow from limits). Out: numbers in the kernel's units. Quantities that cannot be read count as
//! absent; validation has refused them.

mod cgroup;
mod given;
mod oom;
mod pod_level;
mod qos;
mod sums;

pub use cgroup::{
    BEST_EFFORT_SHARES, CPU_PERIOD_US, burstable_cpu_milli, container_cgroup, milli_cpu_to_quota, milli_cpu_to_shares, pod_cgroup,
};
pub use given::{ContainerResources, DeclaredAmounts, RESIZABLE, restarting_resources};
pub use oom::oom_score_adj;
pub use pod_level::{effective_limit, is_pod_level, set_pod_level_defaults};
pub use qos::qos_class;
pub use sums::{of_containers, pod_limits, pod_requests};

use super::quantity::Amount;
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limits and weights of one cgroup, in the kernel's units. `None` leaves the kernel's default. Formulas: kubelet rule D24.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Amount>;

/// Requests of a container.
pub fn requests(container: &Container) -> Amounts {
    amounts(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

/// Limits of a container.
pub fn limits(container: &Container) -> Amounts {
    amounts(container.resources.as_ref().and_then(|resources| resources.limits.as_ref()))
}

fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    quantities
        .into_iter()
        .flatten()
        .filter_map(|(name, quantity)| Amount::read(quantity).ok().map(|amount| (name.clone(), amount)))
        .collect()
}

fn amount(amounts: &Amounts, name: &str) -> Amount {
    amounts.get(name).copied().unwrap_or_default()
}
