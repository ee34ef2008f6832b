//! The disk of a host on which nothing happens (promise P6).

use crate::support::{TestHost, eventually};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than the time between two looks for remains.
const WHILE: Duration = Duration::from_secs(65);

/// Bytes that the device of this directory got so far, with all that was to be written.
fn written(state: &Path) -> u64 {
    let directory = fs::File::open(state).unwrap();
    rustix::fs::syncfs(&directory).unwrap();
    let device = directory.metadata().unwrap().dev();
    let path = format!("/sys/dev/block/{}:{}/stat", nix::sys::stat::major(device), nix::sys::stat::minor(device));
    fs::read_to_string(path).unwrap().split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
}

/// As if it had changed after the last look: the kernel notes the time of an ordinary one then.
fn age(directory: &Path) {
    let old = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    utimensat(CWD, directory, &Timestamps { last_access: old, last_modification: old }, AtFlags::empty()).unwrap();
}

#[test]
fn host_at_rest_writes_nothing() {
    let mut host = TestHost::prepare("");
    host.mount_state();
    host.start_daemon();
    let names = ["one", "two", "three"];
    for name in names {
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}}\n"
        );
        host.write_manifest(&format!("{name}.yaml"), &pod);
    }
    names.iter().for_each(|name| drop(host.wait_running(name)));
    eventually("the events to be written", || {
        if host.path("state/events.jsonl").is_file() { Ok(()) } else { Err("not yet".to_owned()) }
    });
    let state = host.path("state");
    // What came last may be written once more, some minutes later.
    let mut found = Vec::new();
    while found.len() < 4 && !found.contains(&0) {
        age(&state.join("pods"));
        let (before, begun) = (written(&state), Instant::now());
        while begun.elapsed() < WHILE {
            std::thread::park_timeout(WHILE.saturating_sub(begun.elapsed()));
        }
        found.push(written(&state) - before);
    }
    assert!(found.contains(&0), "bytes in {} s each: {found:?}", WHILE.as_secs());
}
