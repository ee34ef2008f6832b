//! Watches, selectors and versions, by every kubectl of this machine.

use crate::host::{Host, eventually, text};
use crate::http::TABLE;
use crate::kubectl::Kubectl;
use hyper::Method;
use podstead::pod::SourceId;
use podstead::pod::objects::{Object, ObjectKind, ObjectName, Objects};
use podstead::pod::sharing::Sharing;
use podstead::workload::object::WorkloadKind;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::Arc;

impl Host {
    /// Replaces all ConfigMaps, each with one key, and publishes a Secret and a claim beside them.
    pub(crate) fn hold(&self, config_maps: &[(&str, &str)]) {
        let source = SourceId::new("manifests");
        let mut view = Objects::new(Arc::new(Sharing::from([source.clone()])), |_| true);
        let name = |kind, name: &str| ObjectName { kind, namespace: "default".into(), name: name.into() };
        for (config_map, value) in config_maps {
            let object = json!({"metadata": {"name": config_map, "labels": {"app": config_map}}, "data": {"key": value}});
            let object = Object::ConfigMap(Arc::new(serde_json::from_value(object).unwrap()));
            view.add(&source, name(ObjectKind::ConfigMap, config_map), object);
        }
        let secret = json!({"metadata": {"name": "db"}, "type": "kubernetes.io/basic-auth", "data": {"password": "aHVudGVyMg=="}});
        let secret = Object::Secret(Arc::new(serde_json::from_value(secret).unwrap()));
        view.add(&source, name(ObjectKind::Secret, "db"), secret);
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let claim = json!({"metadata": {"name": "data"}, "spec": spec});
        let claim = Object::PersistentVolumeClaim(Arc::new(serde_json::from_value(claim).unwrap()));
        view.add(&source, name(ObjectKind::PersistentVolumeClaim, "data"), claim);
        self.objects.replace(Arc::new(view));
    }
}

