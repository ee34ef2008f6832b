//! A netlink socket. A request is answered before `send` returns, so that nothing here ever waits.
#![expect(unsafe_code, reason = "setsockopt(2) of the netlink level, which no crate in the tree wraps")]

use super::message::{self, Request, answers};
use crate::netns_socket::in_netns_beside;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname, recv, send, socket,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Part of the kernel that the socket talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Interfaces, addresses, routes.
    Route,
    /// Packet rules, tracked connections.
    Netfilter,
    /// Sockets of programs.
    Sockets,
}

/// Reason why the kernel did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket does not work.
    #[error("{operation} a netlink socket")]
    Socket {
        /// The operation.
        operation: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A message was refused.
    #[error("{label}{}", explanation.as_ref().map_or_else(String::new, |text| format!(" ({text})")))]
    Refused {
        /// Purpose of the message.
        label: String,
        /// The kernel's words, if it has any.
        explanation: Option<String>,
        /// Its error number.
        #[source]
        source: io::Error,
    },
    /// No confirmation came.
    #[error("{label}: the kernel did not respond")]
    Unanswered {
        /// Purpose of the last message.
        label: String,
    },
}

impl NetlinkError {
    /// The kernel's error number; `None` where it gave none.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Socket { source, .. } | Self::Refused { source, .. } => source.raw_os_error(),
            Self::Unanswered { .. } => None,
        }
    }

    /// Returns true if the object to be removed does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.errno(), Some(libc::ENOENT | libc::ENODEV | libc::ESRCH | libc::EADDRNOTAVAIL))
    }
}

/// Datagrams of dumps are at most 32 KiB.
const BUFFER: usize = 64 << 10;
/// Size of the kernel's queues: the rules of some thousand pods in one transaction.
const QUEUE_BYTES: i32 = 8 << 20;
const SOL_NETLINK: i32 = 270;
const NETLINK_CAP_ACK: i32 = 10;
const NETLINK_EXT_ACK: i32 = 11;

/// A socket, bound to the network namespace that it was opened in for as long as it lives.
#[derive(Debug)]
pub struct NetlinkSocket {
    fd: OwnedFd,
    port: u32,
    buffer: Vec<u8>,
}

impl NetlinkSocket {
    /// A socket in the caller's network namespace.
    pub fn open(protocol: Protocol) -> Result<Self, NetlinkError> {
        Self::bound(protocol, 0)
    }

    /// A socket that gets notifications: bit n-1 of `groups` stands for group n.
    pub fn listening(protocol: Protocol, groups: u32) -> Result<Self, NetlinkError> {
        Self::bound(protocol, groups)
    }

    /// A socket in the namespace of `netns`. Blocks for a moment.
    pub fn open_in(netns: &File, protocol: Protocol) -> Result<Self, NetlinkError> {
        Self::open_in_beside(netns, protocol, || ()).0
    }

    /// As [`NetlinkSocket::open_in`], with other work that the caller's thread does meanwhile.
    pub fn open_in_beside<T>(netns: &File, protocol: Protocol, meanwhile: impl FnOnce() -> T) -> (Result<Self, NetlinkError>, T) {
        let (opened, done) = in_netns_beside(netns, || Self::open(protocol), meanwhile);
        (opened.map_err(at("enter the network namespace for")).flatten(), done)
    }

    fn bound(protocol: Protocol, groups: u32) -> Result<Self, NetlinkError> {
        let protocol = match protocol {
            Protocol::Route => SockProtocol::NetlinkRoute,
            Protocol::Netfilter => SockProtocol::NetlinkNetFilter,
            Protocol::Sockets => SockProtocol::NetlinkSockDiag,
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol).map_err(|error| at("open")(error.into()))?;
        for (level, option, value) in [
            (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, QUEUE_BYTES),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, QUEUE_BYTES),
            (SOL_NETLINK, NETLINK_CAP_ACK, 1),
            (SOL_NETLINK, NETLINK_EXT_ACK, 1),
        ] {
            // Without them errors say less, and a transaction may be of fewer pods.
            set_option(fd.as_raw_fd(), level, option, value).ok();
        }
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups)).map_err(|error| at("bind")(error.into()))?;
        let address: NetlinkAddr = getsockname(fd.as_raw_fd()).map_err(|error| at("inspect")(error.into()))?;
        Ok(Self { fd, port: address.pid(), buffer: vec![0; BUFFER] })
    }

    /// Its address, which notifications about its own requests carry.
    pub const fn port(&self) -> u32 {
        self.port
    }

    /// Sends all messages, and passes what the kernel answers, but for errors, to `hear`. The first refusal is the error; whether messages
    /// behind the refused one were acted on is the kernel's affair (rtnetlink goes on, nftables takes all back).
    pub fn transact(&mut self, request: &Request, mut hear: impl FnMut(message::Answer<'_>)) -> Result<(), NetlinkError> {
        if request.is_too_long() {
            return Err(at("send on")(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        send(self.fd.as_raw_fd(), request.bytes(), MsgFlags::empty()).map_err(|error| at("send on")(error.into()))?;
        let mut confirmed = 0;
        let mut refused = None;
        // All is in the queue already, and what is in there must not be taken for an answer to the next request.
        while let Some(length) = self.receive()? {
            for answer in answers(&self.buffer[..length]) {
                match answer.error() {
                    None => hear(answer),
                    Some(0) => confirmed += 1,
                    Some(number) => {
                        refused.get_or_insert_with(|| NetlinkError::Refused {
                            label: request.label(answer.sequence).to_owned(),
                            explanation: answer.explanation(),
                            source: io::Error::from_raw_os_error(number),
                        });
                    }
                }
            }
        }
        match refused {
            Some(error) => Err(error),
            None if confirmed < request.acknowledged() => {
                Err(NetlinkError::Unanswered { label: request.label(request.acknowledged() as u32).to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Sends one list request, and passes its entries to `hear`.
    pub fn dump(&mut self, request: &Request, mut hear: impl FnMut(message::Answer<'_>)) -> Result<(), NetlinkError> {
        let mut is_whole = false;
        self.transact(request, |answer| match answer.kind {
            message::DONE => is_whole = true,
            _ => hear(answer),
        })?;
        if is_whole { Ok(()) } else { Err(NetlinkError::Unanswered { label: request.label(1).to_owned() }) }
    }

    /// Passes received notifications to `hear`. `false` when some were lost, since there were too many.
    pub fn notifications(&mut self, mut hear: impl FnMut(message::Answer<'_>)) -> Result<bool, NetlinkError> {
        let mut is_whole = true;
        loop {
            match self.receive() {
                Ok(Some(length)) => answers(&self.buffer[..length]).for_each(&mut hear),
                Ok(None) => return Ok(is_whole),
                Err(error) if error.errno() == Some(libc::ENOBUFS) => is_whole = false,
                Err(error) => return Err(error),
            }
        }
    }

    /// The next datagram's length; `None` when there is none.
    fn receive(&mut self) -> Result<Option<usize>, NetlinkError> {
        match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => Ok(Some(length)),
            Err(nix::Error::EAGAIN) => Ok(None),
            Err(error) => Err(at("receive from")(error.into())),
        }
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for NetlinkSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn at(operation: &'static str) -> impl FnOnce(io::Error) -> NetlinkError {
    move |source| NetlinkError::Socket { operation, source }
}

fn set_option(fd: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is an int that lives through the call, and `length` is its size.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
