//! The podFailurePolicy: what a pod that failed means to its Job (W63), and pods that a power cut ended (W53).

use super::spec::Spec;
use crate::observed::{ContainerEnd, ObservedPod};
use k8s_openapi::api::batch::v1::{PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern};

/// The reason of a container whose end nobody saw, because the host lost power.
const LOST: &str = "ContainerStatusUnknown";
/// The condition of a pod that ended for a reason outside of it.
const DISRUPTED: &str = "DisruptionTarget";

/// The meaning of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It counts.
    Counted,
    /// It does not count, and the next attempt pauses.
    Ignored,
    /// It counts, and its index fails for good.
    FailsIndex,
    /// It counts, and the Job fails with the message.
    FailsJob(String),
    /// The host lost power: it does not count, and the next attempt does not pause.
    PowerLost,
}

/// The meaning of a pod's failure, by the first rule that matches.
pub(super) fn classify(spec: &Spec, pod: &ObservedPod) -> Failure {
    let power_lost = is_power_lost(pod);
    for (position, rule) in spec.failure_rules.iter().enumerate() {
        let cause = match (&rule.on_exit_codes, &rule.on_pod_conditions) {
            (Some(requirement), _) => exit_code(requirement, pod).map(|end| of_exit_code(spec, pod, end)),
            (None, Some(patterns)) => condition(patterns, pod, power_lost).map(|kind| of_condition(spec, pod, kind)),
            (None, None) => None,
        };
        let Some(cause) = cause else { continue };
        match rule.action.as_str() {
            "Ignore" => return Failure::Ignored,
            "FailIndex" => return Failure::FailsIndex,
            "FailJob" => return Failure::FailsJob(format!("{cause} matching FailJob rule at index {position}")),
            "Count" => return Failure::Counted,
            // Validation refuses other actions.
            _ => {}
        }
    }
    if power_lost { Failure::PowerLost } else { Failure::Counted }
}

/// True when power was lost and no container had failed before. A container that had failed is a failure of the Job.
fn is_power_lost(pod: &ObservedPod) -> bool {
    let failed_itself = |end: &ContainerEnd| end.reason != LOST && end.exit_code != 0;
    pod.ends.iter().any(|end| end.reason == LOST) && !pod.ends.iter().any(failed_itself)
}

/// The first container whose exit code the requirement names: main containers before init containers. The exit code of an end that nobody
/// saw is made up, so that it matches nothing.
fn exit_code<'a>(requirement: &PodFailurePolicyOnExitCodesRequirement, pod: &'a ObservedPod) -> Option<&'a ContainerEnd> {
    let matches = |end: &&ContainerEnd| {
        let is_named = requirement.container_name.as_ref().is_none_or(|name| *name == end.container);
        let is_listed = requirement.values.contains(&end.exit_code);
        let holds = match requirement.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        is_named && end.exit_code != 0 && end.reason != LOST && holds
    };
    let of_kind = |is_init: bool| pod.ends.iter().filter(move |end| end.is_init == is_init).find(matches);
    of_kind(false).or_else(|| of_kind(true))
}

/// The type of the first condition of the pod that is in the patterns.
fn condition<'a>(patterns: &[PodFailurePolicyOnPodConditionsPattern], pod: &'a ObservedPod, power_lost: bool) -> Option<&'a str> {
    let is_wanted = |kind: &str, status: &str| patterns.iter().any(|pattern| pattern.type_ == kind && pattern.status == status);
    let own = pod.conditions.iter().find(|condition| is_wanted(&condition.kind, &condition.status));
    own.map(|condition| condition.kind.as_str()).or_else(|| (power_lost && is_wanted(DISRUPTED, "True")).then_some(DISRUPTED))
}

fn of_exit_code(spec: &Spec, pod: &ObservedPod, end: &ContainerEnd) -> String {
    format!("Container {} for pod {} failed with exit code {}", end.container, full_name(spec, pod), end.exit_code)
}

fn of_condition(spec: &Spec, pod: &ObservedPod, kind: &str) -> String {
    format!("Pod {} has condition {kind}", full_name(spec, pod))
}

fn full_name(spec: &Spec, pod: &ObservedPod) -> String {
    format!("{}/{}", spec.namespace.as_deref().unwrap_or("default"), pod.name)
}
