//! Requests and limits of a container.

use super::names::qualified_name;
use crate::containers::list;
use crate::field::{FieldPath, Problems};
use crate::quantity::Amount;
use k8s_openapi::api::core::v1::{ContainerResizePolicy, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::{BTreeMap, HashSet};

const HUGEPAGES: &str = "hugepages-";

/// `resources` of one container.
pub(super) fn check(resources: &ResourceRequirements, path: &FieldPath, problems: &mut Problems) {
    let limits = check_amounts(resources.limits.as_ref(), &path.child("limits"), problems);
    let requests = check_amounts(resources.requests.as_ref(), &path.child("requests"), problems);
    for (name, request) in &requests {
        let path = path.child("requests").key(name);
        match limits.get(name) {
            Some(limit) if request > limit => problems.invalid(&path, spelled(resources, name), "must not be above the limit"),
            Some(limit) if request < limit && !may_overcommit(name) => {
                problems.invalid(&path, spelled(resources, name), "must be equal to the limit: it cannot be overcommitted");
            }
            None if !may_overcommit(name) => problems.required(&path.clone(), "the limit must be set: it cannot be overcommitted"),
            Some(_) | None => {}
        }
    }
    let has = |name: &str| limits.contains_key(name) || requests.contains_key(name);
    let hugepages = limits.keys().chain(requests.keys()).any(|name| name.starts_with(HUGEPAGES));
    if hugepages && !has("cpu") && !has("memory") {
        problems.forbidden(path, "huge pages also need a limit or request of cpu or memory");
    }
}

/// `resizePolicy` of one container. `is_never_restarted`, by the policy of its pod.
pub(super) fn check_resize_policy(
    policies: &[ContainerResizePolicy],
    is_never_restarted: bool,
    path: &FieldPath,
    problems: &mut Problems,
) {
    let mut names = HashSet::new();
    for (index, policy) in policies.iter().enumerate() {
        let path = path.index(index);
        problems.one_of(&path.child("resourceName"), &policy.resource_name, &["cpu", "memory"]);
        problems.one_of(&path.child("restartPolicy"), &policy.restart_policy, &["NotRequired", "RestartContainer"]);
        if is_never_restarted && policy.restart_policy == "RestartContainer" {
            let rule = "must be \"NotRequired\" in a pod with restartPolicy Never";
            problems.invalid(&path.child("restartPolicy"), &policy.restart_policy, rule);
        }
        if !policy.resource_name.is_empty() && !names.insert(&policy.resource_name) {
            problems.duplicate(&path.child("resourceName"), &policy.resource_name);
        }
    }
}

fn check_amounts(
    amounts: Option<&BTreeMap<String, Quantity>>,
    path: &FieldPath,
    problems: &mut Problems,
) -> BTreeMap<String, Amount> {
    let mut good = BTreeMap::new();
    for (name, quantity) in amounts.into_iter().flatten() {
        let path = path.key(name);
        check_name(name, &path, problems);
        match Amount::read(quantity) {
            Err(error) => problems.invalid(&path, &quantity.0, error),
            Ok(amount) if amount.is_negative() => problems.invalid(&path, &quantity.0, "must not be negative"),
            Ok(amount) if !amount.is_whole() && !is_native(name) => problems.invalid(&path, &quantity.0, "must be an integer"),
            Ok(amount) => {
                if !amount.is_whole() && matches!(name.as_str(), "memory" | "ephemeral-storage") {
                    problems.suspicious(&path, format_args!("{:?} is a fraction of a byte", quantity.0));
                }
                good.insert(name.clone(), amount);
            }
        }
    }
    good
}

/// Without a prefix only Kubernetes' own names, with one any name.
fn check_name(name: &str, path: &FieldPath, problems: &mut Problems) {
    let own = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let hugepages = name.strip_prefix(HUGEPAGES).is_some_and(|size| size.parse::<Amount>().is_ok_and(|size| size > Amount::ZERO));
    if own || hugepages {
        return;
    }
    if name.contains('/') {
        problems.rule(path, name, qualified_name(name));
    } else {
        problems.not_one_of(path, name, &["cpu", "memory", "ephemeral-storage", "hugepages-<size>"]);
    }
}

fn is_native(name: &str) -> bool {
    !name.contains('/') && !name.starts_with(HUGEPAGES)
}

fn may_overcommit(name: &str) -> bool {
    is_native(name)
}

fn spelled(resources: &ResourceRequirements, name: &str) -> String {
    resources.requests.as_ref().and_then(|requests| requests.get(name)).map(|quantity| quantity.0.clone()).unwrap_or_default()
}

/// Names in `claims` must be those of the pod.
pub(super) fn check_claims(resources: &ResourceRequirements, claims: &[&str], path: &FieldPath, problems: &mut Problems) {
    for (index, claim) in list(&resources.claims).iter().enumerate() {
        if !claims.contains(&claim.name.as_str()) {
            problems.invalid(
                &path.child("claims").index(index).child("name"),
                &claim.name,
                "the pod has no resource claim of that name",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_container;

    #[track_caller]
    fn check(resources: &str, expected: &[&str]) {
        check_container(&format!("resources: {{{resources}}}"), "", expected);
    }

    #[test]
    fn amounts_are_quantities_that_are_not_negative() {
        check(
            "requests: {cpu: 10m, memory: 1Mi}, limits: {cpu: '1', memory: 64Mi, ephemeral-storage: 1Gi, example.org/gpu: 1}",
            &[],
        );
        check("limits: {cpu: 0}", &[]);
        check(
            "requests: {cpu: 1 core}, limits: {memory: 64MB}",
            &[
                "{P}.resources.limits[memory]: invalid value \"64MB\": must be a quantity such as 500m, 2, 64Mi or 1.5G",
                "{P}.resources.requests[cpu]: invalid value \"1 core\": must be a quantity such as 500m, 2, 64Mi or 1.5G",
                "{P}.resources.requests[memory]: invalid value \"64MB\": must be a quantity such as 500m, 2, 64Mi or 1.5G",
            ],
        );
        check("requests: {cpu: -1}", &["{P}.resources.requests[cpu]: invalid value \"-1\": must not be negative"]);
        check(
            "requests: {example.org/gpu: 500m}, limits: {example.org/gpu: 1}",
            &["{P}.resources.requests[example.org/gpu]: invalid value \"500m\": must be an integer"],
        );
    }

    #[test]
    fn fractions_of_bytes_are_suspicious() {
        check("limits: {memory: 1.5Ki}", &[]);
        check("requests: {memory: 100m}", &["{P}.resources.requests[memory]: \"100m\" is a fraction of a byte"]);
    }

    #[test]
    fn resources_have_known_names_or_a_prefix() {
        check(
            "requests: {gpu: 1}",
            &[
                "{P}.resources.requests[gpu]: invalid value \"gpu\": must be one of \"cpu\", \"memory\", \"ephemeral-storage\", \"hugepages-<size>\"",
            ],
        );
        check(
            "requests: {memory: 1, hugepages-: 1}, limits: {memory: 1}",
            &[
                "{P}.resources.requests[hugepages-]: invalid value \"hugepages-\": must be one of \"cpu\", \"memory\", \"ephemeral-storage\", \"hugepages-<size>\"",
                "{P}.resources.requests[hugepages-]: is required: the limit must be set: it cannot be overcommitted",
            ],
        );
    }

    #[test]
    fn a_request_is_not_above_its_limit() {
        check("requests: {cpu: 1000m}, limits: {cpu: 1}", &[]);
        check(
            "requests: {cpu: 2}, limits: {cpu: 1}",
            &["{P}.resources.requests[cpu]: invalid value \"2\": must not be above the limit"],
        );
    }

    #[test]
    fn huge_pages_are_not_shared_and_need_cpu_or_memory() {
        check("limits: {hugepages-2Mi: 4Mi, memory: 1Mi}", &[]);
        check(
            "limits: {hugepages-2Mi: 4Mi}",
            &["{P}.resources: forbidden: huge pages also need a limit or request of cpu or memory"],
        );
        check(
            "requests: {hugepages-2Mi: 2Mi, cpu: 1}, limits: {hugepages-2Mi: 4Mi}",
            &[
                "{P}.resources.requests[hugepages-2Mi]: invalid value \"2Mi\": must be equal to the limit: it cannot be overcommitted",
            ],
        );
        check(
            "requests: {hugepages-2Mi: 2Mi, cpu: 1}",
            &["{P}.resources.requests[hugepages-2Mi]: is required: the limit must be set: it cannot be overcommitted"],
        );
    }

    #[test]
    fn a_pod_that_restarts_nothing_restarts_nothing_for_a_resize() {
        check_container("resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]", "restartPolicy: Never", &[]);
        check_container(
            "resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]",
            "restartPolicy: Never",
            &[
                "{P}.resizePolicy[0].restartPolicy: invalid value \"RestartContainer\": must be \"NotRequired\" in a pod with restartPolicy Never",
            ],
        );
    }

    #[test]
    fn resize_policies_name_a_resource_once() {
        check_container(
            "resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: memory, restartPolicy: RestartContainer}]",
            "",
            &[],
        );
        check_container(
            "resizePolicy: [{resourceName: cpu, restartPolicy: Never}, {resourceName: cpu, restartPolicy: NotRequired}, {}]",
            "",
            &[
                "{P}.resizePolicy[0].restartPolicy: invalid value \"Never\": must be one of \"NotRequired\", \"RestartContainer\"",
                "{P}.resizePolicy[1].resourceName: duplicate value \"cpu\"",
                "{P}.resizePolicy[2].resourceName: is required: one of cpu, memory",
                "{P}.resizePolicy[2].restartPolicy: is required: one of NotRequired, RestartContainer",
            ],
        );
    }
}
