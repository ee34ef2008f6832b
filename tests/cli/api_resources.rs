//! Events, sources, images, discovery and health over the API.

use crate::host::Host;
use hyper::Method;
use podstead::pod::SourceId;
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use serde_json::{Value, json};

fn pod_subject(host: &Host, name: &str, container: Option<&str>) -> Subject {
    let desired = host.publish_running("default", name);
    Subject::Pod {
        uid: desired.uid.clone(),
        full_name: desired.full_name.clone(),
        field_path: container.map(|container| format!("spec.containers{{{container}}}")),
    }
}

#[test]
fn events_are_aggregated_and_selected() {
    let host = Host::start();
    let web = pod_subject(&host, "web", Some("main"));
    for _ in 0..3 {
        host.events.record(&web, EventType::Warning, "BackOff", "back-off 10s restarting failed container");
    }
    host.events.record(&Subject::Source(SourceId::new("manifests")), EventType::Normal, "Accepted", "4 pods");
    host.events.record(&Subject::Node, EventType::Normal, "Starting", "starting");
    let list = host.get("/api/v1/events");
    assert_eq!((list["kind"].as_str(), list["items"].as_array().unwrap().len()), (Some("EventList"), 3));

    let query = "involvedObject.name%3Dweb-edge%2CinvolvedObject.namespace%3Ddefault%2CinvolvedObject.uid%3Duid-default-web";
    let events = host.get(&format!("/api/v1/namespaces/default/events?fieldSelector={query}"));
    let event = &events["items"][0];
    assert_eq!(events["items"].as_array().unwrap().len(), 1);
    assert_eq!((&event["count"], &event["reason"], &event["type"]), (&json!(3), &json!("BackOff"), &json!("Warning")));
    assert_eq!(event["involvedObject"]["fieldPath"], "spec.containers{main}");
    assert_eq!(event["source"]["component"], "podstead");

    let table = host.get_table("/api/v1/events?fieldSelector=involvedObject.kind%3DPod");
    assert_eq!(table["rows"][0]["cells"][3], "pod/web-edge");
    assert_eq!(table["rows"][0]["cells"][0], "0s (x3 over 0s)");
}

#[test]
fn repeated_event_is_watched_as_modification() {
    let host = Host::start();
    let web = pod_subject(&host, "web", None);
    let mut events = host.stream("/api/v1/events?watch=true", "application/json");
    host.events.record(&web, EventType::Normal, "Started", "started");
    host.events.record(&web, EventType::Normal, "Started", "started");
    let seen: Vec<_> = events.by_ref().take(2).map(|event| (event["type"].clone(), event["object"]["count"].clone())).collect();
    assert_eq!(seen, [(json!("ADDED"), json!(1)), (json!("MODIFIED"), json!(2))]);
}

#[test]
fn source_shows_revision_error_and_problems() {
    let host = Host::start();
    host.publish_source(Some("unknown field"), Some("list directory: input/output error"));
    let sources = host.get("/apis/podstead.dev/v1alpha1/sources");
    let source = &sources["items"][0];
    assert_eq!(source["metadata"]["name"], "manifests");
    assert_eq!(source["spec"], json!({"kind": "directory", "location": "/etc/podstead/manifests"}));
    assert_eq!(source["status"]["lastError"], "list directory: input/output error");
    assert_eq!(source["status"]["problems"][0]["position"], json!({"line": 19, "column": 3}));
    assert_eq!(host.get("/apis/podstead.dev/v1alpha1/sources/manifests"), *source);
    assert_eq!(host.send(Method::GET, "/apis/podstead.dev/v1alpha1/sources/nosuch", "").0, 404);
}

#[test]
fn daemon_is_ready_after_every_source() {
    let host = Host::start();
    assert_eq!(host.get("/healthz"), "ok");
    let (code, status) = host.send(Method::GET, "/readyz", "");
    assert_eq!((code, &status["message"]), (503, &json!("sources not synced yet: manifests")));
    host.publish_source(None, None);
    assert_eq!(host.get("/readyz"), "ok");
    let daemon = host.get("/apis/podstead.dev/v1alpha1/daemon");
    assert_eq!((&daemon["nodeName"], &daemon["waitingForSources"]), (&json!("edge"), &json!([])));
}

#[test]
fn clients_discover_what_there_is() {
    let host = Host::start();
    assert_eq!(host.get("/api")["versions"], json!(["v1"]));
    assert_eq!(host.get("/apis")["groups"][8]["preferredVersion"]["groupVersion"], "podstead.dev/v1alpha1");
    let has = |list: &Value, name: &str| list["resources"].as_array().unwrap().iter().any(|resource| resource["name"] == name);
    let core = host.get("/api/v1");
    assert!(has(&core, "pods") && has(&core, "pods/log") && has(&core, "pods/exec") && has(&core, "events"));
    assert!(has(&core, "services") && has(&host.get("/apis/discovery.k8s.io/v1"), "endpointslices"));
    assert!(has(&host.get("/apis/podstead.dev/v1alpha1"), "sources"));
    let version = host.get("/version");
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
}

#[test]
fn images_are_listed_pulled_imported_and_removed() {
    let host = Host::start();
    let images = "/apis/podstead.dev/v1alpha1/images";
    let nginx = host.get(images)["items"][0].clone();
    assert_eq!(nginx["references"], json!(["docker.io/library/nginx:1.27"]));
    let path = format!("{images}/{}", nginx["digest"].as_str().unwrap());
    assert_eq!(host.get(&path)["digest"], nginx["digest"]);
    assert_eq!(host.send(Method::GET, &format!("{images}/sha256:no"), "").0, 404);
    let archive = host.root.path().join("image.tar");
    let import = format!("{images}/import");
    let body = |path: &std::path::Path| json!({"path": path}).to_string();
    assert_eq!(host.send(Method::POST, &import, &body(&archive)).0 / 100, 4, "no such file");
    std::fs::write(&archive, "x").unwrap();
    assert_eq!(host.send(Method::POST, &import, &body(&archive)).1, json!({"references": ["localhost/imported:1"]}));
    assert_eq!(host.send(Method::POST, &import, r#"{"path": "image.tar"}"#).0, 400, "a relative path");
    assert_eq!(host.send(Method::DELETE, &format!("{images}?reference=localhost%2Fimported%3A1"), "").0, 200);
    assert_eq!(host.get(images)["items"].as_array().unwrap().len(), 1);
}
