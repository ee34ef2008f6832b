//! Pauses between the runs of what ends by itself, by the times that the runs themselves note (kubelet rule D9).

use crate::support::{TestHost, eventually_within};
use std::fs;
use std::time::Duration;

/// Script of each run: it notes the time since the machine's start, and ends.
fn run(pod: &str, code: u8) -> String {
    format!("command: [/bin/sh, -c, 'read at rest < /proc/uptime; echo $at >> /work/{pod}; exit {code}']")
}

/// A pod whose `CONTAINER`s have image and volume.
fn manifest(host: &TestHost, pod: &str, spec: &str) -> String {
    let container = "name: c, image: 'localhost/busybox:1', volumeMounts: [{name: work, mountPath: /work}]";
    let volume = format!("  volumes: [{{name: work, hostPath: {{path: {}}}}}]\n", host.path("work").display());
    let spec = spec.replace("CONTAINER", container);
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {pod}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}{volume}")
}

/// Waits for as many pauses of a pod's container as are expected; a busy machine makes them longer than they have to be, never shorter.
fn assert_pauses(host: &TestHost, pod: &str, least: &[f64]) {
    let starts: Vec<f64> = eventually_within(Duration::from_secs(120), &format!("{} pauses of {pod}", least.len()), || {
        let text = fs::read_to_string(host.path("work").join(pod)).unwrap_or_default();
        let starts: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if starts.len() > least.len() { Ok(starts) } else { Err(format!("{starts:?}")) }
    });
    for (pair, least) in starts.windows(2).zip(least) {
        let pause = pair[1] - pair[0];
        assert!(pause >= *least && pause < *least + 8.0, "{pod} started at {starts:?}; expected were pauses of {least}");
    }
}

#[test]
fn d9_pauses_between_runs_double_from_ten_seconds() {
    let host = TestHost::start();
    fs::create_dir(host.path("work")).unwrap();
    let main = format!("  containers: [{{CONTAINER, {}}}]\n", run("main", 0));
    let init = format!(
        "  restartPolicy: OnFailure\n  initContainers: [{{CONTAINER, {}}}]\n  \
         containers: [{{name: later, image: 'localhost/busybox:1', command: [sleep, '1000000']}}]\n",
        run("init", 1)
    );
    let rules = "restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]";
    let ruled = format!("  restartPolicy: Never\n  containers: [{{CONTAINER, {rules}, {}}}]\n", run("ruled", 42));
    for (pod, spec) in [("main", &main), ("init", &init), ("ruled", &ruled)] {
        host.write_manifest(&format!("{pod}.yaml"), &manifest(&host, pod, spec));
    }
    for pod in ["main", "init", "ruled"] {
        assert_pauses(&host, pod, &[0.0, 10.0, 20.0]);
    }
}

#[test]
fn d9_pauses_keep_their_limit_without_daemon() {
    let mut host = TestHost::start_with("crashLoopBackOff: {maxContainerRestartPeriodSeconds: 3}\n");
    fs::create_dir(host.path("work")).unwrap();
    let spec = format!("  containers: [{{CONTAINER, {}}}]\n", run("crash", 1));
    host.write_manifest("crash.yaml", &manifest(&host, "crash", &spec));
    host.wait_for_pod("crash", "a pause", |pod| pod.restarts("c") >= 1 && pod.waiting_reason("c") == "CrashLoopBackOff");
    host.kill_daemon();
    host.start_daemon();
    assert_pauses(&host, "crash", &[0.0, 3.0, 3.0, 3.0]);
}

#[test]
fn d9_lost_sandbox_shortens_no_pause() {
    let host = TestHost::start();
    fs::create_dir(host.path("work")).unwrap();
    let spec = format!("  containers: [{{CONTAINER, {}}}]\n", run("crash", 1));
    host.write_manifest("crash.yaml", &manifest(&host, "crash", &spec));
    let pod = host.wait_for_pod("crash", "a pause", |pod| pod.restarts("c") == 1 && pod.waiting_reason("c") == "CrashLoopBackOff");
    let shim = nix::unistd::Pid::from_raw(host.shim_pid(&pod) as i32);
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_pauses(&host, "crash", &[0.0, 10.0]);
}
