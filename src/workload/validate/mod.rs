//! Rules for Deployments, ReplicaSets, StatefulSets and DaemonSets, beside those for their pod templates, which are validated as Pods (W2, W3).

mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;
mod workload;

#[cfg(test)]
mod tests;

pub use daemon_set::daemon_set;
pub use deployment::deployment;
pub use replica_set::replica_set;
pub use stateful_set::stateful_set;
pub use workload::workload;

use crate::problem::Problems;
use crate::selector::{is_empty, matches};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;

/// Pods that one object may ask for: one line of a repository must not use up a host's memory (W2).
const MOST_PODS: i32 = 500;

fn check_replicas(replicas: Option<i32>, found: &mut Problems) {
    found.not_negative("spec.replicas", replicas.map(i64::from));
    if let Some(replicas) = replicas.filter(|replicas| *replicas > MOST_PODS) {
        found.invalid("spec.replicas", replicas, format_args!("must be less than or equal to {MOST_PODS}"));
        found.hint("one host runs all replicas");
    }
}

/// Checks the selector and the fields of the template that depend on the kind (W3).
fn check_template(selector: &LabelSelector, template: &PodTemplateSpec, kind: &str, found: &mut Problems) {
    let none = BTreeMap::new();
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()).unwrap_or(&none);
    if is_empty(selector) {
        found.required("spec.selector", "");
        found.hint("write spec.selector.matchLabels with labels of spec.template.metadata");
    } else if !matches(selector, labels) {
        found.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`");
        found.hint("give the template the labels of spec.selector");
    }
    let Some(spec) = &template.spec else { return };
    if let Some(policy) = spec.restart_policy.as_deref().filter(|policy| *policy != "Always") {
        found.not_one_of("spec.template.spec.restartPolicy", policy, &["Always"]);
        found.hint("use a Job for pods that end");
    }
    if spec.active_deadline_seconds.is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        found.forbidden("spec.template.spec.activeDeadlineSeconds", &detail);
    }
}

/// A number of pods or a percentage. Returns true if it is 0.
fn check_amount(field: &str, amount: Option<&IntOrString>, at_most_100_percent: bool, found: &mut Problems) -> bool {
    match amount {
        None => false,
        Some(IntOrString::Int(number)) => {
            found.not_negative(field, Some((*number).into()));
            *number == 0
        }
        Some(IntOrString::String(text)) => match text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok()) {
            None => {
                let rule = "a valid percent string must be a numeric string followed by an ending '%'";
                found.invalid(field, text, rule);
                found.hint("write a number, or a percentage such as \"25%\"");
                false
            }
            Some(percent) => {
                if at_most_100_percent && percent > 100 {
                    found.invalid(field, text, "must not be greater than 100%");
                }
                percent == 0
            }
        },
    }
}
