//! Fields of a pod template whose support differs from that of a Pod.

use super::Support::{self, Honoured, Partly};
use super::table::{WRITTEN_BY_A_SERVER, ignored};
use super::{Case, Problems};
use crate::field::FieldPath;
use serde_json::Value;

/// The word for conditions that have to be met, and the one for those that should be.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Path in the Pod, and support. A field that is not here is supported as in a Pod.
pub(super) const FIELDS: &[(&str, Support)] = &[
    ("metadata.finalizers", ignored("a pod is removed when its workload does not want it any more")),
    ("metadata.generateName", ignored("pods are named after their workload")),
    ("metadata.name", ignored("pods are named after their workload")),
    ("metadata.namespace", ignored("pods are in the namespace of their workload")),
    ("metadata.ownerReferences", ignored("pods belong to their workload")),
    ("metadata.uid", WRITTEN_BY_A_SERVER),
    ("spec.affinity", Partly { note: "required node affinity: no pod is made on a host that does not match", judge: affinity }),
    ("spec.nodeName", Partly { note: "no pod is made on a host with another name", judge: node_name }),
    ("spec.nodeSelector", Honoured("no pod is made on a host without these labels")),
    ("spec.topologySpreadConstraints", ignored("all pods of the workload run on this host")),
];

/// The support of a field of a template, if it differs from that of a Pod.
pub(super) fn support(pattern: &str) -> Option<&'static Support> {
    FIELDS.iter().find(|(field, _)| *field == pattern).map(|(_, support)| support)
}

/// `affinity`: only the required node affinity has a meaning on one host.
fn affinity(case: &Case<'_>, problems: &mut Problems) {
    for (kind, value) in case.value.as_object().into_iter().flatten() {
        let path = case.path.child(kind);
        match kind.as_str() {
            "nodeAffinity" => preferences(value, &path, problems),
            _ => problems.ignored(&path, "all pods of the workload run on this host"),
        }
    }
}

fn preferences(affinity: &Value, path: &FieldPath, problems: &mut Problems) {
    for (word, value) in affinity.as_object().into_iter().flatten() {
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        if word != REQUIRED && !is_empty {
            problems.ignored(&path.child(word), "there is only this host to prefer");
        }
    }
}

/// `nodeName`.
fn node_name(case: &Case<'_>, problems: &mut Problems) {
    let node = case.context.node.as_str();
    if case.value != node {
        problems.suspicious(case.path, format_args!("no pod is made on this host, {node:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge_template;
    use super::super::table::TABLE;
    use super::*;
    use crate::{AdmitContext, NodeName, Pod};

    fn told(spec: &str) -> Vec<String> {
        let pod: Pod = serde_yaml::from_str(&format!("{{metadata: {{}}, spec: {{containers: [], {spec}}}}}")).unwrap();
        let mut problems = Problems::default();
        judge_template(&pod, &AdmitContext::new(NodeName::new("edge")), &mut problems);
        problems.into_vec().into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
    }

    #[test]
    fn every_row_names_a_field_of_pods() {
        assert!(FIELDS.iter().all(|(field, _)| TABLE.contains_key(*field)));
    }

    #[test]
    fn scheduling_of_templates_chooses_hosts() {
        assert_eq!(told("nodeSelector: {a: b}, nodeName: edge"), [""; 0]);
        assert_eq!(told("nodeName: other"), ["spec.nodeName: no pod is made on this host, \"edge\""]);
        let required = format!("affinity: {{nodeAffinity: {{{REQUIRED}: {{nodeSelectorTerms: []}}}}}}");
        assert_eq!(told(&required), [""; 0]);
        let spread = "all pods of the workload run on this host";
        assert_eq!(
            told(&format!(
                "affinity: {{podAntiAffinity: {{{REQUIRED}: []}}}}, topologySpreadConstraints: [{{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}}]"
            )),
            [
                format!("spec.affinity.podAntiAffinity: has no effect: {spread}"),
                format!("spec.topologySpreadConstraints: has no effect: {spread}")
            ]
        );
    }
}
