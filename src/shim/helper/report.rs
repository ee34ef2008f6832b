//! The helper's end of the socket to its shim.

use super::super::helper_job::HelperMessage;
use super::Failure;
use podstead_container::protocol::frame::{self, FrameKind, HEADER};
use podstead_container::protocol::{ShimStep, StepTime};
use podstead_sys::descriptor_passing;
use podstead_sys::tick::Tick;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Says what happens and waits for the permission to go on.
#[derive(Debug)]
pub(super) struct Report {
    socket: UnixStream,
    /// Steps that are over.
    times: Vec<StepTime>,
    /// The end of the last one.
    since: Tick,
}

impl Report {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, times: Vec::new(), since: Tick::now() }
    }

    /// Ends a step, which began at the end of the last one.
    pub(super) fn ended(&mut self, step: ShimStep) {
        let now = Tick::now();
        self.times.push(StepTime::new(step, self.since, now));
        self.since = now;
    }

    /// The steps that are over.
    pub(super) fn take_times(&mut self) -> Vec<StepTime> {
        std::mem::take(&mut self.times)
    }

    /// Sends a message. A shim that is gone takes the container with it: nothing to do about it here.
    pub(super) fn send(&mut self, message: &HelperMessage) {
        if let Some(bytes) = encode(message) {
            let _gone = self.socket.write_all(&bytes);
        }
    }

    /// Tells which process was made, with its terminal, and waits until the shim has taken note of both.
    pub(super) fn created(&mut self, pid: u32, terminal: Option<OwnedFd>) -> Result<(), Failure> {
        let bytes = encode(&HelperMessage::Created { pid }).ok_or_else(|| Failure::create("encode message"))?;
        let sent = match terminal {
            Some(terminal) => descriptor_passing::send(&self.socket, &bytes, terminal).map_err(std::io::Error::from),
            None => self.socket.write_all(&bytes),
        };
        let mut permission = [0; HEADER];
        let permitted = sent.and_then(|()| self.socket.read_exact(&mut permission));
        self.ended(ShimStep::AwaitRecord);
        permitted.map_err(|_| Failure::create("the shim is gone"))
    }
}

fn encode(message: &HelperMessage) -> Option<Vec<u8>> {
    let payload = serde_json::to_vec(message).ok()?;
    let mut bytes = Vec::new();
    frame::encode(FrameKind::Message, &payload, &mut bytes).ok()?;
    Some(bytes)
}
