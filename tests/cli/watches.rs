//! Watches over the API.

use crate::host::{Host, desired, running_status};
use crate::http::TABLE;
use podstead::pod::PodUid;
use podstead::status::PodStatusSink;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn publish(host: &Host, name: &str, phase: &str) {
    let pod = desired("default", name, json!({}));
    host.published.publish(&pod, serde_json::from_value(json!({"phase": phase})).unwrap());
}

fn withdraw(host: &Host, name: &str) {
    host.published.withdraw(&PodUid::new(format!("uid-default-{name}")));
}

fn told(event: &Value) -> (String, String) {
    let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
    (event["type"].as_str().unwrap().to_owned(), name.to_owned())
}

#[test]
fn list_with_watch_gives_final_list() {
    let host = Host::start();
    publish(&host, "a", "Pending");
    publish(&host, "b", "Running");
    let list = host.get("/api/v1/pods");
    let mut replica: BTreeMap<String, Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| (pod["metadata"]["name"].as_str().unwrap().to_owned(), pod.clone()))
        .collect();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = host.stream(&format!("/api/v1/pods?watch=true&resourceVersion={version}"), "application/json");
    for round in 0..50 {
        publish(&host, "a", &format!("Phase{round}"));
        if round % 3 == 0 {
            withdraw(&host, "b");
        } else {
            publish(&host, "b", &format!("Phase{}", round / 2));
        }
    }
    publish(&host, "last", "Running");
    loop {
        let event = events.next().unwrap();
        let (kind, name) = told(&event);
        match kind.as_str() {
            "ADDED" => assert!(replica.insert(name.clone(), event["object"].clone()).is_none()),
            "MODIFIED" => assert!(replica.insert(name.clone(), event["object"].clone()).is_some()),
            "DELETED" => assert!(replica.remove(&name).is_some()),
            other => panic!("unexpected {other}"),
        }
        if name == "last-edge" {
            break;
        }
    }
    let final_list = host.get("/api/v1/pods");
    assert_eq!(replica.into_values().collect::<Vec<_>>(), *final_list["items"].as_array().unwrap());
}

#[test]
fn watch_without_version_begins_with_state() {
    let host = Host::start();
    publish(&host, "a", "Running");
    let mut events = host.stream("/api/v1/pods?watch=true", "application/json");
    assert_eq!(told(&events.next().unwrap()), ("ADDED".into(), "a-edge".into()));
    publish(&host, "b", "Running");
    assert_eq!(told(&events.next().unwrap()), ("ADDED".into(), "b-edge".into()));
}

#[test]
fn initial_events_end_with_a_bookmark() {
    let host = Host::start();
    publish(&host, "a", "Running");
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = host.stream(&format!("/api/v1/pods?{query}"), "application/json");
    assert_eq!(told(&events.next().unwrap()).0, "ADDED");
    let bookmark = events.next().unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], "1001");
}

#[test]
fn old_or_unknown_version_is_gone() {
    let host = Host::start();
    for round in 0..600 {
        publish(&host, "a", &format!("Phase{round}"));
    }
    for version in ["1001", "5", "99999"] {
        let mut events = host.stream(&format!("/api/v1/pods?watch=true&resourceVersion={version}"), "application/json");
        let error = events.next().unwrap();
        assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)), "{version}");
        assert_eq!(error["object"]["reason"], "Expired");
        assert!(events.next().is_none(), "the watch ends");
    }
}

#[test]
fn sleeping_watcher_is_cut_off() {
    let host = Host::start();
    // Large enough that the socket's buffers cannot hold what follows.
    let big = "x".repeat(64 << 10);
    let mut sleeper = host.stream("/api/v1/pods?watch=true", "application/json");
    publish(&host, "a", "Running");
    assert_eq!(told(&sleeper.next().unwrap()).0, "ADDED");
    for round in 0..1200 {
        publish(&host, "a", &format!("{round}{big}"));
    }
    let last = sleeper.last().unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[test]
fn many_watchers_see_every_change() {
    let host = Host::start();
    let names: Vec<String> = (0..400).map(|number| format!("pod{number}")).collect();
    names.iter().for_each(|name| publish(&host, name, "Pending"));
    let version = host.published.pods().version();
    let path = format!("/api/v1/pods?watch=true&resourceVersion={version}");
    let watchers: Vec<_> = (0..20).map(|_| host.stream(&path, "application/json")).collect();
    names.iter().for_each(|name| publish(&host, name, "Running"));
    for watcher in watchers {
        let seen: Vec<_> = watcher.take(names.len()).map(|event| told(&event)).collect();
        let expected: Vec<_> = names.iter().map(|name| ("MODIFIED".to_owned(), format!("{name}-edge"))).collect();
        assert!(seen == expected, "{} events", seen.len());
    }
}

#[test]
fn watch_ends_when_its_time_is_over() {
    let host = Host::start();
    let mut events = host.stream("/api/v1/pods?watch=true&timeoutSeconds=1", "application/json");
    assert!(events.next().is_none());
}

#[test]
fn pod_enters_and_leaves_selection_by_change() {
    let host = Host::start();
    publish(&host, "a", "Pending");
    let version = host.published.pods().version();
    let query = format!("watch=true&fieldSelector=status.phase%3DRunning&resourceVersion={version}");
    let mut events = host.stream(&format!("/api/v1/pods?{query}"), "application/json");
    publish(&host, "other", "Pending");
    publish(&host, "a", "Running");
    publish(&host, "a", "Failed");
    withdraw(&host, "a");
    publish(&host, "b", "Running");
    let seen: Vec<_> = events.by_ref().take(3).map(|event| told(&event)).collect();
    let expected = [("ADDED", "a-edge"), ("DELETED", "a-edge"), ("ADDED", "b-edge")];
    assert_eq!(seen, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
}

#[test]
fn rows_of_a_table_are_watched() {
    let host = Host::start();
    let mut events = host.stream("/api/v1/pods?watch=true", TABLE);
    let pod = desired("default", "web", json!({}));
    host.published.publish(&pod, serde_json::from_value(running_status()).unwrap());
    let event = events.next().unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["rows"][0]["cells"][2], "Running");
}
