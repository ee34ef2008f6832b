//! Elements as the kernel has them. **Pure**.

use podstead_pod::host_ports::Protocol;
use podstead_service::frontends::{Chain, Key, NodeSocket, Socket, Value};
use podstead_service::range::{Family, Subnet};
use podstead_sys::netlink::maps::{MapElement, MapValue};
use podstead_sys::netlink::rtnetlink::octets;
use std::net::{IpAddr, SocketAddr};

/// Sets and maps with elements, each of both families.
pub(super) const MAPS: [&str; 9] =
    ["endpoints", "node_endpoints", "ranges", "fenced_ports", "elsewhere", "sticky", "sticky_ports", "services", "node_ports"];

/// The name of a set or map of one family.
pub(super) fn name(map: &str, family: Family) -> String {
    match family {
        Family::V4 => format!("{map}4"),
        Family::V6 => format!("{map}6"),
    }
}

/// The set or map that an element is of.
pub(super) fn map_of(key: &Key) -> String {
    let map = match key {
        Key::Endpoint(..) => "endpoints",
        Key::NodeEndpoint(..) => "node_endpoints",
        Key::SourceRange(..) => "ranges",
        Key::FencedPort(_) => "fenced_ports",
        Key::Elsewhere(_) => "elsewhere",
        Key::Sticky(_) => "sticky",
        Key::StickyPort(_) => "sticky_ports",
        Key::Service(_) => "services",
        Key::NodePort(_) => "node_ports",
    };
    name(map, key.family())
}

/// The element, with its value if it is added.
pub(super) fn element(key: &Key, value: Option<Value>) -> MapElement {
    let (bytes, last) = match key {
        Key::Endpoint(socket, index) => ([address_and_port(socket), index.to_ne_bytes().to_vec()].concat(), None),
        Key::NodeEndpoint(socket, index) => ([port_of_host(socket), index.to_ne_bytes().to_vec()].concat(), None),
        Key::SourceRange(socket, range) => {
            let port = port_of_host(socket);
            ([port.clone(), octets(range.first())].concat(), Some([port, octets(range.last())].concat()))
        }
        Key::Elsewhere(socket) | Key::Sticky(socket) | Key::Service(socket) => (address_and_port(socket), None),
        Key::FencedPort(socket) | Key::StickyPort(socket) | Key::NodePort(socket) => (port_of_host(socket), None),
    };
    let value = match value {
        None | Some(Value::Present) => MapValue::None,
        Some(Value::Target(socket)) => MapValue::Data([octets(socket.ip()), padded(socket.port())].concat()),
        Some(Value::Verdict(chain)) => verdict(chain),
    };
    MapElement { key: bytes, last, value }
}

fn verdict(chain: Chain) -> MapValue {
    match chain {
        Chain::Remember(..) => MapValue::Jump(chain.name()),
        Chain::Pick(..) | Chain::Node(..) | Chain::Sticky(..) | Chain::StickyNode(..) | Chain::Fenced(_) => {
            MapValue::Goto(chain.name())
        }
    }
}

fn address_and_port(socket: &Socket) -> Vec<u8> {
    [octets(socket.address), protocol(socket.protocol), padded(socket.port)].concat()
}

fn port_of_host(socket: &NodeSocket) -> Vec<u8> {
    [protocol(socket.protocol), padded(socket.port)].concat()
}

fn protocol(protocol: Protocol) -> Vec<u8> {
    vec![protocol.number(), 0, 0, 0]
}

/// A part takes a whole register.
fn padded(port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    vec![high, low, 0, 0]
}

