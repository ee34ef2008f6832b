//! `metrics.k8s.io`: what `kubectl top` asks for. Rates are of two looks when somebody asks; nothing runs in between. [`pods`] and [`node`] are **pure**.

use super::super::request::Query;
use super::super::respond::{self, Answer};
use super::super::route::PodPath;
use super::usage::{PodUsage, Snapshot};
use super::{Backend, look};
use crate::failure::ApiFailure;
use crate::key::PodKey;
use podstead_manifest::LabelSelector;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// Time between the two looks.
const WINDOW: Duration = Duration::from_millis(500);
/// Group and version.
const API_VERSION: &str = "metrics.k8s.io/v1beta1";

/// Usage of pods of one namespace or of all.
pub(crate) async fn list_pods(backend: &Backend, namespace: Option<&str>, query: &Query) -> Answer {
    let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default())
        .map_err(|error| ApiFailure::bad_request(error.to_string()))?;
    let (before, after) = look_twice(backend).await?;
    let mut items = pods(&before, &after);
    items.retain(|(key, _)| namespace.is_none_or(|namespace| namespace == key.namespace));
    let items: Vec<Value> = items
        .into_iter()
        .filter_map(|(key, mut item)| {
            let pod = backend.published.pods().get(&key)?;
            let pod_labels = pod.desired.pod.metadata.labels.as_ref();
            item["metadata"]["labels"] = json!(pod_labels);
            labels.matches(pod_labels).then_some(item)
        })
        .collect();
    respond::json(&json!({"kind": "PodMetricsList", "apiVersion": API_VERSION, "metadata": {}, "items": items}))
}

/// Usage of one pod.
pub(crate) async fn get_pod(backend: &Backend, path: &PodPath) -> Answer {
    let (before, after) = look_twice(backend).await?;
    let wanted = PodKey { namespace: (&path.namespace).into(), name: (&path.name).into() };
    let found = pods(&before, &after).into_iter().find(|(key, _)| *key == wanted);
    let (_, item) = found.ok_or_else(|| ApiFailure::not_found("pods.metrics.k8s.io", &path.name))?;
    respond::json(&item)
}

/// Usage of this host.
pub(crate) async fn list_nodes(backend: &Backend) -> Answer {
    let (before, after) = look_twice(backend).await?;
    respond::json(&json!({"kind": "NodeMetricsList", "apiVersion": API_VERSION, "metadata": {}, "items": [node(&before, &after)]}))
}

/// The same as one object.
pub(crate) async fn get_node(backend: &Backend, name: &str) -> Answer {
    if name != backend.node.as_str() {
        return Err(ApiFailure::not_found("nodes.metrics.k8s.io", name));
    }
    let (before, after) = look_twice(backend).await?;
    respond::json(&node(&before, &after))
}

async fn look_twice(backend: &Backend) -> Result<(Snapshot, Snapshot), ApiFailure> {
    let before = look(backend).await?;
    tokio::time::sleep(WINDOW).await;
    Ok((before, look(backend).await?))
}

/// Processor time between two looks as a quantity of cores. A counter that went back is of another run: nothing is known of it.
fn cores(before: u64, after: u64, nanos: u64) -> String {
    let used = u128::from(after.saturating_sub(before)) * 1_000_000_000 / u128::from(nanos.max(1));
    format!("{used}n")
}

fn nanos_between(before: &Snapshot, after: &Snapshot) -> u64 {
    u64::try_from(after.at.duration_since(before.at).as_nanos()).unwrap_or_default()
}

fn memory(bytes: u64) -> String {
    format!("{}Ki", bytes / 1024)
}

/// Usage of every pod that was there at both looks.
fn pods(before: &Snapshot, after: &Snapshot) -> Vec<(PodKey, Value)> {
    let nanos = nanos_between(before, after);
    let counted: HashMap<&str, u64> = before
        .pods
        .iter()
        .flat_map(|pod| &pod.containers)
        .map(|container| (container.id.as_str(), container.usage.cpu_nanos))
        .collect();
    let item = |pod: &PodUsage| {
        let containers = pod.containers.iter().filter_map(|container| {
            let before = *counted.get(container.id.as_str())?;
            let usage = json!({
                "cpu": cores(before, container.usage.cpu_nanos, nanos),
                "memory": memory(container.usage.working_set_bytes),
            });
            Some(json!({"name": container.name, "usage": usage}))
        });
        let containers: Vec<Value> = containers.collect();
        let key = PodKey { namespace: (&pod.namespace).into(), name: (&pod.name).into() };
        let metadata = json!({"name": pod.name, "namespace": pod.namespace, "creationTimestamp": after.at});
        let item = json!({
            "kind": "PodMetrics", "apiVersion": API_VERSION, "metadata": metadata, "timestamp": after.at, "window": "500ms",
            "containers": containers,
        });
        (!containers.is_empty()).then_some((key, item))
    };
    after.pods.iter().filter_map(item).collect()
}

fn node(before: &Snapshot, after: &Snapshot) -> Value {
    let usage = json!({
        "cpu": cores(before.host.cpu_nanos, after.host.cpu_nanos, nanos_between(before, after)),
        "memory": memory(after.host.working_set_bytes()),
    });
    let metadata = json!({"name": after.node, "creationTimestamp": after.at});
    json!({
        "kind": "NodeMetrics", "apiVersion": API_VERSION, "metadata": metadata, "timestamp": after.at, "window": "500ms", "usage": usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_time_by_time() {
        assert_eq!(cores(100, 250_000_100, 500_000_000), "500000000n");
        assert_eq!(cores(7, 7, 500_000_000), "0n");
        assert_eq!(cores(9, 7, 0), "0n", "another run, and a clock that stands");
        assert_eq!(memory(3 << 20), "3072Ki");
    }
}
