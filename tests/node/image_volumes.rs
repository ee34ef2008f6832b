//! Volumes made from images.

use crate::support::{TestHost, eventually, leftovers};
use std::fs;

fn pod(reference: &str, policy: &str, mounts: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:
    - {{name: c, image: localhost/busybox:1, command: [sleep, '1000000'], volumeMounts: [{{name: i, mountPath: /image}}{mounts}]}}
  volumes: [{{name: i, image: {{reference: '{reference}', pullPolicy: {policy}}}}}]\n"
    )
}

fn sh(host: &TestHost, script: &str) -> String {
    host.exec("web", "c", &["/bin/sh", "-c", script])
}

/// shows: spec.volumes[].image.reference, spec.volumes[].image.pullPolicy
#[test]
fn image_volume_is_read_only_and_kept() {
    let mut host = TestHost::start();
    host.write_manifest("web.yaml", &pod("localhost/none:1", "Never", ""));
    host.wait_for_pod("web", "to wait", |pod| pod.waiting_reason("c") == "ErrImageNeverPull");

    host.write_manifest("web.yaml", &pod("localhost/busybox:1", "IfNotPresent", ", {name: i, mountPath: /bins, subPath: bin}"));
    let pod = host.wait_running("web");
    assert_eq!(sh(&host, "cmp /image/bin/busybox /bin/busybox && cmp /bins/busybox /bin/busybox && echo same"), "same\n");
    let refused = "touch /image/x 2>/dev/null || echo read-only; /image/bin/busybox true 2>/dev/null || echo no programs";
    assert_eq!(sh(&host, refused), "read-only\nno programs\n");
    assert_eq!(sh(&host, "/bins/busybox true 2>/dev/null || echo no programs"), "no programs\n");

    // The mount table of the host says which layers are in use, also to a daemon that has just started.
    let mounted = || {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = host.path("state/pods").join(pod.uid()).join("volumes/image/i").display().to_string();
        table.lines().find(|line| line.contains(&place)).map(str::to_owned)
    };
    assert!(mounted().is_some_and(|line| line.contains("/images/layers/")), "{:?}", mounted());
    host.cli_ok(&["image", "rm", "--force", "localhost/busybox:1"]);
    host.kill_daemon();
    fs::remove_file(host.path("preload/busybox.tar")).unwrap();
    host.start_daemon();
    assert_eq!(host.wait_running("web").container_id("c"), pod.container_id("c"));
    assert_eq!(sh(&host, "cmp /image/bin/busybox /bin/busybox && echo same"), "same\n");

    host.remove_manifest("web.yaml");
    host.wait_gone("web");
    eventually("no mount to be left", || {
        let left = leftovers(&pod.uid());
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    });
    assert!(!host.path("state/pods").join(pod.uid()).is_dir());
}
