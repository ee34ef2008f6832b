//! `podstead stop`, `start` and `restart` with real containers, through kills of the daemon and edits.

use crate::support::{TestHost, eventually, process_exists};

fn web(marker: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  volumes: [{{name: scratch, emptyDir: {{}}}}]\n  \
         containers:\n    - name: main\n      image: localhost/busybox:1\n      volumeMounts: [{{name: scratch, mountPath: /scratch}}]\n      \
         command: [sh, -c, 'echo {marker}; exec sleep 1000000']\n"
    )
}

fn daemon_set(marker: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  updateStrategy: {{type: OnDelete}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: localhost/busybox:1
          env: [{{name: MARKER, value: '{marker}'}}]
          command: [sh, -c, 'exec sleep 1000000']
"
    )
}

#[test]
fn stopped_pod_survives_daemon_and_starts() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &web("one"));
    let before = host.wait_running("web");
    let pid = host.container_pid(&before, "main");
    host.exec("web", "main", &["sh", "-c", "echo kept > /scratch/file"]);
    assert_eq!(host.cli_ok(&["stop", "web"]), "pod/web-edge-1 stopped\n");
    assert!(!process_exists(pid));
    host.kill_daemon();
    host.start_daemon();
    let stopped = host.wait_for_pod("web", "it to stay stopped", |pod| pod.waiting_reason("main") == "Stopped");
    assert_eq!(stopped.uid(), before.uid());
    assert!(host.cli_ok(&["get", "pods"]).contains("Stopped"));
    let status = host.cli(&["status"]);
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("podstead start web-edge-1"), "{status}");
    assert_eq!(host.cli_ok(&["start", "web"]), "pod/web-edge-1 started\n");
    host.wait_running("web");
    assert_eq!(host.exec("web", "main", &["cat", "/scratch/file"]), "kept\n", "a stop keeps the volumes of the pod");
}

/// Without a pod network, nothing can forward a port of the host.
#[test]
fn start_that_cannot_succeed_is_told_at_once() {
    let host = TestHost::start();
    let manifest =
        web("one").replace("      volumeMounts:", "      ports: [{containerPort: 80, hostPort: 8080}]\n      volumeMounts:");
    host.write_manifest("web.yaml", &manifest);
    eventually("the port to be refused", || {
        let status = host.cli_ok(&["status"]);
        let advice = "-> remove hostPort from web.yaml:1:1, or set network.type to builtin in podstead's configuration";
        if status.contains("HostPortConflict") && status.contains(advice) { Ok(()) } else { Err(status) }
    });
    host.cli_ok(&["stop", "web"]);
    let start = host.cli(&["start", "web"]);
    let said = String::from_utf8(start.stderr).unwrap();
    assert!(!start.status.success() && said.contains("does not run: HostPortConflict"), "{said}");
}

#[test]
fn edit_starts_stopped_pod_again() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &web("one"));
    host.wait_running("web");
    host.cli_ok(&["stop", "web"]);
    host.write_manifest("web.yaml", &web("two"));
    host.wait_running("web");
    host.wait_log("web", "main", "two");
}

#[test]
fn restarted_pod_is_another_one() {
    let host = TestHost::start();
    host.write_manifest("web.yaml", &web("one"));
    let before = host.wait_running("web");
    assert_eq!(host.cli_ok(&["restart", "web"]), "pod/web-edge-1 restarted\n");
    let after = host.wait_for_pod("web", "the new pod to run", |pod| pod.uid() != before.uid() && pod.runs("main"));
    assert_eq!(after.restarts("main"), 0);
    let missing = host.cli(&["restart", "wbe"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("not found"), "{missing:?}");
}

#[test]
fn restart_survives_killed_daemon() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &web("one"));
    let mut before = host.wait_running("web");
    for _ in 0..3 {
        assert_eq!(host.cli_ok(&["restart", "web", "--no-wait"]), "pod/web-edge-1 is being restarted\n");
        host.kill_daemon();
        host.start_daemon();
        before = host.wait_for_pod("web", "the new pod to run", |pod| pod.uid() != before.uid() && pod.runs("main"));
    }
}

#[test]
fn restart_brings_on_delete_to_update_revision() {
    let host = TestHost::start();
    host.write_manifest("agent.yaml", &daemon_set("one"));
    let marker = |wanted: &str| {
        eventually(&format!("a running pod with {wanted}"), || {
            let pods = host.pods();
            match pods.as_slice() {
                [pod] if pod.0["spec"]["containers"][0]["env"][0]["value"] == wanted && pod.runs("main") => Ok(pod.uid()),
                others => Err(format!("{others:?}")),
            }
        })
    };
    let old = marker("one");
    host.write_manifest("agent.yaml", &daemon_set("two"));
    eventually("the revision to be known", || {
        let sets = host.cli_ok(&["get", "ds", "agent", "-o", "json"]);
        let sets: serde_json::Value = serde_json::from_str(&sets).unwrap();
        let generation = sets["metadata"]["generation"].as_u64();
        (generation == Some(2)).then_some(()).ok_or_else(|| sets.to_string())
    });
    assert_eq!(marker("one"), old, "OnDelete replaces nothing by itself");
    let answer = host.cli_ok(&["restart", "ds/agent"]);
    assert!(answer.ends_with("restarted\n"), "{answer}");
    assert_ne!(marker("two"), old);
}
