//! Trees deeper than any path, any stack and any table of descriptors, where podstead walks: removal and the count of what a pod uses.

use crate::support::{TestHost, eventually};
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

const LEVELS: usize = 20_000;

/// Makes directories in each other, as a process does that stays in the innermost one.
fn nest(directory: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut innermost: OwnedFd = fs::File::open(directory).unwrap().into();
    for _ in 0..LEVELS {
        mkdirat(&innermost, "d", Mode::from_raw_mode(0o755)).unwrap();
        innermost = openat(&innermost, "d", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn daemon_starts_with_deep_tree_in_staging() {
    let mut host = TestHost::prepare("");
    let layer = host.path("state/images/staging/0/fs");
    fs::create_dir_all(&layer).unwrap();
    nest(&layer);
    host.start_daemon();
    // The test image may be in staging by now.
    assert!(!layer.join("d").try_exists().unwrap(), "{}", host.daemon_log());
}

#[test]
fn deep_trees_of_pod_are_removed() {
    let host = TestHost::start();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: deep}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  \
               - {name: c, image: localhost/busybox:1, command: [sleep, '1000'], resources: {limits: {ephemeral-storage: 1Gi}}, \
               volumeMounts: [{name: v, mountPath: /v}]}\n  volumes: [{name: v, emptyDir: {sizeLimit: 70Mi}}]\n";
    host.write_manifest("deep.yaml", pod);
    let view = host.wait_running("deep");
    let shim = host.shim_pid(&view);
    let daemon = host.daemon_pid();
    // From inside, as a container does it: its working directory is the innermost one.
    let inside = |path: &str| Path::new("/proc").join(host.container_pid(&view, "c").to_string()).join("root").join(path);
    nest(&inside("v"));
    nest(&inside("tmp"));
    // All levels but the last few together are more than the volume may hold: the count reaches them.
    host.wait_for_pod("deep", "eviction", |pod| pod.0["status"]["reason"] == "Evicted");
    host.remove_manifest("deep.yaml");
    host.wait_gone("deep");
    let state = host.path("state/pods").join(view.uid());
    eventually("what the pod had to be removed", || match state.try_exists() {
        Ok(false) => Ok(()),
        other => Err(format!("{other:?}\n{}", host.daemon_log())),
    });
    assert_eq!(host.daemon_pid(), daemon);
    assert!(crate::support::process_exists(daemon), "the daemon lives");
    eventually("the shim to end", || if crate::support::process_exists(shim) { Err(shim.to_string()) } else { Ok(()) });
    let log = host.daemon_log();
    assert!(!log.contains("overflow") && !log.contains("Too many open files"), "{log}");
}
