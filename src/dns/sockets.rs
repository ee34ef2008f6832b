//! The sockets that serve pods.

use nix::sys::socket::sockopt::{IpFreebind, ReuseAddr};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::net::{TcpListener, UdpSocket};

/// Tried first, so that packets of a pod that asks on through a restart of the daemon find the next one. Rules for packets lead to it from
/// port 53, which others may have.
const PREFERRED_PORT: u16 = 10053;
/// Ports of the kernel's choice that are tried.
const TRIES: usize = 16;

/// Reason why queries cannot be received.
#[derive(Debug, thiserror::Error)]
#[error("listen for DNS queries of pods on {address}")]
pub struct SocketError {
    /// The address.
    pub address: SocketAddr,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

/// Sockets of one port.
#[derive(Debug)]
pub struct Sockets {
    /// The port of all of them.
    pub port: u16,
    /// One for each address.
    pub udp: Vec<UdpSocket>,
    /// One for each address.
    pub tcp: Vec<TcpListener>,
}

impl Sockets {
    /// Opens them on these addresses, whether the host has them yet or not. A family that the kernel does not have is left out.
    pub fn open(addresses: &[IpAddr]) -> Result<Self, SocketError> {
        match Self::open_at(addresses, PREFERRED_PORT) {
            Err(error) if error.source.kind() == io::ErrorKind::AddrInUse => {}
            result => return result,
        }
        let mut result = Self::open_at(addresses, 0);
        for _ in 1..TRIES {
            match result {
                Err(error) if error.source.kind() == io::ErrorKind::AddrInUse => result = Self::open_at(addresses, 0),
                result => return result,
            }
        }
        result
    }

    /// Opens them at the DNS port, without redirecting rules.
    pub fn open_at_domain_port(address: IpAddr) -> Result<Self, SocketError> {
        Self::open_at(&[address], 53)
    }

    fn open_at(addresses: &[IpAddr], port: u16) -> Result<Self, SocketError> {
        let mut sockets = Self { port, udp: Vec::new(), tcp: Vec::new() };
        for address in addresses {
            let failed = |port: u16| move |source| SocketError { address: SocketAddr::new(*address, port), source };
            let udp = match open(SocketAddr::new(*address, sockets.port), SockType::Datagram) {
                Err(error) if error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT) => continue,
                result => result.map_err(failed(sockets.port))?,
            };
            let udp = UdpSocket::from_std(udp.into()).map_err(failed(sockets.port))?;
            sockets.port = udp.local_addr().map_err(failed(sockets.port))?.port();
            sockets.udp.push(udp);
            let tcp = open(SocketAddr::new(*address, sockets.port), SockType::Stream);
            let tcp = tcp.and_then(|tcp| TcpListener::from_std(tcp.into())).map_err(failed(sockets.port))?;
            sockets.tcp.push(tcp);
        }
        Ok(sockets)
    }
}

fn open(address: SocketAddr, kind: SockType) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
    // The address comes with the first pod.
    setsockopt(&socket, IpFreebind, &true)?;
    if kind == SockType::Stream {
        // Connections of an earlier daemon that are not over yet.
        setsockopt(&socket, ReuseAddr, &true)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    if kind == SockType::Stream {
        listen(&socket, Backlog::new(64)?)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sockets_of_both_kinds_share_a_port_also_where_the_host_has_no_such_address() {
        let addresses: [IpAddr; 2] = ["169.254.0.1".parse().unwrap(), "fd70:6f64:7374::1".parse().unwrap()];
        let first = Sockets::open(&addresses).unwrap();
        let second = Sockets::open(&addresses).unwrap();
        assert_ne!(first.port, second.port, "another port when the first one is taken");
        for sockets in [&first, &second] {
            assert_ne!(sockets.port, 0);
            let udp: Vec<_> = sockets.udp.iter().map(|socket| socket.local_addr().unwrap()).collect();
            let tcp: Vec<_> = sockets.tcp.iter().map(|socket| socket.local_addr().unwrap()).collect();
            assert_eq!(udp, tcp);
            assert!(udp.iter().all(|address| address.port() == sockets.port));
            assert_eq!(udp[0].ip(), addresses[0]);
        }
    }
}
