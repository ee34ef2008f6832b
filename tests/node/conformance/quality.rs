//! Resources of pods and containers of each class, in the kernel's files (kubelet rules D24, D25; `TestResourceConfigForPod`,
//! `TestMilliCPUToQuota`, `TestGetContainerOOMScoreAdjust`).

use crate::support::{TestHost, cgroup, eventually_within};
use std::fs;
use std::time::Duration;

/// Shares, microseconds of processor per 100 ms, bytes of memory.
type Given = (u64, Option<u64>, Option<u64>);

/// A pod: resources of its sidecar if it has one, resources of its containers; tier, what the pod has, what its containers have (the
/// sidecar's first).
struct Row {
    name: &'static str,
    sidecar: Option<&'static str>,
    containers: &'static [&'static str],
    tier: &'static str,
    pod: Given,
    each: &'static [Given],
    /// `oom_score_adj` of each container; `None` where it depends on the machine's memory.
    score: Option<i32>,
}

const MI: u64 = 1 << 20;

const TABLE: [Row; 9] = [
    Row {
        name: "besteffort",
        sidecar: None,
        containers: &["{}"],
        tier: "besteffort",
        pod: (2, None, None),
        each: &[(2, None, None)],
        score: Some(1000),
    },
    Row {
        name: "burstable-no-limits",
        sidecar: None,
        containers: &["{requests: {cpu: 100m, memory: 16Mi}}"],
        tier: "burstable",
        pod: (102, None, None),
        each: &[(102, None, None)],
        score: None,
    },
    Row {
        name: "burstable-with-limits",
        sidecar: None,
        containers: &["{requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 200m, memory: 32Mi}}"],
        tier: "burstable",
        pod: (102, Some(20_000), Some(32 * MI)),
        each: &[(102, Some(20_000), Some(32 * MI))],
        score: None,
    },
    // One without a limit leaves the pod without.
    Row {
        name: "burstable-partial-limits",
        sidecar: None,
        containers: &[
            "{requests: {cpu: 100m, memory: 16Mi}}",
            "{requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 200m, memory: 32Mi}}",
        ],
        tier: "burstable",
        pod: (204, None, None),
        each: &[(102, None, None), (102, Some(20_000), Some(32 * MI))],
        score: None,
    },
    Row {
        name: "guaranteed",
        sidecar: None,
        containers: &["{limits: {cpu: 100m, memory: 32Mi}}", "{limits: {cpu: 150m, memory: 16Mi}}"],
        tier: "",
        pod: (256, Some(25_000), Some(48 * MI)),
        each: &[(102, Some(10_000), Some(32 * MI)), (153, Some(15_000), Some(16 * MI))],
        score: Some(-997),
    },
    // The kernel takes no quota below a millisecond.
    Row {
        name: "guaranteed-tiny",
        sidecar: None,
        containers: &["{limits: {cpu: 2m, memory: 32Mi}}"],
        tier: "",
        pod: (2, Some(1000), Some(32 * MI)),
        each: &[(2, Some(1000), Some(32 * MI))],
        score: Some(-997),
    },
    Row {
        name: "memory-alone",
        sidecar: None,
        containers: &["{limits: {memory: 32Mi}}"],
        tier: "burstable",
        pod: (2, None, Some(32 * MI)),
        each: &[(2, None, Some(32 * MI))],
        score: None,
    },
    Row {
        name: "processor-alone",
        sidecar: None,
        containers: &["{limits: {cpu: 300m}}"],
        tier: "burstable",
        pod: (307, Some(30_000), None),
        each: &[(307, Some(30_000), None)],
        score: None,
    },
    // What a sidecar has is added.
    Row {
        name: "with-sidecar",
        sidecar: Some("{limits: {cpu: 100m, memory: 16Mi}}"),
        containers: &["{limits: {cpu: 100m, memory: 32Mi}}"],
        tier: "",
        pod: (204, Some(20_000), Some(48 * MI)),
        each: &[(102, Some(10_000), Some(16 * MI)), (102, Some(10_000), Some(32 * MI))],
        score: Some(-997),
    },
];

fn given(pid: u32, level: usize) -> Given {
    (cgroup::cpu_share(pid, level), cgroup::cpu_quota(pid, level), cgroup::memory_limit(pid, level))
}

fn as_kernel_has_it((shares, quota, memory): Given) -> Given {
    (cgroup::share_of(shares), quota, memory)
}

/// True if this machine's root has CAP_SYS_RESOURCE; without it nobody is protected from the kernel's choice.
fn may_lower_scores() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    u64::from_str_radix(effective, 16).unwrap() & (1 << 24) != 0
}

#[test]
fn d24_d25_classes_have_the_kubelets_cgroups() {
    let host = TestHost::start();
    let container = |name: &str, resources: &str, more: &str| {
        format!("    - {{name: {name}, image: 'localhost/busybox:1', command: [sleep, '1000000'], resources: {resources}{more}}}\n")
    };
    for row in &TABLE {
        let sidecar =
            row.sidecar.map(|resources| format!("  initContainers:\n{}", container("c0", resources, ", restartPolicy: Always")));
        let first = usize::from(sidecar.is_some());
        let containers = row.containers.iter().enumerate();
        let containers: String = containers.map(|(at, resources)| container(&format!("c{}", at + first), resources, "")).collect();
        let manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{}  containers:\n{containers}",
            row.name,
            sidecar.unwrap_or_default()
        );
        host.write_manifest(&format!("{}.yaml", row.name), &manifest);
    }
    for row in &TABLE {
        // With two thousandths of a processor a start takes a while, of an emulated one most of all.
        let pod = eventually_within(Duration::from_secs(600), &format!("{} to run", row.name), || {
            let pod = host.pod(row.name).ok_or("it is not known")?;
            if (0..row.each.len()).all(|at| pod.runs(&format!("c{at}"))) { Ok(pod) } else { Err(pod.0["status"].to_string()) }
        });
        for (at, expected) in row.each.iter().enumerate() {
            let pid = host.container_pid(&pod, &format!("c{at}"));
            assert_eq!(given(pid, 0), as_kernel_has_it(*expected), "container {at} of {}", row.name);
            assert_eq!(given(pid, 1), as_kernel_has_it(row.pod), "the pod of {}", row.name);
            let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
            for tier in ["besteffort", "burstable"] {
                assert_eq!(groups.contains(&format!("/{tier}/pod{}", pod.uid())), row.tier == tier, "{groups}");
            }
            if let Some(score) = row.score {
                let found = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
                let score = if may_lower_scores() { score } else { score.max(0) };
                assert_eq!(found.trim(), score.to_string(), "container {at} of {}", row.name);
            }
        }
    }
}
