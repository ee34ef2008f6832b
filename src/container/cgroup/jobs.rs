//! Groups of jobs, the daemon's short-lived helpers: one each, for the time of one task.

use super::control::{children, keyed, make, write};
use super::limits::{Setting, settings};
use super::tree::{CALLER, THREADS_V1, below};
use super::{CgroupError, CgroupVersion, Cgroups};
use podstead_pod::resources::CgroupResources;
use podstead_sys::pidfd;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limits of a job's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLimits {
    /// Bytes of memory, with the pages of files that it writes.
    pub memory: u64,
    /// Threads.
    pub tasks: u64,
}

/// Way in which jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsPace {
    /// With a third of the share of a pod.
    Usual,
    /// Only where nobody else wants a processor.
    Idle,
    /// Not at all: those that are at work stop. One that begins later runs as if idle.
    Stopped,
}

/// Ways into the group of a job, as [`podstead_sys::spawn::Program`] takes them.
#[derive(Debug)]
pub struct JobEntrances {
    /// Files of v1 that take a thread.
    pub v1: Vec<File>,
    /// Directory of v2.
    pub v2: Option<File>,
}

/// Controllers of a job's group: what limits it, and on v1 what finds its processes.
const CONTROLLERS: [&str; 4] = ["cpu", "freezer", "memory", "pids"];

/// The share of the processors that all jobs have together: a third of that of a pod with a request of one processor, or of the shims. The nice value of a job
/// counts only against processes of its own group. **Pure**.
fn weight(version: CgroupVersion) -> Setting {
    share(version, "341", "33")
}

/// The least share, that of BestEffort pods: for kernels before 5.15, which know no idle groups. **Pure**.
fn least_weight(version: CgroupVersion) -> Setting {
    share(version, "2", "1")
}

fn share(version: CgroupVersion, shares: &str, weight: &str) -> Setting {
    match version {
        CgroupVersion::V1 => of_processors("cpu.shares", shares),
        CgroupVersion::V2 => of_processors("cpu.weight", weight),
    }
}

fn of_processors(file: &str, value: &str) -> Setting {
    Setting { controller: "cpu", file: file.to_owned(), value: value.to_owned(), resets: true, is_default: false }
}

/// Settings for jobs that run only where nobody else wants a processor, or as usual. An idle group has no share: a usual one gets it last. **Pure**.
fn priority(version: CgroupVersion, idle: bool, kernel_knows_idle: bool) -> Vec<Setting> {
    let usual = if idle { least_weight } else { weight };
    match (kernel_knows_idle, idle) {
        (true, true) => vec![of_processors(IDLE, "1")],
        (true, false) => vec![of_processors(IDLE, "0"), usual(version)],
        (false, _) => vec![usual(version)],
    }
}

/// The file that makes a group idle: whoever wants a processor that it runs on gets it at once.
const IDLE: &str = "cpu.idle";

impl Cgroups {
    /// The parent of all groups of jobs.
    pub(super) fn jobs(&self) -> PathBuf {
        self.slice().join("jobs")
    }

    /// Makes the group of a job, with its limits. A host that cannot limit something does not: the job has limits of its own.
    pub fn create_job(&self, name: &str, limits: &JobLimits) -> Result<PathBuf, CgroupError> {
        let path = self.jobs().join(name);
        let roots = self.roots_for_jobs();
        let make_all = || roots.iter().try_for_each(|root| make(&below(root, &path)).map(drop));
        // The parent is there but for the first time.
        if make_all().is_err() {
            self.divide(&self.jobs())?;
            self.weigh_jobs();
            make_all()?;
        }
        let number = |value: u64| i64::try_from(value).ok();
        let resources =
            CgroupResources { memory_limit: number(limits.memory), pids_limit: number(limits.tasks), ..CgroupResources::default() };
        for setting in settings(self.version(), &resources, &[]).into_iter().filter(|setting| !setting.resets) {
            if let Err(error) = self.apply(&path, std::iter::once(setting)) {
                tracing::debug!(error = &error as &dyn std::error::Error, "cannot limit a job");
            }
        }
        Ok(path)
    }

    /// Sets the share of all jobs. A host without this share lets them run as everything else.
    fn weigh_jobs(&self) {
        self.pace_jobs(JobsPace::Usual);
    }

    /// Lets all jobs run in another way. Some microseconds; nothing is done where no job was started yet.
    ///
    /// Jobs stop by a signal: on v1, starts beside groups that the freezer held took longer than beside those that ran. A job that is stopped can be killed.
    pub fn pace_jobs(&self, pace: JobsPace) {
        let Some(root) = self.hierarchies.controller("cpu") else { return };
        let group = below(root, &self.jobs());
        if !group.is_dir() {
            return;
        }
        let signal = if pace == JobsPace::Stopped { nix::libc::SIGSTOP } else { nix::libc::SIGCONT };
        self.signal_jobs(signal);
        let kernel_knows_idle = group.join(IDLE).is_file();
        let priority = priority(self.version(), pace != JobsPace::Usual, kernel_knows_idle);
        if let Err(error) = self.apply(&self.jobs(), priority.into_iter()) {
            tracing::debug!(error = &error as &dyn std::error::Error, "the share that jobs have of the processors stays");
        }
    }

