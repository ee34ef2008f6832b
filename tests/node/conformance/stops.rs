//! Stops that take their time, which the tables cannot wait for: how the grace period is shared (kubelet rule D12), and stops that go on
//! while manifests change.

use super::away::log_directory;
use super::logs::Logs;
use crate::support::{TestHost, eventually};
use jiff::{SignedDuration, Timestamp};

/// Script of a container that never ends by itself: it says that it lives, five times a second.
const STUBBORN: &str = "trap 'echo asked' TERM; while :; do echo lives; sleep 0.2; done";

/// A pod of `containers`, of which each is a name, further fields, and a script.
fn manifest(pod: &str, grace: u32, init: &[(&str, &str, &str)], containers: &[(&str, &str, &str)]) -> String {
    let list = |containers: &[(&str, &str, &str)]| {
        let one = |(name, more, script): &(&str, &str, &str)| {
            format!("    - {{name: {name}, image: 'localhost/busybox:1', {more}command: [/bin/sh, -c, \"{script}\"]}}\n")
        };
        containers.iter().map(one).collect::<String>()
    };
    let init = if init.is_empty() { String::new() } else { format!("  initContainers:\n{}", list(init)) };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {pod}}}\nspec:\n  terminationGracePeriodSeconds: {grace}\n{init}  containers:\n{}",
        list(containers)
    )
}

fn logs(host: &TestHost, pod: &str, uid: &str, container: &str) -> Logs {
    Logs::read(&log_directory(host, pod, uid).join(container))
}

#[test]
fn d12_hooks_and_sidecars_share_grace_period() {
    let host = TestHost::start();
    let slow = "trap 'sleep 3; exit 0' TERM; while :; do echo lives; sleep 0.2; done";
    let hook = "lifecycle: {preStop: {exec: {command: [sleep, '5']}}}, ";
    let side = [("last", "restartPolicy: Always, ", STUBBORN)];
    host.write_manifest("shared.yaml", &manifest("shared", 9, &side, &[("main", "", slow)]));
    host.write_manifest("spent.yaml", &manifest("spent", 3, &side, &[("main", "", STUBBORN)]));
    host.write_manifest("hooked.yaml", &manifest("hooked", 9, &[], &[("last", hook, STUBBORN)]));
    let pods = ["shared", "spent", "hooked"];
    let uids = pods.map(|pod| {
        let uid = host.wait_running(pod).uid();
        for container in if pod == "hooked" { ["last", "last"] } else { ["last", "main"] } {
            host.wait_log(pod, container, "lives");
        }
        uid
    });
    let before = Timestamp::now();
    pods.iter().for_each(|pod| host.remove_manifest(&format!("{pod}.yaml")));
    pods.iter().for_each(|pod| host.wait_gone(pod));
    let [shared, spent, hooked] = [0, 1, 2].map(|at| {
        let logs = logs(&host, pods[at], &uids[at], "last");
        let asked = logs.asked(0).unwrap_or_else(|| panic!("{} was not asked: {logs:?}", pods[at]));
        (asked.duration_since(before), logs.end(0).unwrap().duration_since(asked))
    });
    let seconds = |seconds: f64| SignedDuration::from_secs_f64(seconds);
    // Nine seconds are for all: who is asked later has less.
    assert!(shared.0 >= seconds(3.0) && shared.1 >= seconds(1.0) && shared.1 < seconds(8.0), "{shared:?}");
    assert!(hooked.0 >= seconds(5.0) && hooked.1 >= seconds(1.0) && hooked.1 < seconds(6.5), "{hooked:?}");
    // When nothing is left, there are two seconds.
    assert!(spent.0 >= seconds(2.5) && spent.1 >= seconds(1.3), "{spent:?}");
}

#[test]
fn pod_end_shortens_grace_of_an_edit() {
    let host = TestHost::start();
    let with = |grace: u32, more: &str| manifest("edited", grace, &[], &[("main", more, STUBBORN)]);
    let edit = "env: [{name: EDIT, value: '1'}], ";
    host.write_manifest("edited.yaml", &with(3600, ""));
    let uid = host.wait_running("edited").uid();
    host.wait_log("edited", "main", "lives");
    host.write_manifest("edited.yaml", &with(3600, edit));
    host.wait_log("edited", "main", "asked");
    host.write_manifest("edited.yaml", &with(3, edit));
    host.wait_for_pod("edited", "a shorter grace period", |pod| pod.0["spec"]["terminationGracePeriodSeconds"] == 3);
    assert_eq!(logs(&host, "edited", &uid, "main").last(), Some(0), "its container goes on");
    host.remove_manifest("edited.yaml");
    host.wait_gone("edited");
}

#[test]
fn stop_goes_on_when_edit_is_reverted() {
    let host = TestHost::start();
    let hook = "lifecycle: {preStop: {exec: {command: [/bin/sh, -c, 'echo stopping > /proc/1/fd/1; until test -e /go; do sleep 0.1; done']}}}, ";
    let script = "trap 'echo asked; exit 0' TERM; echo run; while :; do sleep 1000000 & wait; done";
    let with = |more: &str| manifest("back", 3600, &[], &[("main", &format!("{hook}{more}"), script)]);
    let edits = |pod: &crate::support::PodView| pod.0["spec"]["containers"][0]["env"].as_array().map_or(0, Vec::len);
    host.write_manifest("back.yaml", &with(""));
    let pod = host.wait_running("back");
    host.wait_log("back", "main", "run");
    host.write_manifest("back.yaml", &with("env: [{name: EDIT, value: '1'}], "));
    host.wait_log("back", "main", "stopping");
    host.write_manifest("back.yaml", &with(""));
    host.wait_for_pod("back", "its old definition", |pod| edits(pod) == 0);
    let pid = host.container_pid(&pod, "main");
    std::fs::write(format!("/proc/{pid}/root/go"), "").unwrap();
    let after = host.wait_for_pod("back", "a second run", |pod| pod.restarts("main") == 1 && pod.runs("main"));
    let found = eventually("the second run to speak", || {
        let logs = logs(&host, "back", &after.uid(), "main");
        if logs.last() == Some(1) && logs.runs() { Ok(logs) } else { Err(format!("{logs:?}")) }
    });
    assert_eq!(found.words(0, &Logs::default()), ["run", "stopping", "asked"]);
    let environment = std::fs::read(format!("/proc/{}/environ", host.container_pid(&after, "main"))).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("EDIT="));
}
