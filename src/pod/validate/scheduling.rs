//! Fields for a scheduler: tolerations, affinity, spread. They have no effect on one host, but a wrong one is a mistake all the same, and the
//! manifest may go to a cluster some day.

use super::metadata::labels;
use super::names::{Rule, dns_label, label_value, qualified_name};
use crate::containers::{list, text};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, PodSpec, Toleration, TopologySpreadConstraint,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::HashSet;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// All scheduling fields of a pod.
pub(super) fn check(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    labels(spec.node_selector.as_ref(), &path.child("nodeSelector"), problems);
    for (index, toleration) in list(&spec.tolerations).iter().enumerate() {
        check_toleration(toleration, &path.child("tolerations").index(index), problems);
    }
    if let Some(affinity) = &spec.affinity {
        check_affinity(affinity, &path.child("affinity"), problems);
    }
    check_spread(list(&spec.topology_spread_constraints), &path.child("topologySpreadConstraints"), problems);
    for (index, gate) in list(&spec.readiness_gates).iter().enumerate() {
        let path = path.child("readinessGates").index(index).child("conditionType");
        problems.rule(&path, &gate.condition_type, qualified_name(&gate.condition_type));
    }
}

fn check_toleration(toleration: &Toleration, path: &FieldPath, problems: &mut Problems) {
    let key = text(&toleration.key);
    problems.optional_text(&path.child("key"), key, qualified_name);
    let operator = text(&toleration.operator);
    let value = text(&toleration.value);
    match operator {
        "" | "Equal" => problems.optional_text(&path.child("value"), value, label_value),
        "Exists" if !value.is_empty() => problems.forbidden(&path.child("value"), "must be empty where operator is Exists"),
        "Exists" => {}
        _ => problems.one_of(&path.child("operator"), operator, &["Equal", "Exists"]),
    }
    if key.is_empty() && operator != "Exists" {
        problems.invalid(&path.child("operator"), operator, "must be Exists where key is empty, which tolerates every key");
    }
    let effect = text(&toleration.effect);
    if !effect.is_empty() {
        problems.one_of(&path.child("effect"), effect, &EFFECTS);
    }
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        problems.forbidden(&path.child("tolerationSeconds"), "may be set only where effect is NoExecute");
    }
}

fn check_affinity(affinity: &Affinity, path: &FieldPath, problems: &mut Problems) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(node) = &affinity.node_affinity {
        let path = path.child("nodeAffinity");
        if let Some(selector) = &node.required_during_scheduling_ignored_during_execution {
            let path = path.child(REQUIRED).child("nodeSelectorTerms");
            if selector.node_selector_terms.is_empty() {
                problems.required(&path, "at least one");
            }
            for (index, term) in selector.node_selector_terms.iter().enumerate() {
                check_node_term(term, &path.index(index), problems);
            }
        }
        for (index, preferred) in list(&node.preferred_during_scheduling_ignored_during_execution).iter().enumerate() {
            let path = path.child(PREFERRED).index(index);
            check_weight(preferred.weight, &path, problems);
            check_node_term(&preferred.preference, &path.child("preference"), problems);
        }
    }
    let check_pod_terms =
        |required: &[PodAffinityTerm], preferred: &[WeightedPodAffinityTerm], path: &FieldPath, problems: &mut Problems| {
            for (index, term) in required.iter().enumerate() {
                check_pod_term(term, &path.child(REQUIRED).index(index), problems);
            }
            for (index, term) in preferred.iter().enumerate() {
                let path = path.child(PREFERRED).index(index);
                check_weight(term.weight, &path, problems);
                check_pod_term(&term.pod_affinity_term, &path.child("podAffinityTerm"), problems);
            }
        };
    if let Some(pod) = &affinity.pod_affinity {
        let required = list(&pod.required_during_scheduling_ignored_during_execution);
        let preferred = list(&pod.preferred_during_scheduling_ignored_during_execution);
        check_pod_terms(required, preferred, &path.child("podAffinity"), problems);
    }
    if let Some(pod) = &affinity.pod_anti_affinity {
        let required = list(&pod.required_during_scheduling_ignored_during_execution);
        let preferred = list(&pod.preferred_during_scheduling_ignored_during_execution);
        check_pod_terms(required, preferred, &path.child("podAntiAffinity"), problems);
    }
}

fn check_weight(weight: i32, path: &FieldPath, problems: &mut Problems) {
    if !(1..=100).contains(&weight) {
        problems.invalid(&path.child("weight"), weight, "must be between 1 and 100");
    }
}

