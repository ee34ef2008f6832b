//! The rules, one by one, over a connection that works.

use crate::host::{Host, NODE, eventually};
use crate::server::{Backup, Server};
use crate::unreliable::{Unreliable, Weather};
use podstead::pod::{PodFullName, PodUid};
use podstead::status::NodeStanding;
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use serde_json::{Value, json};
use std::time::Duration;

/// Time for what takes no pause: turns of the executor, and what a step of the clock adds.
const AT_ONCE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

fn cluster() -> (Server, Unreliable) {
    let server = Server::new(NODE);
    (server.clone(), Unreliable::new(server, 1))
}

async fn host_with(transport: &Unreliable, server: &Server, pods: &[&str]) -> Host {
    let mut host = Host::new(transport, "a");
    pods.iter().for_each(|pod| host.set_content(pod));
    host.start();
    host.settle(server, PATIENCE).await;
    host
}

fn uid(server: &Server, name: &str) -> Option<String> {
    let pod = server.store().get("pods", "default", name)?;
    pod["metadata"]["uid"].as_str().map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn e1_e2_node_and_mirrors_are_registered() {
    let (server, transport) = cluster();
    let mut host = host_with(&transport, &server, &["default/web", "default/db"]).await;
    let node = server.store().get("nodes", "", NODE).unwrap();
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], NODE);
    let lease = server.store().get("leases", "kube-node-lease", NODE).unwrap();
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseDurationSeconds"]), (&json!(NODE), &json!(40)));
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], node["metadata"]["uid"]);
    let mirror = server.store().get("pods", "default", "web").unwrap();
    assert_eq!(mirror["metadata"]["ownerReferences"][0]["uid"], node["metadata"]["uid"]);
    assert_eq!(mirror["metadata"]["annotations"]["podstead.dev/omitted"], "spec.volumes[s],spec.containers[c].envFrom");
    host.set_status("default/web", "Running");
    assert!(host.settle(&server, PATIENCE).await < Duration::from_secs(2));
    let status = host.status.borrow().clone();
    assert_eq!((status.connected, status.node, status.pods, status.mirrors), (true, NodeStanding::Registered, 2, 2));
    assert!(status.is_well(), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn e1_mirror_follows_edit_and_removal() {
    let (server, transport) = cluster();
    let mut host = host_with(&transport, &server, &["default/web"]).await;
    let before = uid(&server, "web");
    host.set_content("default/web");
    assert!(host.settle(&server, PATIENCE).await <= AT_ONCE);
    assert_ne!(uid(&server, "web"), before);
    host.remove("default/web");
    assert!(host.settle(&server, PATIENCE).await < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn e4_deleted_mirror_is_back_at_once() {
    let (server, transport) = cluster();
    let host = host_with(&transport, &server, &["default/web"]).await;
    let first = uid(&server, "web");
    server.store().remove("pods", "default", "web");
    assert!(host.settle(&server, PATIENCE).await <= AT_ONCE);
    let second = uid(&server, "web");
    assert_ne!(second, first);
    server.store().begin_deletion("default", "web");
    eventually(PATIENCE, || if uid(&server, "web") == second { Err("still there".into()) } else { Ok(()) }).await;
    assert!(host.settle(&server, PATIENCE).await <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn repeated_mirror_deletions_are_answered_slower() {
    let (server, transport) = cluster();
    let _host = host_with(&transport, &server, &["default/web"]).await;
    let begin = tokio::time::Instant::now();
    let mut deleted = 0;
    while begin.elapsed() < Duration::from_secs(600) {
        if server.store().remove("pods", "default", "web").is_some() {
            deleted += 1;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!((8..25).contains(&deleted), "{deleted}");
}

#[tokio::test(start_paused = true)]
async fn e6_orphans_are_settled_at_servers_return() {
    let (server, transport) = cluster();
    let mut host = host_with(&transport, &server, &["default/web", "default/old"]).await;
    transport.set(Weather::Down);
    host.set_content("default/new");
    host.remove("default/old");
    server.store().remove("pods", "default", "web");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let requests = server.store().requests;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.store().requests, requests, "nothing got through");
    assert!(!host.status.borrow().connected);
    transport.set(Weather::Fair);
    let took = host.settle(&server, PATIENCE).await;
    assert!(took < Duration::from_secs(12), "{took:?}");
}

/// A host with pods, one of which is changed, deleted and made again after a backup.
async fn host_with_backup(transport: &Unreliable, server: &Server) -> (Host, Backup) {
    let mut host = host_with(transport, server, &["default/web", "default/db"]).await;
    let backup = server.store().back_up();
    host.set_content("default/web");
    host.set_content("default/new");
    host.settle(server, PATIENCE).await;
    // The Lease is renewed a few times.
    tokio::time::sleep(Duration::from_secs(60)).await;
    (host, backup)
}

#[tokio::test(start_paused = true)]
async fn restored_cluster_has_its_mirrors_soon() {
    let (server, transport) = cluster();
    let (host, backup) = host_with_backup(&transport, &server).await;
    transport.set(Weather::Down);
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.store().restore(backup);
    transport.set(Weather::Fair);
    let took = host.settle(&server, PATIENCE).await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    // A mirror that is deleted before the versions are as high as they were.
    server.store().remove("pods", "default", "web");
    host.settle(&server, PATIENCE).await;
    assert_eq!(host.status.borrow().node, NodeStanding::Registered);
}

#[tokio::test(start_paused = true)]
async fn restore_behind_an_open_watch_is_found() {
    let (server, transport) = cluster();
    let (host, backup) = host_with_backup(&transport, &server).await;
    server.store().restore(backup);
    let took = host.settle(&server, Duration::from_secs(300)).await;
    assert!(took < Duration::from_secs(200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn own_lease_of_a_backup_is_renewed() {
    let (server, transport) = cluster();
    let (host, backup) = host_with_backup(&transport, &server).await;
    let renewed = |server: &Server| server.store().get("leases", "kube-node-lease", NODE).unwrap()["spec"]["renewTime"].clone();
    server.store().restore(backup);
    let before = renewed(&server);
    eventually(Duration::from_secs(40), || if renewed(&server) == before { Err("not renewed".into()) } else { Ok(()) }).await;
    assert_eq!(host.status.borrow().node, NodeStanding::Registered);
}

#[tokio::test(start_paused = true)]
async fn absent_pod_is_no_refusal() {
    for hides_absent in [false, true] {
        let (server, transport) = cluster();
        server.store().hides_absent = hides_absent;
        let mut host = host_with(&transport, &server, &["default/web"]).await;
        // It goes between the decision and the request.
        transport.set(Weather::Down);
        server.store().remove("pods", "default", "web");
        host.set_content("default/web");
        transport.set(Weather::Fair);
        host.settle(&server, PATIENCE).await;
        server.store().admission_lags = true;
        host.set_content("default/web");
        host.settle(&server, PATIENCE).await;
        assert_eq!(host.status.borrow().problems, Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn orphan_stays_until_all_sources_were_heard() {
    let (server, transport) = cluster();
    let mut host = Host::new(&transport, "a");
    host.ready.send_replace(false);
    host.start();
    eventually(PATIENCE, || server.store().get("nodes", "", NODE).map(|_| ()).ok_or("no node".to_owned())).await;
    let orphan = json!({
        "metadata": {"name": "orphan", "namespace": "default", "annotations": {"kubernetes.io/config.mirror": "h"}},
        "spec": {"nodeName": NODE},
    });
    server.store().put("pods", orphan);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(uid(&server, "orphan").is_some());
    host.ready.send_replace(true);
    host.settle(&server, PATIENCE).await;
    assert_eq!(uid(&server, "orphan"), None);
}

#[tokio::test(start_paused = true)]
async fn pod_of_absent_namespace_follows_later() {
    let (server, transport) = cluster();
    let mut host = host_with(&transport, &server, &["default/web"]).await;
    host.set_content("shop/cart");
    eventually(PATIENCE, || match host.status.borrow().problems.as_slice() {
        [problem] if problem.contains("shop/cart") && problem.contains("404") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    host.set_status("default/web", "Running");
    let requests = server.store().requests;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(server.store().requests - requests < 250, "{}", server.store().requests - requests);
    server.store().namespaces.insert("shop".into());
    host.settle(&server, Duration::from_secs(70)).await;
    assert!(host.status.borrow().problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn given_node_is_joined_without_create_right() {
    let (server, transport) = cluster();
    server.store().forbidden.insert("nodes".into());
    let mut host = Host::new(&transport, "a");
    host.set_content("default/web");
    host.start();
    eventually(PATIENCE, || match &host.status.borrow().node_error {
        Some(error) if error.contains("403") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let taints = json!([{"key": "a", "effect": "NoSchedule"}]);
    server.store().put("nodes", json!({"metadata": {"name": NODE, "labels": {"made": "by-hand"}}, "spec": {"taints": taints}}));
    host.settle(&server, PATIENCE).await;
    eventually(PATIENCE, || {
        let node = server.store().get("nodes", "", NODE).unwrap();
        let is_ready = |node: &Value| {
            node["status"]["conditions"]
                .as_array()
                .is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
        };
        if is_ready(&node) && node["metadata"]["labels"]["kubernetes.io/os"] == "linux" { Ok(()) } else { Err(node.to_string()) }
    })
    .await;
    let node = server.store().get("nodes", "", NODE).unwrap();
    assert_eq!((&node["spec"]["taints"], &node["metadata"]["labels"]["made"]), (&taints, &json!("by-hand")));
}

#[tokio::test(start_paused = true)]
async fn node_without_right_is_waited_for() {
    let (server, transport) = cluster();
    let mut host = Host::new(&transport, "a").without_registration();
    host.set_content("default/web");
    host.start();
    tokio::time::sleep(PATIENCE).await;
    assert!(server.store().all("nodes").is_empty());
    server.store().put("nodes", json!({"metadata": {"name": NODE}}));
    host.settle(&server, PATIENCE).await;
}

#[tokio::test(start_paused = true)]
async fn deleted_node_is_registered_again() {
    let (server, transport) = cluster();
    let host = host_with(&transport, &server, &["default/web"]).await;
    let first = server.store().remove("nodes", "", NODE).unwrap();
    eventually(PATIENCE, || {
        let node = server.store().get("nodes", "", NODE).ok_or("no node")?;
        let mirror = server.store().get("pods", "default", "web").ok_or("no mirror")?;
        let owner = &mirror["metadata"]["ownerReferences"][0]["uid"];
        if node["metadata"]["uid"] == *owner && *owner != first["metadata"]["uid"] { Ok(()) } else { Err(mirror.to_string()) }
    })
    .await;
    host.settle(&server, PATIENCE).await;
}

#[tokio::test(start_paused = true)]
async fn lost_ready_condition_is_given_back() {
    let (server, transport) = cluster();
    let mut host = host_with(&transport, &server, &["default/web"]).await;
    host.set_status("default/web", "Running");
    host.settle(&server, PATIENCE).await;
    for _ in 0..3 {
        let mut mirror = server.store().get("pods", "default", "web").unwrap();
        mirror["status"]["conditions"][0]["status"] = "False".into();
        server.store().put("pods", mirror);
        assert!(host.difference(&server).is_err());
        host.settle(&server, PATIENCE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_equal_agents_speaks() {
    let (server, transport) = cluster();
    let mut first = host_with(&transport, &server, &["default/web"]).await;
    let mut second = Host::new(&transport, "b");
    second.set_content("default/other");
    second.start();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(second.status.borrow().node, NodeStanding::StandBy);
    assert_eq!(first.difference(&server), Ok(()), "no fight");
    assert_eq!(second.events.journal().list().1.iter().filter(|event| event.reason == "NodeNameTaken").count(), 1);
    first.kill().await;
    second.settle(&server, Duration::from_secs(90)).await;
    // A restart is no other agent.
    let mut again = Host::new(&transport, "b");
    second.kill().await;
    again.set_content("default/other");
    again.start();
    assert!(again.settle(&server, PATIENCE).await < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn kubelet_renewing_the_lease_is_noticed() {
    let (server, transport) = cluster();
    let mut host = host_with(&transport, &server, &["default/web"]).await;
    for second in 0..30 {
        let mut lease = server.store().get("leases", "kube-node-lease", NODE).unwrap();
        lease["spec"]["renewTime"] = format!("2026-01-01T00:00:{second:02}.000000Z").into();
        server.store().put("leases", lease);
        tokio::time::sleep(Duration::from_secs(10)).await;
        if second >= 2 {
            assert_eq!(host.status.borrow().node, NodeStanding::StandBy);
        }
    }
    let silent = server.store().version();
    host.set_content("default/web");
    server.store().remove("pods", "default", "web");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(server.store().version(), silent + 1, "nothing was written but by the other one");
    assert!(host.settle(&server, PATIENCE).await > Duration::from_secs(10), "the other one has to be silent for a while");
    assert_eq!(host.status.borrow().node, NodeStanding::Registered);
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_years_behind_changes_nothing() {
    fn years_ago() -> jiff::Timestamp {
        jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 3650)
    }
    let (server, transport) = cluster();
    let mut first = host_with(&transport, &server, &["default/web"]).await;
    let mut other = Host::new(&transport, "b").with_clock(years_ago);
    other.set_content("default/other");
    other.start();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(other.status.borrow().node, NodeStanding::StandBy);
    other.kill().await;
    first.kill().await;
    let mut again = Host::new(&transport, "a").with_clock(years_ago);
    again.set_content("default/web");
    again.start();
    assert!(again.settle(&server, PATIENCE).await < Duration::from_secs(2));
    again.set_status("default/web", "Running");
    assert!(again.settle(&server, PATIENCE).await < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn events_are_counted_and_rate_limited() {
    let (server, transport) = cluster();
    let host = host_with(&transport, &server, &["default/web"]).await;
    let subject = |name: &str| Subject::Pod {
        uid: PodUid::new("local-default/web"),
        full_name: PodFullName { name: name.into(), namespace: "default".into() },
        field_path: None,
    };
    for _ in 0..5 {
        host.events.record(&subject("web"), EventType::Warning, "BackOff", "back-off");
    }
    eventually(PATIENCE, || match server.store().all("events").as_slice() {
        [event] if event["count"] == 5 && event["involvedObject"]["uid"] == "hash-1" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    for number in 0..300 {
        host.events.record(&subject(&format!("pod-{number}")), EventType::Normal, "Started", "started");
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let posted = server.store().all("events").len();
    assert!((50..60).contains(&posted), "{posted}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.store().all("events").len(), 301);
}

#[tokio::test(start_paused = true)]
async fn latest_waiting_events_are_posted() {
    let (server, transport) = cluster();
    let host = host_with(&transport, &server, &["default/web"]).await;
    transport.set(Weather::Down);
    for number in 0..800 {
        let full_name = PodFullName { name: format!("pod-{number}"), namespace: "default".into() };
        let subject = Subject::Pod { uid: PodUid::new("u"), full_name, field_path: None };
        host.events.record(&subject, EventType::Normal, "Started", "started");
        if number % 100 == 0 {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    transport.set(Weather::Fair);
    tokio::time::sleep(Duration::from_secs(1800)).await;
    let posted: Vec<String> = server
        .store()
        .all("events")
        .iter()
        .filter(|event| event["reason"] == "Started")
        .map(|event| event["involvedObject"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(posted.len(), 500);
    for number in 0..800 {
        assert_eq!(posted.contains(&format!("pod-{number}")), number >= 300, "pod-{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_change_costs_one_request() {
    let (server, transport) = cluster();
    let names: Vec<String> = (0..120).map(|number| format!("default/pod-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut host = host_with(&transport, &server, &names).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = server.store().requests;
    host.set_status("default/pod-7", "Running");
    host.settle(&server, PATIENCE).await;
    // At most one turn of the Node (two requests) falls in between.
    assert!(server.store().requests - before <= 3, "{}", server.store().requests - before);
    let before = server.store().requests;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let idle = server.store().requests - before;
    assert!(idle <= 70, "{idle} requests in five minutes without a change");
}
