//! Fields of the Node that other agents and administrators write.

use super::{NODE, node_host, pod, wait_for_mirror};
use crate::kube::RealCluster;
use crate::pressure;
use crate::support::{TestHost, eventually};
use serde_json::{Value, json};

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn node_reports_pressure_while_it_lasts() {
    let cluster = RealCluster::start();
    pressure::comes_and_goes(node_host(&cluster, ""), || cluster.get("node", "", NODE));
}

/// Condition, resource, label, annotation and taint, all of others.
fn of_others(node: &Value) -> Value {
    let of_kind = |list: &Value, key: &str, name: &str| {
        list.as_array().and_then(|list| list.iter().find(|item| item[key] == name)).cloned().unwrap_or_default()
    };
    json!([
        of_kind(&node["status"]["conditions"], "type", "KernelDeadlock"),
        node["status"]["capacity"]["example.com/dongle"],
        node["metadata"]["labels"]["example.com/rack"],
        node["metadata"]["annotations"]["example.com/note"],
        of_kind(&node["spec"]["taints"], "key", "example.com/maintenance"),
    ])
}

/// Fields that every patch of the status renews.
fn heartbeat(node: &Value) -> (String, bool) {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let of_kind = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
    let last = of_kind("Ready")["lastHeartbeatTime"].as_str().unwrap_or_default().to_owned();
    (last, of_kind("MemoryPressure")["status"] == "True")
}

/// Has another agent change the status of the Node.
fn change_status(cluster: &RealCluster, change: impl Fn(&mut Value)) {
    let mut node = cluster.get("node", "", NODE).unwrap();
    change(&mut node["status"]);
    // Whatever was written meanwhile: so other agents do not.
    node["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    cluster.replace_raw(&format!("/api/v1/nodes/{NODE}/status"), &node);
}

#[test]
#[ignore = "needs a real kube-apiserver: make cluster"]
fn foreign_writes_on_node_stay() {
    let cluster = RealCluster::start();
    let mut host = node_host(&cluster, ", pressure: {memoryAvailable: '0'}");
    host.write_manifest("web.yaml", &pod("web", ""));
    host.start_daemon();
    wait_for_mirror(&cluster, &host, "web", "there", |_| true);
    let condition = json!({
        "type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock", "message": "kernel has no deadlock",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    change_status(&cluster, |status| {
        status["conditions"].as_array_mut().unwrap().push(condition.clone());
        status["capacity"]["example.com/dongle"] = "2".into();
    });
    cluster.ok(&["label", "node", NODE, "example.com/rack=7"]);
    cluster.ok(&["annotate", "node", NODE, "example.com/note=cold"]);
    cluster.ok(&["taint", "node", NODE, "example.com/maintenance=now:PreferNoSchedule"]);
    let node = || cluster.get("node", "", NODE).unwrap();
    let written = of_others(&node());
    assert!(written.as_array().unwrap().iter().all(|part| !part.is_null()) && written[0] == condition, "{written}");

    // The whole status is sent when the last time is long ago.
    let set_back = || {
        change_status(&cluster, |status| {
            let conditions = status["conditions"].as_array_mut().unwrap();
            let ready = conditions.iter_mut().find(|condition| condition["type"] == "Ready").unwrap();
            ready["lastHeartbeatTime"] = "2026-01-01T00:00:00Z".into();
        });
    };
    let wait_for = |host: &TestHost, what: &str, is_it: &dyn Fn(&(String, bool)) -> bool| {
        eventually(what, || {
            let found = heartbeat(&node());
            if is_it(&found) { Ok(()) } else { Err(format!("{found:?}; {}", host.cli_ok(&["status"]))) }
        });
        assert_eq!(of_others(&node()), written, "{what}");
    };
    set_back();
    wait_for(&host, "the whole status to be sent", &|(last, _)| last != "2026-01-01T00:00:00Z");
    for (threshold, is_short) in [("100%", true), ("'0'", false)] {
        host.stop_daemon();
        pressure::set_thresholds(&host, &format!("memoryAvailable: {threshold}"));
        host.start_daemon();
        wait_for(&host, "a condition alone to be sent by the next daemon", &|(_, found)| *found == is_short);
        set_back();
        wait_for(&host, "the whole status to be sent by it", &|(last, _)| last != "2026-01-01T00:00:00Z");
    }
    wait_for_mirror(&cluster, &host, "web", "there", |_| true);
}
