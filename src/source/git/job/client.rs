//! The daemon's side: starts jobs, sends them packs, and hears what became of these.

use super::super::protocol::ObjectId;
use super::TASK;
use super::error::{CPU_SECS, JobError, MEMORY};
use super::failure::{END, Failure, ended};
use super::session::Session;
use super::wire::{Message, Request, Work};
use podstead_container::cgroup::JobLimits;
use podstead_fetch::Requester;
use podstead_job::confine::Rlimits;
use podstead_job::conversation::Conversation;
use podstead_job::events::{self, NOT_CONFINED};
use podstead_job::launch::{Launcher, MessageError};
use podstead_job::told::Told;
use podstead_job::tree::{Access, detached};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventRecorder;
use std::fs::{self, File};
use std::io::Write;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads of a job: one, and some for the C library.
const TASKS: u64 = 8;
/// Open files of a job: packs and their indexes, and some more.
const FILES: u64 = 1024;
/// Length of a file of a job.
const FILE_BYTES: u64 = 4 << 30;
/// Limit of one pack, however often the job tells of progress.
const LONGEST: Duration = Duration::from_secs(3600);
/// Reports of progress that a job may make: one in a second, and some.
const REPORTS: u32 = 4000;
/// Bytes of a pack between two looks at what the job writes.
const LOOK_BYTES: u64 = 8 << 20;
/// Between two looks at it, after the pack.
const LOOK: Duration = Duration::from_secs(1);
/// Files that the job makes beside each other: a pack, its index, and their names while they are written.
const MAX_WRITTEN: usize = 16;
/// Bytes that the job may write for an empty pack.
const SLACK: u64 = 64 << 20;
/// Bytes that it may write for each byte of a pack: the pack, and an index that is larger where objects are tiny.
const WRITTEN_PER_BYTE: u64 = 4;

/// Owner of the objects that a job reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) enum Owner {
    /// podstead, which lets jobs read them.
    Podstead,
    /// Somebody else.
    Foreign,
}

/// Starts jobs for git objects.
#[derive(Debug)]
pub struct ObjectJobs {
    launcher: Arc<Launcher>,
    events: Arc<dyn EventRecorder>,
}

impl ObjectJobs {
    /// Object jobs that `launcher` starts.
    pub fn new(launcher: Arc<Launcher>, events: Arc<dyn EventRecorder>) -> Self {
        Self { launcher, events }
    }

    /// The launcher of its jobs.
    pub(in crate::git) fn launcher(&self) -> &Arc<Launcher> {
        &self.launcher
    }

    /// Sends requests to servers.
    pub(in crate::git) fn requester(&self) -> Requester {
        Requester::jobs(Arc::clone(&self.launcher), Arc::clone(&self.events))
    }

    /// The user that writes packs.
    pub(in crate::git) fn owner_of_packs(&self) -> (u32, u32) {
        let user = self.launcher.user();
        (user.uid, user.gid)
    }

    /// Starts a job that indexes a pack in `directory`, which is empty and belongs to the user of jobs.
    pub(in crate::git) fn index(&self, directory: &Path) -> Result<Indexing, JobError> {
        let (pack, to_job) = UnixStream::pair().map_err(JobError::Prepare)?;
        pack.set_write_timeout(Some(self.patience())).map_err(JobError::Prepare)?;
        let conversation = self.start(Work::Index, directory, Access::Write, to_job.into())?;
        Ok(Indexing {
            conversation,
            pack: Some(pack),
            directory: directory.to_owned(),
            sent: 0,
            looked: 0,
            fault: None,
            patience: self.patience(),
        })
    }

    /// Starts a job that reads the objects in `directory`.
    pub(in crate::git) fn read(self: &Arc<Self>, directory: &Path, owner: Owner) -> Result<Session, JobError> {
        let (bytes, to_daemon) = UnixStream::pair().map_err(JobError::Prepare)?;
        bytes.set_read_timeout(Some(self.patience())).map_err(JobError::Prepare)?;
        let work = match owner {
            Owner::Podstead => Work::Read,
            Owner::Foreign => Work::ReadForeign,
        };
        let conversation = self.start(work, directory, Access::Read, to_daemon.into())?;
        Ok(Session::new(conversation, bytes, self.patience()))
    }

