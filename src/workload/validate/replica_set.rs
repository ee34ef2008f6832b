//! Rules for a ReplicaSet (W31, W33).

use super::{check_replicas, check_template};
use crate::problem::{Problem, Problems};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Lists all problems of a ReplicaSet's own fields.
pub fn replica_set(object: &ReplicaSet) -> Vec<Problem> {
    let mut found = Problems::default();
    let owners = object.metadata.owner_references.iter().flatten();
    if let Some(owner) = owners.into_iter().find(|owner| owner.kind == "Deployment") {
        let detail = format!("this ReplicaSet belongs to Deployment {}: it was exported from a cluster", owner.name);
        found.forbidden("metadata.ownerReferences", &detail);
        found.hint("write the Deployment instead");
    }
    match &object.spec {
        None => {
            found.required("spec", "");
        }
        Some(spec) => {
            check_replicas(spec.replicas, &mut found);
            let none = PodTemplateSpec::default();
            check_template(&spec.selector, spec.template.as_ref().unwrap_or(&none), "ReplicaSet", &mut found);
            found.not_negative("spec.minReadySeconds", spec.min_ready_seconds.map(i64::from));
        }
    }
    found.into_vec()
}
