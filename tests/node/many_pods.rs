//! Many pods at once.

use crate::support::{TestHost, binary, eventually_within};
use std::process::Command;
use std::time::Duration;

#[test]
fn hundred_pods_from_one_rename_all_run() {
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

/// A network namespace; it goes with this.
struct Netns(String);

impl Netns {
    fn with_lo_alone() -> Self {
        let netns = Self(format!("pscold{}", std::process::id()));
        ip(&["netns", "add", &netns.0]);
        ip(&["-n", &netns.0, "link", "set", "lo", "up"]);
        netns
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "del", &self.0]).status().ok();
    }
}

fn ip(arguments: &[&str]) -> String {
    let out = Command::new("ip").args(arguments).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The clock is this machine's own: that it may also be that of 1970 is shown in a virtual machine (`make vm`).
#[test]
fn cold_start_from_last_good_set_works() {
    let netns = Netns::with_lo_alone();
    let mut host = TestHost::prepare_in(&netns.0, "network: {type: none}\n");
    for number in 0..50 {
        let manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}}\n"
        );
        host.write_manifest(&format!("p{number}.yaml"), &manifest);
    }
    let all_run = |host: &TestHost| {
        eventually_within(Duration::from_secs(180), "50 pods to run", || {
            match host.pods().iter().filter(|pod| pod.phase() == "Running" && pod.runs("main")).count() {
                50 => Ok(()),
                count => Err(format!("{count} run")),
            }
        });
    };
    host.start_daemon();
    all_run(&host);
    let ids = |host: &TestHost| host.pods().iter().map(|pod| pod.container_id("main")).collect::<std::collections::BTreeSet<_>>();
    let before = ids(&host);

    // As after a power cut: nothing runs, and what the manifests were read from is not there.
    host.kill_daemon();
    let stopped =
        Command::new(binary("podstead")).arg("--config").arg(host.path("config.yaml")).args(["stop", "--all"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    std::fs::rename(host.path("manifests"), host.path("elsewhere")).unwrap();
    host.start_daemon();
    all_run(&host);
    assert!(ids(&host).is_disjoint(&before), "all of them are new");
    assert_eq!(ip(&["-n", &netns.0, "-o", "link", "show", "up"]).lines().count(), 1, "no interface but lo");
}
