//! The shim of one pod: what it holds, and one turn of its loop.

use super::client::{Client, ReadEnd};
use super::clients::Clients;
use super::containers::Containers;
use super::exec_process::ExecProcess;
use super::groups::Groups;
use super::helper_jobs::Helpers;
use super::log_compressor::LogCompressor;
use super::poller::{ClientKey, ContainerKey, ExecKey, Poller, Source};
use super::recorder::Recorder;
use super::shared_pid::SharedPidInit;
use nix::sys::epoll::EpollFlags;
use nix::sys::signalfd::SignalFd;
use podstead_container::cgroup::Cgroups;
use podstead_container::protocol::{Answer, FrameKind, Refusal, ShimConfig, ShimEvent, ShimHello, StepTime, StepTimes, ToClient};
use podstead_pod::ContainerId;
use podstead_sys::layout::Paths;
use podstead_sys::own_memory;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes read at once from a pipe or a connection; half of what a pipe holds, so that one busy container leaves turns to the others.
const SCRATCH: usize = 32 * 1024;

/// Pause before a temporary failure (a busy cgroup) is retried.
pub(super) const RETRY: Duration = Duration::from_millis(200);

/// Time after the start of a container at which memory that only the start needed is given back.
const REST: Duration = Duration::from_secs(10);

/// Reason why a shim cannot go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoopError {
    /// The kernel refused to set up what everything is waited for with.
    #[error("watch {0}")]
    Watch(&'static str, #[source] nix::Error),
}

/// A shim: what it owns, and what happens between them. Its methods are in the files that they are about: requests, starting, reaper, output.
///
/// One type because one loop owns all of it, without locks: an exit touches containers, clients, records and helpers in one turn.
#[derive(Debug)]
pub(super) struct PodShim {
    pub(super) config: ShimConfig,
    pub(super) paths: Paths,
    pub(super) poller: Poller,
    listener: UnixListener,
    signals: SignalFd,
    pub(super) groups: Groups,
    pub(super) clients: Clients,
    pub(super) containers: Containers,
    pub(super) execs: BTreeMap<ExecKey, ExecProcess>,
    pub(super) helpers: Helpers,
    pub(super) compressor: LogCompressor,
    pub(super) recorder: Recorder,
    /// A mount namespace with nothing in it, for helpers; `None` if the daemon has none.
    pub(super) empty_mounts: Option<OwnedFd>,
    /// First process of the pod's own PID namespace, with `shareProcessNamespace`.
    pub(super) shared_pid: Option<SharedPidInit>,
    /// The client that requested the shutdown, and its request.
    pub(super) shutdown: Option<(ClientKey, u64)>,
    /// The host shuts down, or the sandbox is broken: what still runs then is killed, and the shim ends.
    pub(super) host_shutdown: Option<Instant>,
    /// The time at which memory is given back.
    rest: Option<Instant>,
    pub(super) scratch: Vec<u8>,
    pub(super) batch: Vec<u8>,
    next_key: u64,
}

impl PodShim {
    pub(super) fn new(
        config: ShimConfig,
        listener: UnixListener,
        signals: SignalFd,
        shared_pid: Option<SharedPidInit>,
        empty_mounts: Option<OwnedFd>,
    ) -> Result<Self, LoopError> {
        let mut poller = Poller::new().map_err(|source| LoopError::Watch("epoll", source))?;
        poller.add(&listener, Source::Listener, EpollFlags::EPOLLIN).map_err(|source| LoopError::Watch("socket", source))?;
        poller.add(&signals, Source::Signals, EpollFlags::EPOLLIN).map_err(|source| LoopError::Watch("signals", source))?;
        let recorder = Recorder::new().map_err(|source| LoopError::Watch("records", source))?;
        poller.add(recorder.ended(), Source::Record, EpollFlags::EPOLLIN).map_err(|source| LoopError::Watch("records", source))?;
        let paths = config.paths();
        Ok(Self {
            recorder,
            config,
            paths,
            poller,
            listener,
            signals,
            groups: Groups::default(),
            clients: Clients::default(),
            containers: Containers::default(),
            execs: BTreeMap::new(),
            helpers: Helpers::default(),
            compressor: LogCompressor::default(),
            empty_mounts,
            shared_pid,
            shutdown: None,
            host_shutdown: None,
            rest: None,
            scratch: vec![0; SCRATCH],
            batch: Vec::new(),
            next_key: 0,
        })
    }

    /// Serves until shutdown was asked for, all containers are dead, and that is recorded.
    pub(super) fn run(&mut self) -> Result<(), LoopError> {
        while !self.is_finished() {
            let events = self.poller.wait(self.until_next_deadline()).map_err(|source| LoopError::Watch("events", source))?;
            for (token, flags) in events {
                // An earlier event of this turn may have closed it.
                if let Some(source) = self.poller.source(token) {
                    self.turn(source, flags);
                }
            }
            self.tend(Instant::now());
        }
        self.answer_shutdown();
        Ok(())
    }

