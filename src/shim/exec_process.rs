//! One process that was started by exec, as its shim sees it.

use super::container::{Ending, Handle, Process};
use super::poller::ClientKey;
use super::streams::{NearEnds, Streams};
use podstead_container::ExecSpec;

/// A process in a container that is not the container's own. It has no record: it lives as long as its session.
#[derive(Debug)]
pub(super) struct ExecProcess {
    /// The client of the session; `None` once it has gone.
    pub(super) client: Option<ClientKey>,
    pub(super) process: Process,
    /// Empty until the session is open, so that no output goes before the answer.
    pub(super) streams: Streams,
    /// Ends that become streams when the process runs. Until then nothing is asked of it: the kernel tells the end of whatever is watched,
    /// wanted or not.
    pub(super) waiting: Option<NearEnds>,
    pub(super) has_terminal: bool,
    pub(super) with_stdin: bool,
    /// A hook of a host that shuts down: it needs no client.
    pub(super) is_hook: bool,
}

impl ExecProcess {
    pub(super) fn new(client: ClientKey, spec: &ExecSpec, waiting: Option<NearEnds>) -> Self {
        Self {
            client: Some(client),
            process: Process::Awaited,
            streams: Streams::default(),
            waiting,
            has_terminal: spec.tty.is_some(),
            with_stdin: spec.stdin,
            is_hook: false,
        }
    }

    /// Kills the process and what it has in its process group. What left the group stays in the container, as with other runtimes.
    pub(super) fn kill(&self) {
        if let Some(handle) = self.process.handle() {
            handle.kill_group();
        }
    }

    /// Its exit, once it has exited.
    pub(super) fn ending(&self) -> Option<Ending> {
        match &self.process {
            Process::EndedEarly(ending) => Some(*ending),
            Process::Awaited | Process::Created(_) | Process::Running(_) | Process::Gone => None,
        }
    }
}

impl Handle {
    /// Kills a session leader with its group: the id is its own until it has been waited for.
    fn kill_group(&self) {
        if let Ok(pid) = i32::try_from(self.pid) {
            let _gone = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
        let _gone = self.signal(libc::SIGKILL);
    }
}
