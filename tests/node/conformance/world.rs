//! The state of a pod in the kernel and the log directory, and its changes.

use super::logs::Logs;
use super::row::Row;
use super::snapshot::{Process, Processes, Snapshot};
use crate::support::TestHost;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The pause before the second restart of what ends by itself (kubelet rule D9).
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// The times at which tests ended containers, by pod and container.
pub(super) type Ends = BTreeMap<(String, String), Timestamp>;

/// Observations of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) processes: Vec<Process>,
    pub(super) logs: Logs,
    /// The time of its end, if a test ended it.
    end: Option<Timestamp>,
}

/// Observations of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    shim: Option<Process>,
    pub(super) containers: BTreeMap<String, Seen>,
}

impl World {
    /// Looks at the pod `name` with this UID, empty while there is none.
    pub(super) fn of(host: &TestHost, processes: &Processes, row: &Row, (name, uid): (&str, &str), ends: &Ends) -> Self {
        let seen = row.names().into_iter().map(|container| {
            let logs = Logs::read_with_kept(
                &super::away::log_directory(host, name, uid).join(&container),
                &super::away::kept_logs(host, uid).join(&container),
            );
            let end = ends.get(&(name.to_owned(), container.clone())).copied();
            let seen = Seen { processes: processes.container(name, &container).to_vec(), logs, end };
            (container, seen)
        });
        let containers = seen.collect();
        Self { shim: (!uid.is_empty()).then(|| processes.shim(uid)).flatten(), containers }
    }

    /// Changes since `before`, in the words of the tables.
    pub(super) fn since(&self, before: &World) -> BTreeMap<String, String> {
        let mut became = BTreeMap::new();
        let sandbox = match (before.shim, self.shim) {
            (_, None) => "gone",
            (Some(before), Some(now)) if before == now => "same",
            (_, Some(_)) => "new",
        };
        became.insert("sandbox".to_owned(), sandbox.to_owned());
        for (name, now) in &self.containers {
            became.insert(name.clone(), now.since(&before.containers[name]));
        }
        became
    }

    /// Remains that should not be there: cgroups and mounts of a pod that is over, cgroups of containers that do not run. Empty if all is well.
    pub(super) fn remains(&self, snapshot: &Snapshot, uid: &str) -> Vec<String> {
        if self.shim.is_none() {
            return if uid.is_empty() { Vec::new() } else { snapshot.leftovers(uid) };
        }
        let mut wanted = BTreeSet::new();
        for process in self.containers.values().flat_map(|seen| &seen.processes) {
            let groups = snapshot.processes.cgroups_of(*process);
            let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).filter(|path| path.contains(uid));
            let names = paths.filter_map(|path| path.rsplit('/').next());
            // Version 1 has hierarchies in which a container has no directory of its own.
            wanted.extend(names.filter(|name| *name != uid).map(str::to_owned));
        }
        let mut wrong = Vec::new();
        for pod in snapshot.cgroups_of(uid) {
            for entry in fs::read_dir(pod).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if !wanted.contains(&name) && !pod.to_string_lossy().contains("/shims") {
                    wrong.push(format!("cgroup {}", entry.path().display()));
                }
            }
        }
        let living = self.containers.values().filter(|seen| !seen.processes.is_empty()).count();
        if wanted.len() != living {
            wrong.push(format!("{living} containers are in the cgroups {wanted:?}"));
        }
        wrong
    }
}

impl Seen {
    /// Changes since `before`: the process that there is, the words of the one before since then, and after a comma those of the new one
    /// after it began.
    fn since(&self, before: &Seen) -> String {
        let last = self.logs.last();
        let said = |run: u32| self.logs.words(run, &before.logs).iter().map(|word| format!(" {word}")).collect::<String>();
        let began = |run: u32| match self.logs.words(run, &Logs::default()).as_slice() {
            ["run"] => Some(String::new()),
            ["run", rest @ ..] => Some(format!(", {}", rest.join(" "))),
            _ => None,
        };
        match (self.processes.as_slice(), before.logs.last(), last) {
            ([], None, None) => "none".to_owned(),
            ([], Some(was), Some(last)) if was == last => format!("ended{}", said(last)),
            ([now], Some(was), Some(last)) if before.processes.contains(now) && was == last => format!("same{}", said(last)),
            ([_], None, Some(0)) if began(0).is_some() => format!("first{}", began(0).unwrap()),
            // Logs are read after processes: a new run's may be there while the process is still the one of before.
            ([now], Some(was), Some(last)) if last > was && began(last).is_some() && !before.processes.contains(now) => {
                format!("again {last}{}{}", said(was), began(last).unwrap())
            }
            (processes, _, _) => format!("{processes:?}, {:?}", self.logs),
        }
    }

    /// The start of the newest run: before the pause of what crashes was over (`soon`) or after it (`late`).
    pub(super) fn pace(&self, before: &Seen) -> Option<&'static str> {
        let end = before.logs.last().and_then(|was| self.logs.asked(was)).or(before.end)?;
        let start = self.logs.last().and_then(|last| self.logs.start(last))?;
        Some(if start.duration_since(end) < PAUSE { "soon" } else { "late" })
    }
}
