//! The requests, as the API has them.

use crate::cluster::{ApiRequest, Verb};
use podstead_pod::PodFullName;
use serde_json::{Value, json};

/// Pods in one page of a list: what bounds the memory for its answer.
const PAGE: &str = "25";

/// All pods.
pub(super) const PODS: &str = "/api/v1/pods";
/// All Nodes.
pub(super) const NODES: &str = "/api/v1/nodes";
/// Leases of Nodes.
pub(super) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

fn pod_path(name: &PodFullName) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", name.namespace, name.name)
}

/// The Node.
pub(super) fn get_node(node: &str) -> ApiRequest {
    ApiRequest::new(Verb::Get, format!("{NODES}/{node}"))
}

/// The pod.
pub(super) fn get_pod(name: &PodFullName) -> ApiRequest {
    ApiRequest::new(Verb::Get, pod_path(name))
}

/// A new pod.
pub(super) fn create_pod(name: &PodFullName, mut object: Value) -> ApiRequest {
    object["apiVersion"] = "v1".into();
    object["kind"] = "Pod".into();
    ApiRequest::new(Verb::Create, format!("/api/v1/namespaces/{}/pods", name.namespace)).with_body(object)
}

/// Its status; the patch names the UID.
pub(super) fn patch_pod_status(name: &PodFullName, patch: Value) -> ApiRequest {
    ApiRequest::new(Verb::Patch, format!("{}/status", pod_path(name))).with_body(patch)
}

/// Away with the pod of this UID and no other, at once.
pub(super) fn delete_pod(name: &PodFullName, uid: &str) -> ApiRequest {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid},
    });
    ApiRequest::new(Verb::Delete, pod_path(name)).with_body(options)
}

fn pods_of(node: &str) -> ApiRequest {
    // Nothing else may be listed with a node's rights.
    ApiRequest::new(Verb::Get, PODS).with_query("fieldSelector", format!("spec.nodeName={node}"))
}

/// A page of the pods of a node.
pub(super) fn list_pods(node: &str, after: Option<&str>) -> ApiRequest {
    let request = pods_of(node).with_query("limit", PAGE);
    match after {
        Some(token) => request.with_query("continue", token),
        None => request,
    }
}

/// Watches the pods of a node from `version` on, for `seconds`.
pub(super) fn watch_pods(node: &str, version: &str, seconds: u32) -> ApiRequest {
    pods_of(node)
        .with_query("watch", "true")
        .with_query("allowWatchBookmarks", "true")
        .with_query("resourceVersion", version)
        .with_query("timeoutSeconds", seconds.to_string())
}
