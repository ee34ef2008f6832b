//! A line to a shim, for what a daemon did before it died.

use podstead::container::ContainerStatus;
use podstead::container::protocol::frame::{self, FrameDecoder, FrameKind};
use podstead::container::protocol::{Answer, ClientHello, Operation, PROTOCOL_VERSION, Refusal, Request, ToClient};
use podstead::pod::ContainerId;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Blocking: one request at a time.
pub(super) struct ShimLine {
    stream: UnixStream,
    decoder: FrameDecoder,
    requests: u64,
}

impl ShimLine {
    /// Connects and says hello.
    pub(super) fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut line = Self { stream, decoder: FrameDecoder::default(), requests: 0 };
        line.send(&serde_json::to_vec(&ClientHello { protocol: PROTOCOL_VERSION, version: "test".to_owned() }).unwrap());
        line
    }

    /// All containers that the shim knows.
    pub(super) fn status(&mut self) -> Vec<ContainerStatus> {
        match self.ask(Operation::Status) {
            Ok(Answer::Status(status)) => status.containers,
            other => panic!("{other:?}"),
        }
    }

    /// Forgets a dead container.
    pub(super) fn remove(&mut self, id: &ContainerId) {
        self.ask(Operation::Remove { container: id.clone() }).unwrap();
    }

    /// Kills a container.
    pub(super) fn kill(&mut self, id: &ContainerId) {
        self.ask(Operation::Kill { container: id.clone() }).unwrap();
    }

    /// Kills a container that may be gone by now.
    pub(super) fn kill_if_there(&mut self, id: &ContainerId) {
        // A refusal says that it is gone.
        self.ask(Operation::Kill { container: id.clone() }).ok();
    }

    fn ask(&mut self, operation: Operation) -> Result<Answer, Refusal> {
        let asked = self.tell(operation);
        loop {
            if let ToClient::Response { id, result } = self.receive()
                && id == asked
            {
                return result;
            }
        }
    }

    /// Asks and does not wait for the answer; returns the request's number.
    pub(super) fn tell(&mut self, operation: Operation) -> u64 {
        self.requests += 1;
        let request = Request { id: self.requests, operation };
        self.send(&serde_json::to_vec(&request).unwrap());
        self.requests
    }

    fn send(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame::encode(FrameKind::Message, payload, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    fn receive(&mut self) -> ToClient {
        loop {
            if let Some((_, payload)) = self.decoder.next_frame().unwrap() {
                return serde_json::from_slice(payload).unwrap();
            }
            let mut buffer = [0; 8192];
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the shim closed the line");
            self.decoder.push(&buffer[..count]);
        }
    }
}
