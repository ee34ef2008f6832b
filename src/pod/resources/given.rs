//! Resources of one container, and the effect of changing them.

use super::{Amounts, CgroupResources, container_cgroup};
use crate::Pod;
use crate::containers::list;
use crate::quantity::Amount;
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Resources that are changed while the container runs.
pub const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Requests and limits as they are written, by resource name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredAmounts {
    /// `resources.requests`, with what follows from the limits.
    pub requests: BTreeMap<String, String>,
    /// `resources.limits`.
    pub limits: BTreeMap<String, String>,
}

/// Resources of a container: as in the manifest, and in the kernel's units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerResources {
    /// As written.
    pub declared: DeclaredAmounts,
    /// As the cgroup has it.
    pub cgroup: CgroupResources,
}

impl DeclaredAmounts {
    /// Resources of the container in the manifest.
    pub fn of(container: &Container) -> Self {
        let written = |amounts: Option<&BTreeMap<String, Quantity>>| -> BTreeMap<String, String> {
            amounts.into_iter().flatten().map(|(name, quantity)| (name.clone(), quantity.0.clone())).collect()
        };
        let resources = container.resources.as_ref();
        Self {
            requests: written(resources.and_then(|resources| resources.requests.as_ref())),
            limits: written(resources.and_then(|resources| resources.limits.as_ref())),
        }
    }

    fn amounts(written: &BTreeMap<String, String>) -> Amounts {
        written.iter().filter_map(|(name, text)| Some((name.clone(), text.parse::<Amount>().ok()?))).collect()
    }

    /// Returns true if request and limit of the resource are equal, regardless of their spelling.
    fn agrees(&self, other: &Self, name: &str) -> bool {
        let is_same = |one, other| Self::amounts(one).get(name) == Self::amounts(other).get(name);
        is_same(&self.requests, &other.requests) && is_same(&self.limits, &other.limits)
    }
}

impl ContainerResources {
    /// Resources of the container from the manifest.
    pub fn of(pod: &Pod, container: &Container) -> Self {
        Self { declared: DeclaredAmounts::of(container), cgroup: container_cgroup(pod, container) }
    }

    /// Returns true if both are equal.
    pub fn agrees(&self, other: &Self) -> bool {
        self.cgroup == other.cgroup && RESIZABLE.iter().all(|name| self.declared.agrees(&other.declared, name))
    }

    /// Returns true if the change from `before` affects a resource of `restarting`.
    pub fn restarts(&self, before: &Self, restarting: &[String]) -> bool {
        restarting.iter().any(|name| !self.declared.agrees(&before.declared, name))
    }

    /// Returns true if the change from `before` lowers memory.
    pub fn lowers_memory(&self, before: &Self) -> bool {
        match (self.cgroup.memory_limit, before.cgroup.memory_limit) {
            (Some(now), Some(before)) => now < before,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

/// The resources for whose change the container is restarted: `resizePolicy` with `RestartContainer`.
pub fn restarting_resources(container: &Container) -> Vec<String> {
    let policies = list(&container.resize_policy).iter();
    policies.filter(|policy| policy.restart_policy == "RestartContainer").map(|policy| policy.resource_name.clone()).collect()
}

impl CgroupResources {
    /// The wider of both limits for each resource, and the larger share: room for what was and for what comes.
    #[must_use]
    pub fn wider(&self, other: &Self) -> Self {
        fn without_limit<T: Ord + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
            Some(one?.max(other?))
        }
        let cpu_quota_us = without_limit(self.cpu_quota_us, other.cpu_quota_us);
        Self {
            cpu_shares: self.cpu_shares.max(other.cpu_shares),
            cpu_quota_us,
            cpu_period_us: cpu_quota_us.and(self.cpu_period_us.max(other.cpu_period_us)),
            memory_limit: without_limit(self.memory_limit, other.memory_limit),
            pids_limit: other.pids_limit,
            hugepages: other.hugepages.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::containers;

    fn given(resources: &str) -> ContainerResources {
        let pod: Pod = serde_yaml::from_str(&format!("{{spec: {{containers: [{{name: a, resources: {resources}}}]}}}}")).unwrap();
        let container = containers::main(&pod).next().unwrap();
        ContainerResources::of(&pod, container)
    }

    #[test]
    fn amounts_agree_by_value_and_not_by_spelling() {
        let one = given("{requests: {cpu: 1000m, memory: 1Ki}, limits: {memory: 1024}}");
        assert!(one.agrees(&given("{requests: {cpu: 1, memory: 1024}, limits: {memory: 1Ki}}")));
        assert!(!one.agrees(&given("{requests: {cpu: 1, memory: 1023}, limits: {memory: 1Ki}}")), "a request alone counts");
        assert!(!one.agrees(&given("{requests: {cpu: 2, memory: 1Ki}, limits: {memory: 1Ki}}")));
    }

    #[test]
    fn a_change_restarts_where_the_policy_of_its_resource_says_so() {
        let (small, large) = (given("{limits: {cpu: 1, memory: 1Mi}}"), given("{limits: {cpu: 2, memory: 1Mi}}"));
        let policy = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(large.restarts(&small, &policy(&["cpu"])));
        assert!(!large.restarts(&small, &policy(&["memory"])));
        assert!(!large.restarts(&small, &[]));
        assert!(given("{limits: {memory: 1Mi}}").lowers_memory(&given("{limits: {memory: 2Mi}}")));
        assert!(given("{limits: {memory: 1Mi}}").lowers_memory(&given("{}")));
        assert!(!given("{}").lowers_memory(&given("{limits: {memory: 2Mi}}")));
        let container: Container = serde_yaml::from_str(
            "{name: a, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: memory, restartPolicy: RestartContainer}]}",
        )
        .unwrap();
        assert_eq!(restarting_resources(&container), ["memory"]);
    }

    #[test]
    fn the_wider_of_two_limits_has_room_for_both() {
        let one = CgroupResources {
            cpu_shares: Some(2),
            cpu_quota_us: Some(1000),
            cpu_period_us: Some(100_000),
            memory_limit: Some(5),
            ..CgroupResources::default()
        };
        let other = CgroupResources {
            cpu_shares: Some(3),
            cpu_quota_us: None,
            cpu_period_us: None,
            memory_limit: Some(4),
            ..CgroupResources::default()
        };
        let wider = one.wider(&other);
        assert_eq!((wider.cpu_shares, wider.cpu_quota_us, wider.cpu_period_us, wider.memory_limit), (Some(3), None, None, Some(5)));
        assert_eq!(one.wider(&one), one);
    }
}
