//! Datagrams that go astray: the kernel remembers for as long as they flow where the first one went.
//!
//! A client that goes on sending to a port of the host is led to a pod that is gone, or, if it began before there was a pod, to nobody. So what
//! is remembered about a port of UDP is forgotten when the pod behind it is another one. TCP helps itself: a new connection has a new
//! port.

use super::ruleset::PodRules;
use crate::config::AddressRange;
use crate::pod::host_ports::Protocol as PortProtocol;
use crate::sys::netlink::conntrack::{self, Connection};
use crate::sys::netlink::nftables::{IPV4, IPV6};
use crate::sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::collections::BTreeSet;
use std::net::IpAddr;

const UDP: u8 = 17;

/// The ports of UDP that lead somewhere else after a change than before (pure).
pub(super) fn moved_ports(before: Option<&PodRules>, after: Option<&PodRules>) -> BTreeSet<u16> {
    let leads = |rules: Option<&PodRules>| -> BTreeSet<(u16, u16, Option<IpAddr>, Vec<IpAddr>)> {
        let of = |rules: &PodRules| {
            let udp = rules.ports.iter().filter(|port| port.protocol == PortProtocol::Udp);
            udp.map(|port| (port.host_port, port.container_port, port.host_ip, rules.addresses.clone())).collect()
        };
        rules.map(of).unwrap_or_default()
    };
    leads(before).symmetric_difference(&leads(after)).map(|(port, ..)| *port).collect()
}

/// Whether a connection to one of these ports leads to a pod, or to this host itself (pure). What somebody else has rewritten is left alone.
fn is_astray(connection: &Connection, ports: &BTreeSet<u16>, ranges: &[AddressRange], own: &[IpAddr]) -> bool {
    let (destination, port) = connection.destination;
    let is_pods = ranges.iter().any(|range| range.contains(connection.answers));
    let is_hosts = connection.answers == destination && (own.contains(&destination) || destination.is_loopback());
    connection.protocol == UDP && ports.contains(&port) && (is_pods || is_hosts)
}

/// Forgets where datagrams for these ports went.
pub(super) fn forget(ports: &BTreeSet<u16>, ranges: &[AddressRange], own: &[IpAddr]) -> Result<(), NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Netfilter)?;
    for family in [IPV4, IPV6] {
        let mut request = Request::new();
        conntrack::list(&mut request, family);
        let mut astray = Vec::new();
        socket.dump(&request, |answer| {
            astray.extend(conntrack::connection(&answer).filter(|connection| is_astray(connection, ports, ranges, own)));
        })?;
        for connection in astray {
            let mut request = Request::new();
            conntrack::forget(&mut request, &connection);
            match socket.transact(&request, |_| {}) {
                // It ended by itself.
                Err(error) if !error.is_not_found() => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::host_ports::HostPort;

    fn pod(address: &str, port: u16, protocol: PortProtocol) -> PodRules {
        let port = HostPort { protocol, host_ip: None, host_port: port, container_port: 53 };
        let addresses = vec![address.parse().unwrap()];
        PodRules { interface: "ps-1".into(), addresses, ports: vec![port], is_isolated: false, port: None }
    }

    #[test]
    fn ports_move_with_pods_and_addresses() {
        let one = pod("10.0.0.1", 53, PortProtocol::Udp);
        assert_eq!(moved_ports(None, Some(&one)), [53].into());
        assert_eq!(moved_ports(Some(&one), None), [53].into());
        assert_eq!(moved_ports(Some(&one), Some(&one)), [].into());
        assert_eq!(moved_ports(Some(&one), Some(&pod("10.0.0.2", 53, PortProtocol::Udp))), [53].into());
        assert_eq!(moved_ports(Some(&one), Some(&pod("10.0.0.1", 54, PortProtocol::Udp))), [53, 54].into());
        assert_eq!(moved_ports(None, Some(&pod("10.0.0.1", 53, PortProtocol::Tcp))), [].into());
    }
}
