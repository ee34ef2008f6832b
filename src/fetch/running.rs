//! A job at work, as the daemon sees it.

use crate::TASK;
use crate::error::{CPU_SECS, JobError, MEMORY};
use crate::files::COPY_MAX;
use crate::jobs::Jobs;
use crate::message::{Begin, Open, Refusal};
use crate::setup::Setup;
use podstead_container::cgroup::JobLimits;
use podstead_job::confine::Rlimits;
use podstead_job::events;
use podstead_job::launch::Job;
use podstead_job::told::Told;
use podstead_telemetry::error_chain;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::net;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::OnceCell;

/// Threads of a job: two, those that wait for the resolver, and some for the C library.
const TASKS: u64 = 32;
/// Open files of a job: a connection and a socket of the daemon for each request, and some more.
const FILES: u64 = 1024;
/// Time in which a job takes a request.
const TAKE: Duration = Duration::from_secs(1);
/// Time for a job that has closed a request to end, if it ends.
const END: Duration = Duration::from_secs(2);

/// A job. Dropping the last reference kills it.
#[derive(Debug)]
pub(crate) struct Running {
    jobs: Arc<Jobs>,
    /// `None` when it is over.
    job: Mutex<Option<Job>>,
    /// Reason of its end, if it ended before it was dropped.
    end: OnceCell<JobError>,
    is_told: AtomicBool,
}

impl Running {
    /// Starts a job. Blocks for some milliseconds.
    pub(crate) fn start(jobs: &Arc<Jobs>, setup: &Setup) -> Result<Self, JobError> {
        let setup = in_memory(setup).map_err(JobError::prepare)?;
        let user = jobs.launcher.user();
        let rlimits = Rlimits { memory: MEMORY, cpu_secs: CPU_SECS, files: FILES, file_bytes: COPY_MAX };
        let begin = Begin { rlimits, uid: user.uid, gid: user.gid };
        let group = JobLimits { memory: MEMORY, tasks: TASKS };
        let job = jobs.launcher.start(TASK, &group, &begin, &[setup.as_fd()]).map_err(|error| JobError::Start(Arc::new(error)))?;
        Ok(Self { jobs: Arc::clone(jobs), job: Mutex::new(Some(job)), end: OnceCell::new(), is_told: AtomicBool::new(false) })
    }

    /// A new request: this end of its socket.
    pub(crate) fn open(&self) -> Result<UnixStream, JobError> {
        let (near, far) = net::UnixStream::pair().map_err(JobError::prepare)?;
        near.set_nonblocking(true).map_err(JobError::prepare)?;
        match &*self.lock() {
            // An end is told by the socket of the request, which ends with the job.
            Some(job) => match job.send_with(&Open {}, &[far.as_fd()], TAKE) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(JobError::Hangs),
                Ok(()) | Err(_) => {}
            },
            None => return Err(self.end.get().cloned().unwrap_or(JobError::NoAnswer(0))),
        }
        UnixStream::from_std(near).map_err(JobError::prepare)
    }

    /// Reason why the job closed a request without its end. The job is over afterwards.
    pub(crate) async fn failure(&self) -> JobError {
        self.finish(None).await
    }

    /// Ends the job, and keeps the reason.
    pub(crate) async fn end_as(&self, reason: JobError) -> JobError {
        self.finish(Some(reason)).await
    }

    /// Returns true if it takes no more requests.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_none()
    }

    async fn finish(&self, reason: Option<JobError>) -> JobError {
        self.end.get_or_init(|| self.ended(reason)).await.clone()
    }

    async fn ended(&self, reason: Option<JobError>) -> JobError {
        let job = self.lock().take();
        match job {
            // The runtime ends, and with it all that is asked.
            Some(job) => tokio::task::spawn_blocking(move || over(job, reason)).await.unwrap_or(JobError::NoAnswer(0)),
            None => JobError::NoAnswer(0),
        }
    }

    /// Records once what an operator has to know of.
    pub(crate) fn tell(&self, error: &JobError) {
        if let Some(reason) = error.event()
            && !self.is_told.swap(true, Ordering::Relaxed)
        {
            let message = error_chain(error).to_string();
            events::record(&*self.jobs.events, reason, &message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(job) = self.lock().take() {
            // Its end is waited for, which is not for a thread of the runtime.
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || drop(job))),
                Err(_) => drop(job),
            }
        }
    }
}

/// The end of a job that closed a request, or that broke the rules, which is the `reason`.
fn over(job: Job, reason: Option<JobError>) -> JobError {
    if reason.is_none() && !job.wait(END) {
        // Nothing makes a job close a request but its own end.
        return JobError::BadAnswer("an answer without an end");
    }
    let told = match reason {
        Some(_) => None,
        None => job.messages().next_within::<Refusal>(TAKE).ok().flatten(),
    };
    let end = job.end();
    match (reason, told, end) {
        (Some(reason), _, _) => reason,
        (None, Some(Refusal::Confine(text)), _) => JobError::Confine(Told::new(&text)),
        (None, Some(Refusal::Panic(text)), _) => JobError::Panic(Told::new(&text)),
        (None, None, Ok(end)) => JobError::of_end(end),
        (None, None, Err(error)) => JobError::prepare(error),
    }
}

/// A setup in a file without a name, since it may be longer than a message. It may hold a key.
fn in_memory(setup: &Setup) -> io::Result<File> {
    let mut file = File::from(memfd_create("setup", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(setup)?)?;
    file.rewind()?;
    Ok(file)
}
