//! Persistent volumes: data that outlive their pods.

use crate::support::{Strace, TestHost, eventually, eventually_within, leftovers};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// What nobody uses any more is looked for once a minute.
const PATIENCE: Duration = Duration::from_secs(150);

fn claim(name: &str, mode: &str, policy: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: {name}\n  annotations: {{podstead.dev/reclaim-policy: {policy}}}\nspec:\n  accessModes: [{mode}]\n  resources: {{requests: {{storage: 1Gi}}}}\n"
    )
}

/// A pod whose container has the claim at `/data`.
fn pod(name: &str, claim: &str, spec: &str, source: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}  containers:
    - {{name: c, image: localhost/busybox:1, command: [sleep, '1000000'], volumeMounts: [{{name: d, mountPath: /data}}]}}
  volumes: [{{name: d, persistentVolumeClaim: {{claimName: {claim}{source}}}}}]\n"
    )
}

fn sh(host: &TestHost, pod: &str, script: &str) -> String {
    host.exec(pod, "c", &["/bin/sh", "-c", script])
}

fn data(host: &TestHost, claim: &str) -> PathBuf {
    host.path("state/volumes/default").join(claim).join("data")
}

/// shows: spec.volumes[].persistentVolumeClaim.claimName, spec.volumes[].persistentVolumeClaim.readOnly
#[test]
fn data_of_a_claim_outlive_the_pod_and_the_daemon_and_the_claim() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &pod("web", "data", "", ""));
    let waiting = host.wait_for_pod("web", "to wait", |pod| pod.waiting_reason("c") == "ContainerCreating");
    let told = "MountVolume.SetUp failed for volume \"d\": persistentvolumeclaim \"data\" not found in namespace \"default\" (looked in source manifests)";
    assert_eq!(waiting.container("c")["state"]["waiting"]["message"].as_str(), Some(told));

    host.write_manifest("a-claim.yaml", &claim("data", "ReadWriteOnce", "Retain"));
    let first = host.wait_running("web").uid();
    sh(&host, "web", "echo one > /data/file");
    let listed = host.cli_ok(&["get", "pvc"]);
    let words: Vec<&str> = listed.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(words, ["default", "data", "Bound", "1Gi", "ReadWriteOnce", "Retain", "manifests"]);

    // Another pod of the same host may share it, and cannot write where it says so.
    host.write_manifest("reader.yaml", &pod("reader", "data", "", ", readOnly: true"));
    host.wait_running("reader");
    assert_eq!(sh(&host, "reader", "cat /data/file; touch /data/x 2>/dev/null || echo refused"), "one\nrefused\n");

    for file in ["web.yaml", "reader.yaml"] {
        host.remove_manifest(file);
    }
    host.wait_gone("web");
    host.wait_gone("reader");
    assert_eq!(leftovers(&first), Vec::<String>::new());
    host.kill_daemon();
    host.start_daemon();
    host.write_manifest("web.yaml", &pod("web", "data", "", ""));
    assert_ne!(host.wait_running("web").uid(), first);
    assert_eq!(sh(&host, "web", "cat /data/file"), "one\n");

    // Without the claim, what runs goes on, and what it wrote stays.
    host.remove_manifest("a-claim.yaml");
    host.wait_for_pod("web", "to go on", |pod| pod.runs("c"));
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(fs::read_to_string(data(&host, "data").join("file")).unwrap(), "one\n");
}

#[test]
fn data_are_deleted_with_a_claim_that_says_so_and_not_before_the_last_pod() {
    let mut host = TestHost::start();
    host.write_manifest("a-claim.yaml", &claim("cache", "ReadWriteOnce", "Delete"));
    host.write_manifest("web.yaml", &pod("web", "cache", "", ""));
    host.wait_running("web");
    sh(&host, "web", "mkdir /data/deep; touch /data/deep/file");
    host.remove_manifest("a-claim.yaml");
    host.write_manifest("other.yaml", &claim("other", "ReadWriteOnce", "Delete"));
    eventually_within(PATIENCE, "the other claim to be bound", || {
        if data(&host, "other").is_dir() { Ok(()) } else { Err(String::new()) }
    });
    assert_eq!(sh(&host, "web", "ls /data/deep"), "file\n");
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(sh(&host, "web", "ls /data/deep"), "file\n");
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    // Any change of claims is a reason to look.
    host.write_manifest("third.yaml", &claim("third", "ReadWriteOnce", "Retain"));
    eventually_within(PATIENCE, "the data to be deleted", || {
        let left = fs::read_dir(host.path("state/volumes/.trash")).map_or(0, Iterator::count);
        if data(&host, "cache").is_dir() || left > 0 { Err(format!("{left} in the trash")) } else { Ok(()) }
    });
    assert!(data(&host, "other").is_dir());
}

