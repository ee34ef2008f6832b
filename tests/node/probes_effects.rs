//! Effects of probes: readiness, restarts, the order of starts, and their state after a restart of the daemon.

use crate::support::{PodView, TestHost, eventually};

fn pod(name: &str, containers: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 600\n{containers}")
}

/// A shell that runs until it is killed, whatever it is asked.
const STUBBORN: &str = "command: [/bin/sh, -c, 'trap \"\" TERM; while true; do sleep 1; done']";

fn wait_event(host: &TestHost, needle: &str) -> String {
    eventually(&format!("an event with {needle:?}"), || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains(needle) { Ok(events) } else { Err(events) }
    })
}

fn condition<'a>(pod: &'a PodView, kind: &str) -> &'a serde_json::Value {
    pod.0["status"]["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == kind).unwrap()
}

/// shows: spec.containers[].livenessProbe.terminationGracePeriodSeconds, spec.containers[].startupProbe.terminationGracePeriodSeconds
#[test]
fn d12_failing_container_gets_probe_grace_period() {
    let host = TestHost::start();
    for (name, probe, word) in [("live", "livenessProbe", "liveness"), ("slow", "startupProbe", "startup")] {
        let fields = format!(
            "{probe}: {{exec: {{command: [/bin/sh, -c, 'echo sick {name}; exit 3']}}, periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 1, terminationGracePeriodSeconds: 1}}"
        );
        host.write_manifest(
            &format!("{name}.yaml"),
            &pod(name, &format!("  containers:\n  - name: c\n    image: localhost/busybox:1\n    {STUBBORN}\n    {fields}\n")),
        );
        let restarted = host.wait_for_pod(name, "restarted", |pod| pod.restarts("c") >= 1);
        assert_eq!(restarted.container("c")["lastState"]["terminated"]["exitCode"], 137);
        wait_event(&host, &format!("Container c failed {word} probe, will be restarted"));
        wait_event(&host, &format!("probe failed: sick {name}"));
        host.remove_manifest(&format!("{name}.yaml"));
    }
}

/// shows: spec.containers[].readinessProbe.failureThreshold
#[test]
fn d16_readiness_probe_decides_readiness_with_reason() {
    let host = TestHost::start();
    // Sick for one check: with the default threshold nobody would notice. The next one is held until the test has seen it.
    let check = "if [ -e /sick ]; then mv /sick /held; echo ouch; exit 1; fi; while [ -e /held ]; do sleep 0.1; done";
    let probe = format!(
        "readinessProbe: {{exec: {{command: [/bin/sh, -c, '{check}']}}, periodSeconds: 1, timeoutSeconds: 600, failureThreshold: 1}}"
    );
    let manifest = pod(
        "web",
        &format!("  containers:\n  - name: c\n    image: localhost/busybox:1\n    command: [/bin/sleep, '1000000']\n    {probe}\n"),
    );
    host.write_manifest("web.yaml", &manifest);
    host.wait_for_pod("web", "ready", |pod| condition(pod, "Ready")["status"] == "True");
    host.exec("web", "c", &["/bin/touch", "/sick"]);
    let pod = host.wait_for_pod("web", "not ready", |pod| condition(pod, "Ready")["status"] == "False");
    for kind in ["Ready", "ContainersReady"] {
        assert_eq!(condition(&pod, kind)["reason"], "ContainersNotReady");
        let message = condition(&pod, kind)["message"].as_str().unwrap();
        assert!(message.starts_with("containers with unready status: [c]; c: Readiness probe failed: ouch"), "{message}");
    }
    host.exec("web", "c", &["/bin/rm", "/held"]);
    let pod = host.wait_for_pod("web", "ready again", |pod| condition(pod, "Ready")["status"] == "True");
    assert_eq!((pod.restarts("c"), pod.container("c")["started"].as_bool()), (0, Some(true)));
    let described = host.cli_ok(&["describe", "pod", "web"]);
    assert!(described.contains("Readiness probe failed: ouch"), "{described}");
}

#[test]
fn the_example_with_probes_becomes_ready() {
    let host = TestHost::start();
    host.write_manifest("probed.yaml", include_str!("../../manifests/probed.yaml"));
    let pod = host.wait_for_pod("probed", "ready", |pod| condition(pod, "Ready")["status"] == "True");
    assert_eq!(pod.restarts("server"), 0);
}

#[test]
fn d7_startup_probe_of_sidecar_delays_containers() {
    let host = TestHost::start();
    let spec = "  initContainers:
  - name: side
    image: localhost/busybox:1
    restartPolicy: Always
    command: [/bin/sleep, '1000000']
    startupProbe: {exec: {command: [/bin/test, -e, /go]}, periodSeconds: 1, timeoutSeconds: 30, failureThreshold: 1000}
    terminationMessagePath: /dev/termination-log
  containers:
  - name: c
    image: localhost/busybox:1
    command: [/bin/sleep, '1000000']
";
    host.write_manifest("web.yaml", &pod("web", spec).replace("600", "1"));
    let pod = host.wait_for_pod("web", "asked", |pod| pod.runs("side") && pod.0["status"].to_string().contains("PodInitializing"));
    assert_eq!(pod.container("side")["started"], false);
    assert!(!pod.runs("c"));
    host.exec("web", "side", &["/bin/touch", "/go"]);
    let pod = host.wait_running("web");
    assert_eq!(pod.container("side")["started"], true);
}

#[test]
fn d15_daemon_restart_keeps_probe_states() {
    let mut host = TestHost::start();
    let container = |probes: &str| {
        format!("  containers:\n  - name: c\n    image: localhost/busybox:1\n    command: [/bin/sleep, '1000000']\n{probes}")
    };
    // A period that no test waits for: what is ready after the restart was not asked again.
    let ready = "    readinessProbe: {exec: {command: [/bin/true]}, periodSeconds: 3600, timeoutSeconds: 30}\n";
    let starting = "    startupProbe: {exec: {command: [/bin/false]}, periodSeconds: 3600, timeoutSeconds: 30}\n    livenessProbe: {exec: {command: [/bin/false]}, periodSeconds: 1}\n";
    host.write_manifest("ready.yaml", &pod("ready", &container(ready)).replace("600", "1"));
    host.write_manifest("starting.yaml", &pod("starting", &container(starting)).replace("600", "1"));
    host.wait_for_pod("ready", "ready", |pod| pod.container("c")["ready"] == true);
    host.wait_for_pod("starting", "asked", |pod| pod.runs("c") && pod.0["status"].to_string().contains("Startup probe failed"));
    host.kill_daemon();
    host.start_daemon();
    let pod = host.wait_running("ready");
    assert_eq!(pod.container("c")["ready"], true);
    let pod = host.wait_running("starting");
    assert_eq!((pod.container("c")["started"].as_bool(), pod.restarts("c")), (Some(false), 0));
}
