//! Total requests and limits of a pod, counted as the scheduler counts: main containers and sidecars run at once, init containers one after
//! the other beside the sidecars started before them.

use super::pod_level::{pod_level_limits, pod_level_requests};
use super::{Amounts, limits, requests};
use crate::Pod;
use crate::containers::{self, ContainerKind, spec};
use k8s_openapi::api::core::v1::Container;

/// The pod's requests: its own where it has some, else its containers'; overhead included.
pub fn pod_requests(pod: &Pod) -> Amounts {
    let mut sum = of_containers(pod, requests);
    sum.extend(pod_level_requests(pod));
    add(&mut sum, &super::amounts(spec(pod).overhead.as_ref()));
    sum
}

/// The pod's limits: its own where it has some, else its containers'. A container without a limit counts as nothing, so this bounds the pod only if all containers have one.
/// Overhead is added to limits that are set.
pub fn pod_limits(pod: &Pod) -> Amounts {
    let mut sum = of_containers(pod, limits);
    sum.extend(pod_level_limits(pod));
    for (name, overhead) in super::amounts(spec(pod).overhead.as_ref()) {
        if let Some(limit) = sum.get_mut(&name).filter(|limit| !limit.is_zero()) {
            *limit = limit.plus(overhead);
        }
    }
    sum
}

/// Highest total of the containers at any time.
pub fn of_containers(pod: &Pod, of: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut running = Amounts::new();
    for container in containers::main(pod) {
        add(&mut running, &of(container));
    }
    let mut sidecars = Amounts::new();
    let mut peak_of_init = Amounts::new();
    for (kind, container) in containers::init(pod) {
        let own = of(container);
        match kind {
            ContainerKind::Sidecar | ContainerKind::Main => {
                add(&mut running, &own);
                add(&mut sidecars, &own);
                raise(&mut peak_of_init, &sidecars);
            }
            ContainerKind::Init => {
                let mut while_it_runs = sidecars.clone();
                add(&mut while_it_runs, &own);
                raise(&mut peak_of_init, &while_it_runs);
            }
        }
    }
    raise(&mut running, &peak_of_init);
    running
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.plus(*amount);
    }
}

fn raise(peak: &mut Amounts, candidate: &Amounts) {
    for (name, amount) in candidate {
        let entry = peak.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_containers_count_with_their_peak_and_sidecars_all_along() {
        let container = |name: &str, cpu: &str, sidecar: bool| {
            let policy = if sidecar { ", restartPolicy: Always" } else { "" };
            format!("{{name: {name}, resources: {{requests: {{cpu: '{cpu}'}}}}{policy}}}")
        };
        for (name, init, main, expected_milli) in [
            ("sum of main containers", vec![], vec![container("a", "100m", false), container("b", "200m", false)], 300),
            (
                "a small init container hides behind them",
                vec![container("i", "250m", false)],
                vec![container("a", "300m", false)],
                300,
            ),
            ("a large init container sets the peak", vec![container("i", "1", false)], vec![container("a", "300m", false)], 1000),
            ("sidecars add to main containers", vec![container("s", "50m", true)], vec![container("a", "300m", false)], 350),
            (
                "an init container runs beside the sidecars before it",
                vec![container("s", "50m", true), container("i", "1", false), container("t", "20m", true)],
                vec![container("a", "300m", false)],
                1050,
            ),
            (
                "but not beside those after it",
                vec![container("i", "1", false), container("s", "50m", true)],
                vec![container("a", "300m", false)],
                1000,
            ),
        ] {
            let yaml = format!("{{spec: {{initContainers: [{}], containers: [{}]}}}}", init.join(","), main.join(","));
            let pod: Pod = serde_yaml::from_str(&yaml).unwrap();
            assert_eq!(pod_requests(&pod)["cpu"].milli_value(), expected_milli, "{name}");
        }
    }

    #[test]
    fn overhead_adds_to_requests_and_to_limits_that_are_set() {
        let yaml = "{spec: {overhead: {cpu: 10m, memory: 1Mi}, containers: [{name: a, resources: {requests: {cpu: 1}, limits: {memory: 1Mi}}}]}}";
        let pod: Pod = serde_yaml::from_str(yaml).unwrap();
        assert_eq!(pod_requests(&pod)["cpu"].milli_value(), 1010);
        assert_eq!(pod_limits(&pod)["memory"].value(), 2 << 20);
        assert!(!pod_limits(&pod).contains_key("cpu"));
    }
}
