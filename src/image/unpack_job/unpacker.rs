//! The daemon's side: passes a layer's bytes to a job, and checks what comes back.

use super::super::digesting::Digesting;
use super::super::layer_error::{Bounds, LayerError};
use super::super::limits::{Exceeded, Limits};
use super::super::list_job::Lister;
use super::super::space::{SpaceError, SpaceWatch};
use super::super::unpack::Unpacked;
use super::TASK;
use super::error::{JobError, ProcessLimits, of_end};
use super::watch::{Answer, Feed, Heard, Unacceptable};
use super::wire::{Failed, FailedKind, Request};
use podstead_container::cgroup::JobLimits;
use podstead_container::digest::Digest;
use podstead_job::confine::Rlimits;
use podstead_job::events;
use podstead_job::launch::{End, Job, JobSettings, Launcher, MessageError};
use podstead_job::told::Told;
use podstead_job::tree::{Access, detached};
use podstead_sys::mounts;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventRecorder;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the pipe to a job: the most that a kernel gives without configuration.
const PIPE: usize = 1 << 20;
/// Memory of a job beside what limits of images allow.
const MEMORY: u64 = 128 << 20;
/// Threads of a job: three, and some for the C library.
const TASKS: u64 = 16;
/// Open files of a job.
const FILES: u64 = 512;
/// Processor time of a job beside that for its bytes.
const CPU_SECS: u64 = 600;
/// Decompressed bytes in a second of processor time that the slowest host makes of a layer.
const BYTES_PER_CPU_SEC: u64 = 16 << 20;
/// Between two looks at the disk and at the job.
const LOOK: Duration = Duration::from_secs(1);
/// Time for a job that has answered to end.
const END: Duration = Duration::from_secs(10);

/// Unpacks layers by jobs.
#[derive(Debug)]
pub struct Unpacker {
    launcher: Arc<Launcher>,
    events: Arc<dyn EventRecorder>,
}

/// Seconds of processor time for all bytes of an image within `limits`.
pub(in super::super) fn cpu_secs(limits: &Limits) -> u64 {
    CPU_SECS + limits.unpacked_bytes / BYTES_PER_CPU_SEC
}

/// Limits of the job for a layer within `limits`.
fn process_limits(limits: &Limits) -> ProcessLimits {
    let memory = MEMORY.saturating_add(limits.zstd_window).saturating_add(limits.path_memory.saturating_mul(2));
    ProcessLimits { memory, cpu_secs: cpu_secs(limits), file_bytes: limits.file_bytes.max(limits.unpacked_bytes) }
}

/// The way in which the bytes came to their end.
#[derive(Debug)]
enum Fed {
    /// The job has all of them.
    Complete,
    /// The job takes no more.
    Refused,
    /// They do not come.
    Failed(io::Error),
}

/// Reason why the daemon ends a job.
#[derive(Debug)]
enum Fault {
    Limit(Exceeded),
    Space(SpaceError),
    Rule(String),
    Hangs,
}

impl From<Unacceptable> for Fault {
    fn from(unacceptable: Unacceptable) -> Self {
        match unacceptable {
            Unacceptable::Rule(rule) => Self::Rule(rule.to_owned()),
            Unacceptable::Limit(exceeded) => Self::Limit(exceeded),
        }
    }
}

impl Unpacker {
    /// An unpacker. What jobs of an earlier daemon left is removed.
    pub fn new(settings: JobSettings, events: Arc<dyn EventRecorder>) -> Self {
        let launcher = Arc::new(Launcher::new(settings));
        launcher.sweep();
        Self { launcher, events }
    }

    /// The launcher of its jobs: all jobs of a daemon are started by one launcher.
    pub fn launcher(&self) -> &Arc<Launcher> {
        &self.launcher
    }

    /// Lists archives by jobs of the same launcher.
    pub(in super::super) fn lister(&self) -> Lister {
        Lister::new(Arc::clone(&self.launcher), Arc::clone(&self.events))
    }