#[test]
fn an_exclusive_claim_is_one_pods_at_a_time() {
    let host = TestHost::start();
    host.write_manifest("a-claim.yaml", &claim("data", "ReadWriteOncePod", "Retain"));
    host.write_manifest("first.yaml", &pod("first", "data", "", ""));
    host.wait_running("first");
    host.write_manifest("second.yaml", &pod("second", "data", "", ""));
    let events = eventually_within(PATIENCE, "the event", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("ReadWriteOncePod") { Ok(events) } else { Err(events) }
    });
    assert!(
        events.contains("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"),
        "{events}"
    );
    assert!(!host.pod("second").unwrap().runs("c"));
    host.remove_manifest("first.yaml");
    host.wait_gone("first");
    host.wait_running("second");
}

/// shows: spec.securityContext.fsGroup, spec.securityContext.fsGroupChangePolicy
#[test]
fn data_of_a_claim_belong_to_the_group_when_the_policy_says_so() {
    let host = TestHost::start();
    host.write_manifest("a-claim.yaml", &claim("data", "ReadWriteOnce", "Retain"));
    let user = |policy: &str| format!("  securityContext: {{runAsUser: 1000, fsGroup: 4321{policy}}}\n");
    host.write_manifest("one.yaml", &pod("one", "data", &user(""), ""));
    host.wait_running("one");
    sh(&host, "one", "touch /data/file");
    let file = data(&host, "data").join("file");
    let gid = || fs::metadata(&file).unwrap().gid();
    assert_eq!(gid(), 4321, "what is made there is the group's");
    std::os::unix::fs::chown(&file, None, Some(7)).unwrap();
    host.write_manifest("two.yaml", &pod("two", "data", &user(", fsGroupChangePolicy: OnRootMismatch"), ""));
    host.wait_running("two");
    assert_eq!(gid(), 7, "the volume itself is the group's already");
    host.write_manifest("three.yaml", &pod("three", "data", &user(", fsGroupChangePolicy: Always"), ""));
    host.wait_running("three");
    assert_eq!(gid(), 4321);
}

#[test]
fn the_example_with_a_persistent_volume_counts_on_when_it_is_made_anew() {
    let host = TestHost::start();
    let example = include_str!("../../manifests/persistent.yaml");
    host.write_manifest("persistent.yaml", example);
    host.wait_log("counter", "main", "start number 1");
    let pod = host.wait_running("counter");
    host.remove_manifest("persistent.yaml");
    host.wait_gone("counter");
    host.write_manifest("persistent.yaml", example);
    host.wait_log("counter", "main", "start number 2");
    assert_ne!(host.wait_running("counter").uid(), pod.uid());
}

#[test]
fn every_name_that_leads_to_the_data_of_a_claim_outlives_a_power_cut() {
    let host = TestHost::start();
    let strace = Strace::attach(host.daemon_pid(), &["-e", "trace=fsync"], host.path("strace.log"));
    let wait_synced = |path: PathBuf| {
        let synced = format!("<{}>", path.display());
        eventually(&format!("{synced} to be synced"), || {
            let log = strace.log();
            if log.contains(&synced) { Ok(()) } else { Err(log) }
        });
    };
    host.write_manifest("claim.yaml", &claim("data", "ReadWriteOnce", "Retain"));
    host.write_manifest("web.yaml", &pod("web", "data", "", ""));
    let uid = host.wait_running("web").uid();
    // The directory whose entry is new, for each on the way: no journal of a file system is relied upon.
    for directory in ["state", "state/volumes", "state/volumes/default", "state/volumes/default/data"] {
        wait_synced(host.path(directory));
    }
    for directory in ["", "/volumes", "/volumes/claims"] {
        wait_synced(host.path(&format!("state/pods/{uid}{directory}")));
    }
}
