//! Namespaces: those in use. Nothing has to be created before it is used, so that any valid name is one.

use super::Backend;
use super::objects::stable_uid;
use super::show::age_since;
use super::table::Column;
use jiff::Timestamp;
use podstead_pod::objects::{NetworkObject, Object, ObjectKind, ObjectName, Objects};
use podstead_pod::{DEFAULT_NAMESPACE, SourceId};
use podstead_workload::object::WorkloadKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::from([(DEFAULT_NAMESPACE.to_owned(), BTreeMap::new())]);
    for pod in backend.published.pods().list().1 {
        found.entry(pod.desired.full_name.namespace.clone()).or_default();
    }
    for kind in WorkloadKind::ALL {
        for workload in backend.published.workloads(kind).list().1 {
            found.entry(workload.key.namespace.clone()).or_default();
        }
    }
    for (name, held) in objects.iter() {
        if let Object::Network(object) = &held.object
            && let NetworkObject::Namespace(namespace) = &**object
        {
            let labels = namespace.metadata.labels.clone().unwrap_or_default();
            found.insert(name.name.clone(), labels);
        } else {
            found.entry(name.namespace.clone()).or_default();
        }
    }
    found.into_iter().map(|(name, labels)| namespace(backend, &name, labels)).collect()
}

/// One namespace; `labels` are those of its object, if a source has one.
pub(super) fn namespace(backend: &Backend, name: &str, mut labels: BTreeMap<String, String>) -> Value {
    labels.insert(NAME_LABEL.to_owned(), name.to_owned());
    // Of no kind of the view: only the name counts.
    let identity = ObjectName { kind: ObjectKind::ConfigMap, namespace: "/namespaces".to_owned(), name: name.to_owned() };
    let uid = stable_uid(&SourceId::new(""), &identity);
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "uid": uid, "creationTimestamp": backend.started_at, "labels": labels},
        "spec": {},
        "status": {"phase": "Active"},
    })
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