    /// Sends all jobs a signal. A group that goes meanwhile keeps none of the others from theirs.
    fn signal_jobs(&self, signal: i32) {
        let jobs = children(&below(self.hierarchies.tracking(), &self.jobs()));
        for name in jobs.iter().flatten() {
            if let Err(error) = self.signal_job(&self.jobs().join(name), signal) {
                tracing::debug!(error = &error as &dyn std::error::Error, signal, "cannot signal a job");
            }
        }
    }

    fn signal_job(&self, group: &Path, signal: i32) -> Result<(), CgroupError> {
        for pid in self.processes(group)? {
            let Ok(process) = pidfd::open(pid) else { continue };
            // Its number may have been another one's since the list was read; what is open now stays the same process.
            if self.processes(group)?.contains(&pid)
                && let Err(error) = pidfd::send_signal(&process, signal)
            {
                tracing::trace!(%error, pid, "a job has ended before it was signalled");
            }
        }
        Ok(())
    }

    /// Opens the ways into a group that was made by [`Cgroups::create_job`], for a process that begins in it.
    pub fn job_entrances(&self, path: &Path) -> Result<JobEntrances, CgroupError> {
        let (mut v1, mut v2) = (Vec::new(), None);
        for root in self.roots_for_jobs() {
            let directory = below(root, path);
            if self.hierarchies.v2() == Some(root) {
                v2 = Some(File::open(&directory).map_err(|source| CgroupError::Read { path: directory, source })?);
            } else {
                let file = directory.join(THREADS_V1);
                let opened = File::options().write(true).open(&file);
                v1.push(opened.map_err(|source| CgroupError::Write { path: file, value: CALLER.to_owned(), source })?);
            }
        }
        Ok(JobEntrances { v1, v2 })
    }

    /// Moves a process into a group that was made by [`Cgroups::create_job`]. It may wait for some milliseconds ([`podstead_sys::cgroup_moves`]).
    pub fn attach_job(&self, path: &Path, pid: u32) -> Result<(), CgroupError> {
        for root in self.roots_for_jobs() {
            write(&below(root, path).join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// Returns true if the kernel killed a process of the group for want of memory.
    pub fn job_was_out_of_memory(&self, path: &Path) -> bool {
        let Some(root) = self.hierarchies.controller("memory") else { return false };
        let file = match self.version() {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        keyed(&below(root, path).join(file), "oom_kill").is_ok_and(|kills| kills.is_some_and(|kills| kills > 0))
    }

    /// Ends the jobs that an earlier daemon left, removes their groups, and sets the share of those to come if their parent is there.
    pub fn sweep_jobs(&self, patience: Duration) -> Result<(), CgroupError> {
        let jobs = self.jobs();
        self.weigh_jobs();
        for root in self.roots_for_jobs() {
            for name in children(&below(root, &jobs))? {
                let path = jobs.join(name);
                self.kill(&path, patience)?;
                self.remove(&path, patience)?;
            }
        }
        Ok(())
    }

    /// Roots of the hierarchies that limit jobs, each once.
    fn roots_for_jobs(&self) -> Vec<&Path> {
        let mut roots: Vec<&Path> = CONTROLLERS.iter().filter_map(|name| self.hierarchies.controller(name)).collect();
        roots.dedup();
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_a_third_of_the_usual_share() {
        assert_eq!(written(CgroupVersion::V1, false, true), ["cpu cpu.idle=0", "cpu cpu.shares=341"]);
        assert_eq!(written(CgroupVersion::V2, false, false), ["cpu cpu.weight=33"]);
    }

    fn written(version: CgroupVersion, idle: bool, kernel_knows_idle: bool) -> Vec<String> {
        let settings = priority(version, idle, kernel_knows_idle).into_iter();
        let text = |Setting { controller, file, value, resets, .. }| {
            assert!(resets, "a host without the file starts jobs all the same");
            format!("{controller} {file}={value}")
        };
        settings.map(text).collect()
    }

    #[test]
    fn idle_jobs_have_no_share_or_the_least() {
        for version in [CgroupVersion::V1, CgroupVersion::V2] {
            assert_eq!(written(version, true, true), ["cpu cpu.idle=1"]);
        }
        assert_eq!(written(CgroupVersion::V1, true, false), ["cpu cpu.shares=2"]);
        assert_eq!(written(CgroupVersion::V2, true, false), ["cpu cpu.weight=1"]);
    }
}
