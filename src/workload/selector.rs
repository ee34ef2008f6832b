//! Label selectors.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use std::collections::BTreeMap;

/// A selector without any requirement.
pub fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.iter().flatten().next().is_none() && selector.match_expressions.iter().flatten().next().is_none()
}

/// Tells whether the labels meet all requirements.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().flatten().all(|requirement| meets(requirement, labels))
}

fn meets(requirement: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let found = labels.get(&requirement.key);
    let is_listed = found.is_some_and(|found| requirement.values.iter().flatten().any(|value| value == found));
    match requirement.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}