fn check_node_term(term: &NodeSelectorTerm, path: &FieldPath, problems: &mut Problems) {
    for (index, requirement) in list(&term.match_expressions).iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        problems.required_text(&path.child("key"), &requirement.key, qualified_name);
        check_operator(requirement, &path, problems);
    }
    for (index, requirement) in list(&term.match_fields).iter().enumerate() {
        let path = path.child("matchFields").index(index);
        problems.one_of(&path.child("key"), &requirement.key, &["metadata.name"]);
        problems.one_of(&path.child("operator"), &requirement.operator, &["In", "NotIn"]);
        if list(&requirement.values).len() != 1 {
            problems.required(&path.child("values"), "exactly one");
        }
    }
}

fn check_operator(requirement: &NodeSelectorRequirement, path: &FieldPath, problems: &mut Problems) {
    let values = list(&requirement.values);
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => problems.required(&path.child("values"), "at least one for In and NotIn"),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            problems.forbidden(&path.child("values"), "must be empty for Exists and DoesNotExist");
        }
        "Gt" | "Lt" if values.len() != 1 => problems.required(&path.child("values"), "exactly one for Gt and Lt"),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => problems.one_of(&path.child("operator"), other, &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    }
}

fn check_pod_term(term: &PodAffinityTerm, path: &FieldPath, problems: &mut Problems) {
    problems.required_text(&path.child("topologyKey"), &term.topology_key, qualified_name);
    check_label_selector(term.label_selector.as_ref(), &path.child("labelSelector"), problems);
    check_label_selector(term.namespace_selector.as_ref(), &path.child("namespaceSelector"), problems);
    for (index, namespace) in list(&term.namespaces).iter().enumerate() {
        problems.rule(&path.child("namespaces").index(index), namespace, dns_label(namespace));
    }
}

fn check_label_selector(selector: Option<&LabelSelector>, path: &FieldPath, problems: &mut Problems) {
    let Some(selector) = selector else { return };
    labels(selector.match_labels.as_ref(), &path.child("matchLabels"), problems);
    for (index, requirement) in list(&selector.match_expressions).iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        problems.required_text(&path.child("key"), &requirement.key, qualified_name);
        let values = list(&requirement.values);
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => problems.required(&path.child("values"), "at least one for In and NotIn"),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                problems.forbidden(&path.child("values"), "must be empty for Exists and DoesNotExist");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => problems.one_of(&path.child("operator"), other, &["In", "NotIn", "Exists", "DoesNotExist"]),
        }
        for (index, value) in values.iter().enumerate() {
            problems.rule(&path.child("values").index(index), value, label_value(value));
        }
    }
}

