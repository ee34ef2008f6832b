//! Waits for the disk: how often podstead syncs for a start, an edit, a crash and a look at an unchanged source. `strace` counts.

use crate::sources::Server;
use crate::support::{Strace, TestHost};
use podstead::sys::atomic_file;

/// Limits, from what each step has to make durable.
struct Limits {
    /// The accepted set, and the record of a new pod. The addresses of a pod would be one more: these pods have none.
    start: usize,
    edit: usize,
    /// The record of each run whose end decides, and of its end.
    run_that_counts: usize,
    /// The record of a pod that ended.
    result: usize,
}

/// With a journal that keeps the order, one sync for each file: of the log, or, for records of containers, of their directory.
const ORDERED: Limits = Limits { start: 2, edit: 2, run_that_counts: 2, result: 1 };
/// Else one for its content, one for its name, and one for each other name: the revision before, and the directory of a pod.
const UNORDERED: Limits = Limits { start: 6, edit: 5, run_that_counts: 4, result: 2 };
const CRASH: usize = 0;
const UNCHANGED: usize = 0;

fn pod(name: &str, policy: &str, value: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  restartPolicy: {policy}\n  containers:\n    \
         - name: main\n      image: localhost/busybox:1\n      command: [sh, -c, '{script}']\n      env: [{{name: VALUE, value: \"{value}\"}}]\n"
    )
}

/// Syncs below the directories of sources and pods, which the limits are about: events are written once in minutes, for all pods.
struct Count<'a> {
    host: &'a TestHost,
    strace: Strace,
    seen: usize,
}

impl Count<'_> {
    fn syncs(&self) -> Vec<String> {
        let below =
            ["state/sources", "state/pods", "state/write-ahead.log"].map(|path| format!("<{}", self.host.path(path).display()));
        // The log is emptied later, for all changes together.
        let is_begun = |line: &&str| (line.contains("sync(") || line.contains("syncfs(")) && !line.contains("<checkpoint>");
        let log = self.strace.log();
        let of_records = log.lines().filter(is_begun).filter(|line| below.iter().any(|below| line.contains(below)));
        of_records.map(str::to_owned).collect()
    }

    /// Asserts the number of those since the last call.
    fn assert_at_most(&mut self, limit: usize, what: &str) {
        let syncs = self.syncs();
        let new = &syncs[self.seen..];
        assert!(new.len() <= limit, "{what} takes {} syncs, not {limit}:\n{}", new.len(), new.join("\n"));
        self.seen = syncs.len();
    }
}

fn attach(host: &TestHost) -> Count<'_> {
    let options = ["-Y", "-e", "trace=fsync,fdatasync,syncfs,sync,msync"];
    Count { host, strace: Strace::attach(host.daemon_pid(), &options, host.path("strace.log")), seen: 0 }
}

/// Waits until a run of this number has this value, and the pod is ready.
fn wait_run(host: &TestHost, name: &str, value: &str, restarts: u64) {
    host.wait_for_pod(name, &format!("run {restarts} with VALUE={value}"), |pod| {
        let status = pod.container("main");
        pod.0["spec"]["containers"][0]["env"][0]["value"] == value
            && status["restartCount"] == restarts
            && status["state"]["running"].is_object()
            && status["ready"] == true
    });
}

#[test]
fn journal_makes_one_sync_enough() {
    let mut host = TestHost::prepare("");
    host.mount_state();
    assert!(atomic_file::keeps_order(&host.path("state")));
    host.start_daemon();
    assert_syncs(&host);
}

#[test]
fn durable_changes_are_all_synced() {
    let mut host = TestHost::prepare("");
    host.write_manifest("first.yaml", &pod("first", "Always", "1", "exec sleep 1000000"));
    host.start_daemon();
    assert_syncs(&host);
}

fn assert_syncs(host: &TestHost) {
    let limits = if atomic_file::keeps_order(&host.path("state")) { ORDERED } else { UNORDERED };
    // The second set that is accepted makes the directory of earlier revisions. Whether the empty directory is the first one is a matter of time.
    for (value, restarts) in [("1", 0), ("2", 1)] {
        host.write_manifest("first.yaml", &pod("first", "Always", value, "exec sleep 1000000"));
        wait_run(host, "first", value, restarts);
    }
    let mut count = attach(host);

    host.write_manifest("web.yaml", &pod("web", "Always", "1", "exec sleep 1000000"));
    wait_run(host, "web", "1", 0);
    assert!(!count.syncs().is_empty(), "what is accepted is durable");
    count.assert_at_most(limits.start, "a start");

    host.write_manifest("web.yaml", &pod("web", "Always", "2", "exec sleep 1000000"));
    wait_run(host, "web", "2", 1);
    count.assert_at_most(limits.edit, "an edit");

    for restarts in 1..=2 {
        let pid = host.container_pid(&host.pod("web").unwrap(), "main");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
        // The edit was the first restart.
        wait_run(host, "web", "2", restarts + 1);
        count.assert_at_most(CRASH, "a crash");
    }

    for _ in 0..3 {
        host.cli_ok(&["sync", "manifests", "--wait"]);
    }
    count.assert_at_most(UNCHANGED, "a look at an unchanged directory");

    // The pod of a Job must not run twice, and its exit code counts: that is durable in spite of a power cut.
    host.write_manifest("once.yaml", &pod("once", "Never", "1", "exit 3"));
    host.wait_for_pod("once", "its end", |pod| pod.container("main")["state"]["terminated"]["exitCode"] == 3);
    assert!(records(host, &count).len() >= limits.run_that_counts, "{:?}", count.syncs());
    count.assert_at_most(limits.start + limits.run_that_counts + limits.result, "a pod that runs once");
}

/// Syncs of the records of containers.
fn records(host: &TestHost, count: &Count<'_>) -> Vec<String> {
    let uid = host.pod("once").unwrap().uid();
    let directory = host.path(&format!("state/pods/{uid}/containers"));
    count.syncs().into_iter().filter(|line| line.contains(&format!("<{}", directory.display()))).collect()
}

#[test]
fn unchanged_answer_of_server_is_not_written() {
    let server = Server::start();
    server.serve(Some(pod("web", "Always", "1", "exec sleep 1000000")));
    let host = TestHost::start_with(&format!("  - name: page\n    http: {{url: '{}', intervalSeconds: 3600}}\n", server.url()));
    wait_run(&host, "web", "1", 0);
    let mut count = attach(&host);
    for _ in 0..3 {
        host.cli_ok(&["sync", "page", "--wait"]);
    }
    count.assert_at_most(UNCHANGED, "an unchanged answer");
    server.serve(Some(pod("web", "Always", "2", "exec sleep 1000000")));
    host.cli_ok(&["sync", "page", "--wait"]);
    assert!(!count.syncs().is_empty(), "another answer is written");
    wait_run(&host, "web", "2", 1);
}
