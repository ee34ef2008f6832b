//! Unexpected answers of a real API server: labels that a node may not set, lists that are stored with their directives, fields that it
//! drops, plugins that lag behind.

use crate::host::{Host, NODE, eventually};
use crate::server::Server;
use crate::unreliable::Unreliable;
use podstead::status::NodeStanding;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn cluster() -> (Server, Unreliable) {
    let server = Server::new(NODE);
    (server.clone(), Unreliable::new(server, 1))
}

#[tokio::test(start_paused = true)]
async fn forbidden_label_stops_no_other_label() {
    let (server, transport) = cluster();
    let mut host = Host::new(&transport, "a").with_labels(&[("node-role.kubernetes.io/edge", "yes"), ("site", "berlin")]);
    host.set_content("default/web");
    host.start();
    host.settle(&server, PATIENCE).await;
    eventually(PATIENCE, || match &host.status.borrow().node_error {
        Some(error) if error.contains("node-role.kubernetes.io/edge") && error.contains("403") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let labels = server.store().get("nodes", "", NODE).unwrap()["metadata"]["labels"].clone();
    assert_eq!((&labels["site"], &labels["node-role.kubernetes.io/edge"]), (&json!("berlin"), &Value::Null));
    assert_eq!(host.status.borrow().node, NodeStanding::Registered);
    let before = server.store().requests;
    tokio::time::sleep(Duration::from_secs(240)).await;
    // Two requests a turn for the Node and its Lease: the labels are not sent with each.
    assert!(server.store().requests - before <= 52, "{}", server.store().requests - before);
    // Somebody who may gives the Node the label.
    let mut node = server.store().get("nodes", "", NODE).unwrap();
    node["metadata"]["labels"]["node-role.kubernetes.io/edge"] = "yes".into();
    server.store().put("nodes", node);
    eventually(PATIENCE, || host.status.borrow().node_error.clone().map_or(Ok(()), Err)).await;
}

#[tokio::test(start_paused = true)]
async fn changed_host_labels_reach_the_node() {
    let (server, transport) = cluster();
    let mut host = Host::new(&transport, "a").with_labels(&[("site", "berlin")]);
    host.start();
    let labels = [("line", "7"), ("site", "overruled")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    eventually(PATIENCE, || server.store().get("nodes", "", NODE).map(drop).ok_or("no node".into())).await;
    host.labels.send_replace(labels);
    eventually(PATIENCE, || {
        let node = server.store().get("nodes", "", NODE).unwrap();
        let labels = &node["metadata"]["labels"];
        if labels["line"] == "7" && labels["site"] == "berlin" { Ok(()) } else { Err(labels.to_string()) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn absent_lists_are_stored_without_empty_items() {
    let (server, transport) = cluster();
    server.store().put("nodes", json!({"metadata": {"name": NODE}}));
    let mut host = Host::new(&transport, "a");
    host.set_content("default/web");
    host.start();
    host.settle(&server, PATIENCE).await;
    eventually(PATIENCE, || {
        let node = server.store().get("nodes", "", NODE).unwrap();
        match node["status"]["addresses"].as_array().map(Vec::as_slice) {
            Some([address]) if address["address"] == NODE => Ok(()),
            _ => Err(node.to_string()),
        }
    })
    .await;
    let mirror = server.store().get("pods", "default", "web").unwrap();
    assert_eq!(mirror["status"]["podIPs"].as_array().unwrap().len(), 1, "{mirror}");
    // Nor was it so for a moment.
    let versions = server.store().since(1000).unwrap();
    assert!(!versions.iter().any(|change| change.object["status"]["podIPs"][0] == json!({})), "{versions:?}");
}

#[tokio::test(start_paused = true)]
async fn unknown_field_is_not_sent_again() {
    let (server, transport) = cluster();
    server.store().unknown.insert("podIPs".into());
    let mut host = Host::new(&transport, "a");
    host.set_content("default/web");
    host.start();
    eventually(PATIENCE, || {
        let mirror = server.store().get("pods", "default", "web").ok_or("no mirror")?;
        if mirror["status"]["containerStatuses"].is_array() { Ok(()) } else { Err(mirror.to_string()) }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = server.store().requests;
    tokio::time::sleep(Duration::from_secs(240)).await;
    assert!(server.store().requests - before <= 52, "{}", server.store().requests - before);
    assert_eq!(host.status.borrow().mirrors, 1, "it is as good as it can be");
}

#[tokio::test(start_paused = true)]
async fn old_server_gets_mirror_without_probe() {
    let (server, transport) = cluster();
    server.store().is_old = true;
    let mut host = Host::new(&transport, "a");
    host.set_content("default/web");
    host.start();
    assert!(host.settle(&server, PATIENCE).await < Duration::from_secs(2));
    let mirror = server.store().get("pods", "default", "web").unwrap();
    let omitted = mirror["metadata"]["annotations"]["podstead.dev/omitted"].as_str().unwrap();
    assert!(omitted.ends_with(",spec.containers[c].livenessProbe"), "{omitted}");
    assert!(host.status.borrow().is_well(), "{:?}", host.status.borrow());
    // Another version of the manifest is tried whole.
    server.store().is_old = false;
    host.set_content("default/web");
    host.settle(&server, PATIENCE).await;
    let mirror = server.store().get("pods", "default", "web").unwrap();
    assert_eq!(mirror["spec"]["containers"][0]["livenessProbe"]["grpc"]["port"], 1);
}

#[tokio::test(start_paused = true)]
async fn mirror_unknown_to_plugin_is_deleted() {
    let (server, transport) = cluster();
    let mut host = Host::new(&transport, "a");
    host.set_content("default/web");
    host.start();
    host.settle(&server, PATIENCE).await;
    server.store().admission_lags = true;
    host.remove("default/web");
    host.settle(&server, PATIENCE).await;
    assert!(!server.store().admission_lags, "the first try was answered 404");
}
