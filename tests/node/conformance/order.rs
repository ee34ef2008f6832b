//! In which order containers end, by what they write into their logs (kubelet rule D12; `TestTerminationOrdering*`).

use super::away::log_directory;
use crate::support::{TestHost, eventually};
use jiff::Timestamp;
use std::fs;

/// Lines of a container with their times.
fn lines(host: &TestHost, uid: &str, container: &str) -> Vec<(Timestamp, String)> {
    let text = fs::read_to_string(log_directory(host, "order", uid).join(container).join("0.log")).unwrap_or_default();
    let parse = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let stamp = words.next()?.parse().ok()?;
        Some((stamp, words.nth(2)?.to_owned()))
    };
    text.lines().filter_map(parse).collect()
}

#[test]
fn d12_sidecars_end_last_in_reverse_order() {
    let host = TestHost::start();
    let container = |name: &str, more: &str, last: &str| {
        format!(
            "    - {{name: {name}, image: 'localhost/busybox:1', {more}command: [/bin/sh, -c, \"trap 'echo asked; {last}echo over; exit 0' TERM; \
             echo run; sleep 1000000 & wait\"]}}\n"
        )
    };
    let always = "restartPolicy: Always, ";
    // Its hook keeps the first main container from being asked for a second.
    let hook = "lifecycle: {preStop: {sleep: {seconds: 1}}}, ";
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: order}}\nspec:\n  terminationGracePeriodSeconds: 60\n  initContainers:\n{}{}{}  containers:\n{}{}",
        container("side1", always, ""),
        container("side2", always, "sleep 0.3; "),
        container("side3", always, "sleep 0.3; "),
        container("main1", hook, ""),
        container("main2", "", "sleep 2; "),
    );
    let all = ["side1", "side2", "side3", "main1", "main2"];
    host.write_manifest("order.yaml", &manifest);
    let uid = host.wait_running("order").uid();
    let said = |name: &str, what: &str| lines(&host, &uid, name).into_iter().find(|(_, line)| line == what).map(|(stamp, _)| stamp);
    eventually("all to have traps", || {
        all.iter().all(|name| said(name, "run").is_some()).then_some(()).ok_or("not yet".to_owned())
    });
    let before = Timestamp::now();
    host.remove_manifest("order.yaml");
    // Logs of a pod that is gone are still there for a while.
    let ends = eventually("all to be over", || {
        let ends: Vec<Option<Timestamp>> = all.iter().map(|name| said(name, "over")).collect();
        ends.iter().copied().collect::<Option<Vec<_>>>().ok_or(format!("{ends:?}"))
    });
    let asked = |name: &str| said(name, "asked").unwrap();
    let after = |stamp: Timestamp| (stamp - before).total(jiff::Unit::Second).unwrap();
    assert!(after(asked("main1")) >= 1.0, "its hook comes first");
    assert!(asked("main2") < asked("main1"), "main containers do not wait for each other");
    let mains = ends[3].max(ends[4]);
    assert!(after(mains) >= 2.0, "the slowest takes two seconds");
    assert!(mains < asked("side3") && ends[2] < asked("side2") && ends[1] < asked("side1"), "{ends:?}");
    host.wait_gone("order");
}
