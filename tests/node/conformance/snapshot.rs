//! Pods, processes, cgroups and mounts of a host at one time, read once for all rows.

use crate::support::{PodView, TestHost, cgroups, process_exists};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A process; the time of its start tells it from a later one of the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    started: u64,
}

/// All processes of a host's pods.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// First processes of containers, by pod and container.
    containers: BTreeMap<(String, String), Vec<Process>>,
    /// Shims with their command lines.
    shims: Vec<(Process, String)>,
    /// Candidates for parts of a pod: process, command line, cgroups.
    all: Vec<(u32, String, String)>,
}

impl Processes {
    /// Those of the host whose directory is called `host`.
    pub(super) fn of(host: &str) -> Self {
        let mut found = Self::default();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            // What has ended has no command line any more.
            let Ok(line) = fs::read(entry.path().join("cmdline")) else { continue };
            let line = String::from_utf8_lossy(&line).into_owned();
            let groups = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
            let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
            if words.len() == 5
                && let Some(pod) = words[3].strip_prefix(&format!("{host}/"))
                && is_first(&entry.path())
                && let Some(process) = process(pid)
            {
                found.containers.entry((pod.to_owned(), words[4].to_owned())).or_default().push(process);
            } else if words[0].ends_with("podstead-shim")
                && line.contains(host)
                && fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm.trim() == "podstead-shim")
                && let Some(process) = process(pid)
            {
                found.shims.push((process, line.clone()));
            }
            found.all.push((pid, line, groups));
        }
        found
    }

    /// First processes of a container: one, or none, or too many.
    pub(super) fn container(&self, pod: &str, container: &str) -> &[Process] {
        self.containers.get(&(pod.to_owned(), container.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The shim of a pod: the oldest process that runs the shim's program for it.
    pub(super) fn shim(&self, uid: &str) -> Option<Process> {
        let own = self.shims.iter().filter(|(_, line)| line.contains(uid)).map(|(process, _)| *process);
        own.min_by_key(|process| (process.started, process.pid))
    }

    /// The cgroups of a process.
    pub(super) fn cgroups_of(&self, process: Process) -> &str {
        self.all.iter().find(|(pid, ..)| *pid == process.pid).map_or("", |(_, _, groups)| groups)
    }
}

/// True if the process is the first of its process namespace.
fn is_first(proc: &Path) -> bool {
    let status = fs::read_to_string(proc.join("status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    ids.split_whitespace().count() > 1 && ids.split_whitespace().next_back() == Some("1")
}

/// `None` when it is gone.
fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let started = stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()?;
    Some(Process { pid, started })
}

/// A host at one time.
#[derive(Debug)]
pub(super) struct Snapshot {
    pods: BTreeMap<String, PodView>,
    pub(super) processes: Processes,
    cgroups: Vec<PathBuf>,
    mounts: String,
}

impl Snapshot {
    /// Of a host whose daemon runs, or, with the pods that it knew last, of one whose daemon does not. `mark` is the name of its directory.
    pub(super) fn take(mark: &str, pods: Vec<PodView>) -> Self {
        let name = |pod: &PodView| pod.0["metadata"]["name"].as_str().unwrap().trim_end_matches("-edge-1").to_owned();
        let pods = pods.into_iter().map(|pod| (name(&pod), pod)).collect();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        Self { pods, processes: Processes::of(mark), cgroups: cgroups(""), mounts }
    }

    /// As [`Snapshot::take`], with the pods of the daemon.
    pub(super) fn of(host: &TestHost, mark: &str) -> Self {
        Self::take(mark, host.pods())
    }

    /// The pod, as the API shows it.
    pub(super) fn pod(&self, name: &str) -> Option<&PodView> {
        self.pods.get(name)
    }

    /// Cgroup directories of a pod.
    pub(super) fn cgroups_of(&self, uid: &str) -> impl Iterator<Item = &PathBuf> {
        let is_own = move |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(uid));
        self.cgroups.iter().filter(is_own)
    }

    /// All that the kernel has of a pod: processes, cgroups, mounts.
    pub(super) fn leftovers(&self, uid: &str) -> Vec<String> {
        let own = self.processes.all.iter().filter(|(_, line, groups)| line.contains(uid) || groups.contains(uid));
        let processes = own.filter(|(pid, ..)| process_exists(*pid)).map(|(pid, ..)| format!("process {pid}"));
        let cgroups = self.cgroups_of(uid).filter(|path| path.is_dir()).map(|path| format!("cgroup {}", path.display()));
        let points = self.mounts.lines().filter_map(|line| line.split(' ').nth(4)).filter(|point| point.contains(uid));
        processes.chain(cgroups).chain(points.map(|point| format!("mount {point}"))).collect()
    }
}
