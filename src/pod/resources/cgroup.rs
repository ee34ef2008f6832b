//! Cgroup values of pods and containers (kubelet rule D24).

use super::pod_level::pod_level_limits;
use super::{Amounts, CgroupResources, QosClass, amount, effective_limit, limits, pod_limits, pod_requests, qos_class, requests};
use crate::{Pod, containers};
use k8s_openapi::api::core::v1::Container;

/// `cpu.cfs_period_us`.
pub const CPU_PERIOD_US: u64 = 100_000;
/// `cpu.shares` of the tier of BestEffort pods and of each of them: the kernel's minimum.
pub const BEST_EFFORT_SHARES: u64 = 2;
const MAX_SHARES: u64 = 262_144;
const MIN_QUOTA_US: i64 = 1000;
const HUGEPAGES: &str = "hugepages-";

/// `cpu.shares` for thousandths of a cpu.
pub fn milli_cpu_to_shares(milli: i64) -> u64 {
    (u64::try_from(milli).unwrap_or(0).saturating_mul(1024) / 1000).clamp(BEST_EFFORT_SHARES, MAX_SHARES)
}

/// `cpu.cfs_quota_us` for thousandths of a cpu; `None` (no quota) for zero.
pub fn milli_cpu_to_quota(milli: i64) -> Option<i64> {
    let period = CPU_PERIOD_US.cast_signed();
    (milli > 0).then(|| (milli.saturating_mul(period) / 1000).max(MIN_QUOTA_US))
}

/// The pod's own cgroup. Quota and memory are limited only where the pod or every container has a limit.
pub fn pod_cgroup(pod: &Pod) -> CgroupResources {
    let requests = pod_requests(pod);
    let sums = pod_limits(pod);
    let hugepages = hugepage_limits(&sums);
    let class = qos_class(pod);
    if class == QosClass::BestEffort {
        return CgroupResources { cpu_shares: Some(BEST_EFFORT_SHARES), hugepages, ..CgroupResources::default() };
    }
    let every_container_limits = |name| containers::all(pod).all(|(_, container)| effective_limit(pod, container, name).is_some());
    let mut resources = CgroupResources {
        cpu_shares: Some(milli_cpu_to_shares(amount(&requests, "cpu").milli_value())),
        hugepages,
        ..CgroupResources::default()
    };
    if every_container_limits("cpu") {
        resources.cpu_quota_us = milli_cpu_to_quota(amount(&sums, "cpu").milli_value());
        resources.cpu_period_us = resources.cpu_quota_us.map(|_| CPU_PERIOD_US);
    }
    if every_container_limits("memory") {
        resources.memory_limit = Some(amount(&sums, "memory").value());
    }
    resources
}

/// The cgroup of one container. Shares follow the request, or the limit where there is no request; the pod's limits hold where it has
/// none.
pub fn container_cgroup(pod: &Pod, container: &Container) -> CgroupResources {
    let requests = requests(container);
    let limits = limits(container);
    let limit = |name| effective_limit(pod, container, name).unwrap_or_default();
    let cpu_limit = limit("cpu").milli_value();
    let cpu_request = requests.get("cpu").map_or(cpu_limit, |request| request.milli_value());
    let cpu_quota_us = milli_cpu_to_quota(cpu_limit);
    let memory = limit("memory").value();
    let mut huge_pages = pod_level_limits(pod);
    huge_pages.extend(limits);
    CgroupResources {
        cpu_shares: Some(milli_cpu_to_shares(cpu_request)),
        cpu_quota_us,
        cpu_period_us: cpu_quota_us.map(|_| CPU_PERIOD_US),
        memory_limit: (memory > 0).then_some(memory),
        pids_limit: None,
        hugepages: hugepage_limits(&huge_pages),
    }
}

/// Share of a pod in the tier of Burstable pods, in thousandths of a processor: its request, or 0 in another class. The tier's shares are
/// [`milli_cpu_to_shares`] of the sum (kubelet rule D24).
pub fn burstable_cpu_milli(pod: &Pod) -> i64 {
    match qos_class(pod) {
        QosClass::Burstable => amount(&pod_requests(pod), "cpu").milli_value(),
        QosClass::Guaranteed | QosClass::BestEffort => 0,
    }
}

/// `hugepages-2Mi: 4Mi` as `("2MB", 4194304)`; sorted by resource name.
fn hugepage_limits(limits: &Amounts) -> Vec<(String, u64)> {
    limits
        .iter()
        .filter_map(|(name, amount)| {
            let size = name.strip_prefix(HUGEPAGES)?.parse::<crate::quantity::Amount>().ok()?;
            Some((kernel_page_size(u64::try_from(size.value()).ok()?), u64::try_from(amount.value()).ok()?))
        })
        .collect()
}

