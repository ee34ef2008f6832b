//! Records are written beside the loop, one after the other: a slow disk delays no output.
//!
//! Each write is a thread of its own that ends with it, so that an idle shim has one thread. The order in which writes were asked for is
//! kept, and what depends on one ([`Then`]) is done when it is on disk: nothing is told before it is recorded. The records of a container that is
//! restarted after every exit wait for no disk: after a power cut its pod starts anew, whatever they said.

use super::container::Ending;
use super::event_loop::PodShim;
use super::explain::complain;
use super::helper_job::Stage;
use super::poller::{ClientKey, ContainerKey, JobKey};
use super::starting::START_ERROR;
use nix::sys::eventfd::{EfdFlags, EventFd};
use podstead_container::protocol::{Answer, Refusal, ShimEvent, ShimEventKind};
use podstead_container::record::{ContainerRecord, Durability, RecordError};
use podstead_sys::atomic_file::remove_durable;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Pause before a record that could not be written (a full disk) is retried.
const RETRY: Duration = Duration::from_millis(200);

/// Enough for a record's path, its JSON and a few calls.
const STACK: usize = 128 * 1024;

/// Receiver of the response when an exit is on disk.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) client: ClientKey,
    pub(super) id: u64,
    /// `None` answers with the container as it is then.
    pub(super) refusal: Option<Refusal>,
}

/// Step after a write.
#[derive(Debug)]
pub(super) enum Then {
    /// The helper that creates the container may have its program executed.
    Permit(JobKey),
    /// Report the exit: to subscribers, to the requester of the start, and to the sessions.
    Tell { reply: Option<Reply>, attached: Vec<ClientKey>, ending: Option<Ending> },
    /// Forget a container that was never created, and answer its requester.
    Forget { reply: Reply },
    /// Nothing: it was told, or need not be.
    Nothing,
}

#[derive(Debug)]
struct Write {
    container: ContainerKey,
    /// `None` takes the record away.
    record: Option<ContainerRecord>,
    path: PathBuf,
    durability: Durability,
    then: Then,
}

#[derive(Debug)]
struct Running {
    thread: JoinHandle<Result<(), RecordError>>,
    container: ContainerKey,
    then: Then,
}

/// Writes under way and to come.
#[derive(Debug)]
pub(super) struct Recorder {
    waiting: VecDeque<Write>,
    running: Option<Running>,
    /// Told by a write that ends.
    ended: Arc<EventFd>,
}

impl Recorder {
    pub(super) fn new() -> nix::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self { waiting: VecDeque::new(), running: None, ended: Arc::new(EventFd::from_flags(flags)?) })
    }

    /// Event descriptor that signals the end of a write.
    pub(super) fn ended(&self) -> &EventFd {
        &self.ended
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    /// Returns true if a record of the container is not on disk yet.
    pub(super) fn is_writing(&self, container: ContainerKey) -> bool {
        self.running.as_ref().is_some_and(|running| running.container == container)
            || self.waiting.iter().any(|write| write.container == container)
    }

    /// Begins the next write if none is under way. Without a thread (the pod may have no more processes) it is done at once.
    fn begin(&mut self) -> Option<(ContainerKey, Then, Result<(), RecordError>)> {
        if self.running.is_some() {
            return None;
        }
        let Write { container, record, path, durability, then } = self.waiting.pop_front()?;
        let ended = Arc::clone(&self.ended);
        let job = Arc::new((record, path));
        let in_thread = Arc::clone(&job);
        let spawned = Builder::new().name("record".into()).stack_size(STACK).spawn(move || {
            let (record, path) = &*in_thread;
            let result = put(record.as_ref(), path, durability);
            // A counter that is full has been told.
            let _told = ended.write(1);
            result
        });
        match spawned {
            Ok(thread) => {
                self.running = Some(Running { thread, container, then });
                None
            }
            Err(_) => Some((container, then, put(job.0.as_ref(), &job.1, durability))),
        }
    }

    /// Takes a finished write. The thread has nothing more to do when it tells, so that joining it takes no time.
    fn take_ended(&mut self) -> Option<(ContainerKey, Then, Result<(), RecordError>)> {
        self.ended.read().ok()?;
        let Running { thread, container, then } = self.running.take()?;
        // A panic aborts the shim.
        let result = thread.join().unwrap_or(Ok(()));
        Some((container, then, result))
    }
}

impl PodShim {
    /// Removes the record of a container that was never created, after the earlier writes, and then forgets it.
    pub(super) fn record(&mut self, key: ContainerKey, then: Then) {
        let Some(container) = self.containers.get_mut(key) else { return };
        container.record_due = None;
        let path = self.paths.container_record(&self.config.spec.uid, container.id());
        let (record, durability) = (Some(ContainerRecord::new(container.status.clone())), container.durability);
        self.recorder.waiting.push_back(Write { container: key, record, path, durability, then });
        self.write_records();
    }

