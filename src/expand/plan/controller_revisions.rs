//! Revisions of StatefulSets and DaemonSets as `apps/v1` ControllerRevisions, which `kubectl rollout history` and `undo` read. **Pure**.

use super::show::Shown;
use crate::CONTROLLER_REVISION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_manifest::ObjectKey;
use podstead_pod::DEFAULT_NAMESPACE;
use podstead_workload::object::WorkloadKind;
use podstead_workload::revision::{Revision, Revisions};
use podstead_workload::template;
use serde_json::{Value, json};

/// All revisions of a workload of this kind with this UID.
pub(super) fn shown(kind: WorkloadKind, owner: &ObjectMeta, uid: &str, revisions: &Revisions) -> Vec<Shown> {
    revisions.iter().map(|revision| one(kind, owner, uid, revision)).collect()
}

fn one(kind: WorkloadKind, owner: &ObjectMeta, uid: &str, revision: &Revision) -> Shown {
    let owner_name = owner.name.as_deref().unwrap_or_default();
    let key = ObjectKey {
        kind: CONTROLLER_REVISION.into(),
        namespace: owner.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).into(),
        name: template::name(owner_name, revision.hash.as_str()).into(),
    };
    // Clients find revisions by the selector of their owner, which matches the labels of the template.
    let labels = revision.template.metadata.as_ref().and_then(|metadata| metadata.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.insert("controller.kubernetes.io/hash".to_owned(), revision.hash.to_string());
    let mut template = json!(revision.template);
    // The data is a patch: sent to the owner, it brings this template back.
    if let Value::Object(template) = &mut template {
        template.insert("$patch".to_owned(), json!("replace"));
    }
    let mut metadata = json!({
        "name": key.name, "namespace": key.namespace, "uid": revision.uid, "labels": labels, "annotations": revision.annotations,
        "ownerReferences": [{
            "apiVersion": kind.api_version(), "kind": kind.as_str(), "name": owner_name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    if let Some(created) = revision.created {
        metadata["creationTimestamp"] = json!(format!("{created:.0}"));
    }
    let object = json!({
        "apiVersion": "apps/v1", "kind": CONTROLLER_REVISION, "metadata": metadata,
        "data": {"spec": {"template": template}}, "revision": revision.number,
    });
    Shown { key, object, schedule: None }
}
