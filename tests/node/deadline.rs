//! `activeDeadlineSeconds` (kubelet rule D13), and pods that are over.

use crate::support::{TestHost, process_exists};
use serde_json::{Value, json};
use std::fs;

fn manifest(name: &str, fields: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{fields}  containers:\n    \
         - {{name: main, image: localhost/busybox:1, command: [/bin/sh, -c, '{script}']}}\n"
    )
}

fn change_record(host: &TestHost, uid: &str, change: impl Fn(&mut Value)) {
    let path = host.path("state/pods").join(uid).join("pod.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut record);
    fs::write(&path, record.to_string()).unwrap();
}

/// shows: spec.activeDeadlineSeconds
#[test]
fn d13_deadline_fails_a_pod_for_good() {
    let mut host = TestHost::start();
    host.write_manifest("late.yaml", &manifest("late", "", "exec sleep 1000000"));
    let running = host.wait_running("late");
    let pid = host.container_pid(&running, "main");
    // It counts from the start of the pod, whenever it was written.
    host.write_manifest("late.yaml", &manifest("late", "  activeDeadlineSeconds: 2\n", "exec sleep 1000000"));
    let failed = host.wait_for_pod("late", "Failed", |pod| pod.phase() == "Failed");
    assert_eq!(failed.0["status"]["reason"], "DeadlineExceeded");
    host.wait_for_pod("late", "the end of its container", |pod| pod.container("main")["state"]["terminated"].is_object());
    assert!(!process_exists(pid));
    host.stop_daemon();
    host.start_daemon();
    let after = host.wait_for_pod("late", "still Failed", |pod| pod.phase() == "Failed");
    assert_eq!(after.container_id("main"), running.container_id("main"));
}

#[test]
fn d13_clock_jumps_do_not_change_deadline() {
    let mut host = TestHost::start();
    host.write_manifest("slow.yaml", &manifest("slow", "  activeDeadlineSeconds: 3600\n", "exec sleep 1000000"));
    let before = host.wait_running("slow");
    host.stop_daemon();
    // By the clock of now, it was taken up half a century ago.
    change_record(&host, &before.uid(), |record| record["started_at"] = json!("1970-01-01T00:00:00Z"));
    host.start_daemon();
    let after = host.wait_running("slow");
    assert_eq!(after.container_id("main"), before.container_id("main"));
    assert_eq!(after.0["status"]["startTime"], "1970-01-01T00:00:00Z");
    host.stop_daemon();
    // By the clock of now, it was taken up in the future; but an earlier boot saw it active for an hour.
    change_record(&host, &before.uid(), |record| {
        record["started_at"] = json!("2099-01-01T00:00:00Z");
        record["active"] = json!({"boot_id": "another", "since_boot_secs": 1_000_000_000_u64, "elapsed_secs": 3600});
    });
    host.start_daemon();
    let failed = host.wait_for_pod("slow", "Failed", |pod| pod.phase() == "Failed");
    assert_eq!(failed.0["status"]["reason"], "DeadlineExceeded");
}

#[test]
fn done_job_stays_done_without_its_sandbox() {
    let mut host = TestHost::start();
    for (name, policy, script, phase) in
        [("well", "OnFailure", "echo done", "Succeeded"), ("badly", "Never", "echo done; exit 3", "Failed")]
    {
        host.write_manifest(&format!("{name}.yaml"), &manifest(name, &format!("  restartPolicy: {policy}\n"), script));
        host.wait_for_pod(name, phase, |pod| pod.phase() == phase);
    }
    let ids = |host: &TestHost| ["well", "badly"].map(|name| host.pod(name).unwrap().container_id("main"));
    let before = ids(&host);
    host.stop_daemon();
    // As after a reboot: what is in memory is gone.
    let run = host.path("run/pods");
    if run.try_exists().unwrap() {
        fs::remove_dir_all(run).unwrap();
    }
    host.start_daemon();
    for (name, phase) in [("well", "Succeeded"), ("badly", "Failed")] {
        host.wait_for_pod(name, phase, |pod| pod.phase() == phase);
        assert_eq!(host.logs(name, "main"), "done\n", "it must not run again");
    }
    assert_eq!(ids(&host), before);
    let table = host.cli_ok(&["get", "pods"]);
    for (name, status) in [("well-edge-1", "Completed"), ("badly-edge-1", "Error")] {
        assert!(table.lines().any(|line| line.starts_with(name) && line.contains(status)), "{table}");
    }
}
