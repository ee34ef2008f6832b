//! Traffic to the disk: bytes and flushes of a device that has the state directory alone, and syncs, counted by `strace`.

use crate::figures::row;
use crate::support::{Strace, TestHost, eventually};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// Operations of each kind.
const TIMES: u64 = 10;

fn pod(name: &str, value: u64, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [sh, -c, '{script}']\n      env: [{{name: VALUE, value: \"{value}\"}}]\n"
    )
}

/// Counters of the device: bytes written and flushes.
fn device(state: &Path) -> (u64, u64) {
    rustix::fs::syncfs(fs::File::open(state).unwrap()).unwrap();
    let device = fs::metadata(state).unwrap().dev();
    let path = format!("/sys/dev/block/{}:{}/stat", nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let fields: Vec<u64> = fs::read_to_string(path).unwrap().split_whitespace().filter_map(|field| field.parse().ok()).collect();
    (fields[6] * 512, fields.get(15).copied().unwrap_or(0))
}

fn syncs(strace: &Strace, below: &Path) -> u64 {
    let below = format!("<{}", below.display());
    let log = strace.log();
    // The log is emptied later, for all that came together.
    let counts =
        |line: &&str| line.contains("sync") && !line.contains("resumed") && !line.contains("<checkpoint>") && line.contains(&below);
    log.lines().filter(counts).count() as u64
}

/// Measures `operation` several times. The shims were started under `strace`, too.
fn measure(host: &TestHost, strace: &Strace, what: &str, operation: impl FnMut(u64)) {
    let state = host.path("state");
    let before = (device(&state), syncs(strace, &state));
    (0..TIMES).for_each(operation);
    let after = (device(&state), syncs(strace, &state));
    let each = |count: u64| count as f64 / TIMES as f64;
    let (bytes, flushes, counted) = (after.0.0 - before.0.0, after.0.1 - before.0.1, after.1 - before.1);
    row(what, &format!("{:.1} syncs, {:.0} KiB, {:.1} flushes", each(counted), each(bytes) / 1024.0, each(flushes)), "-", "-");
}

/// Syncs, bytes and flushes of a start, an edit, a crash and a look at an unchanged directory, with what the file system adds (journal, metadata).
pub(crate) fn writes() {
    let mut host = TestHost::prepare("");
    host.mount_state();
    host.start_daemon();
    let options = ["-Y", "-e", "trace=fsync,fdatasync,syncfs"];
    let strace = Strace::attach(host.daemon_pid(), &options, host.path("strace.log"));
    let runs = |name: &str, value: u64, restarts: u64| {
        host.wait_for_pod(name, "a run", |pod| {
            let shown = pod.0["spec"]["containers"][0]["env"][0]["value"].as_str();
            shown.and_then(|shown| shown.parse().ok()) == Some(value)
                && pod.container("main")["restartCount"] == restarts
                && pod.container("main")["state"]["running"].is_object()
        })
    };
    let write = |name: &str, value: u64, restarts: u64| {
        host.write_manifest(&format!("{name}.yaml"), &pod(name, value, "exec sleep 1000000"));
        runs(name, value, restarts);
    };
    write("edited", 0, 0);
    // The events of the start of the daemon are on disk.
    eventually("the events to be written", || {
        if host.path("state/events.jsonl").try_exists().unwrap() { Ok(()) } else { Err("not yet".to_owned()) }
    });
    measure(&host, &strace, "start of a pod: state directory", |number| write(&format!("p{number}"), 1, 0));
    measure(&host, &strace, "edit of a pod: state directory", |number| write("edited", number + 1, number + 1));
    measure(&host, &strace, "crash and restart of a container: state directory", |number| {
        let name = format!("p{number}");
        let pid = host.container_pid(&host.pod(&name).unwrap(), "main");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
        host.wait_for_pod(&name, "another run", |pod| {
            let status = pod.container("main");
            status["restartCount"] == 1 && status["state"]["running"].is_object()
        });
    });
    measure(&host, &strace, "look at an unchanged directory: state directory", |_| {
        host.cli_ok(&["sync", "manifests", "--wait"]);
        std::thread::park_timeout(Duration::from_millis(100));
    });
}
