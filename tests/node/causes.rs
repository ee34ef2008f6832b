//! Causes that the command line names: what killed a container, why it has no log, what happened before the daemon was restarted.

use crate::support::{TestHost, eventually, make_image};
use serde_json::Value;
use std::net::TcpListener;
use std::time::Instant;

fn pod(name: &str, container: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 600\n  containers:\n  - name: c\n    \
         image: localhost/busybox:1\n{container}"
    )
}

/// Waits until the command prints all of `needles`.
fn wait_text(host: &TestHost, arguments: &[&str], needles: &[&str]) -> String {
    eventually(&format!("{needles:?} in the output of {arguments:?}"), || {
        let out = host.cli(arguments);
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        if needles.iter().all(|needle| text.contains(needle)) { Ok(text) } else { Err(text) }
    })
}

/// Seconds of `Terminating for 12s`.
fn seconds_of_termination(status: &str) -> Option<u64> {
    status.split("Terminating for ").nth(1)?.split(['s', 'm']).next()?.parse().ok()
}

#[test]
fn liveness_kill_is_the_cause_not_readiness() {
    let host = TestHost::start();
    let stubborn = "    command: [/bin/sh, -c, 'trap \"\" TERM; while true; do sleep 1; done']\n";
    let probe = |kind: &str, word: &str, more: &str| {
        format!(
            "    {kind}: {{exec: {{command: [/bin/sh, -c, 'echo {word}; exit 3']}}, periodSeconds: 1, timeoutSeconds: 30{more}}}\n"
        )
    };
    let liveness = probe("livenessProbe", "sick", ", failureThreshold: 2, terminationGracePeriodSeconds: 1");
    let started = Instant::now();
    host.write_manifest("web.yaml", &pod("web", &format!("{stubborn}{liveness}{}", probe("readinessProbe", "busy", ""))));
    host.wait_for_pod("web", "restarted", |pod| pod.restarts("c") >= 1);
    let told = ["podstead killed its last run because of the liveness probe: sick", "change livenessProbe in web.yaml:1:1"];
    wait_text(&host, &["status"], &told);
    let described = host.cli_ok(&["describe", "pod", "web"]);
    for line in [
        "Liveness:        exec [/bin/sh -c echo sick; exit 3] delay=0s timeout=30s period=1s #success=1 #failure=2",
        "Readiness:       exec [/bin/sh -c echo busy; exit 3] delay=0s timeout=30s period=1s #success=1 #failure=3",
    ] {
        assert!(described.contains(line), "{described}");
    }
    let age = started.elapsed().as_secs();
    let removed = Instant::now();
    host.remove_manifest("web.yaml");
    let status = wait_text(&host, &["status"], &["Terminating for "]);
    let shown = seconds_of_termination(&status).unwrap_or_else(|| panic!("{status}"));
    assert!(shown <= removed.elapsed().as_secs() + 1 && age > 1, "{shown} s since its removal, {age} s old: {status}");
}

#[test]
fn edit_to_absent_image_is_not_well() {
    let host = TestHost::start();
    let sleeping = pod("web", "    command: [sleep, '1000000']\n")
        .replace("terminationGracePeriodSeconds: 600", "terminationGracePeriodSeconds: 1");
    host.write_manifest("web.yaml", &sleeping);
    let before = host.wait_running("web");
    host.write_manifest(
        "web.yaml",
        &sleeping.replace("busybox:1", "busybx:1").replace("command", "imagePullPolicy: Never\n    command"),
    );
    let told = ["web-edge-1: ErrImageNeverPull", "container c still runs as before the last edit: ", "import the image"];
    wait_text(&host, &["status"], &told);
    let now = host.wait_running("web");
    assert_eq!(now.container_id("c"), before.container_id("c"));
    host.write_manifest("web.yaml", &sleeping);
    wait_text(&host, &["status"], &["1 pod, all healthy"]);
}

