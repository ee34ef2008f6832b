//! Elements as the kernel has them. **Pure**.

use podstead_pod::host_ports::Protocol;
use podstead_service::frontends::{Chain, Key, NodeSocket, Socket, Value};
use podstead_service::range::Family;
use podstead_sys::netlink::maps::{MapElement, MapValue};
use podstead_sys::netlink::rtnetlink::octets;

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
