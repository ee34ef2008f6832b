//! `spec.resources`: resources of the pod as a whole (KEP-2837).

use super::{Amounts, amount, amounts, limits, requests, sums};
use crate::Pod;
use crate::containers::{self, ContainerKind, spec};
use crate::quantity::Amount;
use k8s_openapi::api::core::v1::{Container, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const HUGEPAGES: &str = "hugepages-";

/// Returns true if a pod as a whole can have this resource.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGEPAGES)
}

/// `spec.resources.requests`.
pub(super) fn pod_level_requests(pod: &Pod) -> Amounts {
    supported(amounts(spec(pod).resources.as_ref().and_then(|resources| resources.requests.as_ref())))
}

/// `spec.resources.limits`.
pub(super) fn pod_level_limits(pod: &Pod) -> Amounts {
    supported(amounts(spec(pod).resources.as_ref().and_then(|resources| resources.limits.as_ref())))
}

/// The limit that a container has by itself or, where it has none, by its pod.
pub fn effective_limit(pod: &Pod, container: &Container, name: &str) -> Option<Amount> {
    let set = |amounts: Amounts| amounts.get(name).copied().filter(|limit| !limit.is_zero());
    set(limits(container)).or_else(|| set(pod_level_limits(pod)))
}

/// Memory that each container counts for beyond its own request: an equal part of the pod's request beyond its containers'.
pub(super) fn memory_beyond_containers(pod: &Pod) -> i64 {
    let Some(whole) = pod_level_requests(pod).get("memory").copied() else { return 0 };
    let long_lived = containers::all(pod).filter(|(kind, _)| match kind {
        ContainerKind::Main | ContainerKind::Sidecar => true,
        ContainerKind::Init => false,
    });
    let (mut sum, mut count) = (0_i64, 0_i64);
    for (_, container) in long_lived {
        sum = sum.saturating_add(amount(&requests(container), "memory").value());
        count += 1;
    }
    (whole.value() - sum).max(0) / count.max(1)
}

/// Sets the API server's defaults where the pod's resources are partly set: requests as its containers have them, else as its limits.
pub fn set_pod_level_defaults(pod: &mut Pod) {
    let Some(written) = spec(pod).resources.as_ref() else { return };
    let is_given =
        [&written.requests, &written.limits].into_iter().flatten().any(|amounts| amounts.keys().any(|name| is_pod_level(name)));
    if !is_given {
        return;
    }
    let (of_requests, of_limits) = (sums::of_containers(pod, requests), sums::of_containers(pod, limits));
    let Some(ResourceRequirements { requests, limits, .. }) = pod.spec.as_mut().and_then(|spec| spec.resources.as_mut()) else {
        return;
    };
    for (name, sum) in of_limits.iter().filter(|(name, _)| name.starts_with(HUGEPAGES)) {
        limits.get_or_insert_default().entry(name.clone()).or_insert_with(|| quantity(name, *sum));
    }
    for (name, sum) in of_requests.iter().filter(|(name, _)| is_pod_level(name) && !name.starts_with(HUGEPAGES)) {
        requests.get_or_insert_default().entry(name.clone()).or_insert_with(|| quantity(name, *sum));
    }
    for (name, limit) in limits.iter().flatten().filter(|(name, _)| is_pod_level(name)) {
        requests.get_or_insert_default().entry(name.clone()).or_insert_with(|| limit.clone());
    }
}

fn quantity(name: &str, amount: Amount) -> Quantity {
    Quantity(if name == "cpu" { format!("{}m", amount.milli_value()) } else { amount.value().to_string() })
}

