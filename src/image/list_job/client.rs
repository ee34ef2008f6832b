//! The daemon's side: starts a job for an archive, and hears how it ended.

use super::super::limits::{Limits, shown_bytes};
use super::super::unpack_job::{JobError, ProcessLimits, cpu_secs, of_end};
use super::TASK;
use super::error::ListError;
use super::listing::{Listing, Lists};
use super::wire::{FailedKind, Form, Message, Request};
use podstead_container::cgroup::JobLimits;
use podstead_job::confine::Rlimits;
use podstead_job::events;
use podstead_job::launch::{Job, Launcher};
use podstead_job::told::Told;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventRecorder;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Memory of a job beside the window of zstd: the headers of one entry, and buffers.
const MEMORY: u64 = 64 << 20;
/// Threads of a job: one, and some for the C library.
const TASKS: u64 = 8;
/// Open files of a job.
const FILES: u64 = 64;
/// Time for a job that has answered to end.
const END: Duration = Duration::from_secs(10);

/// Starts jobs that list archives.
#[derive(Clone, Debug)]
pub struct Lister {
    launcher: Arc<Launcher>,
    events: Arc<dyn EventRecorder>,
}

/// A job at work.
#[derive(Debug)]
pub(super) struct Lent {
    job: Job,
    lister: Lister,
    process: ProcessLimits,
    bytes: u64,
}

impl Lister {
    /// A lister whose jobs `launcher` starts.
    pub fn new(launcher: Arc<Launcher>, events: Arc<dyn EventRecorder>) -> Self {
        Self { launcher, events }
    }

    /// Has a job list `archive` from its beginning on. A plain archive must not be listed twice at the same time by the same open file.
    pub fn list(&self, archive: File, form: Form, limits: &Limits) -> Result<Listing, ListError> {
        let length = archive.metadata().map_err(ListError::Read)?.len();
        let process = process_limits(form, limits);
        let ProcessLimits { memory, cpu_secs, file_bytes } = process;
        let user = self.launcher.user();
        let rlimits = Rlimits { memory, cpu_secs, files: FILES, file_bytes };
        let request = Request { form, limits: *limits, rlimits, uid: user.uid, gid: user.gid };
        let (entries, to_daemon) = UnixStream::pair().map_err(JobError::Prepare)?;
        entries.set_read_timeout(Some(self.launcher.patience())).map_err(JobError::Prepare)?;
        let to_daemon = OwnedFd::from(to_daemon);
        let group = JobLimits { memory, tasks: TASKS };
        let job = self.launcher.start(TASK, &group, &request, &[archive.as_fd(), to_daemon.as_fd()]).map_err(JobError::Start)?;
        let lent = Lent { job, lister: self.clone(), process, bytes: length };
        Ok(Listing::of_job(archive, length, form, limits, entries, lent))
    }
}

impl Lister {
    /// Has a job list an archive without anything in it, to see whether jobs can work on this host.
    pub fn try_out(&self) -> Result<(), ListError> {
        let archive = memfd_create("archive", MemfdFlags::CLOEXEC).map_err(|error| JobError::Prepare(error.into()))?;
        self.list(archive.into(), Form::Plain, &Limits::default())?.next_entry().map(drop)
    }
}

impl Lists for Lister {
    fn list(&self, archive: &File) -> Result<Listing, ListError> {
        self.list(archive.try_clone().map_err(ListError::Read)?, Form::Plain, &Limits::default())
    }
}

fn process_limits(form: Form, limits: &Limits) -> ProcessLimits {
    let window = if form == Form::Compressed { limits.zstd_window } else { 0 };
    // It writes no file.
    ProcessLimits { memory: MEMORY.saturating_add(window), cpu_secs: cpu_secs(limits), file_bytes: 0 }
}

impl Lent {
    /// The reason for which the job, which has closed its socket, told no more; `Ok` if there was no more.
    pub(super) fn end(self) -> Result<(), ListError> {
        let Self { job, lister, process, bytes } = self;
        let patience = lister.launcher.patience();
        let heard = job.messages().next_within::<Message>(patience).map_err(|error| JobError::BadAnswer(error.to_string()));
        // It ends by itself when it has answered; and nobody waits for one that breaks the rules.
        if heard.is_err() || !job.wait(END) {
            job.kill();
        }
        let judged =
            job.end().map_err(JobError::Prepare).map_err(ListError::from).and_then(|end| judge(heard?, of_end(end, &process)));
        judged.inspect_err(|error| lister.tell(error, bytes))
    }