    /// Has `commit` and its files copied from the objects in `from` to a pack in `to`, by a job that reads and one that writes; returns the name of the
    /// pack. Nobody vouches for what is in it.
    pub(in crate::git) fn copy(&self, commit: ObjectId, from: &Path, to: &Path) -> Result<Option<String>, Failure> {
        let (pack, to_job) = UnixStream::pair().map_err(JobError::Prepare)?;
        let mut reader = self.start(Work::Pack(commit), from, Access::Read, OwnedFd::from(pack))?;
        let conversation = self.start(Work::Index, to, Access::Write, to_job.into())?;
        let (directory, patience) = (to.to_owned(), self.patience());
        let weight = weight(from).map_err(JobError::Prepare)?;
        let indexing = Indexing { conversation, pack: None, directory, sent: weight, looked: 0, fault: None, patience };
        match answer(&mut reader, patience, || Ok(())) {
            Ok(Message::Packed) => indexing.finish(),
            Ok(_) => Err(JobError::BadAnswer("an answer to another question".to_owned()).into()),
            // Why the other one took no more counts.
            Err(Failure::Cut) => Err(indexing.finish().err().unwrap_or(Failure::Cut)),
            Err(failure) => Err(ended(reader, failure)),
        }
    }

    fn start(&self, work: Work, directory: &Path, access: Access, bytes: OwnedFd) -> Result<Conversation, JobError> {
        let tree = detached(directory, access).map_err(JobError::Prepare)?;
        let user = self.launcher.user();
        let rlimits = Rlimits { memory: MEMORY, cpu_secs: CPU_SECS, files: FILES, file_bytes: FILE_BYTES };
        let request = Request { work, rlimits, uid: user.uid, gid: user.gid };
        let group = JobLimits { memory: MEMORY, tasks: TASKS };
        Ok(Conversation::new(self.launcher.start(TASK, &group, &request, &[tree.as_fd(), bytes.as_fd()])?))
    }

    fn patience(&self) -> Duration {
        self.launcher.patience()
    }

    /// Records that ssh was not executed for `host`, because its process could not give up its rights.
    pub(in crate::git) fn tell_of_ssh(&self, host: &str, reason: &Told) {
        let message = format!("ssh to {host}: the process cannot give up its rights on this host: {reason}");
        events::record(&*self.events, NOT_CONFINED, &message);
    }

    /// Records what an operator has to know of.
    pub(in crate::git) fn tell(&self, error: &JobError, path: &Path) {
        if let Some(reason) = error.event() {
            let message = format!("repository {}: {}", path.display(), error_chain(error));
            events::record(&*self.events, reason, &message);
        }
    }
}

/// A job that indexes a pack. Dropping it ends the job.
#[derive(Debug)]
pub(in crate::git) struct Indexing {
    conversation: Conversation,
    /// Takes the pack; `None` where somebody else sends it.
    pack: Option<UnixStream>,
    directory: PathBuf,
    sent: u64,
    looked: u64,
    /// Reason why nothing is sent any more.
    fault: Option<JobError>,
    patience: Duration,
}

