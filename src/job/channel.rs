//! The job's side of its socket, which is its standard input.

use crate::frame::{self, Decoder, FrameError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Reason why a job cannot speak with the daemon.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The socket.
    #[error("use the socket of the job")]
    Io(#[from] io::Error),
    /// The daemon is of another version, or it is none.
    #[error("read the request of the job")]
    Frame(#[from] FrameError),
    /// The daemon ended.
    #[error("the socket of the job was closed")]
    Closed,
}

/// The socket of this job.
#[derive(Debug)]
pub struct Channel {
    // Not a socket for writing: write(2) is in the filter, send(2) is not.
    socket: File,
    decoder: Decoder,
}

impl Channel {
    /// Takes the request that comes first, with its descriptors.
    pub fn open<T: DeserializeOwned>() -> Result<(Self, T, Vec<OwnedFd>), ChannelError> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (mut decoder, mut descriptors) = (Decoder::new(frame::TO_JOB), Vec::new());
        let mut buffer = [0; 4096];
        loop {
            let count =
                podstead_sys::descriptor_passing::receive(&socket, &mut buffer, &mut descriptors).map_err(io::Error::from)?;
            if count == 0 {
                return Err(ChannelError::Closed);
            }
            decoder.push(&buffer[..count]);
            if let Some(request) = decoder.next_message()? {
                return Ok((Self { socket: OwnedFd::from(socket).into(), decoder }, request, descriptors));
            }
        }
    }

    /// Sends a message.
    pub fn send(&self, message: &impl Serialize) -> Result<(), ChannelError> {
        Ok((&self.socket).write_all(&frame::encode(message, frame::FROM_JOB)?)?)
    }

    /// The next request; `None` when the daemon has no more.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ChannelError> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(request) = self.decoder.next_message()? {
                return Ok(Some(request));
            }
            match (&self.socket).read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next request with its descriptors; `None` when the daemon has no more. Descriptors of messages that were read by [`Self::receive`] are lost.
    pub fn receive_with<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Vec<OwnedFd>)>, ChannelError> {
        let socket = UnixStream::from(OwnedFd::from(self.socket.try_clone()?));
        let (mut descriptors, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(request) = self.decoder.next_message()? {
                return Ok(Some((request, descriptors)));
            }
            match podstead_sys::descriptor_passing::receive(&socket, &mut buffer, &mut descriptors) {
                Ok(0) => return Ok(None),
                Ok(count) => self.decoder.push(&buffer[..count]),
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// The same socket once more, to send by.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, decoder: Decoder::new(frame::TO_JOB) })
    }
}
