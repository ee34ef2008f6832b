//! Notifications of the kernel.
#![expect(unsafe_code, reason = "tokio's registration of a descriptor, whose life the caller vouches for")]

use podstead_sys::netlink::message::Answer;
use podstead_sys::netlink::socket::{NetlinkError, NetlinkSocket, Protocol};
use tokio::io::unix::AsyncFd;

/// Notifications of some groups.
#[derive(Debug)]
pub struct Notifications {
    socket: AsyncFd<NetlinkSocket>,
}

impl Notifications {
    /// Listens from now on: bit n-1 of `groups` stands for group n.
    pub fn of(protocol: Protocol, groups: u32) -> Result<Self, NetlinkError> {
        let socket = NetlinkSocket::listening(protocol, groups)?;
        // SAFETY: the socket owns its descriptor, never replaces it, and closes it only when it is dropped, which AsyncFd does after it
        // has taken the descriptor out of the reactor.
        let registered = unsafe { AsyncFd::register(socket) };
        let socket = registered.map_err(|error| NetlinkError::Socket { operation: "watch", source: error.into() })?;
        Ok(Self { socket })
    }

    /// Waits until there is something, and passes all of it to `hear`. `false` when some were lost, since there were too many.
    /// Cancel-safe: nothing is taken out before it is passed on.
    pub async fn next(&mut self, hear: impl FnMut(Answer<'_>)) -> Result<bool, NetlinkError> {
        let ready = self.socket.readable_mut().await;
        let mut ready = ready.map_err(|source| NetlinkError::Socket { operation: "watch", source })?;
        // All is read below: later messages make it ready again.
        ready.clear_ready();
        ready.get_inner_mut().notifications(hear)
    }
}
