//! From a manifest's Pod to the Pod that this host runs: support, defaults, validation and static-pod naming (kubelet rules A17 to
//! A21).

use super::containers::text;
use super::field::{FieldProblem, Problems};
use super::identity::{ANNOTATION_KEEPS_NAME, STAMPED_ANNOTATIONS};
use super::{AdmitContext, NodeName, Pod, defaults, support, validate};
use k8s_openapi::api::core::v1::{PodStatus, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// The verdict on one Pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The Pod to run: defaulted, named `<name>-<node>`, bound to the node. `None` when a problem is an error.
    pub pod: Option<Pod>,
    /// All problems, errors and warnings, none hidden by another.
    pub problems: Vec<FieldProblem>,
}

/// Judges a Pod as decoded from a manifest. A UID that it has it keeps (kubelet rule A18). `kubernetes.io/config.*` annotations are left
/// for the mux to stamp; what the manifest says in them is dropped, as is all in metadata and status that only a server writes.
pub fn admit(pod: Pod, context: &AdmitContext) -> Admitted {
    let full_name = static_pod_name(text(&pod.metadata.name), &context.node);
    admit_as(pod, full_name, context)
}

/// Judges a Pod as [`admit`] does, but for its name, which stays: the name of the host is not added.
pub fn admit_named(pod: Pod, context: &AdmitContext) -> Admitted {
    let full_name = text(&pod.metadata.name).to_owned();
    let mut admitted = admit_as(pod, full_name, context);
    if let Some(pod) = &mut admitted.pod {
        pod.metadata.annotations.get_or_insert_default().insert(ANNOTATION_KEEPS_NAME.to_owned(), "true".to_owned());
    }
    admitted
}

/// Judges a Pod that a workload asks for. It keeps its owner references and has the name that it is given: the name of the host is not added,
/// since names of such pods end in numbers that programs read (rule W8 in `docs/contributing/workload-rules.md`).
pub fn admit_owned(pod: Pod, context: &AdmitContext) -> Admitted {
    let owners = pod.metadata.owner_references.clone();
    let full_name = text(&pod.metadata.name).to_owned();
    let mut admitted = admit_as(pod, full_name, context);
    if let Some(pod) = &mut admitted.pod {
        pod.metadata.owner_references = owners;
    }
    admitted
}

fn admit_as(pod: Pod, full_name: String, context: &AdmitContext) -> Admitted {
    let mut problems = Problems::default();
    support::judge(&pod, context, &mut problems);
    let mut pod = pod;
    defaults::apply(&mut pod);
    own_metadata(&mut pod.metadata);
    validate::pod(&pod, &full_name, context, &mut problems);
    bind(&mut pod, full_name, &context.node);
    let accepted = !problems.refuse();
    Admitted { pod: accepted.then_some(pod), problems: problems.into_vec() }
}

/// The name that a static pod gets on a node (kubelet rule A19).
pub fn static_pod_name(name: &str, node: &NodeName) -> String {
    format!("{name}-{}", node.as_str().to_lowercase())
}

/// Lists all problems of the template of a workload's pods, with fields as in a Pod. `name` is the longest name that one of the pods gets,
/// and `namespace` theirs: the template's own have no meaning.
pub fn judge_template(template: &PodTemplateSpec, name: &str, namespace: &str, context: &AdmitContext) -> Vec<FieldProblem> {
    let mut problems = Problems::default();
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut pod = Pod { metadata, spec: template.spec.clone(), status: None };
    support::judge_template(&pod, context, &mut problems);
    defaults::apply(&mut pod);
    own_metadata(&mut pod.metadata);
    pod.metadata = ObjectMeta { name: Some(name.to_owned()), namespace: Some(namespace.to_owned()), uid: None, ..pod.metadata };
    validate::pod(&pod, name, context, &mut problems);
    problems.into_vec()
}

/// Lists all problems of a workload apart from those of its template and those that only its kind has: fields without an effect, and names,
/// labels and annotations. `object` is the whole workload as JSON.
pub fn judge_workload(kind: &'static str, object: &Value, metadata: &ObjectMeta) -> Vec<FieldProblem> {
    let mut problems = Problems::default();
    support::judge_workload(kind, object, &mut problems);
    validate::metadata::of_object(metadata, &validate::metadata_path(), &mut problems);
    validate::metadata::of_hooks(metadata, &validate::metadata_path(), &mut problems);
    problems.into_vec()
}

