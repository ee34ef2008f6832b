//! One container as its shim sees it: its record, its process, its streams, its log.

use super::log::{LineSplitter, LogFile, StreamName};
use super::poller::{ClientKey, ContainerKey, ExecKey};
use super::streams::Streams;
use jiff::Timestamp;
use podstead_container::protocol::LogLimits;
use podstead_container::record::Durability;
use podstead_container::{ContainerSpec, ContainerState, ContainerStatus, ShutdownTurn};
use podstead_pod::ContainerId;
use podstead_sys::tick::Tick;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A container. Everything of its spec that the shim does not need is on disk only: a shim is small.
///
/// One type because its parts end at different times, and it is gone when all of them have: process, streams, records and group.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) key: ContainerKey,
    pub(super) status: ContainerStatus,
    pub(super) process: Process,
    pub(super) streams: Streams,
    pub(super) log: LogFile,
    stdout: LineSplitter,
    stderr: LineSplitter,
    pub(super) has_terminal: bool,
    pub(super) stdin: StdinPolicy,
    pub(super) termination_log: Option<PathBuf>,
    pub(super) fallback_to_logs: bool,
    /// Settings and progress of its stop when the host shuts down.
    pub(super) shutdown: ShutdownTurn,
    pub(super) stopping: Stopping,
    /// Default grace period of its stop.
    pub(super) grace: Duration,
    /// Protection that its records need.
    pub(super) durability: Durability,
    /// Clients that see its output.
    pub(super) attached: Vec<ClientKey>,
    /// The last record could not be written: when it is tried again.
    pub(super) record_due: Option<Instant>,
    /// The status to report until the record of its exit is written.
    pub(super) told: Option<ContainerStatus>,
    /// The time at which its program was executed, once it is known.
    pub(super) executed: Option<Tick>,
    /// The time at which its first output was read.
    pub(super) first_output: Option<Tick>,
    /// Requests to kill it that are answered when its end is told.
    pub(super) kills: Vec<(ClientKey, u64)>,
}

/// State of its first process.
#[derive(Debug)]
pub(super) enum Process {
    /// A helper is at work and has not made it yet. Entered at the start request.
    Awaited,
    /// It exists but may not have executed the program yet. Entered when the helper says its id.
    Created(Handle),
    /// It has executed the program. Entered when the helper says so.
    Running(Handle),
    /// It has ended while the helper was at work; what the helper says next decides what is recorded. Entered by the reaper.
    EndedEarly(Ending),
    /// It has ended, or never was, and that is recorded or being recorded.
    Gone,
}

/// A living or unreaped process: its id is its own until the shim waits for it.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) pid: u32,
    /// `None` if the kernel had no descriptor.
    pub(super) descriptor: Option<OwnedFd>,
}

/// Exit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Its exit code, or 128 + the signal.
    pub(super) exit_code: i32,
    pub(super) signal: Option<i32>,
}

/// Progress of a container's stop when the host shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    /// The host does not shut down.
    NotYet,
    /// Its `preStop` hook sleeps until then.
    Sleeping(Instant),
    /// Its `preStop` hook runs; it is over when the process is gone.
    InHook(ExecKey),
    /// Its `preStop` hook sends a request; the hook is over when that process is gone.
    Asking(u32),
    /// Its hook is over: it waits for its turn.
    Waiting,
    /// It has its stop signal.
    Signalled,
}

/// Handling of stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinPolicy {
    /// `/dev/null`.
    None,
    /// Open as long as the container lives.
    Kept,
    /// Closed after the first attach ended.
    Once,
}

impl Handle {
    pub(super) fn new(pid: u32) -> Self {
        Self { pid, descriptor: podstead_sys::pidfd::open(pid).ok() }
    }

    /// Sends a signal. ESRCH if it has ended.
    pub(super) fn signal(&self, signal: i32) -> nix::Result<()> {
        match &self.descriptor {
            Some(process) => podstead_sys::pidfd::send_signal(process, signal),
            None => Err(nix::Error::EBADF),
        }
    }
}

impl Process {
    pub(super) fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Created(handle) | Self::Running(handle) => Some(handle),
            Self::Awaited | Self::EndedEarly(_) | Self::Gone => None,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.handle().map(|handle| handle.pid)
    }
}

impl Container {
    pub(super) fn new(key: ContainerKey, spec: &ContainerSpec, log_limits: LogLimits, now: Timestamp) -> Self {
        Self {
            key,
            status: ContainerStatus::of(spec, now, ContainerState::Created),
            process: Process::Awaited,
            streams: Streams::default(),
            log: LogFile::new(spec.log_path.clone(), log_limits),
            stdout: LineSplitter::default(),
            stderr: LineSplitter::default(),
            has_terminal: spec.tty,
            stdin: match (spec.stdin, spec.stdin_once) {
                (false, _) => StdinPolicy::None,
                (true, false) => StdinPolicy::Kept,
                (true, true) => StdinPolicy::Once,
            },
            termination_log: spec.termination_log.clone(),
            fallback_to_logs: spec.fallback_to_logs,
            shutdown: spec.shutdown.clone(),
            stopping: Stopping::NotYet,
            grace: Duration::from_secs(spec.grace_secs),
            durability: match spec.always_restarts {
                true => Durability::ProcessDeath,
                false => Durability::PowerCut,
            },
            attached: Vec::new(),
            record_due: None,
            told: None,
            executed: None,
            first_output: None,
            kills: Vec::new(),
        }
    }

    pub(super) fn id(&self) -> &ContainerId {
        &self.status.id
    }

    /// It has exited; [`Container::told`] shows whether that was reported.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.process, Process::Gone)
    }

    /// Writes output to the log.
    pub(super) fn log_output(&mut self, stream: StreamName, bytes: &[u8], now: Timestamp, batch: &mut Vec<u8>) {
        let splitter = match stream {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        };
        self.log.write(stream, splitter, bytes, now, batch);
    }

    /// Ends one stream's log; the file closes with the second.
    pub(super) fn end_output(&mut self, stream: StreamName, now: Timestamp) {
        let splitter = match stream {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        };
        self.log.finish(stream, splitter, now);
        if !self.streams.is_open(StreamName::Stdout) && !self.streams.is_open(StreamName::Stderr) {
            self.log.close(now);
        }
    }

    /// Logs text without a newline of streams that have not ended.
    pub(super) fn log_rest(&mut self, now: Timestamp) {
        for stream in [StreamName::Stdout, StreamName::Stderr] {
            if self.streams.is_open(stream) {
                self.end_output(stream, now);
            }
        }
    }

    /// The status that may be reported: never more than is recorded.
    pub(super) fn shown(&self) -> &ContainerStatus {
        self.told.as_ref().unwrap_or(&self.status)
    }
}