fn supported(amounts: Amounts) -> Amounts {
    amounts.into_iter().filter(|(name, _)| is_pod_level(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{CgroupResources, QosClass, container_cgroup, oom_score_adj, pod_cgroup, pod_requests, qos_class};

    fn pod(resources: &str, containers: &[&str]) -> Pod {
        let containers: Vec<_> = containers.iter().enumerate().map(|(i, r)| format!("{{name: c{i}, resources: {r}}}")).collect();
        let mut pod: Pod =
            serde_yaml::from_str(&format!("{{spec: {{resources: {resources}, containers: [{}]}}}}", containers.join(","))).unwrap();
        crate::defaults::apply(&mut pod);
        pod
    }

    #[test]
    fn a_container_that_names_no_huge_pages_may_use_the_pod_s() {
        let pod = pod(
            "{limits: {memory: 1Gi, hugepages-2Mi: 8Mi, hugepages-1Gi: 1Gi}}",
            &["{limits: {hugepages-2Mi: 4Mi, memory: 1Mi}}", "{}"],
        );
        let of = |index: usize| container_cgroup(&pod, &pod.spec.as_ref().unwrap().containers[index]).hugepages;
        assert_eq!(of(0), [("1GB".to_owned(), 1 << 30), ("2MB".to_owned(), 4 << 20)]);
        assert_eq!(of(1), [("1GB".to_owned(), 1 << 30), ("2MB".to_owned(), 8 << 20)]);
    }

    #[test]
    fn requests_follow_from_containers_and_else_from_limits() {
        for (resources, container, expected) in [
            ("{limits: {cpu: 1, memory: 1Gi}}", "{}", "{\"cpu\":\"1\",\"memory\":\"1Gi\"}"),
            ("{limits: {cpu: 1, memory: 1Gi}}", "{requests: {cpu: 250m}}", "{\"cpu\":\"250m\",\"memory\":\"1Gi\"}"),
            ("{requests: {memory: 1Gi}}", "{requests: {cpu: 0.5, memory: 1Mi}}", "{\"cpu\":\"500m\",\"memory\":\"1Gi\"}"),
        ] {
            let pod = pod(resources, &[container]);
            let requests = &pod.spec.as_ref().unwrap().resources.as_ref().unwrap().requests;
            assert_eq!(serde_json::to_string(requests).unwrap(), expected, "{resources} {container}");
        }
    }

    #[test]
    fn the_pod_s_own_resources_decide_its_class() {
        for (resources, container, expected) in [
            ("{limits: {cpu: 1, memory: 1Gi}}", "{}", QosClass::Guaranteed),
            ("{requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}", "{}", QosClass::Burstable),
            ("{limits: {cpu: 1}}", "{}", QosClass::Burstable),
            ("{requests: {memory: 1Gi}}", "{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}", QosClass::Burstable),
            ("{}", "{}", QosClass::BestEffort),
        ] {
            assert_eq!(qos_class(&pod(resources, &[container])), expected, "{resources} {container}");
        }
    }

    #[test]
    fn the_pod_is_limited_as_a_whole_and_its_containers_have_its_limits_where_they_have_none() {
        let pod = pod(
            "{requests: {cpu: 500m, memory: 512Mi}, limits: {cpu: 1, memory: 1Gi}}",
            &["{}", "{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}"],
        );
        assert_eq!(
            pod_cgroup(&pod),
            CgroupResources {
                cpu_shares: Some(512),
                cpu_quota_us: Some(100_000),
                cpu_period_us: Some(100_000),
                memory_limit: Some(1 << 30),
                ..CgroupResources::default()
            }
        );
        let given: Vec<_> = containers::main(&pod).map(|container| container_cgroup(&pod, container)).collect();
        assert_eq!((given[0].memory_limit, given[0].cpu_quota_us), (Some(1 << 30), Some(100_000)));
        assert_eq!(
            (given[1].memory_limit, given[1].cpu_quota_us, given[1].cpu_shares),
            (Some(128 << 20), Some(100_000), Some(102))
        );
        assert_eq!(pod_requests(&pod)["memory"].value(), 512 << 20);
    }

    #[test]
    fn what_the_pod_requests_beyond_its_containers_spares_them_equally() {
        let pod = pod("{requests: {memory: 5Gi}}", &["{requests: {memory: 1Gi}}", "{}"]);
        let scores: Vec<_> = containers::main(&pod).map(|container| oom_score_adj(&pod, container, 10 << 30)).collect();
        assert_eq!(scores, [700, 800], "2 GiB each beside their own");
    }
}
