//! The end of connections that policies no longer allow (N12).

use super::super::tracked::forget_all;
use podstead_pod::host_ports::Protocol;
use podstead_policy::compile::Classes;
use podstead_policy::decide::{Decider, Flow};
use podstead_sys::netlink::NetlinkError;
use podstead_sys::netlink::conntrack::Connection;
use std::net::IpAddr;

/// Forgets the tracked connections that these classes deny. The next packet of one is the first of a new connection, which the rules refuse.
pub(in super::super) fn end_denied(classes: &Classes, own: &[IpAddr]) -> Result<(), NetlinkError> {
    if classes.pods.is_empty() {
        return Ok(());
    }
    let decider = Decider::new(classes);
    forget_all(|connection| is_denied(&decider, connection, own))
}

/// Returns true if policies deny the connection, with the address and port behind a Service (pure). Those of the host are not filtered (N8).
fn is_denied(decider: &Decider<'_>, connection: &Connection, own: &[IpAddr]) -> bool {
    let is_host = |address: &IpAddr| own.contains(address) || address.is_loopback();
    if is_host(&connection.source) || is_host(&connection.answers) {
        return false;
    }
    let protocol = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp].into_iter().find(|of| of.number() == connection.protocol);
    let port = protocol.map(|protocol| (protocol, connection.answering_port));
    decider.denied(&Flow { source: connection.source, destination: connection.answers, port }).is_some()
}
