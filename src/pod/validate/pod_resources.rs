//! `spec.resources`, and how the containers' fit into them.

use super::resources;
use crate::Pod;
use crate::containers::list;
use crate::field::{FieldPath, Problems};
use crate::quantity::Amount;
use crate::resources::{is_pod_level, limits, of_containers, requests};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

/// Rules of the pod's own resources.
pub(super) fn check(pod: &Pod, spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let Some(own) = &spec.resources else { return };
    let at = path.child("resources");
    for (bound, amounts) in [("limits", &own.limits), ("requests", &own.requests)] {
        for name in amounts.iter().flatten().map(|(name, _)| name).filter(|name| !is_pod_level(name)) {
            problems.not_one_of(&at.child(bound).key(name), name, &["cpu", "memory", "hugepages-<size>"]);
        }
    }
    resources::check(own, &at, problems);
    let sums = of_containers(pod, requests);
    for (name, quantity, amount) in read(own.requests.as_ref()) {
        if let Some(sum) = sums.get(name).filter(|sum| **sum > amount) {
            let spelled = if name == "cpu" { format!("{}m", sum.milli_value()) } else { sum.value().to_string() };
            let rule = format!("must not be below the sum of the containers' requests, {spelled}");
            problems.invalid(&at.child("requests").key(name), quantity, rule);
        }
    }
    let limit_sums = of_containers(pod, limits);
    for (name, quantity, amount) in read(own.limits.as_ref()) {
        if name.starts_with("hugepages-") && limit_sums.get(name).is_some_and(|sum| *sum > amount) {
            problems.invalid(&at.child("limits").key(name), quantity, "must not be below the sum of the containers' limits");
        }
        check_containers("initContainers", list(&spec.init_containers), name, amount, path, problems);
        check_containers("containers", &spec.containers, name, amount, path, problems);
    }
}

/// One container cannot have more than the pod has; together they may hope for more.
fn check_containers(field: &str, containers: &[Container], name: &str, pods: Amount, path: &FieldPath, problems: &mut Problems) {
    for (index, container) in containers.iter().enumerate() {
        let written = container.resources.as_ref().and_then(|resources| resources.limits.as_ref()?.get(name));
        if let Some(quantity) = written.filter(|_| limits(container).get(name).is_some_and(|limit| *limit > pods)) {
            let at = path.child(field).index(index).child("resources").child("limits").key(name);
            problems.invalid(&at, &quantity.0, "must not be above the pod's limit");
        }
    }
}

fn read(amounts: Option<&BTreeMap<String, Quantity>>) -> impl Iterator<Item = (&str, &str, Amount)> {
    let amounts = amounts.into_iter().flatten();
    amounts.filter_map(|(name, quantity)| Some((name.as_str(), quantity.0.as_str(), Amount::read(quantity).ok()?)))
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_spec;

    #[track_caller]
    fn check(resources: &str, container: &str, expected: &[&str]) {
        check_spec(&format!("resources: {resources}, containers: [{{name: a, image: x, resources: {container}}}]"), expected);
    }

    #[test]
    fn containers_fit_into_their_pod() {
        check("{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2}}", "{requests: {cpu: 500m}, limits: {cpu: 2}}", &[]);
        check(
            "{requests: {cpu: 1}}",
            "{requests: {cpu: 1500m}}",
            &["spec.resources.requests[cpu]: invalid value \"1\": must not be below the sum of the containers' requests, 1500m"],
        );
        check(
            "{requests: {memory: 1Mi}, limits: {memory: 1Gi}}",
            "{requests: {memory: 1Mi}, limits: {memory: 2Gi}}",
            &["spec.containers[0].resources.limits[memory]: invalid value \"2Gi\": must not be above the pod's limit"],
        );
    }

    #[test]
    fn a_pod_has_cpu_memory_and_huge_pages() {
        check("{limits: {cpu: 1, hugepages-2Mi: 4Mi}}", "{}", &[]);
        check(
            "{requests: {cpu: 2}, limits: {cpu: 1, ephemeral-storage: 1Gi}}",
            "{}",
            &[
                "spec.resources.limits[ephemeral-storage]: invalid value \"ephemeral-storage\": must be one of \"cpu\", \"memory\", \"hugepages-<size>\"",
                "spec.resources.requests[cpu]: invalid value \"2\": must not be above the limit",
            ],
        );
    }
}
