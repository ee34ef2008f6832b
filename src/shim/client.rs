//! One client's connection: frames in, a queue of frames out. Nothing here blocks.

use super::poller::{ClientKey, ContainerKey, ExecKey, Poller, Source, Token};
use nix::sys::epoll::EpollFlags;
use podstead_container::protocol::frame::{self, FrameDecoder, FrameKind};
use podstead_container::protocol::{ToClient, frame::FrameError};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Queue length at which a subscriber is disconnected: it reconnects and requests the state.
const MAX_QUEUE: usize = 16 << 20;

/// A stream above this gets no more until it has been read: an exec's process then waits, an attached client misses output.
const STREAM_QUEUE: usize = 256 << 10;

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Requests and, if subscribed, events.
    Requests {
        /// Gets events.
        subscribed: bool,
    },
    /// The streams of an exec.
    Exec(ExecKey),
    /// The streams of a container.
    Attached(ContainerKey),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    token: Token,
    /// Received bytes that are not decoded yet.
    pub(super) decoder: FrameDecoder,
    queue: Vec<u8>,
    sent: usize,
    interest: EpollFlags,
    /// Its purpose.
    pub(super) role: Role,
    /// Its hello has come.
    pub(super) greeted: bool,
    /// Bytes that an attached client missed since it was last told.
    pub(super) missed: u64,
    /// Nothing more will be queued: it is closed when the queue is empty.
    pub(super) closing: bool,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadEnd {
    /// There may be more later.
    Open,
    /// The client has gone.
    Closed,
}

impl Client {
    pub(super) fn new(stream: UnixStream, key: ClientKey, poller: &mut Poller) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let interest = EpollFlags::EPOLLIN;
        let token = poller.add(&stream, Source::Client(key), interest)?;
        Ok(Self {
            stream,
            token,
            decoder: FrameDecoder::default(),
            queue: Vec::new(),
            sent: 0,
            interest,
            role: Role::Requests { subscribed: false },
            greeted: false,
            missed: 0,
            closing: false,
        })
    }

    /// Reads what there is, up to the size of `scratch`.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> ReadEnd {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return ReadEnd::Closed,
                Ok(count) => {
                    self.decoder.push(&scratch[..count]);
                    return ReadEnd::Open;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReadEnd::Open,
                Err(_) => return ReadEnd::Closed,
            }
        }
    }

    /// Queues a message and sends what the kernel takes.
    pub(super) fn send(&mut self, message: &ToClient, poller: &Poller) -> ReadEnd {
        // Our own messages can always be encoded, and none is as long as a frame may be.
        match serde_json::to_vec(message) {
            Ok(payload) => self.send_frame(FrameKind::Message, &payload, poller),
            Err(_) => ReadEnd::Closed,
        }
    }

    /// Queues a frame and sends what the kernel takes.
    pub(super) fn send_frame(&mut self, kind: FrameKind, payload: &[u8], poller: &Poller) -> ReadEnd {
        let encoded: Result<(), FrameError> = frame::encode(kind, payload, &mut self.queue);
        if encoded.is_err() || self.queued() > MAX_QUEUE {
            return ReadEnd::Closed;
        }
        self.flush(poller)
    }

    /// Sends as much of the queue as the kernel accepts, and polls for the rest.
    pub(super) fn flush(&mut self, poller: &Poller) -> ReadEnd {
        while self.sent < self.queue.len() {
            match self.stream.write(&self.queue[self.sent..]) {
                Ok(0) => return ReadEnd::Closed,
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return ReadEnd::Closed,
            }
        }
        if self.sent == self.queue.len() {
            self.queue = Vec::new();
            self.sent = 0;
        } else if self.sent > STREAM_QUEUE {
            self.queue.drain(..self.sent);
            self.sent = 0;
        }
        self.set_interest(EpollFlags::EPOLLOUT, self.queued() > 0, poller);
        if self.closing && self.queued() == 0 { ReadEnd::Closed } else { ReadEnd::Open }
    }

    /// Turns reading on or off; off while received data cannot be passed on.
    pub(super) fn listen(&mut self, wanted: bool, poller: &Poller) {
        self.set_interest(EpollFlags::EPOLLIN, wanted, poller);
    }

    /// Returns true if so much is waiting on a stream that it gets no more for now.
    pub(super) fn is_congested(&self) -> bool {
        self.queued() >= STREAM_QUEUE
    }

    /// Ends the registration; the connection closes when `self` goes.
    pub(super) fn unregister(&self, poller: &mut Poller) {
        poller.remove(self.token, &self.stream);
    }

    /// Sends the rest of the queue, waiting for the client for a moment: the shim is about to end.
    pub(super) fn flush_before_end(&mut self) {
        let patient = self
            .stream
            .set_nonblocking(false)
            .and_then(|()| self.stream.set_write_timeout(Some(std::time::Duration::from_secs(1))));
        if patient.is_ok() && self.stream.write_all(&self.queue[self.sent..]).is_ok() {
            self.sent = self.queue.len();
        }
    }

    fn queued(&self) -> usize {
        self.queue.len() - self.sent
    }

    fn set_interest(&mut self, flag: EpollFlags, wanted: bool, poller: &Poller) {
        let mut interest = self.interest;
        interest.set(flag, wanted);
        if interest != self.interest {
            self.interest = interest;
            poller.change(self.token, &self.stream, interest);
        }
    }
}