fn check_spread(constraints: &[TopologySpreadConstraint], path: &FieldPath, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        if constraint.max_skew <= 0 {
            problems.invalid(&path.child("maxSkew"), constraint.max_skew, "must be greater than 0");
        }
        problems.required_text(&path.child("topologyKey"), &constraint.topology_key, |key| -> Rule { qualified_name(key) });
        problems.one_of(&path.child("whenUnsatisfiable"), &constraint.when_unsatisfiable, &["DoNotSchedule", "ScheduleAnyway"]);
        if !seen.insert((&constraint.topology_key, &constraint.when_unsatisfiable)) {
            problems.duplicate(&path, format_args!("{} {}", constraint.topology_key, constraint.when_unsatisfiable));
        }
        if let Some(count) = constraint.min_domains {
            if count <= 0 {
                problems.invalid(&path.child("minDomains"), count, "must be greater than 0");
            }
            if constraint.when_unsatisfiable != "DoNotSchedule" {
                problems.forbidden(&path.child("minDomains"), "may be set only where whenUnsatisfiable is DoNotSchedule");
            }
        }
        for (name, policy) in
            [("nodeAffinityPolicy", &constraint.node_affinity_policy), ("nodeTaintsPolicy", &constraint.node_taints_policy)]
        {
            if !text(policy).is_empty() {
                problems.one_of(&path.child(name), text(policy), &["Honor", "Ignore"]);
            }
        }
        check_label_selector(constraint.label_selector.as_ref(), &path.child("labelSelector"), problems);
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_spec;

    #[track_caller]
    fn check(fields: &str, expected: &[&str]) {
        check_spec(&format!("containers: [{{name: a, image: x}}], {fields}"), expected);
    }

    const KEY: &str = "must be a name of 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, optionally behind a DNS subdomain and '/'";

    #[test]
    fn tolerations_are_consistent() {
        check(
            "tolerations: [{operator: Exists}, {key: a, value: b}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]",
            &[],
        );
        check(
            "tolerations: [{key: 'a b', operator: Exists}, {value: b}, {key: a, operator: Exists, value: b}]",
            &[
                &format!("spec.tolerations[0].key: invalid value \"a b\": {KEY}"),
                "spec.tolerations[1].operator: invalid value \"\": must be Exists where key is empty, which tolerates every key",
                "spec.tolerations[2].value: forbidden: must be empty where operator is Exists",
            ],
        );
        check(
            "tolerations: [{key: a, operator: Like}, {key: a, effect: Never}, {key: a, effect: NoSchedule, tolerationSeconds: 5}]",
            &[
                "spec.tolerations[0].operator: invalid value \"Like\": must be one of \"Equal\", \"Exists\"",
                "spec.tolerations[1].effect: invalid value \"Never\": must be one of \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                "spec.tolerations[2].tolerationSeconds: forbidden: may be set only where effect is NoExecute",
            ],
        );
    }

    #[test]
    fn node_affinity_has_terms_and_operators() {
        let required = |terms: &str| {
            format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{terms}]}}}}}}"
            )
        };
        let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
        check(
            &required(
                "{matchExpressions: [{key: a, operator: In, values: [b]}], matchFields: [{key: metadata.name, operator: In, values: [n]}]}",
            ),
            &[],
        );
        check(&required(""), &[&format!("{at}: is required: at least one")]);
        check(
            &required(
                "{matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Gt}, {operator: Is}]}",
            ),
            &[
                &format!("{at}[0].matchExpressions[0].values: is required: at least one for In and NotIn"),
                &format!("{at}[0].matchExpressions[1].values: forbidden: must be empty for Exists and DoesNotExist"),
                &format!("{at}[0].matchExpressions[2].values: is required: exactly one for Gt and Lt"),
                &format!("{at}[0].matchExpressions[3].key: is required"),
                &format!(
                    "{at}[0].matchExpressions[3].operator: invalid value \"Is\": must be one of \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\""
                ),
            ],
        );
        check(
            "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]}}",
            &[
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: invalid value 101: must be between 1 and 100",
            ],
        );
    }

    #[test]
    fn pod_affinity_names_a_topology() {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let at = format!("spec.affinity.{kind}.requiredDuringSchedulingIgnoredDuringExecution[0]");
            let required =
                |term: &str| format!("affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}");
            check(
                &required(
                    "{topologyKey: a, namespaces: [b], labelSelector: {matchLabels: {c: d}, matchExpressions: [{key: a, operator: Exists}]}}",
                ),
                &[],
            );
            check(
                &required("{namespaces: [B], labelSelector: {matchExpressions: [{key: a, operator: In}]}}"),
                &[
                    &format!("{at}.topologyKey: is required"),
                    &format!("{at}.labelSelector.matchExpressions[0].values: is required: at least one for In and NotIn"),
                    &format!(
                        "{at}.namespaces[0]: invalid value \"B\": must be 1 to 63 lower-case letters, digits or '-', starting and ending with a letter or digit"
                    ),
                ],
            );
        }
    }

    #[test]
    fn spread_constraints_are_complete_and_not_repeated() {
        let constraint =
            "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, nodeTaintsPolicy: Honor}";
        check(&format!("topologySpreadConstraints: [{constraint}]"), &[]);
        check(
            &format!("topologySpreadConstraints: [{constraint}, {constraint}]"),
            &["spec.topologySpreadConstraints[1]: duplicate value zone DoNotSchedule"],
        );
        check(
            "topologySpreadConstraints: [{whenUnsatisfiable: ScheduleAnyway, minDomains: 0, nodeAffinityPolicy: Maybe}]",
            &[
                "spec.topologySpreadConstraints[0].maxSkew: invalid value 0: must be greater than 0",
                "spec.topologySpreadConstraints[0].topologyKey: is required",
                "spec.topologySpreadConstraints[0].minDomains: invalid value 0: must be greater than 0",
                "spec.topologySpreadConstraints[0].minDomains: forbidden: may be set only where whenUnsatisfiable is DoNotSchedule",
                "spec.topologySpreadConstraints[0].nodeAffinityPolicy: invalid value \"Maybe\": must be one of \"Honor\", \"Ignore\"",
            ],
        );
    }

    #[test]
    fn selectors_and_gates_have_names() {
        check("nodeSelector: {kubernetes.io/arch: amd64}, readinessGates: [{conditionType: example.org/ready}]", &[]);
        check(
            "nodeSelector: {'a b': c}, readinessGates: [{conditionType: 'a b'}]",
            &[
                &format!("spec.nodeSelector[a b]: invalid value \"a b\": {KEY}"),
                &format!("spec.readinessGates[0].conditionType: invalid value \"a b\": {KEY}"),
            ],
        );
    }
}
