//! Order of the OOM killer's victims (kubelet rule D25).

use super::pod_level::memory_beyond_containers;
use super::{QosClass, amount, qos_class, requests};
use crate::Pod;
use crate::containers::{self, ContainerKind, spec, text};
use k8s_openapi::api::core::v1::Container;

const GUARANTEED: i64 = -997;
const BEST_EFFORT: i64 = 1000;
/// Above every guaranteed container, even if it requests the whole memory.
const BURSTABLE_MIN: i64 = 1000 + GUARANTEED;
/// The priority class that marks a pod as critical for its node.
const NODE_CRITICAL: &str = "system-node-critical";

/// `oom_score_adj` of a container on a node with that much memory. A sidecar scores no higher than the main container that scores
/// highest, so that it is not killed before those it serves.
pub fn oom_score_adj(pod: &Pod, container: &Container, node_memory_bytes: u64) -> i32 {
    let class = if text(&spec(pod).priority_class_name) == NODE_CRITICAL { QosClass::Guaranteed } else { qos_class(pod) };
    let score = match class {
        QosClass::Guaranteed => GUARANTEED,
        QosClass::BestEffort => BEST_EFFORT,
        QosClass::Burstable => burstable_score(pod, container, node_memory_bytes).clamp(BURSTABLE_MIN, BEST_EFFORT - 1),
    };
    i32::try_from(score).unwrap_or_default()
}

fn burstable_score(pod: &Pod, container: &Container, node_memory_bytes: u64) -> i64 {
    let beyond = memory_beyond_containers(pod);
    let own = memory_request(container);
    let request = match containers::find(pod, &container.name) {
        Some((ContainerKind::Sidecar, _)) => own.max(containers::main(pod).map(memory_request).min().unwrap_or(0)),
        Some((ContainerKind::Init | ContainerKind::Main, _)) | None => own,
    };
    let share = i128::from(request.saturating_add(beyond)) * 1000 / i128::from(node_memory_bytes.max(1));
    i64::try_from(1000 - share).unwrap_or(i64::MIN)
}

fn memory_request(container: &Container) -> i64 {
    amount(&requests(container), "memory").value()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn score(yaml: &str, container: &str) -> i32 {
        let pod: Pod = serde_yaml::from_str(yaml).unwrap();
        oom_score_adj(&pod, containers::find(&pod, container).unwrap().1, 10 * GIB)
    }

    #[test]
    fn class_and_memory_request_decide_the_score() {
        for (resources, expected) in [
            ("{}", 1000),
            ("{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}", -997),
            ("{requests: {cpu: 1}}", 999),
            ("{requests: {memory: 1Mi}}", 999),
            ("{requests: {memory: 1Gi}}", 900),
            ("{requests: {memory: 5Gi}}", 500),
            ("{requests: {memory: 10Gi}}", 3),
            ("{requests: {memory: 8Ei}}", 3),
        ] {
            assert_eq!(
                score(&format!("{{spec: {{containers: [{{name: a, resources: {resources}}}]}}}}"), "a"),
                expected,
                "{resources}"
            );
        }
    }

    #[test]
    fn a_node_critical_pod_is_spared_whatever_it_requests() {
        assert_eq!(score("{spec: {priorityClassName: system-node-critical, containers: [{name: a}]}}", "a"), -997);
        assert_eq!(score("{spec: {priorityClassName: system-cluster-critical, containers: [{name: a}]}}", "a"), 1000);
    }

    #[test]
    fn a_sidecar_scores_no_higher_than_the_main_containers() {
        let yaml = "{spec: {containers: [{name: a, resources: {requests: {memory: 5Gi}}}, {name: b, resources: {requests: {memory: 2Gi}}}],
            initContainers: [{name: small, restartPolicy: Always, resources: {requests: {memory: 1Gi}}},
                             {name: large, restartPolicy: Always, resources: {requests: {memory: 4Gi}}},
                             {name: once, resources: {requests: {memory: 1Gi}}}]}}";
        for (container, expected) in [("a", 500), ("b", 800), ("small", 800), ("large", 600), ("once", 900)] {
            assert_eq!(score(yaml, container), expected, "{container}");
        }
    }

    #[test]
    fn a_node_whose_memory_is_not_known_does_not_divide_by_zero() {
        let pod: Pod = serde_yaml::from_str("{spec: {containers: [{name: a, resources: {requests: {memory: 1Gi}}}]}}").unwrap();
        assert_eq!(oom_score_adj(&pod, containers::find(&pod, "a").unwrap().1, 0), 3);
    }
}