    /// Has the record of a container that was never made taken away, behind the writes that were asked for before, and then forgets it.
    pub(super) fn unrecord(&mut self, key: ContainerKey, reply: Reply) {
        let Some(container) = self.containers.get_mut(key) else { return };
        container.record_due = None;
        let path = self.paths.container_record(&self.config.spec.uid, container.id());
        let then = Then::Forget { reply };
        self.recorder.waiting.push_back(Write { container: key, record: None, path, durability: container.durability, then });
        self.write_records();
    }

    /// Writes a record that has to outlive the shim only: that waits for no disk. None of this container may be under way.
    pub(super) fn record_at_once(&mut self, key: ContainerKey) {
        let Some(container) = self.containers.get(key) else { return };
        let path = self.paths.container_record(&self.config.spec.uid, container.id());
        let result = write(&ContainerRecord::new(container.status.clone()), &path, Durability::ProcessDeath);
        if let Err(error) = &result {
            complain("write the record of a start", error);
        }
        self.try_again_if(key, result.is_err());
    }

    /// A write has ended.
    pub(super) fn record_written(&mut self) {
        if let Some((container, then, result)) = self.recorder.take_ended() {
            self.recorded(container, then, result);
        }
        self.write_records();
    }

    fn write_records(&mut self) {
        while let Some((container, then, result)) = self.recorder.begin() {
            self.recorded(container, then, result);
        }
    }

    fn recorded(&mut self, key: ContainerKey, then: Then, result: Result<(), RecordError>) {
        match then {
            Then::Permit(job) => match result {
                Ok(()) => self.intent_recorded(job),
                Err(error) => {
                    complain("write the record of an intended start", &error);
                    // Without a record, a container would be forgotten by a power cut: it does not start.
                    self.fail_job(job, Stage::Create, super::explain(&error));
                }
            },
            Then::Tell { reply, attached, ending } => {
                if let Err(error) = &result {
                    complain("write the record of an exit", error);
                }
                self.try_again_if(key, result.is_err());
                self.tell_end(key, reply, attached, ending);
            }
            Then::Forget { reply } => {
                if let Err(error) = &result {
                    complain("remove the record of an intended start", error);
                }
                self.forget(key, reply);
            }
            // It was complained about when it failed first.
            Then::Nothing => self.try_again_if(key, result.is_err()),
        }
    }

    fn try_again_if(&mut self, key: ContainerKey, is_wanted: bool) {
        if let Some(container) = self.containers.get_mut(key).filter(|_| is_wanted) {
            container.record_due = Some(Instant::now() + RETRY);
        }
    }

    /// Tries again to write records that a full disk refused.
    pub(super) fn retry_records(&mut self, now: Instant) {
        self.containers.due_records(now).into_iter().for_each(|key| self.record(key, Then::Nothing));
    }

    fn tell_end(&mut self, key: ContainerKey, reply: Option<Reply>, attached: Vec<ClientKey>, ending: Option<Ending>) {
        let Some(container) = self.containers.get_mut(key) else { return };
        container.told = None;
        let (status, kills) = (container.status.clone(), std::mem::take(&mut container.kills));
        self.announce(ShimEvent { kind: ShimEventKind::Died, container: status.clone() });
        if let Some(ending) = ending {
            attached.into_iter().for_each(|client| self.end_session(client, ending));
        }
        if let Some(Reply { client, id, refusal }) = reply {
            self.respond(client, id, refusal.map_or_else(|| Ok(Answer::Container(Box::new(status))), Err));
        }
        kills.into_iter().for_each(|(client, id)| self.respond(client, id, Ok(Answer::Done)));
    }

    fn forget(&mut self, key: ContainerKey, Reply { client, id, refusal }: Reply) {
        let Some(container) = self.containers.remove(key) else { return };
        let ending = Ending { exit_code: START_ERROR, signal: None };
        container.attached.into_iter().for_each(|client| self.end_session(client, ending));
        self.respond(client, id, refusal.map_or(Ok(Answer::Done), Err));
        container.kills.into_iter().for_each(|(client, id)| self.respond(client, id, Ok(Answer::Done)));
    }
}

/// Writes a record with this durability, or durably takes it away.
fn put(record: Option<&ContainerRecord>, path: &Path, durability: Durability) -> Result<(), RecordError> {
    match record {
        Some(record) => write(record, path, durability),
        None => remove_durable(path).map_err(|source| RecordError::Write { path: path.to_owned(), source }),
    }
}

/// Writes a record into the pod's directory of records, which is made if it is missing.
fn write(record: &ContainerRecord, path: &Path, durability: Durability) -> Result<(), RecordError> {
    record.write(path, durability).or_else(|error| match path.parent() {
        Some(directory) if podstead_sys::atomic_file::make_directories(directory, 0o750).is_ok() => record.write(path, durability),
        Some(_) | None => Err(error),
    })
}