/// The element that the kernel has in a set or map of [`MAPS`]; `None` if it makes no sense. Of verdicts, only seconds of bonds are read: others follow
/// from the endpoints.
pub(super) fn read(map: &str, family: Family, element: &MapElement) -> Option<(Key, Value)> {
    let socket = |bytes| socket(bytes, family);
    let node = |bytes| node_socket(bytes, family);
    Some(match map {
        "endpoints" => {
            let (bytes, index) = indexed(&element.key)?;
            (Key::Endpoint(socket(bytes)?, index), Value::Target(target(&element.value, family)?))
        }
        "node_endpoints" => {
            let (bytes, index) = indexed(&element.key)?;
            (Key::NodeEndpoint(node(bytes)?, index), Value::Target(target(&element.value, family)?))
        }
        "ranges" => {
            let (port, first) = element.key.split_at_checked(2 * WORD)?;
            let last = element.last.as_ref().map_or(Some(first), |last| last.get(2 * WORD..))?;
            (Key::SourceRange(node(port)?, subnet(address(first)?, address(last)?)?), Value::Present)
        }
        "fenced_ports" => (Key::FencedPort(node(&element.key)?), Value::Present),
        "elsewhere" => (Key::Elsewhere(socket(&element.key)?), Value::Present),
        "sticky" => (Key::Sticky(socket(&element.key)?), remembered(&element.value, family)?),
        "sticky_ports" => (Key::StickyPort(node(&element.key)?), remembered(&element.value, family)?),
        "services" => (Key::Service(socket(&element.key)?), Value::Present),
        "node_ports" => (Key::NodePort(node(&element.key)?), Value::Present),
        _ => return None,
    })
}

/// Bytes of a register.
const WORD: usize = 4;

fn indexed(bytes: &[u8]) -> Option<(&[u8], u32)> {
    let (rest, index) = bytes.split_last_chunk::<WORD>()?;
    Some((rest, u32::from_ne_bytes(*index)))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    v4.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

fn port(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk::<2>().map(|port| u16::from_be_bytes(*port))
}

fn socket(bytes: &[u8], family: Family) -> Option<Socket> {
    let (own, rest) = bytes.split_at_checked(bytes.len().checked_sub(2 * WORD)?)?;
    let NodeSocket { protocol, port, .. } = node_socket(rest, family)?;
    let address = address(own).filter(|address| Family::of(*address) == family)?;
    Some(Socket { address, protocol, port })
}

fn node_socket(bytes: &[u8], family: Family) -> Option<NodeSocket> {
    let (number, rest) = bytes.split_first()?;
    let protocol = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp].into_iter().find(|protocol| protocol.number() == *number)?;
    (bytes.len() == 2 * WORD).then_some(NodeSocket { family, protocol, port: port(rest.get(WORD - 1..)?)? })
}

fn target(value: &MapValue, family: Family) -> Option<SocketAddr> {
    let MapValue::Data(bytes) = value else { return None };
    let (own, number) = bytes.split_at_checked(bytes.len().checked_sub(WORD)?)?;
    Some(SocketAddr::new(address(own).filter(|address| Family::of(*address) == family)?, port(number)?))
}

/// The subnet from its first to its last address.
fn subnet(first: IpAddr, last: IpAddr) -> Option<Subnet> {
    let differing = octets(first).into_iter().zip(octets(last)).map(|(first, last)| first ^ last);
    let host_bits: u32 = differing.map(u8::count_ones).sum();
    let bits = if first.is_ipv4() { 32 } else { 128 };
    let found = Subnet::of(first, u8::try_from(bits - host_bits).ok()?)?;
    (found.first() == first && found.last() == last).then_some(found)
}

fn remembered(value: &MapValue, family: Family) -> Option<Value> {
    let MapValue::Jump(chain) = value else { return None };
    let seconds = chain.rsplit_once('_')?.1.parse().ok()?;
    let found = Chain::Remember(family, seconds);
    (found.name() == *chain).then_some(Value::Verdict(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_element_is_too_odd(
            map in proptest::sample::select(&MAPS[..]),
            key in proptest::collection::vec(any::<u8>(), 0..40),
            last in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
            data in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..24)),
        ) {
            let value = data.map_or_else(|| MapValue::Jump("remember4_x".to_owned()), MapValue::Data);
            for family in Family::ALL {
                read(map, family, &MapElement { key: key.clone(), last: last.clone(), value: value.clone() });
            }
        }
    }
}
