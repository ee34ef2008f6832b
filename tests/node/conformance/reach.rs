//! While the daemon runs: pods go as far as their rows need it.

use super::row::{Row, Said, Stage, signal_for};
use super::snapshot::Processes;
use super::world::Ends;
use crate::support::TestHost;
use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Runs that have to be there, and what follows then.
#[derive(Debug)]
struct Step {
    wanted: BTreeMap<String, u32>,
    then: Then,
}

#[derive(Debug)]
enum Then {
    Nothing,
    /// A container ends with this code.
    End(String, String),
    /// The pod's shim dies, and its containers with it.
    LoseSandbox,
}

/// The progress of a pod.
#[derive(Debug)]
pub(super) struct Progress {
    steps: Vec<Step>,
    at: usize,
    /// Processes that others waited for and that were sent on.
    sent: BTreeSet<u32>,
}

impl Progress {
    /// All steps of a row.
    pub(super) fn of(row: &Row) -> Self {
        let all = |at_least: u32| -> BTreeMap<String, u32> {
            let listed = row.containers.iter().filter(|run| row.attempt(&run.name) >= at_least);
            listed.map(|run| (run.name.clone(), at_least)).collect()
        };
        let mut steps = Vec::new();
        if row.is_in_second_sandbox() {
            steps.push(Step { wanted: all(0), then: Then::LoseSandbox });
            let present = row.containers.iter().filter(|run| run.sandbox.is_none());
            steps.push(Step { wanted: present.map(|run| (run.name.clone(), run.attempt)).collect(), then: Then::Nothing });
        } else if row.rounds() > 0 {
            for round in 0..row.rounds() {
                let then = Then::End(row.trigger().unwrap().to_owned(), "42".to_owned());
                steps.push(Step { wanted: all(round), then });
            }
            let mut last = all(row.rounds());
            last.retain(|name, _| row.attempt(name) == row.rounds());
            steps.push(Step { wanted: last, then: Then::Nothing });
        } else {
            let mut wanted = all(0);
            for run in &row.containers {
                let until = row.attempt(&run.name);
                for attempt in (0..until).filter(|_| run.attempt == until) {
                    let is_it = |other: &&super::row::Run| other.name == run.name && other.attempt == attempt;
                    let state = &row.containers.iter().find(is_it).unwrap_or(run).state;
                    let code = if matches!(state.as_str(), "running" | "created" | "unknown") { "1" } else { state };
                    let then = Then::End(run.name.clone(), code.to_owned());
                    steps.push(Step { wanted: wanted.clone(), then });
                    wanted.insert(run.name.clone(), attempt + 1);
                }
            }
            steps.push(Step { wanted, then: Then::Nothing });
        }
        Self { steps, at: 0, sent: BTreeSet::new() }
    }

    /// Takes the steps that can be taken, and says what is still waited for; `None` when the pod is far enough.
    pub(super) fn advance(
        &mut self,
        host: &TestHost,
        processes: &Processes,
        row: &Row,
        (pod, uid): (&str, &str),
        ends: &mut Ends,
    ) -> Option<String> {
        let step = self.steps.get(self.at)?;
        if let Some(open) = wait_for(&step.wanted, host, processes, row, (pod, uid), &mut self.sent) {
            return Some(open);
        }
        match &step.then {
            Then::Nothing => {}
            Then::End(name, code) => {
                let Some(process) = processes.container(pod, name).first() else {
                    return Some(format!("{pod}: {name} does not run"));
                };
                ends.insert((pod.to_owned(), name.clone()), Timestamp::now());
                kill(Pid::from_raw(process.pid as i32), signal_for(code)).unwrap_or_default();
            }
            Then::LoseSandbox => {
                let Some(shim) = processes.shim(uid) else { return Some(format!("{pod} has no shim")) };
                kill(Pid::from_raw(shim.pid as i32), Signal::SIGKILL).unwrap_or_default();
            }
        }
        self.at += 1;
        (self.at < self.steps.len()).then(|| format!("{pod} goes on to its step {}", self.at))
    }
}

/// Sends on those containers of a pod that others wait for, and says what is still waited for.
fn wait_for(
    wanted: &BTreeMap<String, u32>,
    host: &TestHost,
    processes: &Processes,
    row: &Row,
    (pod, uid): (&str, &str),
    sent: &mut BTreeSet<u32>,
) -> Option<String> {
    let order = row.order();
    // Without containers, the sandbox is what is waited for: the first one is in it.
    let last = order.iter().rposition(|(name, _)| wanted.contains_key(name)).unwrap_or(0);
    let mut open = None;
    for (at, (name, is_waited_for)) in order[..=last].iter().enumerate() {
        let logs = super::logs::Logs::read(&super::away::log_directory(host, pod, uid).join(name));
        let wanted = wanted.get(name).copied().unwrap_or(0);
        let running = processes.container(pod, name);
        let is_there = logs.last().is_some_and(|now| now >= wanted) && logs.runs() && (!running.is_empty() || *is_waited_for);
        if is_there && *is_waited_for && at < last {
            for process in running.iter().filter(|process| sent.insert(process.pid)) {
                kill(Pid::from_raw(process.pid as i32), signal_for("0")).unwrap_or_default();
            }
        }
        // The hook and the probe of a first run keep nobody waiting; that is for the next run.
        let is_held =
            row.probes.get(name) == Some(&Said::Starting) || matches!(row.post_start.get(name), Some(Stage::Owed | Stage::Running));
        if is_held && wanted < row.attempt(name) {
            for process in running {
                fs::write(format!("/proc/{}/root/go", process.pid), "").unwrap_or_default();
            }
        }
        let is_over = !(*is_waited_for && at < last) || running.is_empty();
        if !(is_there && is_over) {
            open.get_or_insert_with(|| format!("{pod} waits for {name} ({})", row.name));
        }
    }
    open
}
