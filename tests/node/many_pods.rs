//! Many pods at once.

use crate::support::{TestHost, eventually_within};
use std::time::Duration;

#[test]
fn a_hundred_pods_from_one_rename_of_a_directory_into_place_all_run() {
    let host = TestHost::prepare("");
    let staging = host.path("staging");
    std::fs::create_dir(&staging).unwrap();
    for number in 0..100 {
        let manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}}\n"
        );
        std::fs::write(staging.join(format!("p{number}.yaml")), manifest).unwrap();
    }
    let mut host = host;
    host.start_daemon();
    let manifests = host.path("manifests");
    std::fs::rename(&manifests, host.path("old")).unwrap();
    std::fs::rename(&staging, &manifests).unwrap();
    let running = |host: &TestHost| host.pods().iter().filter(|pod| pod.phase() == "Running" && pod.runs("main")).count();
    eventually_within(Duration::from_secs(180), "100 pods to run", || match running(&host) {
        100 => Ok(()),
        count => Err(format!("{count} run")),
    });
    // None is lost when the daemon dies, and none restarts.
    host.kill_daemon();
    host.start_daemon();
    eventually_within(Duration::from_secs(60), "100 pods to be adopted", || match running(&host) {
        100 => Ok(()),
        count => Err(format!("{count} run")),
    });
    assert!(host.pods().iter().all(|pod| pod.restarts("main") == 0));
    for number in 0..100 {
        host.remove_manifest(&format!("p{number}.yaml"));
    }
    eventually_within(Duration::from_secs(180), "all pods to be gone", || match host.pods().len() {
        0 => Ok(()),
        count => Err(format!("{count} left")),
    });
}