    /// Has a job apply the layer `source` to `tree`, an empty directory, and reads `source` to its end, or to where the job stops. The answer is the job's:
    /// nobody vouches for the diff id.
    pub(in super::super) fn unpack<R: Read>(
        &self,
        source: &mut Digesting<R>,
        tree: &Path,
        bounds: &Bounds,
    ) -> Result<(Digest, Unpacked), LayerError> {
        let limits = process_limits(&bounds.limits);
        let (from_daemon, to_job) = io::pipe().map_err(JobError::Prepare)?;
        // A host may allow less: then there are more switches.
        let _smaller = rustix::pipe::fcntl_setpipe_size(&to_job, PIPE);
        let job = self.start(tree, &bounds.limits, from_daemon.as_fd())?;
        drop(from_daemon);
        let to_job = OwnedFd::from(to_job).into();
        let feed = Feed::default();
        let (fed, watched) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let watched = watch(&job, &feed, bounds, self.patience());
                if watched.is_err() {
                    job.kill();
                }
                watched
            });
            let fed = pass_on(source, to_job, &feed);
            if matches!(fed, Fed::Failed(_)) {
                job.kill();
            }
            let watched = watcher.join().unwrap_or_else(|_| Err(Fault::Rule("the daemon failed to follow it".to_owned())));
            (fed, watched)
        });
        // It ends by itself, now that it has answered.
        job.wait(END);
        let end = job.end().map_err(JobError::Prepare)?;
        judge(fed, watched, end, &limits, self.patience()).inspect_err(|error| self.tell(error, source))
    }

    /// Starts a job with `tree` as its root directory.
    fn start(&self, tree: &Path, limits: &Limits, layer: BorrowedFd<'_>) -> Result<Job, JobError> {
        // Files in memory count for the group that writes them.
        let files = if mounts::is_in_memory(tree) { limits.unpacked_bytes } else { 0 };
        let tree = detached(tree, Access::Write).map_err(JobError::Prepare)?;
        let user = self.launcher.user();
        let ProcessLimits { memory, cpu_secs, file_bytes } = process_limits(limits);
        let rlimits = Rlimits { memory, cpu_secs, files: FILES, file_bytes };
        let request = Request { limits: *limits, rlimits, uid: user.uid, gid: user.gid };
        let group = JobLimits { memory: memory.saturating_add(files), tasks: TASKS };
        Ok(self.launcher.start(TASK, &group, &request, &[tree.as_fd(), layer])?)
    }

    /// Time for which a job may neither read nor write nor tell of anything.
    fn patience(&self) -> Duration {
        self.launcher.patience()
    }

    /// Records what an operator has to know of.
    fn tell<R>(&self, error: &LayerError, source: &Digesting<R>) {
        let LayerError::Job(error) = error else { return };
        let Some(reason) = error.event() else { return };
        let message = format!("layer of {} bytes: {}", source.count(), error_chain(error));
        events::record(&*self.events, reason, &message);
    }
}

/// Passes all bytes on.
fn pass_on<R: Read>(source: &mut Digesting<R>, mut to_job: File, feed: &Feed) -> Fed {
    let fed = loop {
        let count = match source.fill_buf() {
            Ok([]) => break Fed::Complete,
            Ok(bytes) => {
                feed.offer();
                match to_job.write_all(bytes) {
                    Ok(()) => bytes.len(),
                    // Its reason is in its answer, or in its end.
                    Err(_) => break Fed::Refused,
                }
            }
            Err(error) => break Fed::Failed(error),
        };
        source.consume(count);
        feed.taken(count as u64);
    };
    drop(to_job);
    feed.ended();
    fed
}

/// Hears what a job says until it closes its socket.
fn watch(job: &Job, feed: &Feed, bounds: &Bounds, patience: Duration) -> Result<Option<Answer>, Fault> {
    let mut messages = job.messages();
    let mut heard = Heard::new(&bounds.limits);
    let mut space = SpaceWatch::new(bounds.space.clone());
    let (mut seen, mut quiet_since) = (None, Instant::now());
    loop {
        match messages.next_within(LOOK) {
            Ok(Some(message)) => {
                let more = heard.take(message)?;
                bounds.image.take_used(more).map_err(Fault::Limit)?;
                space.passes(more.bytes, more.entries).map_err(Fault::Space)?;
                quiet_since = Instant::now();
            }
            Ok(None) => return Ok(heard.answer),
            Err(MessageError::Late) => space.passes(0, 0).map_err(Fault::Space)?,
            Err(error) => return Err(Fault::Rule(error.to_string())),
        }
        let taken = feed.awaited();
        if taken.is_none() || taken != seen {
            (seen, quiet_since) = (taken, Instant::now());
        }
        if quiet_since.elapsed() > patience {
            return Err(Fault::Hangs);
        }
    }
}