#[test]
fn container_that_never_started_has_no_log() {
    let host = TestHost::start();
    host.write_manifest("absent.yaml", &pod("absent", "    command: [/no/such/program]\n"));
    let profile =
        "    securityContext: {seccompProfile: {type: Localhost, localhostProfile: nothing.json}}\n    command: [sleep, '9']\n";
    host.write_manifest("refused.yaml", &pod("refused", profile));
    wait_text(&host, &["logs", "refused"], &["container \"c\" in pod \"refused-edge-1\"", "CreateContainerError"]);
    for arguments in [&["logs", "absent"][..], &["logs", "-f", "absent"], &["logs", "refused"], &["logs", "-f", "refused"]] {
        wait_text(&host, arguments, &["container \"c\" in pod "]);
        let output = host.cli(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("os error") && !text.contains("No such file or directory (os"), "{arguments:?}: {text}");
    }
}

#[test]
fn silent_container_has_an_empty_log() {
    let host = TestHost::start();
    host.write_manifest("silent.yaml", &pod("silent", "    command: [sleep, '1000000']\n"));
    host.write_manifest("brief.yaml", &pod("brief", "    command: ['true']\n").replace("spec:", "spec:\n  restartPolicy: Never"));
    host.wait_running("silent");
    host.wait_for_pod("brief", "ended", |pod| pod.0["status"]["phase"] == "Succeeded");
    for name in ["silent", "brief"] {
        assert_eq!(host.cli_ok(&["logs", name]), "");
    }
}

#[test]
fn events_of_an_earlier_daemon_are_shown() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &pod("web", "    command: [sleep, '1000000']\n"));
    host.wait_running("web");
    wait_text(&host, &["get", "events"], &["Started container c"]);
    host.stop_daemon();
    let file = host.path("state/events.jsonl");
    assert!(std::fs::metadata(&file).unwrap().len() < 256 * 1024);
    host.start_daemon();
    host.wait_running("web");
    let described = host.cli_ok(&["describe", "pod", "web"]);
    assert!(described.contains("Started container c"), "{described}");
    // One that is damaged costs the events, and nothing else.
    host.stop_daemon();
    std::fs::write(&file, "nonsense").unwrap();
    host.start_daemon();
    host.wait_running("web");
    assert!(host.daemon_log().contains("cannot use the events of an earlier daemon"), "{}", host.daemon_log());
}

#[test]
fn restart_reports_no_missing_object_too_soon() {
    // Nobody answers there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let source = format!("  - name: away\n    http: {{url: 'http://127.0.0.1:{port}/pods.yaml', intervalSeconds: 3600}}\n");
    let mut host = TestHost::start_with(&source);
    let volumes = "    command: [sleep, '1000000']\n    volumeMounts: [{name: v, mountPath: /v}]\n  volumes: [{name: v, configMap: {name: m}}]\n";
    host.write_manifest("web.yaml", &pod("web", volumes));
    let waiting = "waiting for the first sync of source away";
    wait_text(&host, &["status"], &[waiting]);
    host.kill_daemon();
    host.start_daemon();
    wait_text(&host, &["status"], &[waiting]);
    let events = host.cli_ok(&["get", "events"]);
    assert!(!events.contains("FailedMount"), "{events}");
    // Without that source, the object is known to be missing.
    let config = host.path("config.yaml");
    let text = std::fs::read_to_string(&config).unwrap().replace(&source, "");
    std::fs::write(&config, text).unwrap();
    wait_text(&host, &["get", "events"], &["FailedMount", "configmap \"m\" not found"]);
}

#[test]
fn imported_image_is_used_while_pull_hangs() {
    // A registry that accepts and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let registry = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let host = TestHost::start_with(&format!("registries:\n  - host: {registry}\n    http: true\n"));
    let image = format!("{registry}/shop/web:1");
    host.write_manifest("web.yaml", &pod("web", "    command: [sleep, '1000000']\n").replace("localhost/busybox:1", &image));
    wait_text(&host, &["get", "events"], &["Pulling image"]);
    let archive = host.path("archive.tar");
    make_image(&[], &archive, &image);
    host.cli_ok(&["image", "import", archive.to_str().unwrap()]);
    host.wait_running("web");
    let events: Value = serde_json::from_str(&host.cli_ok(&["get", "events", "-o", "json"])).unwrap();
    let failed = events["items"].as_array().unwrap().iter().any(|event| event["reason"] == "Failed");
    assert!(!failed, "the pull did not even fail: {events}");
}
