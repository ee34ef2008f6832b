//! `podstead doctor security`.

use crate::host::{Host, desired, running, running_status, text};
use serde_json::{Value, json};

fn publish(host: &Host, name: &str, extra: Value) {
    let pod = desired("default", name, extra);
    host.observe(&pod, "main", 0, running());
    host.published_status(&pod, running_status());
}

fn report(host: &Host) -> Vec<Value> {
    let report: Value = serde_json::from_str(&host.run(&["doctor", "security", "-o", "json"])).unwrap();
    assert_eq!(report["kind"], "HostReport");
    report["findings"].as_array().unwrap().clone()
}

#[test]
fn rights_are_listed_with_source_and_line() {
    let host = Host::start();
    assert!(host.run(&["doctor", "security"]).contains("0 pods, all confined and limited"));
    publish(
        &host,
        "strong",
        json!({"hostNetwork": true, "volumes": [{"name": "data", "hostPath": {"path": "/srv"}}], "containers": [
            {"name": "main", "image": "nginx:1", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}, "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        ]}),
    );
    publish(
        &host,
        "meek",
        json!({"hostUsers": false, "containers": [
            {"name": "main", "image": "nginx:1", "resources": {"limits": {"memory": "1Mi", "cpu": "1"}}},
        ]}),
    );
    let shown = host.run(&["doctor", "security"]);
    assert!(shown.contains("warning  security       pod strong-edge (source manifests, strong.yaml:1:1):\n"), "{shown}");
    assert!(
        shown.contains("uses the host network\n")
            && shown.contains("container main: added capabilities NET_ADMIN; writes host path /srv; "),
        "{shown}"
    );
    assert!(!shown.contains("meek") && shown.ends_with("\n1 warning\n"), "{shown}");
    let findings = report(&host);
    let pod = &findings[0]["pod"];
    assert_eq!([&pod["name"], &pod["source"], &pod["origin"]], ["strong-edge", "manifests", "strong.yaml:1:1"]);
    assert_eq!(pod["rights"][2], json!({"right": "hostPathWritable", "container": "main", "value": "/srv"}));
}

#[test]
fn rights_without_daemon_are_a_problem() {
    let host = Host::start();
    let mut command = host.command(&["doctor", "security"]);
    let silent = command.args(["--socket", "/nowhere/podstead.sock"]).output().unwrap();
    assert_eq!(silent.status.code(), Some(1));
    assert!(text(&silent.stdout).contains("the rights of pods are unknown"), "{silent:?}");
}
