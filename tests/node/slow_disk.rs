//! A disk that takes seconds for each sync, as worn SD cards do: `strace` delays the shim's.

use crate::support::{Strace, TestHost, eventually};
use podstead::container::ContainerState;
use podstead::container::record::ContainerRecord;
use podstead::sys::atomic_file;
use std::fs;
use std::path::Path;

/// Delays syncs so that a durable record takes twelve seconds: with a journal that keeps the order it takes one sync, else two.
fn delay(host: &TestHost) -> String {
    let seconds = if atomic_file::keeps_order(&host.path("state")) { 12 } else { 6 };
    format!("inject=fsync:delay_enter={seconds}000000")
}

fn lines(log: &Path) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().count()
}

#[test]
fn slow_record_of_end_blocks_no_output() {
    let host = TestHost::start();
    host.write_manifest(
        "pair.yaml",
        "apiVersion: v1
kind: Pod
metadata: {name: pair}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
    - {name: talks, image: localhost/busybox:1, command: [/bin/sh, -c, 'while true; do echo line; sleep 0.05; done']}
    - {name: ends, image: localhost/busybox:1, command: [/bin/sh, -c, 'trap \"exit 7\" USR1; while true; do sleep 0.05; done']}
",
    );
    let pod = host.wait_running("pair");
    let (uid, ends) = (pod.uid(), host.container_pid(&pod, "ends"));
    let log = host.path("log/pods").join(format!("default_pair-edge-1_{uid}/talks/0.log"));
    let id = pod.container("ends")["containerID"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let record = host.path(&format!("state/pods/{uid}/containers/{id}.json"));
    let is_recorded = || matches!(ContainerRecord::read(&record).unwrap().status.state, ContainerState::Exited { .. });

    let delay = delay(&host);
    let options = ["-e", "trace=fsync", "-e", &delay];
    let strace = Strace::attach(host.shim_pid(&pod), &options, host.path("strace.log"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(ends as i32), nix::sys::signal::Signal::SIGUSR1).unwrap();
    eventually("the shim to sync the record", || match strace.log() {
        log if log.contains("fsync") => Ok(()),
        log => Err(log),
    });
    let before = lines(&log);
    eventually("output to be logged meanwhile", || match lines(&log) - before {
        more if more >= 20 => Ok(()),
        more => Err(format!("{more} lines more")),
    });
    // With a journal that keeps the order, the name is changed before the sync.
    if !atomic_file::keeps_order(&host.path("state")) {
        assert!(!is_recorded(), "the sync takes longer than this");
    }
    let state = host.pod("pair").unwrap().container("ends")["state"].clone();
    assert!(state["running"].is_object(), "nothing is told that is not recorded: {state}");

    let pod = host.wait_for_pod("pair", "the end to be told", |pod| pod.container("ends")["state"]["terminated"].is_object());
    assert!(is_recorded());
    assert_eq!(pod.container("ends")["state"]["terminated"]["exitCode"], 7);
    assert!(lines(&log) > before + 20);
}

#[test]
fn program_waits_for_record_of_container() {
    let host = TestHost::start();
    let pod = |count: u32| {
        let more: String = (0..count)
            .map(|number| format!("    - {{name: c{number}, image: localhost/busybox:1, command: [sleep, '1000000']}}\n"))
            .collect();
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  restartPolicy: OnFailure\n  terminationGracePeriodSeconds: 1\n  \
             containers:\n{more}"
        )
    };
    host.write_manifest("web.yaml", &pod(1));
    let first = host.wait_running("web");
    let restarted = |host: &TestHost| host.pod("web").unwrap().container("c0")["restartCount"].as_u64();
    let delay = delay(&host);
    let options = ["-e", "trace=fsync,execve", "-e", &delay];
    let strace = Strace::attach(host.shim_pid(&first), &options, host.path("strace.log"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(host.container_pid(&first, "c0") as i32), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
    eventually("the container to run again", || match restarted(&host) {
        Some(1) => Ok(()),
        other => Err(format!("{other:?} {}", strace.log())),
    });
    host.wait_running("web");
    let log = strace.log();
    let program = log.lines().position(|line| line.contains("execve(") && line.contains("sleep"));
    let is_sync = |line: &str| line.contains("fsync(") && line.contains("/containers>") && !line.contains("resumed");
    // That of the end, and that of the intent to start.
    let intent = log.lines().enumerate().filter(|(_, line)| is_sync(line)).map(|(position, _)| position).nth(1);
    assert!(intent.is_some() && program.is_some() && intent < program, "{log}");
}

#[test]
fn names_of_records_outlive_power_cut() {
    let mut host = TestHost::prepare("");
    host.start_daemon();
    assert_order(&host);
}

#[test]
fn log_comes_before_records() {
    let mut host = TestHost::prepare("");
    host.mount_state();
    assert!(atomic_file::keeps_order(&host.path("state")));
    host.start_daemon();
    assert_order(&host);
}

/// The order of syncs and names in a start.
fn assert_order(host: &TestHost) {
    let pod = |image: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - {{name: main, image: '{image}', command: [sleep, '1000000']}}\n"
        )
    };
    host.write_manifest("web.yaml", &pod("localhost/busybox:1"));
    host.wait_running("web");
    let strace = Strace::attach(host.daemon_pid(), &["-Y", "-e", "trace=fsync,fdatasync,/^rename"], host.path("strace.log"));
    host.write_manifest("other.yaml", &pod("localhost/busybox:1").replace("name: web", "name: other"));
    let uid = host.wait_running("other").uid();
    let log = strace.log();
    let position = |what: &str| {
        log.lines()
            .position(|line| line.contains(what) && !line.contains("resumed"))
            .unwrap_or_else(|| panic!("no {what} in {log}"))
    };
    let synced = |below: &str| position(&format!("<{}>", host.path(below).display()));
    let (replaced, recorded) = (position("/.last-good.json.tmp\", "), position("/.pod.json.tmp\", "));
    if atomic_file::keeps_order(&host.path("state")) {
        let file = format!("<{}>", host.path("state/write-ahead.log").display());
        let is_sync = |line: &str| line.contains("fdatasync(") && line.contains(&file) && !line.contains("<checkpoint>");
        let syncs: Vec<usize> = log.lines().enumerate().filter(|(_, line)| is_sync(line)).map(|(position, _)| position).collect();
        assert!(syncs.first().is_some_and(|first| *first < replaced), "what is accepted is in the log first: {log}");
        assert!(syncs.iter().any(|sync| replaced < *sync && *sync < recorded), "and so is the record of the pod: {log}");
        return;
    }
    assert!(synced("state/sources/manifests/revisions") < replaced, "the name of what is replaced comes first: {log}");
    // An earlier record may have been synced just before.
    let directory = format!("<{}>", host.path("state/sources/manifests").display());
    let is_synced_after = log.lines().skip(replaced).any(|line| line.contains("fsync(") && line.contains(&directory));
    assert!(is_synced_after, "{log}");
    // Those above it were synced when the daemon started.
    assert!(synced("state/pods") < recorded, "a record that is there has durable names: {log}");
    // It leads to `containers`, too.
    assert!(recorded < synced(&format!("state/pods/{uid}")), "{log}");
}
