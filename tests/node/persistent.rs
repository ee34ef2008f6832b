//! Persistent volumes: data that outlive their pods.

use crate::support::{Strace, TestHost, eventually, eventually_within, leftovers};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// Time for the search for what nobody uses any more, once a minute.
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
fn claim_data_outlive_pod_daemon_and_claim() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &pod("web", "data", "", ""));
    let waiting = host.wait_for_pod("web", "to wait", |pod| {
        pod.waiting_reason("c") == "ContainerCreating" && pod.container("c")["state"]["waiting"]["message"].is_string()
    });
    let told = "MountVolume.SetUp failed for volume \"d\" : persistentvolumeclaim \"data\" not found in namespace \"default\" (looked in source manifests)";
    assert_eq!(waiting.container("c")["state"]["waiting"]["message"].as_str(), Some(told));

    host.write_manifest("a-claim.yaml", &claim("data", "ReadWriteOnce", "Retain"));
    let first = host.wait_running("web").uid();
    sh(&host, "web", "echo one > /data/file");
    let listed = host.cli_ok(&["get", "pvc", "-o", "wide"]);
    let words: Vec<&str> = listed.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(words[..3], ["data", "Bound", "1Gi"]);
    assert_eq!(words[4..7], ["RWO", "Retain", "web-edge-1"]);

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

/// A host with the data of a claim that no source has any more, used by nobody.
fn with_released_data() -> TestHost {
    let host = TestHost::start();
    host.write_manifest("a-claim.yaml", &claim("data", "ReadWriteOnce", "Retain"));
    host.write_manifest("web.yaml", &pod("web", "data", "", ""));
    host.wait_running("web");
    sh(&host, "web", "mkdir /data/deep; for n in 1 2 3 4 5 6 7 8; do head -c 100000 /dev/zero > /data/deep/$n; done");
    host.remove_manifest("a-claim.yaml");
    wait_phase(&host, "Released");
    host
}

fn wait_phase(host: &TestHost, phase: &str) {
    eventually(&format!("the claim to be {phase}"), || {
        let listed = host.cli_ok(&["get", "pvc", "-o", "wide"]);
        if listed.contains(phase) { Ok(()) } else { Err(listed) }
    });
}

#[test]
fn data_without_claim_are_deleted_on_request() {
    let host = with_released_data();
    let claim = |words: &[&str]| -> serde_json::Value { serde_json::from_str(&host.cli_ok(words)).unwrap() };
    let told = claim(&["get", "pvc", "data", "-n", "default", "-o", "json"]);
    assert_eq!((&told["status"]["phase"], &told["spec"]["accessModes"][0]), (&"Released".into(), &"ReadWriteOnce".into()));
    let annotations = &told["metadata"]["annotations"];
    assert_eq!(annotations["podstead.dev/used-by"], "web-edge-1");
    let bytes: u64 = annotations["podstead.dev/used-bytes"].as_str().unwrap().parse().unwrap();
    assert!((800_000..2_000_000).contains(&bytes), "{bytes}");
    assert!(told["metadata"]["creationTimestamp"].is_string());
    assert!(host.cli_ok(&["get", "pvc", "-o", "yaml"]).contains("phase: Released"));
    assert_eq!(host.cli_ok(&["volume", "ls", "-o", "name"]), "persistentvolumeclaim/data\n");

    // The pod still uses them.
    assert_eq!(
        host.cli_ok(&["volume", "prune", "--yes"]),
        "keeping default/data: used by web-edge-1\nno claims are released and unused\n"
    );
    let refused = host.cli(&["volume", "prune", "data", "--yes"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("is used by 1 of this host's pods: web-edge-1"), "{message}");
    host.remove_manifest("web.yaml");
    host.wait_gone("web");

    // Without a terminal it is not asked, and nothing is deleted.
    let asked = host.cli(&["volume", "prune"]);
    assert!(!asked.status.success() && String::from_utf8_lossy(&asked.stderr).contains("--yes"));
    assert!(data(&host, "data").join("deep/8").is_file());

    // Nor what a source wants.
    host.write_manifest("a-claim.yaml", &self::claim("data", "ReadWriteOnce", "Retain"));
    wait_phase(&host, "Bound");
    let refused = host.cli(&["volume", "prune", "data", "--yes"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("is declared by source manifests"));
    host.remove_manifest("a-claim.yaml");
    wait_phase(&host, "Released");
    let said = host.cli_ok(&["volume", "prune", "--yes"]);
    assert!(said.starts_with("default/data deleted (") && said.lines().count() == 1, "{said}");
    assert!(!data(&host, "data").is_dir());
    assert!(!host.cli_ok(&["get", "pvc"]).contains("data"));
    assert_eq!(fs::read_dir(host.path("state/volumes/.trash")).unwrap().count(), 0);
}

#[test]
fn interrupted_deletion_is_finished_later() {
    let mut host = with_released_data();
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    // Each file takes a second.
    let log = host.path("strace.log");
    let options = ["-e", "trace=unlinkat", "-e", "inject=unlinkat:delay_enter=1000000"];
    let strace = Strace::attach(host.daemon_pid(), &options, log);
    let trash = host.path("state/volumes/.trash");
    std::thread::scope(|scope| {
        let pruning = scope.spawn(|| host.cli(&["volume", "prune", "--yes"]));
        eventually("the deletion to begin", || {
            let begun = strace.log().contains("unlinkat") && fs::read_dir(&trash).is_ok_and(|entries| entries.count() == 1);
            if begun { Ok(()) } else { Err(strace.log()) }
        });
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(host.daemon_pid().cast_signed()), nix::sys::signal::Signal::SIGKILL)
            .unwrap();
        assert!(!pruning.join().unwrap().status.success(), "nobody said that all is deleted");
    });
    drop(strace);
    assert_eq!(fs::read_dir(&trash).unwrap().count(), 1, "it died in the middle");
    assert!(!data(&host, "data").is_dir(), "one rename took all of it away");
    host.kill_daemon();
    host.start_daemon();
    eventually("the rest to be deleted", || {
        let left = fs::read_dir(&trash).unwrap().count();
        if left == 0 { Ok(()) } else { Err(left.to_string()) }
    });
    assert!(!host.cli_ok(&["get", "pvc"]).contains("data"));
}

#[test]
fn claim_data_wait_for_their_last_pod() {
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
    host.wait_running("web");
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
fn exclusive_claim_is_one_pods_at_time() {
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
fn claim_data_belong_to_group_by_policy() {
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
fn example_with_persistent_volume_counts_on() {
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
fn names_of_claim_data_outlive_power_cut() {
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
