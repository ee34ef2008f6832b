//! The ceiling of the daemon: what it bounds is the daemon, not pods.

use super::{Container, FOREVER, pod, sh};
use crate::support::{TestHost, eventually};
use std::fs;
use std::path::PathBuf;

/// A cgroup in every mounted hierarchy, as systemd's of the unit.
struct Ceiling {
    groups: Vec<PathBuf>,
}

impl Ceiling {
    fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let is_hierarchy = |line: &&str| line.contains(" - cgroup ") || line.contains(" - cgroup2 ");
        let mut points: Vec<&str> = mounts.lines().filter(is_hierarchy).filter_map(|line| line.split(' ').nth(4)).collect();
        points.sort_unstable();
        points.dedup();
        let groups: Vec<PathBuf> = points.into_iter().map(|point| PathBuf::from(point).join(name)).collect();
        for group in &groups {
            fs::create_dir(group).unwrap();
            // v1: a new group has neither processors nor memory nodes.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let above = fs::read(group.parent().unwrap().join(file)).unwrap_or_default();
                if group.join(file).try_exists().unwrap() && !above.is_empty() {
                    fs::write(group.join(file), above).unwrap();
                }
            }
        }
        Self { groups }
    }

    /// Sets a limit wherever there is such a file.
    fn limit(&self, file: &str, value: &str) -> usize {
        let files = self.groups.iter().map(|group| group.join(file)).filter(|path| path.try_exists().unwrap());
        files.map(|path| fs::write(path, value).unwrap()).count()
    }

    fn take(&self, pid: u32) {
        self.groups.iter().for_each(|group| fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap());
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        self.groups.iter().for_each(|group| drop(fs::remove_dir(group)));
    }
}

/// The unit's MemoryMax and TasksMax: a shim leaves the daemon's cgroup before it starts anything, so that no pod is bounded or killed
/// with it.
#[test]
fn pods_are_not_below_ceiling_of_daemon() {
    let name = format!("podstead-ceiling-{}", std::process::id());
    let ceiling = Ceiling::new(&name);
    let mut host = TestHost::prepare("");
    host.start_daemon();
    ceiling.take(host.daemon_pid());
    assert!(ceiling.limit("pids.max", "200") > 0, "no hierarchy limits processes");
    let script = format!("for i in $(seq 300); do sleep 1000000 & done; {FOREVER}");
    host.write_manifest(
        "web.yaml",
        &pod("web", "localhost/busybox:1", &["shareProcessNamespace: true"], &[Container::new("main", &script, &[])]),
    );
    host.wait_log("web", "main", "started");
    let running = host.wait_running("web");
    assert!(sh(&host, "web", "ls -d /proc/[0-9]* | wc -l").trim().parse::<u32>().unwrap() > 300, "beyond the daemon's own limit");
    let groups_of = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(groups_of(&host.daemon_pid().to_string()).contains(&name));
    let shim = host.shim_pid(&running).to_string();
    assert!(!groups_of(&shim).contains(&name), "the shim: {}", groups_of(&shim));
    std::thread::scope(|scope| {
        let session = scope.spawn(|| host.cli(&["exec", "web", "--", "sleep", "424242"]));
        let is_in = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(&name));
        let executed = eventually("the session's process", || {
            let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let is_it = |pid: &String| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x00424242\0");
            pids.into_iter().find(is_it).ok_or_else(|| "it is not there".to_owned())
        });
        let others: Vec<String> =
            fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let below: Vec<&String> = others.iter().filter(|pid| **pid != host.daemon_pid().to_string() && is_in(pid)).collect();
        assert!(below.is_empty(), "processes {below:?} are below the daemon's ceiling");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(executed.parse().unwrap()), nix::sys::signal::Signal::SIGKILL).unwrap();
        drop(session.join());
    });
    // At the ceiling the daemon dies, and nothing else.
    host.kill_daemon();
    host.start_daemon();
    assert_eq!(host.wait_running("web").container_id("main"), running.container_id("main"));
}
