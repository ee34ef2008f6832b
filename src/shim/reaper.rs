//! Ends of processes: who it was, how it ended, what is recorded and told.

use super::container::{Ending, Process};
use super::event_loop::PodShim;
use super::log::last_lines;
use super::poller::{ContainerKey, ExecKey, StreamOwner};
use super::recorder::{Reply, Then};
use jiff::Timestamp;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use podstead_container::ContainerState;
use podstead_container::cgroup::Cgroups;
use podstead_container::protocol::frame::FrameKind;
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

/// The most that a termination message may be (kubelet rule D19): the end of the file counts.
const MAX_MESSAGE: u64 = 4096;

impl PodShim {
    /// Waits for every child that has ended. As subreaper, that includes orphans of the containers and of libcontainer.
    pub(super) fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => {
                    self.ended(pid.as_raw().unsigned_abs(), Ending { exit_code: code, signal: None });
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    let number = signal as i32;
                    self.ended(pid.as_raw().unsigned_abs(), Ending { exit_code: 128 + number, signal: Some(number) });
                }
                Ok(WaitStatus::StillAlive) | Err(_) => return,
                Ok(
                    WaitStatus::Stopped(..)
                    | WaitStatus::PtraceEvent(..)
                    | WaitStatus::PtraceSyscall(..)
                    | WaitStatus::Continued(..),
                ) => {}
            }
        }
    }

    fn ended(&mut self, pid: u32, ending: Ending) {
        if let Some(key) = self.helpers.note_end(pid) {
            return self.listen_to_helper(key);
        }
        if self.compressor.note_end(pid) {
            return;
        }
        if let Some(key) = self.containers.by_pid(pid).map(|container| container.key) {
            return self.container_process_ended(key, ending);
        }
        if let Some((key, exec)) = self.execs.iter_mut().find(|(_, exec)| exec.process.pid() == Some(pid)) {
            let key = *key;
            match exec.process {
                Process::Running(_) => self.exec_ended(key, ending),
                Process::Created(_) | Process::Awaited | Process::EndedEarly(_) | Process::Gone => {
                    exec.process = Process::EndedEarly(ending);
                }
            }
            return;
        }
        if self.asker_ended(pid) {
            return;
        }
        if self.shared_pid.as_ref().is_some_and(|init| init.pid() == pid) {
            // The kernel kills all that were in its namespace, and no process can be made in it any more: the sandbox is broken. The shim
            // ends with the last of them, and the daemon sees the sandbox lost.
            self.shared_pid = None;
            self.host_shutdown.get_or_insert_with(Instant::now);
            return;
        }
        self.helpers.keep_exit(pid, ending);
    }

    fn container_process_ended(&mut self, key: ContainerKey, ending: Ending) {
        let Some(container) = self.containers.get_mut(key) else { return };
        match container.process {
            Process::Running(_) => self.container_ended(key, ending, None),
            Process::Created(_) | Process::Awaited | Process::EndedEarly(_) | Process::Gone => {
                container.process = Process::EndedEarly(ending);
            }
        }
    }

    /// Records the exit of a container that had executed its program, then reports it, also to the requester of its start if that is still
    /// waiting.
    pub(super) fn container_ended(&mut self, key: ContainerKey, ending: Ending, reply: Option<Reply>) {
        let finished_at = Timestamp::now();
        let Some(container) = self.containers.get_mut(key) else { return };
        container.told.get_or_insert_with(|| container.status.clone());
        container.process = Process::Gone;
        container.streams.drop_stdin(&mut self.poller);
        let started_at = match container.status.state {
            ContainerState::Running { started_at, .. } => Some(started_at),
            ContainerState::Created | ContainerState::Exited { .. } | ContainerState::Unknown { .. } => None,
        };
        let cgroup = Cgroups::container(&self.config.cgroup, container.id());
        // Without a PID namespace of its own, its children outlive it.
        self.groups.kill(&self.config, &cgroup);
        // All that it wrote is in the log when its end is told.
        self.drain_output(StreamOwner::Container(key));
        // A process that is just being killed may hold the other end for a moment longer: text without a newline does not wait for that.
        if let Some(container) = self.containers.get_mut(key) {
            container.log_rest(finished_at);
        }
        let oom_killed = self.groups.had_oom_kill(&self.config, &cgroup);
        let message = self.termination_message(key, ending);
        let Some(container) = self.containers.get_mut(key) else { return };
        container.status.state = ContainerState::Exited {
            started_at,
            finished_at,
            exit_code: ending.exit_code,
            signal: ending.signal,
            oom_killed,
            error: None,
            message,
        };
        let attached = std::mem::take(&mut container.attached);
        self.groups.remove(&self.config, cgroup);
        self.record(key, Then::Tell { reply, attached, ending: Some(ending) });
    }

    /// Tells the session how its process ended, after all output that is there.
    pub(super) fn exec_ended(&mut self, key: ExecKey, ending: Ending) {
        self.drain_output(StreamOwner::Exec(key));
        if let Some(mut exec) = self.execs.remove(&key) {
            exec.streams.close(&mut self.poller);
            if let Some(client) = exec.client {
                self.end_session(client, ending);
            }
        }
    }

    pub(super) fn end_session(&mut self, key: super::poller::ClientKey, ending: Ending) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.closing = true;
        if client.send_frame(FrameKind::Exit, &ending.exit_code.to_be_bytes(), &self.poller) == super::client::ReadEnd::Closed {
            self.drop_client(key);
        }
    }

    fn termination_message(&self, key: ContainerKey, ending: Ending) -> Option<String> {
        let container = self.containers.get(key)?;
        let written = container.termination_log.as_deref().and_then(|path| match read_end(path, MAX_MESSAGE) {
            Ok(text) => Some(text).filter(|text| !text.is_empty()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(format!("error on reading termination log {}: {error}", path.display())),
        });
        written.or_else(|| {
            let wanted = container.fallback_to_logs && ending.exit_code != 0;
            wanted.then(|| last_lines(&container.status.log_path).ok()).flatten().filter(|text| !text.is_empty())
        })
    }
}

/// The last `limit` bytes of a regular file; what a container put in its place (a link, a pipe) is not followed and not waited for.
fn read_end(path: &Path, limit: u64) -> io::Result<String> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_message_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("message");
        std::fs::write(&path, format!("{}end", "x".repeat(5000))).unwrap();
        let text = read_end(&path, MAX_MESSAGE).unwrap();
        assert_eq!(text.len(), 4096);
        assert!(text.ends_with("xend"));
    }

    #[test]
    fn a_link_or_a_pipe_in_place_of_the_message_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (link, pipe) = (directory.path().join("link"), directory.path().join("pipe"));
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_end(&link, MAX_MESSAGE).is_err());
        assert!(read_end(&pipe, MAX_MESSAGE).is_err());
    }
}
