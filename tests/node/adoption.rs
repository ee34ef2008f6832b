//! The daemon may die at any moment; the containers do not notice, and nothing that happened meanwhile is lost.

use crate::support::{TestHost, eventually, leftovers, process_exists};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const MANIFEST: &str = "
apiVersion: v1
kind: Pod
metadata: {name: ticker}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: ticker
      image: localhost/busybox:1
      command: [/bin/sh, -c, 'i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.02; done']
    - name: waiter
      image: localhost/busybox:1
      command: [/bin/sh, -c, 'echo up; exec sleep 1000000']
";

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

fn ticks(log: &str) -> Vec<u64> {
    log.lines().filter_map(|line| line.strip_prefix("tick ")).map(|number| number.parse().unwrap()).collect()
}

#[test]
fn kill_9_of_daemon_loses_nothing() {
    let mut host = TestHost::start();
    host.write_manifest("ticker.yaml", MANIFEST);
    let before = host.wait_running("ticker");
    let pid = host.container_pid(&before, "ticker");
    host.wait_log("ticker", "ticker", "tick 20");
    host.kill_daemon();
    assert!(process_exists(pid));
    host.start_daemon();
    let after = host.wait_running("ticker");
    assert_eq!(after.uid(), before.uid());
    for container in ["ticker", "waiter"] {
        assert_eq!(after.container_id(container), before.container_id(container));
        assert_eq!(after.restarts(container), 0);
    }
    assert!(process_exists(pid));
    let seen = ticks(&host.logs("ticker", "ticker")).len();
    let log = eventually("more ticks", || {
        let log = host.logs("ticker", "ticker");
        (ticks(&log).len() > seen + 20).then_some(log).ok_or("no more ticks".to_owned())
    });
    let numbers = ticks(&log);
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "every line once, in order");
}

#[test]
fn exit_without_daemon_is_recorded_and_handled() {
    let mut host = TestHost::start();
    host.write_manifest("ticker.yaml", MANIFEST);
    let before = host.wait_running("ticker");
    let pid = host.container_pid(&before, "waiter");
    host.kill_daemon();
    signal(pid, Signal::SIGKILL);
    eventually("the process to end", || if process_exists(pid) { Err("alive".into()) } else { Ok(()) });
    host.start_daemon();
    let after = host.wait_for_pod("ticker", "the waiter to run again", |pod| pod.runs("waiter") && pod.restarts("waiter") == 1);
    assert_eq!(after.container("waiter")["lastState"]["terminated"]["exitCode"], 137);
    assert_eq!(after.container_id("ticker"), before.container_id("ticker"));
}

#[test]
fn manifest_removed_without_daemon_ends_its_pod() {
    let mut host = TestHost::start();
    host.write_manifest("ticker.yaml", MANIFEST);
    host.write_manifest("other.yaml", &MANIFEST.replace("name: ticker}", "name: other}"));
    let pod = host.wait_running("ticker");
    host.wait_running("other");
    host.kill_daemon();
    host.remove_manifest("ticker.yaml");
    host.start_daemon();
    host.wait_gone("ticker");
    eventually("nothing of it to be left", || {
        let rest = leftovers(&pod.uid());
        if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?}")) }
    });
    host.wait_running("other");
}

#[test]
fn kill_9_of_shim_restarts_its_pod() {
    let host = TestHost::start();
    host.write_manifest("ticker.yaml", MANIFEST);
    let before = host.wait_running("ticker");
    let pids = [host.container_pid(&before, "ticker"), host.container_pid(&before, "waiter")];
    let shim = host.shim_pid(&before);
    signal(shim, Signal::SIGKILL);
    let after = host.wait_for_pod("ticker", "both containers to run anew", |pod| {
        pod.runs("ticker")
            && pod.runs("waiter")
            && pod.container_id("ticker") != before.container_id("ticker")
            && pod.container_id("waiter") != before.container_id("waiter")
    });
    assert_eq!(after.uid(), before.uid());
    assert!(pids.iter().all(|pid| !process_exists(*pid)), "no container outlives its shim");
    host.remove_manifest("ticker.yaml");
    host.wait_gone("ticker");
    eventually("nothing of it to be left", || {
        let rest = leftovers(&before.uid());
        if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?}")) }
    });
}

#[test]
fn power_cut_of_processes_restarts_the_pod() {
    let mut host = TestHost::start();
    host.write_manifest("ticker.yaml", MANIFEST);
    let before = host.wait_running("ticker");
    let shim = host.shim_pid(&before);
    host.kill_daemon();
    signal(shim, Signal::SIGKILL);
    host.start_daemon();
    let after = host.wait_for_pod("ticker", "both containers to run anew", |pod| {
        pod.runs("ticker") && pod.runs("waiter") && pod.container_id("ticker") != before.container_id("ticker")
    });
    assert_eq!(after.uid(), before.uid());
}

#[test]
fn manifests_directory_going_away_keeps_everything_running() {
    let mut host = TestHost::start();
    host.write_manifest("ticker.yaml", MANIFEST);
    let before = host.wait_running("ticker");
    std::fs::rename(host.path("manifests"), host.path("elsewhere")).unwrap();
    eventually("the source's failure to be reported", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("manifests") && status.contains("does not exist") { Ok(()) } else { Err(status) }
    });
    host.kill_daemon();
    host.start_daemon();
    let after = host.wait_running("ticker");
    assert_eq!(after.container_id("ticker"), before.container_id("ticker"));
    std::fs::rename(host.path("elsewhere"), host.path("manifests")).unwrap();
    host.remove_manifest("ticker.yaml");
    host.wait_gone("ticker");
}

#[test]
fn stop_all_lasts_until_the_next_daemon() {
    let mut host = TestHost::start();
    // A minute of grace, which nobody needs: what is asked ends.
    let polite = MANIFEST
        .replace("Seconds: 1", "Seconds: 60")
        .replace("'i=0;", r#"'trap "exit 0" TERM; i=0;"#)
        .replace("'echo up; exec sleep 1000000'", r#"'trap "echo bye; exit 3" TERM; echo up; while true; do sleep 0.05; done'"#);
    host.write_manifest("ticker.yaml", &polite);
    let before = host.wait_running("ticker");
    host.wait_log("ticker", "waiter", "up");
    let pids = ["ticker", "waiter"].map(|container| host.container_pid(&before, container));
    let config = host.path("config.yaml");
    let stop = ["--config", config.to_str().unwrap(), "stop", "--all"];
    let refused = host.cli(&stop);
    assert!(!refused.status.success(), "a daemon runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("systemctl stop podstead"));
    host.stop_daemon();
    assert_eq!(host.cli_ok(&stop), "stopped ticker-edge-1_default\n");
    assert!(pids.iter().all(|pid| !process_exists(*pid)));
    assert!(host.cli_ok(&stop).is_empty(), "there is nothing left to stop");
    host.start_daemon();
    let after = host.wait_for_pod("ticker", "both to run again", |pod| pod.runs("waiter") && pod.runs("ticker"));
    assert_eq!(after.uid(), before.uid());
    assert_eq!(after.container("waiter")["lastState"]["terminated"]["exitCode"], 3, "it was asked, not killed");
}
