//! Further things that rows say of the world, each by a key: `phase`, `order`, and with the name of a container `.pace`, `.ready`,
//! `.waits`, `.runs`, `.memory`, `.cpu`, `.shares`, `.env.NAME`, `.file.PATH`.

use super::shim_line::ShimLine;
use super::snapshot::Snapshot;
use super::world::World;
use crate::support::{TestHost, cgroup};
use podstead::pod::PodUid;
use std::collections::BTreeSet;
use std::fs;

/// A pod at one time, and what it was before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod<'a> {
    pub(super) host: &'a TestHost,
    pub(super) snapshot: &'a Snapshot,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) before: &'a World,
    pub(super) now: &'a World,
}

impl Pod<'_> {
    /// The fact that is found where a row expects `expected`; `None` where the key is one of those that [`World::since`] has.
    pub(super) fn fact(&self, key: &str, expected: &str) -> Option<String> {
        let view = self.snapshot.pod(self.name);
        match key {
            "phase" => return Some(view.map_or("forgotten", |view| view.phase()).to_owned()),
            "order" => return Some(self.order(expected)),
            _ => {}
        }
        let (container, what) = key.split_once('.')?;
        let status = view.map(|view| view.container(container));
        let fact = match what {
            "pace" => self.pace(container, expected),
            "ready" => status.map_or("no pod".to_owned(), |status| status["ready"].to_string()),
            "waits" => view.map_or("no pod", |view| view.waiting_reason(container)).to_owned(),
            "runs" => self.runs(container).to_string(),
            _ => self.seen_by_process(container, what, expected),
        };
        Some(fact)
    }

    /// Says if a container's newest run waited for the end of a pause. On a processor that is emulated, one that waited for nothing is late, too: of it
    /// no pause was told.
    fn pace(&self, container: &str, expected: &str) -> String {
        let pace = self.now.containers[container].pace(&self.before.containers[container]).unwrap_or_default();
        let was_told = || {
            let events: serde_json::Value = serde_json::from_str(&self.host.cli_ok(&["get", "events", "-o", "json"])).unwrap();
            let is_told = |event: &serde_json::Value| {
                event["reason"] == "BackOff" && event["involvedObject"]["uid"] == self.uid && event["type"] == "Warning"
            };
            events["items"].as_array().unwrap().iter().any(is_told)
        };
        let is_slow = std::env::var_os("PODSTEAD_EMULATED").is_some();
        if is_slow && (expected, pace) == ("soon", "late") && !was_told() { expected.to_owned() } else { pace.to_owned() }
    }

    /// Runs of a container that its shim keeps, dead ones too.
    fn runs(&self, container: &str) -> usize {
        let socket = super::away::paths(self.host).shim_socket(&PodUid::new(self.uid));
        ShimLine::open(&socket).status().iter().filter(|status| status.name.as_str() == container).count()
    }

    /// Attributes of a container's first process; of the pod those of any of its containers, one level above.
    fn seen_by_process(&self, container: &str, what: &str, expected: &str) -> String {
        let mut processes = self.now.containers.iter().filter(|(name, _)| container == "pod" || *name == container);
        let Some(process) = processes.find_map(|(_, seen)| seen.processes.first()) else { return "no process".to_owned() };
        let (pid, level) = (process.pid, usize::from(container == "pod"));
        if let Some(name) = what.strip_prefix("env.") {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let value = environment.split('\0').find_map(|entry| entry.strip_prefix(&format!("{name}=")));
            return value.unwrap_or("absent").to_owned();
        }
        if let Some(path) = what.strip_prefix("file.") {
            // The links of a volume are relative, and do not leave it.
            return fs::read_to_string(format!("/proc/{pid}/root/{path}")).unwrap_or_else(|error| error.to_string());
        }
        match what {
            "memory" => cgroup::memory_limit(pid, level).map_or("none".to_owned(), |bytes| format!("{}Mi", bytes >> 20)),
            "cpu" => cgroup::cpu_quota(pid, level).map_or("none".to_owned(), |quota| format!("{}m", quota / 100)),
            "shares" => {
                let (found, wanted) = (cgroup::cpu_share(pid, level), expected.parse().unwrap());
                if found == cgroup::share_of(wanted) { wanted.to_string() } else { format!("weight {found}") }
            }
            other => panic!("rows cannot speak of {other:?}"),
        }
    }

    /// Containers in the order in which they were asked to end: commas are between those of which the one waits for the other.
    fn order(&self, expected: &str) -> String {
        let asked = |name: &str| {
            let logs = &self.now.containers[name].logs;
            logs.last().and_then(|last| logs.asked(last))
        };
        let groups: Vec<BTreeSet<_>> = expected.split(", ").map(|group| group.split(' ').map(asked).collect()).collect();
        let is_so = groups.iter().flatten().all(Option::is_some) && groups.windows(2).all(|pair| pair[0].last() < pair[1].first());
        if is_so { expected.to_owned() } else { format!("{groups:?}") }
    }
}
