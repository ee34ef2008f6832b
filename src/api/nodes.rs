//! The Node that stands for this host.

use super::Backend;
use super::show::age_since;
use super::table::Column;
use jiff::{SignedDuration, Timestamp};
use podstead_pod::SourceId;
use podstead_pod::objects::{ObjectKind, ObjectName};
use serde_json::{Value, json};

/// An unchanged status gets new heartbeats after this, as a kubelet's.
const HEARTBEAT: SignedDuration = SignedDuration::from_mins(5);

/// Columns of nodes.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Status", "Ready, or NotReady"),
    Column::text("Roles", "Roles of the node; none here"),
    Column::text("Age", "Time since the daemon started"),
    Column::text("Version", "Version of the Kubernetes API, with that of podstead"),
    Column::text("Internal-IP", "First address of the host").wide(),
    Column::text("External-IP", "Always empty").wide(),
    Column::text("OS-Image", "Distribution").wide(),
    Column::text("Kernel-Version", "Release of the kernel").wide(),
    Column::text("Container-Runtime", "podstead and its version").wide(),
];

/// The node as it is shown; `before` is the last one, or null.
pub(super) fn shown(backend: &Backend, before: &Value) -> Value {
    let mut node = (backend.node_view.0)(before);
    // In seconds, as all times of Kubernetes' objects.
    let started_at = backend.started_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if before.is_null() {
        since_start(&mut node, &started_at);
    }
    let identity = ObjectName { kind: ObjectKind::ConfigMap, namespace: "/nodes".into(), name: backend.node.to_string().into() };
    node["metadata"]["uid"] = json!(super::objects::stable_uid(&SourceId::new(""), &identity));
    node["metadata"]["creationTimestamp"] = json!(started_at);
    let heartbeat =
        |node: &Value| node["status"]["conditions"][0]["lastHeartbeatTime"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let is_fresh =
        heartbeat(before).zip(heartbeat(&node)).is_some_and(|(before, now)| now.duration_since(before).abs() < HEARTBEAT);
    if is_fresh && without_heartbeats(before) == without_heartbeats(&node) { before.clone() } else { node }
}

/// Lets conditions that are as they should be count from the start of the daemon: nobody has looked before.
fn since_start(node: &mut Value, started_at: &str) {
    for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let wanted = if condition["type"] == "Ready" { "True" } else { "False" };
        if condition["status"] == wanted {
            condition["lastTransitionTime"] = json!(started_at);
        }
    }
}

/// The node as it is compared for changes.
fn without_heartbeats(node: &Value) -> Value {
    let mut node = node.clone();
    if let Some(metadata) = node["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastHeartbeatTime"] = Value::Null;
    }
    node
}

/// The cells of a node.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let ready = status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let is_ready = ready.is_some_and(|ready| ready["status"] == "True");
    let created_at = object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    let addresses = status["addresses"].as_array().into_iter().flatten();
    let address = addresses.filter(|address| address["type"] == "InternalIP").find_map(|address| address["address"].as_str());
    let info = |field: &str| json!(status["nodeInfo"][field].as_str().unwrap_or("<unknown>"));
    vec![
        object["metadata"]["name"].clone(),
        json!(if is_ready { "Ready" } else { "NotReady" }),
        json!("<none>"),
        json!(age_since(created_at, now)),
        info("kubeletVersion"),
        json!(address.unwrap_or("<none>")),
        json!("<none>"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}
