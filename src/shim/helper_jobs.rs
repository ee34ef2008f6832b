//! All helpers at work, and exits that one of them may still name.

use super::container::Ending;
use super::helper_job::{HelperJob, Purpose};
use super::poller::{ContainerKey, JobKey, Poller};
use std::collections::BTreeMap;
use std::time::Instant;

/// Exits of processes that no helper has named yet; more than this many cannot be meant for one.
const EARLY_EXITS: usize = 64;

/// The helpers.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    jobs: BTreeMap<JobKey, HelperJob>,
    /// Exits seen while helpers were at work, which may yet name them.
    early_exits: Vec<(u32, Ending)>,
}

impl Helpers {
    pub(super) fn insert(&mut self, key: JobKey, job: HelperJob) {
        self.jobs.insert(key, job);
    }

    pub(super) fn get(&self, key: JobKey) -> Option<&HelperJob> {
        self.jobs.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: JobKey) -> Option<&mut HelperJob> {
        self.jobs.get_mut(&key)
    }

    /// Returns true if no helper is at work.
    pub(super) fn are_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Ends the registration of a helper. With the last one, no exit can be named any more.
    pub(super) fn remove(&mut self, key: JobKey, poller: &mut Poller) -> Option<HelperJob> {
        let job = self.jobs.remove(&key)?;
        job.unregister(poller);
        if self.jobs.is_empty() {
            self.early_exits.clear();
        }
        Some(job)
    }

    /// Notes that a process was a helper and has ended. `None` for another process.
    pub(super) fn note_end(&mut self, pid: u32) -> Option<JobKey> {
        let (key, job) = self.jobs.iter_mut().find(|(_, job)| job.pid == pid)?;
        job.has_exited = true;
        Some(*key)
    }

    /// Keeps the exit of an unknown process, which a helper at work may name.
    pub(super) fn keep_exit(&mut self, pid: u32, ending: Ending) {
        if self.jobs.is_empty() {
            return;
        }
        if self.early_exits.len() >= EARLY_EXITS {
            self.early_exits.remove(0);
        }
        self.early_exits.push((pid, ending));
    }

    /// Takes the exit of a process that a helper has named, if it has ended already.
    pub(super) fn take_exit(&mut self, pid: u32) -> Option<Ending> {
        let at = self.early_exits.iter().position(|(exited, _)| *exited == pid)?;
        Some(self.early_exits.swap_remove(at).1)
    }

    /// Helpers that took too long.
    pub(super) fn late(&self, now: Instant) -> Vec<JobKey> {
        self.jobs.iter().filter(|(_, job)| job.deadline <= now).map(|(key, _)| *key).collect()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.jobs.values().map(|job| job.deadline).min()
    }

    /// The helper that starts a container.
    pub(super) fn of_container(&self, container: ContainerKey) -> Option<JobKey> {
        self.jobs.iter().find(|(_, job)| job.purpose == Purpose::Start(container)).map(|(key, _)| *key)
    }

    pub(super) fn kill(&self, key: JobKey) {
        if let Some(job) = self.jobs.get(&key) {
            job.kill();
        }
    }

    /// Kills those that run something in a container.
    pub(super) fn kill_execs(&self) {
        self.jobs.values().filter(|job| matches!(job.purpose, Purpose::Exec(_))).for_each(HelperJob::kill);
    }
}