/// A page size in bytes as the kernel names its hugetlb files: the largest binary unit that divides it.
fn kernel_page_size(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let mut size = bytes;
    let mut unit = 0;
    while size >= 1024 && size.is_multiple_of(1024) && unit + 1 < units.len() {
        size /= 1024;
        unit += 1;
    }
    format!("{size}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(containers: &[&str]) -> Pod {
        let containers: Vec<_> = containers.iter().enumerate().map(|(i, r)| format!("{{name: c{i}, resources: {r}}}")).collect();
        serde_yaml::from_str(&format!("{{spec: {{containers: [{}]}}}}", containers.join(","))).unwrap()
    }

    #[test]
    fn shares_and_quota_follow_the_kubelets_formulas() {
        for (milli, shares) in [(0, 2), (1, 2), (2, 2), (50, 51), (100, 102), (1000, 1024), (256_000, 262_144), (300_000, 262_144)]
        {
            assert_eq!(milli_cpu_to_shares(milli), shares, "{milli}m");
        }
        assert_eq!(milli_cpu_to_shares(i64::MAX), 262_144);
        for (milli, quota) in
            [(0, None), (1, Some(1000)), (10, Some(1000)), (11, Some(1100)), (500, Some(50_000)), (2000, Some(200_000))]
        {
            assert_eq!(milli_cpu_to_quota(milli), quota, "{milli}m");
        }
    }

    #[test]
    fn a_containers_shares_follow_its_request_and_else_its_limit() {
        for (resources, expected) in [
            ("{}", CgroupResources { cpu_shares: Some(2), ..CgroupResources::default() }),
            (
                "{requests: {cpu: 50m}, limits: {cpu: 100m, memory: 64Mi}}",
                CgroupResources {
                    cpu_shares: Some(51),
                    cpu_quota_us: Some(10_000),
                    cpu_period_us: Some(100_000),
                    memory_limit: Some(64 << 20),
                    ..CgroupResources::default()
                },
            ),
            (
                "{limits: {cpu: 1}}",
                CgroupResources {
                    cpu_shares: Some(1024),
                    cpu_quota_us: Some(100_000),
                    cpu_period_us: Some(100_000),
                    ..CgroupResources::default()
                },
            ),
            ("{requests: {cpu: 0, memory: 1Gi}}", CgroupResources { cpu_shares: Some(2), ..CgroupResources::default() }),
            (
                "{limits: {hugepages-2Mi: 4Mi, hugepages-1Gi: 1Gi}}",
                CgroupResources {
                    cpu_shares: Some(2),
                    hugepages: vec![("1GB".into(), 1 << 30), ("2MB".into(), 4 << 20)],
                    ..CgroupResources::default()
                },
            ),
        ] {
            let pod = pod(&[resources]);
            let container = containers::main(&pod).next().unwrap();
            assert_eq!(container_cgroup(&pod, container), expected, "{resources}");
        }
    }

    #[test]
    fn a_pod_is_limited_where_all_its_containers_are() {
        let full = "{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}";
        for (name, containers, shares, quota, memory) in [
            ("best effort", vec!["{}"], 2, None, None),
            ("guaranteed", vec![full, full], 204, Some(20_000), Some(128 << 20)),
            (
                "burstable, all limited",
                vec![full, "{requests: {cpu: 1}, limits: {cpu: 2, memory: 1Mi}}"],
                1126,
                Some(210_000),
                Some(65 << 20),
            ),
            (
                "burstable, one without memory limit",
                vec![full, "{requests: {cpu: 1}, limits: {cpu: 2}}"],
                1126,
                Some(210_000),
                None,
            ),
            ("burstable, one without limits", vec![full, "{}"], 102, None, None),
        ] {
            let resources = pod_cgroup(&pod(&containers));
            assert_eq!(
                (resources.cpu_shares, resources.cpu_quota_us, resources.memory_limit),
                (Some(shares), quota, memory),
                "{name}"
            );
            assert_eq!(resources.cpu_period_us, quota.map(|_| 100_000), "{name}");
        }
    }

    #[test]
    fn only_burstable_pods_count_in_their_tier() {
        let burstable = pod(&["{requests: {cpu: 250m}}"]);
        let guaranteed = pod(&["{requests: {cpu: 1, memory: 1Mi}, limits: {cpu: 1, memory: 1Mi}}"]);
        assert_eq!([&burstable, &guaranteed, &pod(&["{}"])].map(burstable_cpu_milli), [250, 0, 0]);
    }

    #[test]
    fn page_sizes_are_spelled_as_the_kernel_spells_them() {
        for (bytes, name) in [(64 << 10, "64KB"), (2 << 20, "2MB"), (1 << 30, "1GB"), (16 << 30, "16GB"), (1536, "1536B")] {
            assert_eq!(kernel_page_size(bytes), name);
        }
    }
}
