//! The helper's end of the socket to its shim.

use super::super::helper_job::HelperMessage;
use super::Failure;
use podstead_container::protocol::frame::{self, FrameKind, HEADER};
use podstead_sys::descriptor_passing;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// Says what happens and waits for the permission to go on.
#[derive(Debug)]
pub(super) struct Report {
    socket: UnixStream,
}

impl Report {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket }
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
        sent.and_then(|()| self.socket.read_exact(&mut permission)).map_err(|_| Failure::create("the shim is gone"))
    }
}

fn encode(message: &HelperMessage) -> Option<Vec<u8>> {
    let payload = serde_json::to_vec(message).ok()?;
    let mut bytes = Vec::new();
    frame::encode(FrameKind::Message, &payload, &mut bytes).ok()?;
    Some(bytes)
}
