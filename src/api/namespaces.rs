//! Namespaces: those in use, and those that a source has an object of, for its labels. Nothing has to be created before it is used, so that any valid
//! name is one.

use super::Backend;
use super::key::SOURCE_ANNOTATION;
use super::objects::stable_uid;
use super::show::age_since;
use super::table::Column;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use podstead_pod::objects::{NetworkKind, NetworkObject, Object, ObjectKind, ObjectName, Objects};
use podstead_pod::{DEFAULT_NAMESPACE, SourceId};
use podstead_workload::object::WorkloadKind;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Columns of namespaces.
pub(super) const COLUMNS: &[Column] =
    &[Column::name(), Column::text("Status", "Always Active"), Column::text("Age", "Time since the daemon started")];

/// The label with its name that every namespace has.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The cells of a namespace.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let created_at = object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    vec![object["metadata"]["name"].clone(), json!("Active"), json!(age_since(created_at, now))]
}

/// Namespaces of everything that is published.
pub(super) fn shown(backend: &Backend, objects: &Objects) -> Vec<Value> {
    let mut found = in_use(backend, objects);
    found.insert(DEFAULT_NAMESPACE.to_owned());
    let bare = found.into_iter().map(|name| (name.clone(), namespace(backend, &name, None)));
    let mut found: BTreeMap<String, Value> = bare.collect();
    for (name, held) in objects.iter() {
        if let Some(object) = namespace_object(&held.object) {
            found.insert(name.name.to_string(), namespace(backend, &name.name, Some((&held.source, &object))));
        }
    }
    found.into_values().collect()
}

/// Namespaces that something is in.
pub(super) fn in_use(backend: &Backend, objects: &Objects) -> BTreeSet<String> {
    let pods = backend.published.pods().list().1.into_iter().map(|pod| pod.desired.full_name.namespace.clone());
    let of_kind = |kind| backend.published.workloads(kind).list().1.into_iter().map(|workload| workload.key.namespace.to_string());
    let beside = objects.iter().filter(|(name, _)| name.kind != ObjectKind::Network(NetworkKind::Namespace));
    pods.chain(WorkloadKind::ALL.into_iter().flat_map(of_kind)).chain(beside.map(|(name, _)| name.namespace.to_string())).collect()
}

fn namespace_object(object: &Object) -> Option<Box<Namespace>> {
    let Object::Network(object) = object else { return None };
    if object.kind() != NetworkKind::Namespace {
        return None;
    }
    match object.unpack() {
        NetworkObject::Namespace(namespace) => Some(namespace),
        NetworkObject::Service(_) | NetworkObject::EndpointSlice(_) | NetworkObject::NetworkPolicy(_) => None,
    }
}

/// One namespace; `object` is the one that a source has, if there is one.
pub(super) fn namespace(backend: &Backend, name: &str, object: Option<(&SourceId, &Namespace)>) -> Value {
    let labels = object.and_then(|(_, object)| object.metadata.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.insert(NAME_LABEL.to_owned(), name.to_owned());
    // Of no kind of the view: only source and name count.
    let identity = ObjectName { kind: ObjectKind::ConfigMap, namespace: "/namespaces".into(), name: name.into() };
    let no_source = SourceId::new("");
    let uid = stable_uid(object.map_or(&no_source, |(source, _)| source), &identity);
    // In seconds, as all times of Kubernetes' objects.
    let started_at = backend.started_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut shown = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "uid": uid, "creationTimestamp": started_at, "labels": labels},
        "spec": {},
        "status": {"phase": "Active"},
    });
    if let Some((source, object)) = object {
        let mut annotations = object.metadata.annotations.clone().unwrap_or_default();
        annotations.insert(SOURCE_ANNOTATION.to_owned(), source.to_string());
        shown["metadata"]["annotations"] = json!(annotations);
    }
    shown
}

/// Reports whether a name is one that a namespace can have.
pub(super) fn is_valid(name: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= 63 && is_inner(first) && is_inner(last) && bytes.iter().all(|byte| is_inner(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels() {
        let long = "a".repeat(64);
        let names = [
            ("default", true),
            ("a-1", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("A", false),
            ("a.b", false),
            (long.as_str(), false),
        ];
        for (name, valid) in names {
            assert_eq!(is_valid(name), valid, "{name}");
        }
    }
}