    fn turn(&mut self, source: Source, flags: EpollFlags) {
        match source {
            Source::Listener => self.accept(),
            Source::Signals => {
                while let Ok(Some(signal)) = self.signals.read_signal() {
                    if i32::try_from(signal.ssi_signo) == Ok(libc::SIGTERM) {
                        self.begin_host_shutdown(Instant::now());
                    }
                }
                self.reap();
            }
            Source::Client(key) => self.serve_client(key, flags),
            Source::Output(owner, stream) => self.read_output(owner, stream),
            Source::Input(owner) => self.feed_input(owner, flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP)),
            Source::Helper(key) => self.listen_to_helper(key),
            Source::Record => self.record_written(),
        }
    }

    /// Handles timers: helpers that took too long, and retries.
    fn tend(&mut self, now: Instant) {
        for key in self.helpers.late(now) {
            self.abandon_helper(key);
        }
        self.go_on_with_host_shutdown(now);
        self.groups.retry(&self.config);
        self.retry_records(now);
        if self.rest.take_if(|rest| *rest <= now).is_some() {
            own_memory::return_unused();
        }
    }

    /// Gives memory back in a while. One more start before that puts it off.
    pub(super) fn rest_later(&mut self) {
        self.rest = Some(Instant::now() + REST);
    }

    fn until_next_deadline(&self) -> Option<Duration> {
        let now = Instant::now();
        let deadlines = [self.helpers.next_deadline(), self.next_of_host_shutdown(), self.containers.next_record(), self.rest];
        let deadline = deadlines.into_iter().flatten().min().map(|deadline| deadline.saturating_duration_since(now));
        deadline.into_iter().chain(self.groups.are_busy().then_some(RETRY)).min()
    }

    fn is_finished(&self) -> bool {
        let is_ending = self.shutdown.is_some() || self.host_shutdown.is_some();
        is_ending && self.helpers.are_idle() && self.recorder.is_idle() && self.containers.living().next().is_none()
    }

    fn answer_shutdown(&mut self) {
        if let Some((key, id)) = self.shutdown.take() {
            self.respond(key, id, Ok(Answer::Done));
            if let Some(client) = self.clients.get_mut(key) {
                client.flush_before_end();
            }
        }
    }

    fn accept(&mut self) {
        // One at a time: epoll tells again if there are more. A client that is gone already is no error.
        let Ok((stream, _)) = self.listener.accept() else { return };
        let key = ClientKey(self.new_key());
        if let Ok(client) = Client::new(stream, key, &mut self.poller) {
            self.clients.insert(key, client);
            let hello = ShimHello {
                protocol: podstead_container::protocol::PROTOCOL_VERSION,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                created_at: self.config.created_at,
                spec: self.config.spec.clone(),
            };
            self.send(key, &ToClient::Hello(Box::new(hello)));
        }
    }

    /// Sends to a client; one that cannot be sent to is dropped.
    pub(super) fn send(&mut self, key: ClientKey, message: &ToClient) {
        if self.clients.send(key, message, &self.poller) == ReadEnd::Closed {
            self.drop_client(key);
        }
    }

    pub(super) fn respond(&mut self, key: ClientKey, id: u64, result: Result<Answer, Refusal>) {
        self.send(key, &ToClient::Response { id, result });
    }

    /// Tells all subscribers.
    pub(super) fn announce(&mut self, event: ShimEvent) {
        let message = ToClient::Event(Box::new(event));
        for key in self.clients.subscribers() {
            self.send(key, &message);
        }
    }

    /// Tells all subscribers how long steps of a start took.
    pub(super) fn tell_times(&mut self, key: ContainerKey, steps: Vec<StepTime>) {
        let Some(container) = self.containers.get(key) else { return };
        let times = StepTimes { container: container.status.name.clone(), steps };
        let Ok(payload) = serde_json::to_vec(&times) else { return };
        for key in self.clients.subscribers() {
            if self.clients.send_frame(key, FrameKind::Times, &payload, &self.poller) == ReadEnd::Closed {
                self.drop_client(key);
            }
        }
    }

    pub(super) fn container_by_id(&self, id: &ContainerId) -> Option<ContainerKey> {
        self.containers.by_id(id).map(|container| container.key)
    }

    pub(super) fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    /// The path of a container's group.
    pub(super) fn container_cgroup(&self, id: &ContainerId) -> PathBuf {
        Cgroups::container(&self.config.cgroup, id)
    }
}
