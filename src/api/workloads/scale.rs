//! The subresource `scale`: the number of pods in one form for all kinds that have one.

use super::Workloads;
use crate::failure::ApiFailure;
use crate::respond::{self, Answer};
use crate::route::PodPath;
use crate::show::{age_since, labels_text, selector_text};
use crate::table::{self, Column, IncludeObject};
use jiff::Timestamp;
use podstead_workload::object::WorkloadKind;
use serde_json::{Map, Value, json};

const COLUMNS: &[Column] = &[
    Column::name(),
    Column::number("Desired", "Number of pods that are wanted"),
    Column::number("Available", "Number of pods that exist"),
    Column::text("Age", "Time since the object was first seen"),
];

/// `autoscaling/v1` Scale of a workload.
pub(crate) fn scale(workloads: &Workloads, path: &PodPath, form: Option<IncludeObject>, now: Timestamp) -> Answer {
    if !workloads.resource().is_scalable {
        return Err(ApiFailure::no_such_path(&format!("{}/scale", workloads.resource().plural)));
    }
    let found = workloads.find(path)?;
    let scale = of(workloads.kind, &found.object());
    let Some(include) = form else { return respond::json(&scale) };
    let created_at = scale["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    let cells = vec![
        scale["metadata"]["name"].clone(),
        scale["spec"]["replicas"].clone(),
        scale["status"]["replicas"].clone(),
        json!(age_since(created_at, now)),
    ];
    let row = table::row(cells, include, || scale["metadata"].clone(), || scale.clone());
    respond::json(&table::table(COLUMNS, vec![row], found.version))
}

fn of(kind: WorkloadKind, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata: Map<String, Value> = kept.into_iter().map(|field| (field.to_owned(), metadata[field].clone())).collect();
    let selector = &object["spec"]["selector"];
    let selector = match kind {
        WorkloadKind::ReplicationController => labels_text(selector),
        WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::Deployment
        | WorkloadKind::ReplicaSet
        | WorkloadKind::Job
        | WorkloadKind::CronJob => selector_text(selector),
    };
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": number(&object["spec"]["replicas"])},
        "status": {"replicas": number(&object["status"]["replicas"]), "selector": selector},
    })
}