/// Decides by what came of a job. What stopped it first is told first.
fn judge(
    fed: Fed,
    watched: Result<Option<Answer>, Fault>,
    end: End,
    limits: &ProcessLimits,
    patience: Duration,
) -> Result<(Digest, Unpacked), LayerError> {
    if let Fed::Failed(error) = fed {
        return Err(LayerError::Read(error));
    }
    let answer = watched.map_err(|fault| match fault {
        Fault::Limit(exceeded) => LayerError::Limit(exceeded),
        Fault::Space(error) => LayerError::Space(error),
        Fault::Rule(rule) => JobError::BadAnswer(rule).into(),
        Fault::Hangs => JobError::Hangs(patience).into(),
    })?;
    let in_order = of_end(end, limits).map_or(Ok(()), Err);
    match answer {
        Some(Answer::Failed(failed)) => {
            // A job that panics ends with a code.
            if !matches!(in_order, Ok(()) | Err(JobError::NoAnswer(_))) {
                in_order?;
            }
            Err(failure(failed))
        }
        Some(Answer::Done(diff_id, unpacked)) => {
            in_order?;
            match fed {
                Fed::Complete => Ok((diff_id, unpacked)),
                Fed::Refused | Fed::Failed(_) => {
                    Err(JobError::BadAnswer("an answer before the end of the layer".to_owned()).into())
                }
            }
        }
        None => {
            in_order?;
            Err(JobError::NoAnswer(0).into())
        }
    }
}

/// The error of a layer for the failure that a job reports.
fn failure(failed: Failed) -> LayerError {
    let Failed { kind, text } = failed;
    let told = Told::new(&text);
    match kind {
        FailedKind::Limit(exceeded) => LayerError::Limit(exceeded),
        FailedKind::Decompress => LayerError::Decompress(told),
        FailedKind::Unpack => LayerError::Unpack(told),
        FailedKind::Full => LayerError::Full { told, source: rustix::io::Errno::NOSPC.into() },
        FailedKind::Confine => JobError::Confine(told).into(),
        FailedKind::Panic => JobError::Panic(told).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::limits::Bound;
    use super::*;

    const LIMITS: ProcessLimits = ProcessLimits { memory: 256 << 20, cpu_secs: 600, file_bytes: 1 };

    fn judged(fed: Fed, watched: Result<Option<Answer>, Fault>, end: End) -> String {
        match judge(fed, watched, end, &LIMITS, Duration::from_secs(300)) {
            Ok(_) => "unpacked".to_owned(),
            Err(error) => super::super::super::explain::explain(&error),
        }
    }

    fn done() -> Result<Option<Answer>, Fault> {
        Ok(Some(Answer::Done(Digest::of(b""), Unpacked::default())))
    }

    #[test]
    fn only_a_job_in_order_is_believed() {
        assert_eq!(judged(Fed::Complete, done(), End::Exit(0)), "unpacked");
        let told = judged(Fed::Refused, done(), End::Exit(0));
        assert!(told.ends_with("an answer before the end of the layer"), "{told}");
        let told = judged(Fed::Complete, done(), End::Violation);
        assert!(told.contains("forbidden system call"), "{told}");
        let told = judged(Fed::Complete, done(), End::Exit(1));
        assert!(told.ends_with("ended with code 1 and without an answer"), "{told}");
        let told = judged(Fed::Complete, Ok(None), End::Memory);
        assert_eq!(told, "the job that unpacked used up its 256 MiB of memory");
    }

    #[test]
    fn cause_is_told_and_not_its_consequence() {
        let told = judged(Fed::Failed(io::Error::other("cable")), Ok(None), End::Signal(9));
        assert_eq!(told, "read layer: cable");
        let exceeded = Exceeded { bound: Bound::Entries, limit: 5 };
        let told = judged(Fed::Refused, Err(Fault::Limit(exceeded)), End::Signal(9));
        assert_eq!(told, exceeded.to_string());
        let told = judged(Fed::Refused, Err(Fault::Hangs), End::Signal(9));
        assert!(told.contains("did nothing for 300 seconds"), "{told}");
        let failed = |kind| Ok(Some(Answer::Failed(Failed { kind, text: "a \"b\"\n".to_owned() })));
        assert_eq!(judged(Fed::Refused, failed(FailedKind::Unpack), End::Exit(0)), "unpack layer: 'a \"b\"\u{fffd}'");
        let told = judged(Fed::Refused, failed(FailedKind::Full), End::Exit(0));
        assert!(told.starts_with("the disk of the image store is full: unpack layer"), "{told}");
        let told = judged(Fed::Refused, failed(FailedKind::Panic), End::Exit(1));
        assert!(told.contains("panicked"), "{told}");
    }
}
