//! The daemon's side: starts a job for an archive, and checks what comes back.

use super::TASK;
use super::wire::{self, FORM_MAX, FailedKind, Message, Request};
use crate::tree_rules::{ReadLimits, TreeFiles};
use podstead_container::cgroup::JobLimits;
use podstead_image::list_job::Lister;
use podstead_image::unpack_job::{JobError, ProcessLimits, of_end};
use podstead_job::confine::Rlimits;
use podstead_job::events;
use podstead_job::launch::{Job, Launcher, MessageError};
use podstead_job::told::Told;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventRecorder;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, BufReader, Seek, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Memory of a job: an archive, its names, and the files that a source reads, twice.
const MEMORY: u64 = 512 << 20;
/// Processor time of a job: an archive may be read a hundred times.
const CPU_SECS: u64 = 300;
/// Threads of a job: one, and some for the C library.
const TASKS: u64 = 8;
/// Open files of a job.
const FILES: u64 = 64;
/// Time for a job that has answered to end.
const END: Duration = Duration::from_secs(10);

/// Reason why an archive has no files for a source.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The archive is refused; the reason as the job tells it.
    #[error("{0}")]
    Refused(String),
    /// The job failed.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl ReadError {
    /// Reports whether the content is to blame, and another attempt would end in the same way.
    pub(crate) fn is_of_the_content(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Job(error) => error.is_refusal(),
        }
    }
}

/// Starts jobs that read archives of artifacts and bundles.
#[derive(Debug)]
pub struct ArtifactJobs {
    launcher: Arc<Launcher>,
    events: Arc<dyn EventRecorder>,
}

impl ArtifactJobs {
    /// Jobs that `launcher` starts.
    pub fn new(launcher: Arc<Launcher>, events: Arc<dyn EventRecorder>) -> Self {
        Self { launcher, events }
    }

    /// Lists archives by jobs of the same launcher.
    pub(crate) fn lister(&self) -> Lister {
        Lister::new(Arc::clone(&self.launcher), Arc::clone(&self.events))
    }

    /// Reads the files below `path` (`/` between components, none at the ends; empty for the whole archive), by path relative to it. Empty when the path is
    /// there without manifests. Blocks.
    pub(crate) fn read(&self, archive: &[u8], path: &str, limits: &ReadLimits) -> Result<TreeFiles, ReadError> {
        self.ask(archive, path, limits).inspect_err(|error| self.tell(error, archive.len()))
    }

    fn ask(&self, archive: &[u8], path: &str, limits: &ReadLimits) -> Result<TreeFiles, ReadError> {
        let process =
            ProcessLimits { memory: MEMORY, cpu_secs: CPU_SECS, file_bytes: limits.max_total_bytes.saturating_add(FORM_MAX) };
        let (from_daemon, mut to_job) = io::pipe().map_err(JobError::Prepare)?;
        let answer = memfd_create("files", MemfdFlags::CLOEXEC).map_err(|errno| JobError::Prepare(errno.into()))?;
        let ProcessLimits { memory, cpu_secs, file_bytes } = process;
        let user = self.launcher.user();
        let request = Request {
            rlimits: Rlimits { memory, cpu_secs, files: FILES, file_bytes },
            uid: user.uid,
            gid: user.gid,
            path: path.to_owned(),
            limits: limits.into(),
        };
        let group = JobLimits { memory: memory.saturating_add(file_bytes), tasks: TASKS };
        let job = self.launcher.start(TASK, &group, &request, &[from_daemon.as_fd(), answer.as_fd()]).map_err(JobError::Start)?;
        drop(from_daemon);
        let heard = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A job that takes no more has its reason in its answer, or in its end.
                let _refused = to_job.write_all(archive);
            });
            let heard = hear(&job, self.launcher.patience());
            // It ends by itself when it has answered; and nobody waits for one that does not read.
            if heard.is_err() || !job.wait(END) {
                job.kill();
            }
            heard
        })?;
        let end = job.end().map_err(JobError::Prepare)?;
        judge(heard, of_end(end, &process))?;
        let mut answer = File::from(answer);
        answer.rewind().map_err(JobError::Prepare)?;
        Ok(wire::read(BufReader::new(answer), path, limits).map_err(|rule| JobError::BadAnswer(rule.to_owned()))?)
    }

    /// Records what an operator has to know of.
    fn tell(&self, error: &ReadError, bytes: usize) {
        let ReadError::Job(error) = error else { return };
        let Some(reason) = error.event() else { return };
        let message = format!("archive of {bytes} bytes with manifests: {}", error_chain(error));
        events::record(&*self.events, reason, &message);
    }
}

fn hear(job: &Job, patience: Duration) -> Result<Option<Message>, JobError> {
    job.messages().next_within(patience).map_err(|error| match error {
        MessageError::Late => JobError::Hangs(patience),
        error => JobError::BadAnswer(error.to_string()),
    })
}

/// Decides by what came of a job. What stopped it first is told first.
fn judge(heard: Option<Message>, end: Option<JobError>) -> Result<(), ReadError> {
    match (heard, end) {
        (Some(Message::Read), None) => Ok(()),
        // A job that panics ends with a code.
        (Some(Message::Failed(kind, text)), None | Some(JobError::NoAnswer(_))) => Err(match kind {
            FailedKind::Refused => ReadError::Refused(Told::cleaned(&text)),
            FailedKind::Confine => JobError::Confine(Told::new(&text)).into(),
            FailedKind::Panic => JobError::Panic(Told::new(&text)).into(),
        }),
        (None, None) => Err(JobError::NoAnswer(0).into()),
        (_, Some(error)) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_in_order_is_believed() {
        let told = |heard, end| judge(heard, end).map_err(|error| (error.to_string(), error.is_of_the_content()));
        assert_eq!(told(Some(Message::Read), None), Ok(()));
        let (text, is_final) = told(Some(Message::Read), Some(JobError::Violation)).unwrap_err();
        assert!(text.contains("forbidden system call") && is_final, "{text}");
        let (text, is_final) = told(None, Some(JobError::Signal(9))).unwrap_err();
        assert!(text.ends_with("ended by signal 9") && !is_final, "{text}");
        let failed = |kind| Some(Message::Failed(kind, "it has \"a\"\n".to_owned()));
        assert_eq!(told(failed(FailedKind::Refused), None), Err(("it has \"a\"\u{fffd}".to_owned(), true)));
        let (text, is_final) = told(failed(FailedKind::Panic), Some(JobError::NoAnswer(1))).unwrap_err();
        assert!(text.contains("panicked") && !is_final, "{text}");
        assert!(!told(None, None).unwrap_err().1);
    }
}
