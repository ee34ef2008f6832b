//! Verdicts of NodeRestriction, of the admission of service accounts and of that of priorities on a pod that a node creates.

use super::{Refusal, Store, refusal};
use serde_json::Value;

/// Checks that the node may create it.
pub(crate) fn create_pod(store: &Store, namespace: &str, pod: &Value) -> Result<(), Refusal> {
    let node = &store.node;
    let no = |message: String| Err(refusal(403, "Forbidden", "pods", &message));
    if pod["metadata"]["namespace"] != namespace {
        return Err(refusal(400, "BadRequest", "pods", "the namespace of the provided object does not match the request"));
    }
    if pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].as_str().is_none_or(str::is_empty) {
        return no(format!("node {node:?} can only create mirror pods"));
    }
    if pod["spec"]["nodeName"] != node.as_str() {
        return no(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
    }
    let owners = pod["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let [owner] = owners.as_slice() else {
        return no(format!("node {node:?} can only create pods with a single owner reference set to itself"));
    };
    if owner["apiVersion"] != "v1" || owner["kind"] != "Node" || owner["name"] != node.as_str() || owner["controller"] != true {
        return no(format!("node {node:?} can only create pods with an owner reference set to itself"));
    }
    if owner["blockOwnerDeletion"] == true {
        return no(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
    }
    let uid = store.get("nodes", "", node).map(|node| node["metadata"]["uid"].clone());
    if uid.as_ref() != Some(&owner["uid"]) {
        return no(format!("mirror pod owner reference: node {node:?} UID mismatch"));
    }
    if let Some(reference) = forbidden_reference(&pod["spec"]) {
        return no(format!("a mirror pod may not reference {reference}"));
    }
    if !pod["spec"]["priority"].is_null() {
        return no("the integer value of priority must not be provided in pod spec".into());
    }
    if let Some(class) = pod["spec"]["priorityClassName"].as_str().filter(|class| !class.starts_with("system-")) {
        return no(format!("no PriorityClass with name {class} was found"));
    }
    let names: Vec<_> = pod["spec"]["volumes"].as_array().into_iter().flatten().map(|volume| volume["name"].clone()).collect();
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        if let Some(mount) = mounts.map(|mount| &mount["name"]).find(|name| !names.contains(name)) {
            return Err(refusal(422, "Invalid", "pods", &format!("spec.containers.volumeMounts.name: Not found: {mount}")));
        }
    }
    Ok(())
}

fn forbidden_reference(spec: &Value) -> Option<&'static str> {
    let text = spec.to_string();
    let fields = [
        ("\"serviceAccountName\":", "service accounts"),
        ("\"imagePullSecrets\":", "secrets"),
        ("\"secretKeyRef\":", "secrets"),
        ("\"secretRef\":", "secrets"),
        ("\"secret\":", "secrets"),
        ("\"configMapKeyRef\":", "configmaps"),
        ("\"configMapRef\":", "configmaps"),
        ("\"configMap\":", "configmaps"),
        ("\"serviceAccountToken\":", "service account tokens"),
        ("\"persistentVolumeClaim\":", "persistentvolumeclaims"),
        ("\"resourceClaims\":", "resourceclaims"),
    ];
    fields.into_iter().find(|(field, _)| text.contains(field)).map(|(_, what)| what)
}

/// Checks that the node may give the Node `after` the labels that `before` has otherwise or not at all.
pub(crate) fn label_node(before: &Value, after: &Value) -> Result<(), Refusal> {
    let labels = |node: &Value| node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let (before, after) = (labels(before), labels(after));
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value)).map(|(key, _)| key);
    let forbidden: Vec<_> =
        changed.chain(before.keys().filter(|key| !after.contains_key(*key))).filter(|key| !is_kubelets(key)).collect();
    if forbidden.is_empty() {
        return Ok(());
    }
    Err(refusal(403, "Forbidden", "nodes", &format!("is not allowed to modify labels: {forbidden:?}")))
}

fn is_kubelets(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_of = |suffix: &str| domain == suffix || domain.ends_with(&format!(".{suffix}"));
    if is_of("node-restriction.kubernetes.io") {
        return false;
    }
    let known = ["kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os"];
    !(is_of("kubernetes.io") || is_of("k8s.io"))
        || known.contains(&key)
        || domain.starts_with("topology.")
        || is_of("node.kubernetes.io")
        || is_of("kubelet.kubernetes.io")
}
