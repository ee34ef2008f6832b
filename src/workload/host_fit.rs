//! Node selectors and required node affinity, held against this host (W46, W85).

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec};
use std::collections::BTreeMap;

/// The host as a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Tells whether a pod with this spec may run on the host: nodeName is empty or the host's, nodeSelector matches, and so does at least one term of
/// the required node affinity. Preferences are not asked.
pub fn fits(spec: &PodSpec, host: &Host) -> bool {
    let named = spec.node_name.as_ref().is_none_or(|name| name.is_empty() || *name == host.name);
    let selected = spec.node_selector.iter().flatten().all(|(key, value)| host.labels.get(key) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    named && selected && required.is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, host)))
}

/// A field because of which a pod may not run on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The field, e.g. `spec.nodeSelector['site']`.
    pub field: String,
    /// The reason, as the end of a sentence about the host: `which has no label "site"`.
    pub reason: String,
}

/// The path of the required node affinity in a pod's spec.
const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";

/// Lists the selectors that exclude the host. The name of a node is told of where it is written.
pub fn misfits(spec: &PodSpec, host: &Host) -> Vec<Misfit> {
    let selected = spec.node_selector.iter().flatten().filter_map(|(key, value)| {
        let reason = match host.labels.get(key) {
            Some(found) if found == value => return None,
            Some(found) => format!("whose label {key:?} is {found:?} and not {value:?}"),
            None => format!("which has no label {key:?}"),
        };
        Some(Misfit { field: format!("spec.nodeSelector['{key}']"), reason })
    });
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let excluded = required.filter(|required| !required.node_selector_terms.iter().any(|term| term_matches(term, host)));
    let excluded = excluded.map(|_| Misfit { field: REQUIRED.to_owned(), reason: "which matches none of the terms".to_owned() });
    selected.chain(excluded).collect()
}

/// An empty term matches no node.
fn term_matches(term: &NodeSelectorTerm, host: &Host) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |requirement: &NodeSelectorRequirement| host.labels.get(&requirement.key).map(String::as_str);
    let field = |requirement: &NodeSelectorRequirement| (requirement.key == "metadata.name").then_some(host.name.as_str());
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|requirement| holds(requirement, label(requirement)))
        && fields.iter().all(|requirement| holds(requirement, field(requirement)))
}

/// `Gt` and `Lt` compare whole numbers; an unknown operator, which validation refuses, matches nothing.
fn holds(requirement: &NodeSelectorRequirement, found: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || found.is_some_and(|found| values.iter().any(|value| value == found));
    let compared = |wanted: std::cmp::Ordering| {
        let (Some(found), [value]) = (found, values) else { return false };
        let (Ok(found), Ok(value)) = (found.parse::<i64>(), value.parse::<i64>()) else { return false };
        found.cmp(&value) == wanted
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compared(std::cmp::Ordering::Greater),
        "Lt" => compared(std::cmp::Ordering::Less),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn host() -> Host {
        let labels = [("site", "berlin"), ("type", "production"), ("cores", "4")];
        Host { name: "till-7".to_owned(), labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into() }
    }

    fn fit(spec: &Value) -> bool {
        let mut spec = spec.clone();
        spec["containers"] = json!([]);
        fits(&serde_json::from_value(spec).unwrap(), &host())
    }

    fn terms(terms: &Value) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    }

    /// TN1, TN2.
    #[test]
    fn selectors_choose_hosts() {
        assert!(fit(&json!({})));
        assert!(fit(&json!({"nodeSelector": {"site": "berlin"}})));
        assert!(!fit(&json!({"nodeSelector": {"site": "bonn"}})));
        assert!(fit(&json!({"nodeName": "till-7"})));
        assert!(!fit(&json!({"nodeName": "till-8"})));
        let test = json!({"key": "type", "operator": "In", "values": ["test"]});
        assert!(!fit(&terms(&json!([{"matchExpressions": [test]}]))));
        assert!(!fit(&terms(&json!([{}]))));
    }

    /// W85.
    #[test]
    fn selectors_that_exclude_the_host_are_named() {
        let misfits = |spec: &Value| {
            let mut spec = spec.clone();
            spec["containers"] = json!([]);
            let found = misfits(&serde_json::from_value(spec).unwrap(), &host());
            found.into_iter().map(|Misfit { field, reason }| format!("{field} {reason}")).collect::<Vec<_>>()
        };
        assert_eq!(misfits(&json!({"nodeSelector": {"site": "berlin"}})), [""; 0]);
        assert_eq!(
            misfits(&json!({"nodeSelector": {"site": "bonn", "gpu": "a"}})),
            [
                r#"spec.nodeSelector['gpu'] which has no label "gpu""#,
                r#"spec.nodeSelector['site'] whose label "site" is "berlin" and not "bonn""#
            ]
        );
        let test = json!({"matchExpressions": [{"key": "type", "operator": "In", "values": ["test"]}]});
        let site = json!({"matchExpressions": [{"key": "site", "operator": "Exists"}]});
        assert_eq!(misfits(&terms(&json!([test, site]))), [""; 0]);
        assert_eq!(misfits(&terms(&json!([test]))), [format!("{REQUIRED} which matches none of the terms")]);
    }

    #[test]
    fn terms_are_alternatives_and_expressions_are_not() {
        let expression = |operator: &str, key: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let yes = expression("In", "site", &["bonn", "berlin"]);
        let no = expression("NotIn", "site", &["berlin"]);
        assert!(fit(&terms(&json!([{"matchExpressions": [no]}, {"matchExpressions": [yes]}]))));
        assert!(!fit(&terms(&json!([{"matchExpressions": [no, yes]}]))));
        assert!(fit(&terms(&json!([{"matchExpressions": [expression("Gt", "cores", &["3"])]}]))));
        assert!(!fit(&terms(&json!([{"matchExpressions": [expression("Lt", "cores", &["4"])]}]))));
        assert!(fit(&terms(&json!([{"matchExpressions": [expression("DoesNotExist", "gpu", &[])]}]))));
        assert!(fit(&terms(
            &json!([{"matchExpressions": [expression("Exists", "cores", &[]), expression("NotIn", "gpu", &["x"])]}])
        )));
        assert!(fit(&terms(&json!([{"matchFields": [expression("In", "metadata.name", &["till-7"])]}]))));
        assert!(!fit(&terms(&json!([{"matchFields": [expression("In", "metadata.name", &["till-8"])]}]))));
    }
}
