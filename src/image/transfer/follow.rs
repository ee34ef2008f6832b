//! A spool as a stream that waits for what has not come yet.

use super::State;
use super::pace::Pace;
use std::io::{self, Read};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Reads a blob while it arrives. Fails when the transfer fails or is stopped, and with
/// [`io::ErrorKind::WouldBlock`] when it becomes far.
#[derive(Debug)]
pub(in super::super) struct Follower {
    state: watch::Receiver<State>,
    at: u64,
    runtime: Handle,
    stop: CancellationToken,
}

impl Follower {
    /// A reader at byte 0. It is made in a runtime, and read outside of it.
    pub(super) fn new(state: watch::Receiver<State>, stop: CancellationToken) -> Self {
        Self { state, at: 0, runtime: Handle::current(), stop }
    }
}

impl Read for Follower {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let (spool, have, is_complete) = match &*self.state.borrow_and_update() {
                State::Complete { spool, counts } => (Some(spool.clone()), counts.have, true),
                State::Running { spool, counts, pace: Pace::Near } => (Some(spool.clone()), counts.have, false),
                State::Running { pace: Pace::Far, .. } => {
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, "the download has become slow"));
                }
                State::Failed(_) => return Err(io::Error::other("the download failed")),
                State::Opening => (None, 0, false),
            };
            if let Some(spool) = spool
                && self.at < have
            {
                let available = usize::try_from(have - self.at).unwrap_or(usize::MAX).min(buffer.len());
                let count = spool.read(&mut buffer[..available], self.at)?;
                self.at += count as u64;
                return match count {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    count => Ok(count),
                };
            }
            if is_complete {
                return Ok(0);
            }
            let (state, stop) = (&mut self.state, &self.stop);
            let is_stopped = self.runtime.block_on(async {
                tokio::select! {
                    () = stop.cancelled() => true,
                    // A transfer that ended leaves its last state.
                    changed = state.changed() => changed.is_err(),
                }
            });
            if is_stopped {
                return Err(io::Error::other("stopped"));
            }
        }
    }
}
