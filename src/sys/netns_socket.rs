//! Sockets of another network namespace. A socket stays in the namespace that it was created in, regardless of its user.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Does `work` in the network namespace `netns`, in a thread that ends with it, so that no other work is ever done in there. Blocks for
/// about the time that starting a thread takes.
pub(super) fn in_netns<T: Send>(netns: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    in_netns_beside(netns, work, || ()).0
}

/// As [`in_netns`], with other work that the caller's thread does in its own namespace meanwhile.
pub(super) fn in_netns_beside<T: Send, U>(
    netns: &File,
    work: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce() -> U,
) -> (io::Result<T>, U) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn_scoped(scope, || {
            move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        let done = meanwhile();
        let panicked = |_| Err(io::Error::other("the thread in the namespace panicked"));
        (thread.and_then(|thread| thread.join().unwrap_or_else(panicked)), done)
    })
}

/// Moves this process, which must have one thread and end soon, into the network namespace pinned at `netns`.
pub fn enter(netns: &Path) -> io::Result<()> {
    Ok(move_into_link_name_space(File::open(netns)?.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Makes a TCP socket that does not block and is not connected, fit for `address`, in the namespace pinned at `netns`. Blocks for about the
/// time that starting a thread takes.
pub fn tcp_socket_in(netns: &Path, address: SocketAddr) -> io::Result<TcpStream> {
    socket_in(netns, address, SockType::Stream, SockFlag::SOCK_NONBLOCK).map(TcpStream::from)
}

/// Makes a UDP socket that blocks and is not bound, fit for `address`, in the namespace pinned at `netns`. Blocks as above.
pub fn udp_socket_in(netns: &Path, address: SocketAddr) -> io::Result<UdpSocket> {
    socket_in(netns, address, SockType::Datagram, SockFlag::empty()).map(UdpSocket::from)
}

fn socket_in(netns: &Path, address: SocketAddr, kind: SockType, flags: SockFlag) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    Ok(in_netns(&File::open(netns)?, || socket(family, kind, flags | SockFlag::SOCK_CLOEXEC, None))??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::set_loopback_up;
    use crate::testing::in_new_netns;
    use nix::sys::socket::{SockaddrStorage, connect};
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_socket_of_a_namespace_does_not_reach_what_listens_here() {
        let here = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = here.local_addr().unwrap();
        let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        in_new_netns(|netns, _| {
            set_loopback_up(netns).unwrap();
            let socket = tcp_socket_in(netns, address).unwrap();
            let refused = connect(socket.as_raw_fd(), &SockaddrStorage::from(address)).unwrap_err();
            assert!(matches!(refused, nix::Error::ECONNREFUSED | nix::Error::EINPROGRESS), "{refused}");
        });
        here.set_nonblocking(true).unwrap();
        assert_eq!(here.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), own);
    }

    #[test]
    fn what_is_no_namespace_is_an_error() {
        let address = "127.0.0.1:1".parse().unwrap();
        tcp_socket_in(Path::new("/dev/null"), address).unwrap_err();
        tcp_socket_in(Path::new("/nowhere"), address).unwrap_err();
    }
}
