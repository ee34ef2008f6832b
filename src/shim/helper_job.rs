//! A helper from the shim's side: its start, what it says, its end.

use super::poller::{ClientKey, ContainerKey, ExecKey, JobKey, Poller, Source, Token};
use super::streams::FarEnds;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::epoll::EpollFlags;
use podstead_container::protocol::StepTime;
use podstead_container::protocol::frame::{self, FrameDecoder, FrameKind};
use podstead_sys::self_exec::OWN_BINARY;
use podstead_sys::tick::Tick;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Message of a helper, as JSON in [`FrameKind::Message`] frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HelperMessage {
    /// The process exists, as a child of the shim, and has not executed the program. With a terminal, its master comes along.
    Created {
        /// Its id on the host.
        pid: u32,
    },
    /// The program has been executed. The last message.
    Started {
        /// Times of the helper's steps.
        times: Vec<StepTime>,
    },
    /// It could not be done. The last message.
    Failed {
        /// The stage.
        stage: Stage,
        /// The reason, for people.
        reason: String,
    },
}

/// Stage at which a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stage {
    /// Before the OCI runtime had its turn: the container is not made, has no run, and is tried again.
    Create,
    /// By the OCI runtime or execve, for what the definition says: a run that failed, as with runc.
    Execute,
}

/// Job of the helper, given on its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Start a container.
    Start(ContainerKey),
    /// Run a process in a container.
    Exec(ExecKey),
}

/// Parameters for starting a helper.
#[derive(Debug)]
pub(super) struct HelperOrder<'a> {
    pub(super) purpose: Purpose,
    /// Its command line behind `helper`; the number of its socket is added.
    pub(super) arguments: &'a [&'a OsStr],
    /// They become its stdio and close here.
    pub(super) far_ends: Option<FarEnds>,
    /// Keeps its number there.
    pub(super) inherited: Option<&'a OwnedFd>,
    pub(super) reply_to: (ClientKey, u64),
    pub(super) deadline: Instant,
}

/// Conditions that must hold before a helper may execute the program.
#[derive(Clone, Copy, Debug)]
struct Awaits {
    process: bool,
    /// A container's record; an exec has none.
    intent: bool,
}

/// A helper at work.
#[derive(Debug)]
pub(super) struct HelperJob {
    pub(super) purpose: Purpose,
    pub(super) pid: u32,
    /// Receiver of the response, if it is still connected: connection and request.
    pub(super) reply_to: (ClientKey, u64),
    /// Killed if it is not done by then.
    pub(super) deadline: Instant,
    /// The time at which its start began.
    pub(super) began: Tick,
    /// The time at which the record of intent was on disk; until then, the time at which its writing began.
    pub(super) recorded: Tick,
    /// Conditions that the program still waits for.
    awaits: Awaits,
    /// The helper itself has ended.
    pub(super) has_exited: bool,
    socket: UnixStream,
    token: Token,
    decoder: FrameDecoder,
    /// Descriptors that came with messages.
    received: Vec<OwnedFd>,
}

impl HelperJob {
    /// Starts a helper.
    pub(super) fn spawn(key: JobKey, order: HelperOrder<'_>, poller: &mut Poller) -> io::Result<Self> {
        let HelperOrder { purpose, arguments, far_ends, inherited, reply_to, deadline } = order;
        let began = Tick::now();
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        // Only this thread starts processes: none inherits these descriptors meanwhile.
        fcntl(&far, FcntlArg::F_SETFD(FdFlag::empty()))?;
        if let Some(descriptor) = inherited {
            fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        let (stdin, stdout, stderr) = match far_ends {
            Some(FarEnds { stdin, stdout, stderr }) => {
                (stdin.map_or_else(Stdio::null, Stdio::from), Stdio::from(stdout), Stdio::from(stderr))
            }
            None => (Stdio::null(), Stdio::null(), Stdio::null()),
        };
        // In `/`, where the shim is.
        let child = Command::new(OWN_BINARY)
            .arg("helper")
            .args(arguments)
            .arg(far.as_raw_fd().to_string())
            .env_clear()
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            // libcontainer's processes stay in it until they have a session of their own, so that they can be killed with the helper.
            .process_group(0)
            .spawn();
        if let Some(descriptor) = inherited {
            fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        }
        let child = child?;
        let token = poller.add(&near, Source::Helper(key), EpollFlags::EPOLLIN)?;
        Ok(Self {
            purpose,
            pid: child.id(),
            reply_to,
            deadline,
            began,
            recorded: Tick::now(),
            awaits: Awaits { process: true, intent: matches!(purpose, Purpose::Start(_)) },
            has_exited: false,
            socket: near,
            token,
            decoder: FrameDecoder::default(),
            received: Vec::new(),
        })
    }

    /// The process exists.
    pub(super) fn process_is_made(&mut self) {
        self.awaits.process = false;
        self.permit();
    }

    /// That a container is to run outlives a power cut.
    pub(super) fn intent_is_recorded(&mut self) {
        self.awaits.intent = false;
        self.recorded = Tick::now();
        self.permit();
    }

    /// Lets the helper execute the program when nothing has to come before.
    fn permit(&mut self) {
        if self.awaits.process || self.awaits.intent {
            return;
        }
        let mut frame = Vec::new();
        if frame::encode(FrameKind::Message, b"", &mut frame).is_ok() {
            // A helper that is gone is noticed by its end.
            let _gone = self.socket.write_all(&frame);
        }
    }

    /// Reads what there is. `None` in the end when the helper and all that it made have closed the socket.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> Option<()> {
        loop {
            match podstead_sys::descriptor_passing::receive(&self.socket, scratch, &mut self.received) {
                Ok(0) => return None,
                Ok(count) => self.decoder.push(&scratch[..count]),
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN) => return Some(()),
                Err(_) => return None,
            }
        }
    }

    /// The next message that has come whole. What cannot be understood is a failure.
    pub(super) fn next_message(&mut self) -> Option<HelperMessage> {
        let garbled = |reason: String| HelperMessage::Failed { stage: Stage::Create, reason };
        match self.decoder.next_frame() {
            Ok(Some((_, payload))) => Some(
                serde_json::from_slice(payload).unwrap_or_else(|error| garbled(format!("decode a message of the helper: {error}"))),
            ),
            Ok(None) => None,
            Err(error) => Some(garbled(format!("decode a message of the helper: {error}"))),
        }
    }

    /// The terminal that came with [`HelperMessage::Created`].
    pub(super) fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.received.pop()
    }

    /// Kills the helper and what it has made so far, but for a container's first process, which has a session of its own: that goes with
    /// the container's cgroup. Also for a helper that has just exited, since what libcontainer made waits for it for ever.
    pub(super) fn kill(&self) {
        let group = nix::unistd::Pid::from_raw(self.pid.cast_signed());
        // Nobody is left in it.
        let _gone = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
    }

    /// Ends the registration.
    pub(super) fn unregister(&self, poller: &mut Poller) {
        poller.remove(self.token, &self.socket);
    }
}

/// The container's spec in its bundle, for helpers.
pub(super) const SPEC_FILE: &str = "spec.json";
