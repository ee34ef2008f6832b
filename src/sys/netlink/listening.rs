//! Messages of socket diagnosis (`sock_diag`): the sockets of this network namespace that listen on a port. **Pure**.
//!
//! The kernel looks into the tables of such sockets alone, while files like `/proc/net/tcp` cost it a walk over all connections.

use super::message::{Answer, DUMP, Request};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `AF_INET`, `AF_INET6`.
const FAMILIES: [u8; 2] = [2, 10];
/// Of UDP: sockets that are not connected, `TCP_CLOSE`; of the others: `TCP_LISTEN`, also SCTP's number.
const UNCONNECTED: u32 = 1 << 7;
const LISTENING: u32 = 1 << 10;
const UDP: u8 = 17;

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its address; unspecified for all.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its inode, for finding its owner in `/proc/<pid>/fd`.
    pub inode: u32,
}

/// Asks for the sockets of a protocol that wait at a port: one request for each family.
pub fn list(protocol: u8, port: u16) -> [Request; 2] {
    FAMILIES.map(|family| {
        let mut request = Request::new();
        request.message("list listening sockets", BY_FAMILY, DUMP, |body| {
            let states = if protocol == UDP { UNCONNECTED } else { LISTENING };
            // struct inet_diag_req_v2.
            body.raw(&[family, protocol, 0, 0]);
            body.raw(&states.to_ne_bytes());
            body.raw(&[&port.to_be_bytes()[..], &[0; 46]].concat());
        });
        request
    })
}

/// Reads a socket; `None` for a message that is none.
pub fn waiting(answer: &Answer<'_>) -> Option<Waiting> {
    // struct inet_diag_msg.
    const PORT: usize = 4;
    const ADDRESS: usize = 8;
    const INODE: usize = 68;
    if answer.kind != BY_FAMILY {
        return None;
    }
    let body = answer.body;
    let port = u16::from_be_bytes(body.get(PORT..PORT + 2)?.try_into().ok()?);
    let bytes = <[u8; 16]>::try_from(body.get(ADDRESS..ADDRESS + 16)?).ok()?;
    let address = match *body.first()? {
        2 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        _ => Ipv6Addr::from(bytes).to_canonical(),
    };
    let inode = u32::from_ne_bytes(body.get(INODE..INODE + 4)?.try_into().ok()?);
    Some(Waiting { address, port, inode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{NetlinkSocket, Protocol};
    use std::net::{TcpListener, UdpSocket};

    fn found(protocol: u8, port: u16) -> Vec<Waiting> {
        let mut socket = NetlinkSocket::open(Protocol::Sockets).unwrap();
        let mut found = Vec::new();
        for request in list(protocol, port) {
            socket.dump(&request, |answer| found.extend(waiting(&answer))).unwrap();
        }
        found
    }

    #[test]
    fn the_kernel_tells_who_waits_at_a_port_and_nobody_else() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let _client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _other = TcpListener::bind("127.0.0.1:0").unwrap();
        let [one] = found(6, port).try_into().unwrap();
        assert_eq!((one.address, one.port), ("127.0.0.1".parse().unwrap(), port));
        assert_ne!(one.inode, 0);
        assert_eq!(found(UDP, port), []);
        let udp = UdpSocket::bind("[::]:0").unwrap();
        let [one] = found(UDP, udp.local_addr().unwrap().port()).try_into().unwrap();
        assert!(one.address.is_unspecified() && one.address.is_ipv6());
    }

    #[test]
    fn a_torso_is_no_socket() {
        let answer = |body| Answer { kind: BY_FAMILY, flags: 0, sequence: 1, port: 0, body };
        assert_eq!(waiting(&answer(&[2; 71])), None);
        assert!(waiting(&answer(&[2; 72])).is_some());
        assert_eq!(waiting(&answer(&[])), None);
    }
}