impl Indexing {
    /// Sends the next bytes of the pack. Returns false when the job takes no more; [`Self::finish`] tells why.
    pub(in crate::git) fn send(&mut self, bytes: &[u8]) -> bool {
        let Some(pack) = &mut self.pack else { return false };
        match pack.write_all(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                self.fault = Some(JobError::Hangs(self.patience));
                return false;
            }
            // Its reason is in its answer, or in its end.
            Err(_) => return false,
        }
        self.sent += bytes.len() as u64;
        if self.sent - self.looked >= LOOK_BYTES {
            self.looked = self.sent;
            self.fault = check_written(&self.directory, self.sent).err();
        }
        self.fault.is_none()
    }

    /// Waits for the index; returns the name of the pack, or `None` for one without objects.
    pub(in crate::git) fn finish(mut self) -> Result<Option<String>, Failure> {
        if let Some(pack) = self.pack.take() {
            // A job that has ended needs no end of the stream.
            let _ended = pack.shutdown(Shutdown::Both);
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault.into());
        }
        let (directory, sent) = (self.directory, self.sent);
        match answer(&mut self.conversation, self.patience, || check_written(&directory, sent)) {
            Ok(Message::Indexed(name)) => {
                let end = self.conversation.end(END).map_err(JobError::Prepare)?;
                if end != podstead_job::launch::End::Exit(0) {
                    return Err(JobError::of_end(end).into());
                }
                check_written(&directory, sent)?;
                match name {
                    Some(name) if name.parse::<ObjectId>().is_err() => {
                        Err(JobError::BadAnswer("a name that no pack has".to_owned()).into())
                    }
                    name => Ok(name),
                }
            }
            Ok(_) => Err(JobError::BadAnswer("an answer to another question".to_owned()).into()),
            Err(failure) => Err(ended(self.conversation, failure)),
        }
    }
}

/// The last message of a job that tells of progress before it. `look` is called from time to time.
fn answer(
    conversation: &mut Conversation,
    patience: Duration,
    look: impl Fn() -> Result<(), JobError>,
) -> Result<Message, Failure> {
    let (mut reports, mut last, began, mut quiet_since) = (0, None, Instant::now(), Instant::now());
    loop {
        match conversation.hear::<Message>(LOOK.min(patience)) {
            Ok(Some(Message::Progress(steps))) => {
                reports += 1;
                if Some(steps) <= last || reports > REPORTS {
                    return Err(JobError::BadAnswer("progress without any, or too often".to_owned()).into());
                }
                (last, quiet_since) = (Some(steps), Instant::now());
            }
            Ok(Some(Message::Failed(failed))) => return Err(Failure::of_failure(&failed)),
            Ok(Some(message)) => return Ok(message),
            Ok(None) => return Err(JobError::NoAnswer(0).into()),
            Err(MessageError::Late) => {}
            Err(error) => return Err(JobError::BadAnswer(error.to_string()).into()),
        }
        look()?;
        if quiet_since.elapsed() > patience || began.elapsed() > LONGEST {
            return Err(JobError::Hangs(patience).into());
        }
    }
}

/// Refuses what no job writes that indexes a pack of `sent` bytes.
fn check_written(directory: &Path, sent: u64) -> Result<(), JobError> {
    let rule = |rule: &str| Err(JobError::BadAnswer(rule.to_owned()));
    let mut bytes = 0;
    for (number, entry) in fs::read_dir(directory).map_err(JobError::Prepare)?.enumerate() {
        // It may be renamed at this moment.
        let Ok(metadata) = entry.map_err(JobError::Prepare)?.metadata() else { continue };
        if !metadata.is_file() || number >= MAX_WRITTEN {
            return rule("files that no pack has");
        }
        bytes += metadata.blocks().saturating_mul(512);
    }
    if bytes > sent.saturating_mul(WRITTEN_PER_BYTE).saturating_add(SLACK) {
        return rule("larger files than the pack has");
    }
    Ok(())
}

/// Bytes of all packs below `objects`.
fn weight(objects: &Path) -> std::io::Result<u64> {
    let mut bytes: u64 = 0;
    for entry in fs::read_dir(objects.join("pack"))? {
        bytes = bytes.saturating_add(entry?.metadata()?.len());
    }
    Ok(bytes)
}

/// Opens a file that a job wrote: a regular one with this name alone.
pub(in crate::git) fn open_written(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() != 1 {
        return Err(std::io::Error::other("it is no file of its own"));
    }
    Ok(file)
}