    /// The reason for which the job, which has closed its socket in the middle of an entry, told no more.
    pub(super) fn broke_off(self) -> ListError {
        let (lister, bytes) = (self.lister.clone(), self.bytes);
        let Err(error) = self.end() else {
            let error = JobError::BadAnswer("less than it tells of".to_owned()).into();
            lister.tell(&error, bytes);
            return error;
        };
        error
    }

    /// Ends a job that broke a rule.
    pub(super) fn broke(self, rule: &str) -> ListError {
        let Self { job, lister, process, bytes } = self;
        job.kill();
        let ended = job.end().ok().and_then(|end| of_end(end, &process));
        // What stopped it first is told first.
        let error = ended.filter(|ended| ended.is_refusal()).unwrap_or_else(|| JobError::BadAnswer(rule.to_owned())).into();
        lister.tell(&error, bytes);
        error
    }

    /// Ends a job that takes too long.
    pub(super) fn hangs(self) -> ListError {
        let Self { job, lister, bytes, .. } = self;
        job.kill();
        let error = JobError::Hangs(lister.launcher.patience()).into();
        lister.tell(&error, bytes);
        error
    }
}

impl Lister {
    /// Records what an operator has to know of.
    fn tell(&self, error: &ListError, bytes: u64) {
        let ListError::Job(error) = error else { return };
        let Some(reason) = error.event() else { return };
        let told = error_chain(error);
        // Of the host, whatever the archive is.
        let message = match error {
            JobError::Confine(_) => told.to_string(),
            _ => format!("archive of {}: {told}", shown_bytes(bytes)),
        };
        events::record(&*self.events, reason, &message);
    }
}

/// Decides by what came of a job. What stopped it first is told first.
fn judge(heard: Option<Message>, end: Option<JobError>) -> Result<(), ListError> {
    match (heard, end) {
        (Some(Message::Listed), None) => Ok(()),
        // A job that panics ends with a code.
        (Some(Message::Failed(kind, text)), None | Some(JobError::NoAnswer(_))) => Err(match kind {
            FailedKind::Read => ListError::Read(io::Error::other(Told::cleaned(&text))),
            FailedKind::Limit(exceeded) => ListError::Read(io::Error::new(io::ErrorKind::InvalidData, exceeded)),
            FailedKind::Archive => ListError::Archive(Told::cleaned(&text)),
            FailedKind::Confine => JobError::Confine(Told::new(&text)).into(),
            FailedKind::Panic => JobError::Panic(Told::new(&text)).into(),
        }),
        (None, None) => Err(JobError::NoAnswer(0).into()),
        (_, Some(error)) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::limits::{Bound, Exceeded};
    use super::*;

    #[test]
    fn only_a_job_in_order_is_believed() {
        let told = |heard, end| judge(heard, end).map_err(|error| (error_chain(&error).to_string(), error.is_of_the_content()));
        assert_eq!(told(Some(Message::Listed), None), Ok(()));
        let (text, is_final) = told(Some(Message::Listed), Some(JobError::Violation)).unwrap_err();
        assert!(text.contains("forbidden system call") && is_final, "{text}");
        let (text, is_final) = told(None, Some(JobError::Signal(9))).unwrap_err();
        assert!(text.ends_with("ended by signal 9") && !is_final, "{text}");
        let failed = |kind| Some(Message::Failed(kind, "it has \"a\"\n".to_owned()));
        assert_eq!(told(failed(FailedKind::Archive), None), Err(("it has \"a\"\u{fffd}".to_owned(), true)));
        assert_eq!(told(failed(FailedKind::Read), None), Err(("read archive: it has \"a\"\u{fffd}".to_owned(), false)));
        let exceeded = Exceeded { bound: Bound::Ratio, limit: 200 };
        assert_eq!(told(failed(FailedKind::Limit(exceeded)), None).unwrap_err().0, format!("read archive: {exceeded}"));
        let (text, is_final) = told(failed(FailedKind::Panic), Some(JobError::NoAnswer(1))).unwrap_err();
        assert!(text.contains("panicked") && !is_final, "{text}");
        assert!(!told(None, None).unwrap_err().1);
    }
}
