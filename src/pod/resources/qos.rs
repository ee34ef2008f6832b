//! The quality of service class (kubelet rule D24): cpu and memory of the pod where it has some of its own, else of all containers, init
//! containers included.

use super::pod_level::{pod_level_limits, pod_level_requests};
use super::{Amounts, QosClass, limits, requests};
use crate::quantity::Amount;
use crate::{Pod, containers};

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// The class of a pod whose requests are defaulted from its limits.
pub fn qos_class(pod: &Pod) -> QosClass {
    let mut requested = Amounts::new();
    let mut limited = Amounts::new();
    let (of_pod, pods_limits) = (pod_level_requests(pod), pod_level_limits(pod));
    let mut is_limited = true;
    if of_pod.is_empty() && pods_limits.is_empty() {
        for (_, container) in containers::all(pod) {
            sum_positive(&mut requested, &requests(container));
            is_limited &= sum_positive(&mut limited, &limits(container)) == COUNTED.len();
        }
    } else {
        sum_positive(&mut requested, &of_pod);
        is_limited = sum_positive(&mut limited, &pods_limits) == COUNTED.len();
    }
    if requested.is_empty() && limited.is_empty() {
        QosClass::BestEffort
    } else if is_limited && requested == limited {
        QosClass::Guaranteed
    } else {
        QosClass::Burstable
    }
}

/// Adds the counted resources that are above zero; returns how many those are.
fn sum_positive(sum: &mut Amounts, more: &Amounts) -> usize {
    let positive: Vec<_> = COUNTED
        .iter()
        .filter_map(|name| more.get(*name).filter(|amount| **amount > Amount::ZERO).map(|amount| (*name, *amount)))
        .collect();
    for (name, amount) in &positive {
        let entry = sum.entry((*name).to_owned()).or_default();
        *entry = entry.plus(*amount);
    }
    positive.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits_of_all_containers() {
        use QosClass::{BestEffort, Burstable, Guaranteed};
        let full = "{requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}";
        for (name, main, init, expected) in [
            ("nothing set", vec!["{}"], vec![], BestEffort),
            ("zero is nothing", vec!["{requests: {cpu: 0}, limits: {memory: '0'}}"], vec![], BestEffort),
            ("other resources do not count", vec!["{limits: {hugepages-2Mi: 2Mi}}"], vec![], BestEffort),
            ("equal requests and limits", vec![full], vec![], Guaranteed),
            (
                "equal in value, not in spelling",
                vec!["{requests: {cpu: 0.1, memory: 1Ki}, limits: {cpu: 100m, memory: 1024}}"],
                vec![],
                Guaranteed,
            ),
            ("a request only", vec!["{requests: {cpu: 100m}}"], vec![], Burstable),
            ("cpu only", vec!["{requests: {cpu: 1}, limits: {cpu: 1}}"], vec![], Burstable),
            ("request below limit", vec!["{requests: {cpu: 1, memory: 1Mi}, limits: {cpu: 2, memory: 1Mi}}"], vec![], Burstable),
            ("a second container without limits", vec![full, "{}"], vec![], Burstable),
            ("an init container without limits", vec![full], vec!["{}"], Burstable),
            ("an init container with limits", vec![full], vec![full], Guaranteed),
        ] {
            let containers = |resources: Vec<&str>| {
                resources.iter().enumerate().map(|(i, r)| format!("{{name: c{i}, resources: {r}}}")).collect::<Vec<_>>().join(",")
            };
            let yaml = format!("{{spec: {{containers: [{}], initContainers: [{}]}}}}", containers(main), containers(init));
            assert_eq!(qos_class(&serde_yaml::from_str(&yaml).unwrap()), expected, "{name}");
        }
    }
}
