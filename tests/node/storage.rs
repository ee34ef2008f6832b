//! Limits of pods on the host's disk, and the eviction of pods that use more.

use crate::support::{TestHost, eventually, eventually_within, leftovers};
use std::fs;
use std::time::Duration;

/// Pauses between measurements and before a pod is made anew take their time.
const PATIENCE: Duration = Duration::from_secs(120);

const NO_PAUSE: &str = "crashLoopBackOff: {maxContainerRestartPeriodSeconds: 1}\n";

fn pod(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}")
}

/// A container that writes 4 MiB into its writable layer and sleeps.
fn writer(more: &str) -> String {
    format!(
        "{{name: c, image: localhost/busybox:1, command: [/bin/sh, -c, 'dd if=/dev/zero of=/big bs=1M count=4; sleep 1000000'], {more}}}"
    )
}

fn wait_evicted(host: &TestHost, name: &str, message: &str) -> String {
    eventually_within(PATIENCE, "the eviction", || {
        let pod = host.pod(name).ok_or("no such pod")?;
        let (reason, told) = (pod.0["status"]["reason"].as_str(), pod.0["status"]["message"].as_str());
        if pod.phase() == "Failed" && reason == Some("Evicted") && told == Some(message) {
            Ok(pod.uid())
        } else {
            Err(pod.0["status"].to_string())
        }
    })
}

/// shows: spec.volumes[].emptyDir.sizeLimit
#[test]
fn empty_dir_over_limit_evicts_its_pod() {
    let host = TestHost::start_with(NO_PAUSE);
    // Writes only the first time, so that the second pod stays.
    let marks = host.path("marks");
    fs::create_dir(&marks).unwrap();
    let spec = format!(
        "  containers:
    - name: c
      image: localhost/busybox:1
      command: [/bin/sh, -c, 'until test -e /m/go; do sleep 1; done; test -e /m/done || dd if=/dev/zero of=/d/big bs=1M count=4; touch /m/done; sleep 1000000']
      volumeMounts: [{{name: d, mountPath: /d}}, {{name: m, mountPath: /m}}]
  volumes: [{{name: d, emptyDir: {{sizeLimit: 2Mi}}}}, {{name: m, hostPath: {{path: {}}}}}]
",
        marks.display()
    );
    host.write_manifest("web.yaml", &pod("web", &spec));
    let first = host.wait_running("web").uid();
    fs::write(marks.join("go"), "").unwrap();
    let events = eventually_within(PATIENCE, "the event", || {
        let events = host.cli_ok(&["get", "events"]);
        if events.contains("Evicted") { Ok(events) } else { Err(events) }
    });
    assert!(events.contains("Usage of EmptyDir volume \"d\" exceeds the limit \"2Mi\"."), "{events}");
    let second = eventually_within(PATIENCE, "the pod to be made anew", || {
        let pod = host.pod("web").ok_or("no pod")?;
        if pod.uid() != first && pod.runs("c") { Ok(pod.uid()) } else { Err(pod.0["status"].to_string()) }
    });
    assert_eq!(host.exec("web", "c", &["/bin/ls", "-A", "/d"]), "");
    eventually("nothing of the first pod to be left", || {
        let left = leftovers(&first);
        if left.is_empty() && !host.path("state/pods").join(&first).is_dir() { Ok(()) } else { Err(left.join("\n")) }
    });
    assert_ne!(first, second);
}

/// shows: spec.containers[].resources.limits
#[test]
fn finite_pod_over_limit_stays_evicted() {
    let mut host = TestHost::start_with(NO_PAUSE);
    let limited = writer("resources: {limits: {ephemeral-storage: 2Mi}}");
    host.write_manifest("layer.yaml", &pod("layer", &format!("  restartPolicy: Never\n  containers: [{limited}]\n")));
    // Within the sum of all, beyond its own.
    let other = limited.replace("name: c,", "name: other,").replace("count=4", "count=0").replace("2Mi", "20Mi");
    host.write_manifest("own.yaml", &pod("own", &format!("  restartPolicy: Never\n  containers: [{limited}, {other}]\n")));
    let chatty = limited.replace("dd if=/dev/zero of=/big bs=1M count=4", "yes | head -c 4000000");
    host.write_manifest("logs.yaml", &pod("logs", &format!("  restartPolicy: Never\n  containers: [{chatty}]\n")));
    let unlimited = limited.replace("2Mi", "64Mi");
    host.write_manifest("fits.yaml", &pod("fits", &format!("  containers: [{unlimited}]\n")));
    let total = "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ";
    let uid = wait_evicted(&host, "layer", total);
    wait_evicted(&host, "logs", total);
    wait_evicted(&host, "own", "Container c exceeded its local ephemeral storage limit \"2Mi\". ");
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(wait_evicted(&host, "layer", total), uid);
    assert!(host.wait_running("fits").runs("c"));
    host.remove_manifest("layer.yaml");
    host.wait_gone("layer");
    assert_eq!(leftovers(&uid), Vec::<String>::new());
}

/// shows: spec.volumes[].name, spec.containers[].volumeMounts[].name
#[test]
fn empty_dir_lives_until_its_last_user() {
    let host = TestHost::start();
    let both = "  containers:
    - {name: a, image: localhost/busybox:1, command: [sleep, '1000000'], volumeMounts: [{name: d, mountPath: /d}]}
    - {name: b, image: localhost/busybox:1, command: [sleep, '1000000'], volumeMounts: [{name: e, mountPath: /e}]}
  volumes: [{name: d, emptyDir: {}}, {name: e, emptyDir: {medium: Memory}}]
";
    host.write_manifest("web.yaml", &pod("web", both));
    let before = host.wait_running("web");
    host.exec("web", "a", &["/bin/touch", "/d/kept"]);
    let directory = host.path("state/pods").join(before.uid()).join("volumes/empty-dir");
    let one = both.replace(", volumeMounts: [{name: e, mountPath: /e}]", "").replace(", {name: e, emptyDir: {medium: Memory}}", "");
    host.write_manifest("web.yaml", &pod("web", &one));
    host.wait_for_pod("web", "b to be restarted", |pod| pod.restarts("b") == 1 && pod.runs("b"));
    eventually("the tmpfs to go", || {
        let mut names: Vec<_> = fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&format!("{}/e", directory.display()));
        if names == ["d", "d.ready"] && !mounts { Ok(()) } else { Err(format!("{names:?}")) }
    });
    let after = host.wait_running("web");
    assert_eq!(after.container_id("a"), before.container_id("a"));
    assert_eq!(host.exec("web", "a", &["/bin/ls", "/d"]), "kept\n");
}
