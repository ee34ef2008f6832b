//! Requests of clients.

use super::client::{ReadEnd, Role};
use super::container::StdinPolicy;
use super::event_loop::PodShim;
use super::explain::complain;
use super::poller::{ClientKey, ContainerKey, StreamOwner};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use podstead_container::protocol::frame::{FrameKind, parse_resize};
use podstead_container::protocol::{Answer, ClientHello, Operation, Refusal, Request, RequestHeader, ShimStatus};
use podstead_pod::ContainerId;
use podstead_sys::remove_tree::remove_tree;

impl PodShim {
    /// A connection has bytes, room, or ended.
    pub(super) fn serve_client(&mut self, key: ClientKey, flags: EpollFlags) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let mut end = ReadEnd::Open;
        if flags.contains(EpollFlags::EPOLLOUT) {
            end = client.flush(&self.poller);
        }
        if end == ReadEnd::Open && flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
            end = client.read(&mut self.scratch);
        }
        if end == ReadEnd::Closed || !self.serve_frames(key) {
            self.drop_client(key);
        } else if flags.contains(EpollFlags::EPOLLOUT) {
            self.resume_output_for(key);
        }
    }

    /// Serves all whole frames. False when the connection cannot be understood any more.
    fn serve_frames(&mut self, key: ClientKey) -> bool {
        loop {
            let Some(client) = self.clients.get_mut(key) else { return true };
            let (kind, payload) = match client.decoder.next_frame() {
                Ok(Some((kind, payload))) => (kind, payload.to_vec()),
                Ok(None) => return true,
                Err(_) => return false,
            };
            match client.role {
                Role::Requests { .. } if !client.greeted => match serde_json::from_slice::<ClientHello>(&payload) {
                    Ok(_) if kind == FrameKind::Message => client.greeted = true,
                    Ok(_) | Err(_) => return false,
                },
                Role::Requests { .. } => {
                    if kind == FrameKind::Message {
                        self.serve_request(key, &payload);
                    }
                }
                Role::Exec(exec) => self.serve_stream(key, StreamOwner::Exec(exec), kind, &payload),
                Role::Attached(container) => self.serve_stream(key, StreamOwner::Container(container), kind, &payload),
            }
        }
    }

    fn serve_request(&mut self, client: ClientKey, payload: &[u8]) {
        let request = match serde_json::from_slice::<Request>(payload) {
            Ok(request) => request,
            Err(error) => {
                // Without an ID no response is possible.
                if let Ok(RequestHeader { id }) = serde_json::from_slice(payload) {
                    self.respond(client, id, Err(Refusal::UnknownOperation(error.to_string())));
                }
                return;
            }
        };
        let id = request.id;
        if (self.shutdown.is_some() || self.host_shutdown.is_some()) && starts_something(&request.operation) {
            self.respond(client, id, Err(Refusal::Failed("the sandbox is being stopped".to_owned())));
            return;
        }
        match request.operation {
            Operation::Start(spec) => self.start_container(client, id, *spec),
            Operation::Exec { container, spec } => self.start_exec(client, id, &container, &spec),
            Operation::Attach { container } => self.attach(client, id, &container),
            Operation::Signal { container, signal } => {
                let result = self.signal(&container, signal);
                self.respond(client, id, result);
            }
            Operation::Kill { container } => match self.known(&container) {
                Ok(key) => {
                    self.kill(key);
                    self.answer_kill(key, client, id);
                }
                Err(refusal) => self.respond(client, id, Err(refusal)),
            },
            Operation::Resize { container, columns, rows } => {
                let result = self.known(&container).map(|key| {
                    if let Some(container) = self.containers.get(key).filter(|container| container.has_terminal) {
                        container.streams.resize(columns, rows);
                    }
                    Answer::Done
                });
                self.respond(client, id, result);
            }
            Operation::Status => {
                let status = self.status();
                self.respond(client, id, Ok(Answer::Status(status)));
            }
            Operation::Subscribe => {
                if let Some(client) = self.clients.get_mut(client) {
                    client.role = Role::Requests { subscribed: true };
                }
                let status = self.status();
                self.respond(client, id, Ok(Answer::Status(status)));
            }
            Operation::Remove { container } => {
                let result = self.remove(&container);
                self.respond(client, id, result);
            }
            Operation::Shutdown => {
                self.shutdown = Some((client, id));
                self.kill_all();
            }
        }
    }

    fn status(&self) -> ShimStatus {
        ShimStatus { containers: self.containers.all().map(|container| container.shown().clone()).collect() }
    }

    fn known(&self, id: &ContainerId) -> Result<ContainerKey, Refusal> {
        self.container_by_id(id).ok_or_else(|| Refusal::NotFound(id.clone()))
    }

    fn signal(&mut self, id: &ContainerId, signal: i32) -> Result<Answer, Refusal> {
        let key = self.known(id)?;
        let handle = self.containers.get(key).and_then(|container| container.process.handle());
        match handle.map(|handle| handle.signal(signal)) {
            None | Some(Ok(()) | Err(Errno::ESRCH)) => Ok(Answer::Done),
            Some(Err(error)) => Err(Refusal::Failed(format!("send signal {signal} to container {id}: {error}"))),
        }
    }

    /// Kills everything in a container, or the helper that is making it. That it is dead is told by its exit.
    pub(super) fn kill(&mut self, key: ContainerKey) {
        let Some(container) = self.containers.get(key).filter(|container| !container.is_gone()) else { return };
        let cgroup = self.container_cgroup(container.id());
        self.groups.kill(&self.config, &cgroup);
        if let Some(Err(error)) = self
            .containers
            .get(key)
            .and_then(|container| container.process.handle())
            .map(|handle| handle.signal(libc::SIGKILL))
            .filter(|result| *result != Err(Errno::ESRCH))
        {
            complain("kill container", &error);
        }
        self.abandon_helper_of(key);
    }

    /// Kills a container. One without a program is dead at once; it can be removed when that is on disk, and so the response waits for it.
    fn answer_kill(&mut self, key: ContainerKey, client: ClientKey, id: u64) {
        match self.containers.get_mut(key).filter(|container| container.told.is_some()) {
            Some(container) => container.kills.push((client, id)),
            None => self.respond(client, id, Ok(Answer::Done)),
        }
    }

    fn remove(&mut self, id: &ContainerId) -> Result<Answer, Refusal> {
        let Some(key) = self.container_by_id(id) else { return Ok(Answer::Done) };
        if self.containers.get(key).is_some_and(|container| !container.is_gone() || container.told.is_some()) {
            return Err(Refusal::Failed(format!("container {id} is still running")));
        }
        if self.recorder.is_writing(key) {
            // The record would reappear just after the client has removed it.
            return Err(Refusal::Failed(format!("the record of container {id} is being written")));
        }
        let uid = &self.config.spec.uid;
        for directory in [self.paths.bundle(uid, id), self.paths.oci_state(uid).join(id)] {
            remove_tree(&directory).map_err(|error| Refusal::Failed(format!("remove {}: {error}", directory.display())))?;
        }
        if let Some(mut container) = self.containers.remove(key) {
            container.streams.close(&mut self.poller);
        }
        Ok(Answer::Done)
    }

    fn attach(&mut self, client: ClientKey, id: u64, container: &ContainerId) {
        let attached = self.known(container).and_then(|key| match self.containers.get_mut(key) {
            Some(container) if container.process.handle().is_some() => {
                container.attached.push(client);
                Ok(key)
            }
            Some(_) | None => Err(Refusal::Failed(format!("container {container} is not running"))),
        });
        match attached {
            Ok(key) => {
                self.respond(client, id, Ok(Answer::SessionOpen));
                if let Some(client) = self.clients.get_mut(client) {
                    client.role = Role::Attached(key);
                }
            }
            Err(refusal) => self.respond(client, id, Err(refusal)),
        }
    }

    /// A frame of a session.
    fn serve_stream(&mut self, client: ClientKey, owner: StreamOwner, kind: FrameKind, payload: &[u8]) {
        let Some((streams, has_terminal)) = (match owner {
            StreamOwner::Container(key) => {
                self.containers.get_mut(key).map(|container| (&mut container.streams, container.has_terminal))
            }
            StreamOwner::Exec(key) => self.execs.get_mut(&key).map(|exec| (&mut exec.streams, exec.has_terminal)),
        }) else {
            return;
        };
        match kind {
            FrameKind::Stdin => {
                if streams.write_stdin(payload, &mut self.poller) {
                    // An earlier frame of the same read may have stopped the sender, and the process has read on since.
                    self.resume_senders(owner);
                } else if let Some(client) = self.clients.get_mut(client) {
                    client.listen(false, &self.poller);
                }
            }
            // The end of a terminal's input is typed, not closed.
            FrameKind::CloseStdin if has_terminal => {}
            FrameKind::CloseStdin => match owner {
                StreamOwner::Exec(_) => {
                    if streams.close_stdin(&mut self.poller) {
                        self.resume_senders(owner);
                    }
                }
                StreamOwner::Container(key) => self.end_attached_stdin(key),
            },
            FrameKind::Resize => {
                if let (true, Some((columns, rows))) = (has_terminal, parse_resize(payload)) {
                    streams.resize(columns, rows);
                }
            }
            FrameKind::Message | FrameKind::Stdout | FrameKind::Stderr | FrameKind::Exit | FrameKind::Times => {}
        }
    }

    fn end_attached_stdin(&mut self, key: ContainerKey) {
        if let Some(container) = self.containers.get_mut(key).filter(|container| container.stdin == StdinPolicy::Once)
            && container.streams.close_stdin(&mut self.poller)
        {
            self.resume_senders(StreamOwner::Container(key));
        }
    }

    /// Forgets a connection: its exec is killed, its container goes on.
    pub(super) fn drop_client(&mut self, key: ClientKey) {
        let Some(client) = self.clients.remove(key, &mut self.poller) else { return };
        match client.role {
            Role::Requests { .. } => {}
            Role::Exec(exec) => {
                if let Some(exec) = self.execs.get_mut(&exec) {
                    exec.client = None;
                    exec.streams.pause(false, &self.poller);
                    exec.kill();
                }
            }
            Role::Attached(container) => {
                if let Some(container) = self.containers.get_mut(container) {
                    container.attached.retain(|attached| *attached != key);
                }
                self.end_attached_stdin(container);
            }
        }
    }
}