/// Lists all problems of the labels and annotations of an object that has no name of its own.
pub fn judge_labels(metadata: &ObjectMeta) -> Vec<FieldProblem> {
    let mut problems = Problems::default();
    validate::metadata::of_labels(metadata, &validate::metadata_path(), &mut problems);
    problems.into_vec()
}

/// Removes the annotations that podstead itself sets on pods (kubelet rule A19).
pub fn remove_stamped_annotations(metadata: &mut ObjectMeta) {
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| !STAMPED_ANNOTATIONS.contains(&key.as_str()));
    }
}

/// Keeps what an author may say about the object.
fn own_metadata(metadata: &mut ObjectMeta) {
    remove_stamped_annotations(metadata);
    let ObjectMeta { name, namespace, labels, annotations, uid, .. } = std::mem::take(metadata);
    let namespace = Some(namespace.filter(|namespace| !namespace.is_empty()).unwrap_or_else(|| "default".to_owned()));
    let uid = uid.filter(|uid| !uid.is_empty());
    *metadata = ObjectMeta { name, namespace, labels, annotations, uid, ..ObjectMeta::default() };
}

/// Makes it a static pod of this node.
fn bind(pod: &mut Pod, full_name: String, node: &NodeName) {
    pod.metadata.name = Some(full_name);
    pod.status = Some(PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() });
    if let Some(spec) = &mut pod.spec {
        spec.node_name = Some(node.to_string());
        tolerate_everything(spec.tolerations.get_or_insert_default());
    }
}

/// A static pod is not evicted by taints.
fn tolerate_everything(tolerations: &mut Vec<Toleration>) {
    let everything =
        Toleration { operator: Some("Exists".to_owned()), effect: Some("NoExecute".to_owned()), ..Toleration::default() };
    if !tolerations.contains(&everything) {
        tolerations.push(everything);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(yaml: &str) -> Admitted {
        admit(serde_yaml::from_str(yaml).unwrap(), &AdmitContext::new(NodeName::new("Edge-1")))
    }

    #[test]
    fn no_problem_hides_another() {
        let verdict = admitted(
            "{metadata: {name: Web, generation: 1}, spec: {hostUsers: false, restartPolicy: Sometimes, nodeSelector: {a: b},
              containers: [{name: a, image: x, livenessProbe: {}, resources: {claims: [{name: c}]}, ports: [{containerPort: 0}]}, {name: a}]}}",
        );
        assert_eq!(verdict.pod, None);
        let fields: Vec<_> = verdict.problems.iter().map(|problem| format!("{} {}", problem.code, problem.field)).collect();
        assert_eq!(
            fields,
            [
                "ignored-field metadata.generation",
                "unsupported-field spec.containers[0].resources.claims",
                "ignored-field spec.nodeSelector",
                "invalid-value metadata.name",
                "required spec.containers[0].ports[0].containerPort",
                "invalid-value spec.containers[0].resources.claims[0].name",
                "required spec.containers[0].livenessProbe",
                "duplicate spec.containers[1].name",
                "required spec.containers[1].image",
                "not-one-of spec.restartPolicy",
            ]
        );
    }

    #[test]
    fn warnings_do_not_refuse() {
        let verdict = admitted("{metadata: {name: web}, spec: {nodeSelector: {a: b}, containers: [{name: a, image: x}]}}");
        assert!(verdict.pod.is_some());
        assert_eq!(verdict.problems.len(), 1);
    }

    #[test]
    fn an_admitted_pod_is_named_bound_and_tolerant() {
        let verdict = admitted(
            "{metadata: {name: web, uid: u-1, resourceVersion: '5', labels: {app: web}, annotations: {a: b, kubernetes.io/config.mirror: x}},
              spec: {containers: [{name: a, image: x}]}}",
        );
        let pod = verdict.pod.unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("web-edge-1"));
        assert_eq!(pod.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(pod.metadata.annotations.unwrap().into_keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!((pod.metadata.uid.as_deref(), pod.metadata.resource_version), (Some("u-1"), None));
        let spec = pod.spec.unwrap();
        assert_eq!(spec.node_name.as_deref(), Some("Edge-1"));
        assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
        assert_eq!(spec.tolerations.unwrap().len(), 1);
        assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Pending"));
    }
}
