//! Tracked connections (ctnetlink): listing them and forgetting single ones. **Pure**.

use super::message::{ACK, Answer, DUMP, NESTED, Request, attributes};
use super::nftables::generic_header;
use super::rtnetlink::ip_of;
use std::net::IpAddr;

/// `NFNL_SUBSYS_CTNETLINK`, in the upper byte of a message's type.
const SUBSYSTEM: u16 = 1 << 8;
const NEW: u16 = 0;
const GET: u16 = 1;
const DELETE: u16 = 2;

// CTA_*.
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
const ZONE: u16 = 18;

/// A connection as the kernel tracks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    family: u8,
    /// The attribute that identifies it, to be repeated.
    original: Vec<u8>,
    zone: Option<Vec<u8>>,
    /// Protocol number.
    pub protocol: u8,
    /// The address that it is from.
    pub source: IpAddr,
    /// The original destination; port 0 with a protocol that has none.
    pub destination: (IpAddr, u16),
    /// The address that replies: another one, if the destination was rewritten.
    pub answers: IpAddr,
    /// The port that replies; 0 with a protocol that has none.
    pub answering_port: u16,
}

/// Asks for all connections of a family.
pub fn list(request: &mut Request, family: u8) {
    request.message("list tracked connections", SUBSYSTEM | GET, DUMP, |body| body.raw(&generic_header(family, 0)));
}

/// Forgets a connection.
pub fn forget(request: &mut Request, connection: &Connection) {
    request.message("delete a tracked connection", SUBSYSTEM | DELETE, ACK, |body| {
        body.raw(&generic_header(connection.family, 0));
        body.bytes(ORIGINAL | NESTED, &connection.original);
        if let Some(zone) = &connection.zone {
            body.bytes(ZONE, zone);
        }
    });
}

/// Reads a connection; `None` for a message that is none.
pub fn connection(answer: &Answer<'_>) -> Option<Connection> {
    if answer.kind != SUBSYSTEM | NEW {
        return None;
    }
    let find = |wanted| attributes(answer.body.get(4..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let original = find(ORIGINAL)?;
    let Tuple { source, destination, protocol, destination_port: port, .. } = tuple(original)?;
    let Tuple { source: answers, source_port: answering_port, .. } = tuple(find(REPLY)?)?;
    Some(Connection {
        family: *answer.body.first()?,
        original: original.to_vec(),
        zone: find(ZONE).map(<[u8]>::to_vec),
        protocol,
        source,
        destination: (destination, port),
        answers,
        answering_port,
    })
}

/// One direction of a connection.
struct Tuple {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    source_port: u16,
    destination_port: u16,
}

fn tuple(bytes: &[u8]) -> Option<Tuple> {
    let part = |wanted| attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let (ip, protocol) = (part(1)?, part(2)?);
    let address = |v4, v6| attributes(ip).find(|(kind, _)| *kind == v4 || *kind == v6).and_then(|(_, value)| ip_of(value));
    let field = |wanted| attributes(protocol).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let port = |wanted| field(wanted).and_then(|port| <[u8; 2]>::try_from(port).ok()).map_or(0, u16::from_be_bytes);
    Some(Tuple {
        source: address(1, 3)?,
        destination: address(2, 4)?,
        protocol: *field(1)?.first()?,
        source_port: port(2),
        destination_port: port(3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::answers;

    /// A message as the kernel writes it.
    fn message(rewritten: [u8; 4]) -> Request {
        let mut request = Request::new();
        request.message("", SUBSYSTEM | NEW, 0, |body| {
            body.raw(&generic_header(2, 0));
            for (kind, source, destination) in [(ORIGINAL, [192, 0, 2, 1], [192, 0, 2, 2]), (REPLY, rewritten, [192, 0, 2, 1])] {
                body.nest(kind, |tuple| {
                    tuple.nest(1, |ip| {
                        ip.bytes(1, &source);
                        ip.bytes(2, &destination);
                    });
                    tuple.nest(2, |protocol| {
                        protocol.bytes(1, &[17]);
                        protocol.bytes(2, &5000_u16.to_be_bytes());
                        protocol.bytes(3, &53_u16.to_be_bytes());
                    });
                });
            }
        });
        request
    }

    #[test]
    fn a_connection_says_whom_it_was_for_and_who_answers() {
        let request = message([10, 201, 0, 7]);
        let answer = answers(request.bytes()).next().unwrap();
        let connection = connection(&answer).unwrap();
        assert_eq!((connection.protocol, connection.destination), (17, ("192.0.2.2".parse().unwrap(), 53)));
        assert_eq!((connection.answers, connection.answering_port), ("10.201.0.7".parse().unwrap(), 5000));
        assert_eq!(connection.source, "192.0.2.1".parse::<IpAddr>().unwrap());
        let mut request = Request::new();
        forget(&mut request, &connection);
        let deletion = answers(request.bytes()).next().unwrap();
        assert!(deletion.body.windows(connection.original.len()).any(|window| window == connection.original));
    }
}