fn starts_something(operation: &Operation) -> bool {
    match operation {
        Operation::Start(_) | Operation::Exec { .. } | Operation::Attach { .. } => true,
        Operation::Signal { .. }
        | Operation::Kill { .. }
        | Operation::Resize { .. }
        | Operation::Status
        | Operation::Subscribe
        | Operation::Remove { .. }
        | Operation::Shutdown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Client;
    use super::super::exec_process::ExecProcess;
    use super::super::poller::{ExecKey, Source};
    use super::super::streams::{self, FarEnds, Streams};
    use super::*;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use nix::sys::signalfd::{SigSet, SignalFd};
    use podstead_container::protocol::{LogLimits, ShimConfig};
    use podstead_container::{CgroupResources, ExecSpec, PodNamespaces, QosClass, SandboxSpec};
    use podstead_pod::{PodFullName, PodUid};
    use std::io::Write;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;
    use std::time::Duration;

    const CLIENT: ClientKey = ClientKey(1);
    const EXEC: ExecKey = ExecKey(2);

    fn shim(directory: &Path) -> PodShim {
        let spec = SandboxSpec {
            uid: PodUid::new("uid"),
            full_name: PodFullName { name: "web".to_owned(), namespace: "default".to_owned() },
            attempt: 0,
            hostname: "web".to_owned(),
            namespaces: PodNamespaces::default(),
            qos: QosClass::BestEffort,
            resources: CgroupResources::default(),
            sysctls: Vec::new(),
            own_users: false,
            first_host_id: None,
        };
        let config = ShimConfig {
            state: directory.join("state"),
            run: directory.join("run"),
            logs: directory.join("log"),
            spec,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            cgroup: "/podstead.slice/web".into(),
            cgroup_slice: "podstead.slice".to_owned(),
            hierarchies: None,
            log_limits: LogLimits::default(),
            helper_timeout_secs: 120,
        };
        let listener = UnixListener::bind(directory.join("socket")).unwrap();
        PodShim::new(config, listener, SignalFd::new(&SigSet::empty()).unwrap(), None, None).unwrap()
    }

    /// A session whose process is the test: the far ends are its standard streams.
    fn with_session(shim: &mut PodShim) -> (UnixStream, FarEnds) {
        let (far, near) = UnixStream::pair().unwrap();
        let mut client = Client::new(near, CLIENT, &mut shim.poller).unwrap();
        client.role = Role::Exec(EXEC);
        shim.clients.insert(CLIENT, client);
        let (near_ends, far_ends) = streams::pipes(true, nix::unistd::getuid().as_raw()).unwrap();
        let spec = ExecSpec { args: vec!["cat".to_owned()], tty: None, stdin: true, copy: None };
        let mut exec = ExecProcess::new(CLIENT, &spec, None);
        exec.streams = Streams::open(StreamOwner::Exec(EXEC), near_ends, &mut shim.poller).unwrap();
        shim.execs.insert(EXEC, exec);
        (far, far_ends)
    }

    fn is_listened_to(shim: &PodShim) -> bool {
        let events = shim.poller.wait(Some(Duration::ZERO)).unwrap();
        events
            .iter()
            .any(|(token, flags)| shim.poller.source(*token) == Some(Source::Client(CLIENT)) && flags.contains(EpollFlags::EPOLLIN))
    }

    fn read_all(far: &FarEnds) {
        let stdin = far.stdin.as_ref().unwrap();
        let flags = OFlag::from_bits_truncate(fcntl(stdin, FcntlArg::F_GETFL).unwrap());
        fcntl(stdin, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).unwrap();
        let mut bytes = vec![0; 1 << 16];
        while nix::unistd::read(stdin, &mut bytes).is_ok_and(|count| count > 0) {}
    }

    /// Two frames of one read: the process makes room between them, so that no event about it comes later.
    #[test]
    fn sender_goes_on_when_stdin_is_read_between_frames() {
        let directory = tempfile::tempdir().unwrap();
        let mut shim = shim(directory.path());
        let (mut client, process) = with_session(&mut shim);
        client.write_all(b"more").unwrap();
        assert!(is_listened_to(&shim));
        let owner = StreamOwner::Exec(EXEC);
        // More than a pipe holds.
        shim.serve_stream(CLIENT, owner, FrameKind::Stdin, &vec![b'x'; 80 << 10]);
        assert!(!is_listened_to(&shim));
        read_all(&process);
        shim.serve_stream(CLIENT, owner, FrameKind::Stdin, b"y");
        assert!(is_listened_to(&shim));
    }

    #[test]
    fn sender_goes_on_when_the_end_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut shim = shim(directory.path());
        let (mut client, process) = with_session(&mut shim);
        client.write_all(b"a size").unwrap();
        let owner = StreamOwner::Exec(EXEC);
        shim.serve_stream(CLIENT, owner, FrameKind::Stdin, &vec![b'x'; 80 << 10]);
        read_all(&process);
        shim.serve_stream(CLIENT, owner, FrameKind::CloseStdin, b"");
        assert!(is_listened_to(&shim));
    }
}