/// A kubectl that watches.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    log: std::io::Lines<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts it and waits until it watches: what changes before then it may not tell.
    fn start(kubectl: &Kubectl<'_>, arguments: &[&str]) -> Self {
        // The log has the requests. A request ends after a while, so that a test that waits for nothing fails.
        let mut command = kubectl.command(&[arguments, &["-v=6", "--request-timeout=60s"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(log.by_ref().map(Result::unwrap).any(|line| line.contains("watch=true")), "{arguments:?} does not watch");
        Self { child, lines, log }
    }

    /// The next line that begins with this.
    fn line(&mut self, start: &str) -> String {
        self.lines.by_ref().map(Result::unwrap).find(|line| line.starts_with(start)).unwrap_or_default()
    }

    /// Waits for its end, which must be a success.
    fn end(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{:?}", self.log.map(Result::unwrap).collect::<Vec<_>>());
    }

    fn stop(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn kubectl_watches_objects_of_sources() {
    let host = Host::start();
    for kubectl in Kubectl::all(&host) {
        host.hold(&[("web", "one")]);
        let mut table = Running::start(&kubectl, &["get", "cm", "-w"]);
        assert!(table.line("web").starts_with("web"));
        let mut one = Running::start(&kubectl, &["get", "cm", "web", "-w", "-o", "jsonpath={.data.key}{'\\n'}"]);
        assert_eq!(one.line(""), "one");
        host.hold(&[("web", "two"), ("other", "x")]);
        assert_eq!(one.line(""), "two");
        assert!(table.line("other").starts_with("other"));
        table.stop();
        one.stop();
        for kind in ["secrets", "pvc", "sources", "images"] {
            if kind == "sources" {
                host.publish_source(None, None);
            }
            let mut watched = Running::start(&kubectl, &["get", kind, "-w", "-o", "name"]);
            assert!(!watched.line("").is_empty(), "{kind}");
            watched.stop();
        }
    }
}

#[test]
fn kubectl_waits_for_deletion_and_conditions() {
    let host = Host::start();
    host.publish_running("default", "web");
    for kubectl in Kubectl::all(&host) {
        host.hold(&[("web", "one"), ("rest", "x")]);
        let mut deleted = Running::start(&kubectl, &["wait", "--for=delete", "cm/web", "--timeout=60s"]);
        host.hold(&[("rest", "x")]);
        assert_eq!(deleted.line("configmap/web"), "configmap/web condition met");
        deleted.end();
        assert_eq!(
            kubectl.run(&["wait", "--for=condition=Ready", "pod/web-edge", "--timeout=60s"]),
            "pod/web-edge condition met\n"
        );
    }
}

#[test]
fn kubectl_follows_rollout() {
    let host = Host::start();
    for kubectl in Kubectl::all(&host) {
        let counts = |updated: u32| {
            json!({
                "observedGeneration": 1, "replicas": 2, "updatedReplicas": updated, "readyReplicas": updated, "availableReplicas": updated,
            })
        };
        let parts = |updated: u32| json!({"spec": {"replicas": 2}, "status": counts(updated)});
        host.publish_workload(WorkloadKind::Deployment, "default", "web", parts(1));
        let mut status = Running::start(&kubectl, &["rollout", "status", "deploy/web", "--timeout=60s"]);
        assert!(status.line("Waiting").contains("1 out of 2 new replicas"));
        host.publish_workload(WorkloadKind::Deployment, "default", "web", parts(2));
        assert_eq!(status.line("deployment"), "deployment \"web\" successfully rolled out");
        status.end();
    }
}

#[test]
fn kubectl_selects_every_kind() {
    let host = Host::start();
    host.hold(&[("web", "one"), ("other", "two")]);
    host.publish_running("default", "web");
    for kubectl in Kubectl::all(&host) {
        let names = |arguments: &[&str]| kubectl.run(&[&["get", "-o", "name"], arguments].concat());
        assert_eq!(names(&["cm", "-l", "app in (web)"]), "configmap/web\n");
        assert_eq!(names(&["cm", "-l", "app!=web"]), "configmap/other\n");
        assert_eq!(names(&["cm", "--field-selector=metadata.name!=web"]), "configmap/other\n");
        assert_eq!(names(&["secrets", "--field-selector=type=kubernetes.io/basic-auth"]), "secret/db\n");
        assert_eq!(names(&["pods", "--field-selector=spec.nodeName=edge,status.phase!=Failed"]), "pod/web-edge\n");
        assert_eq!(names(&["cm", "--chunk-size=1"]).lines().count(), 2);
        let refused = kubectl.output(&["get", "cm", "--field-selector=spec.x=1"]);
        assert!(text(&refused.stderr).contains("field label not supported: spec.x"), "{}", text(&refused.stderr));
    }
}

fn version(list: &Value) -> u64 {
    list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[test]
fn lists_know_versions_of_their_kind() {
    let host = Host::start();
    host.hold(&[("web", "one")]);
    let path = "/api/v1/configmaps";
    let first = version(&host.get(path));
    let uid = host.get(path)["items"][0]["metadata"]["uid"].clone();
    host.hold(&[("web", "two")]);
    let list = host.get(path);
    assert_eq!((version(&list), &list["items"][0]["metadata"]["uid"]), (first + 1, &uid));
    assert_eq!(version(&host.get(path)), first + 1, "a list alone changes no version");
    let code = |query: &str| {
        let (code, status) = host.send(Method::GET, &format!("{path}?{query}"), "");
        (code, status["reason"].as_str().unwrap_or_default().to_owned())
    };
    let (gone, bad) = ((410, "Expired".to_owned()), (400, "BadRequest".to_owned()));
    for query in
        ["resourceVersion=0", &format!("resourceVersion={first}"), "limit=1", "resourceVersion=1&resourceVersionMatch=NotOlderThan"]
    {
        assert_eq!(code(query).0, 200, "{query}");
    }
    assert_eq!(code("resourceVersion=99999"), (504, "Timeout".to_owned()));
    assert_eq!(code(&format!("resourceVersion={first}&resourceVersionMatch=Exact")), gone);
    assert_eq!(code("continue=abc&limit=1"), gone);
    for query in ["resourceVersion=x", "resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Newest"] {
        assert_eq!(code(query), bad, "{query}");
    }
    assert_eq!(code("watch=true&sendInitialEvents=true"), bad);
}

#[test]
fn single_object_can_be_watched() {
    let host = Host::start();
    host.hold(&[("other", "x"), ("web", "one")]);
    let mut events = host.stream("/api/v1/namespaces/default/configmaps/web?watch=true", "application/json");
    assert_eq!(events.next().unwrap()["object"]["metadata"]["name"], "web");
    host.hold(&[("other", "y"), ("web", "two")]);
    let event = events.next().unwrap();
    assert_eq!((&event["type"], &event["object"]["data"]["key"]), (&json!("MODIFIED"), &json!("two")));
    host.hold(&[]);
    assert_eq!(events.next().unwrap()["type"], "DELETED");
}

#[test]
fn source_is_watched_while_it_changes() {
    let host = Host::start();
    host.publish_source(None, None);
    let mut events = host.stream("/apis/podstead.dev/v1alpha1/sources?watch=true", TABLE);
    assert_eq!(events.next().unwrap()["object"]["rows"][0]["cells"][0], "manifests");
    host.publish_source(None, Some("no route to host"));
    assert_eq!(events.next().unwrap()["object"]["rows"][0]["cells"][7], "failed");
    // Gone from the journal when it is looked at next.
    eventually("list", || (version(&host.get("/apis/podstead.dev/v1alpha1/sources")) > 1001).then_some(()));
}
