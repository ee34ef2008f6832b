//! Stale connection tracking of datagrams: the kernel keeps sending a flow to the target of its first packet.
//!
//! A client that goes on sending to a port of the host is led to a pod that is gone, or, if it began before there was a pod or while the packet rules were
//! away, to nobody. So what is remembered about a port of UDP is forgotten when the pod behind it is another one, and what is wrong when rules are made. TCP helps itself: a new connection has a new
//! port.

use super::sets::PodRules;
use crate::{GATEWAYS, assigned_ips};
use podstead_pod::host_ports::Protocol as PortProtocol;
use podstead_settings::AddressRange;
use podstead_sys::netlink::conntrack::{self, Connection};
use podstead_sys::netlink::nftables::{IPV4, IPV6};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::collections::{BTreeMap, BTreeSet};
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

/// Ports of UDP of the host, each with the addresses of the pod that it leads to.
pub(super) type Leads = BTreeMap<u16, BTreeSet<IpAddr>>;

/// Targets of UDP ports (pure).
pub(super) fn leads<'a>(pods: impl Iterator<Item = &'a PodRules>) -> Leads {
    let mut leads = Leads::new();
    for pod in pods {
        for port in pod.ports.iter().filter(|port| port.protocol == PortProtocol::Udp) {
            leads.entry(port.host_port).or_default().extend(&pod.addresses);
        }
    }
    leads
}

/// Ports with a new target for their datagrams, from any old one (pure).
pub(super) fn nowhere(ports: &BTreeSet<u16>) -> Leads {
    ports.iter().map(|port| (*port, BTreeSet::new())).collect()
}

/// Returns true if a connection to one of these ports has another target (pure).
fn is_astray(connection: &Connection, leads: &Leads, ranges: &[AddressRange], own: &[IpAddr]) -> bool {
    let (destination, port) = connection.destination;
    connection.protocol == UDP
        && leads.get(&port).is_some_and(|right| is_wrong(destination, connection.answers, right, ranges, own))
}

/// Returns true if another pod than the right one replies, or this host itself (pure). Connections rewritten by others are left alone.
fn is_wrong(destination: IpAddr, answers: IpAddr, right: &BTreeSet<IpAddr>, ranges: &[AddressRange], own: &[IpAddr]) -> bool {
    let is_pods = ranges.iter().any(|range| range.contains(answers)) && !right.contains(&answers);
    let is_hosts = answers == destination && (own.contains(&destination) || destination.is_loopback());
    is_pods || is_hosts
}

/// Forgets where datagrams for these ports went, unless that is where they lead.
pub(super) fn forget(leads: &Leads, ranges: &[AddressRange]) -> Result<(), NetlinkError> {
    if leads.is_empty() {
        return Ok(());
    }
    let own = own_addresses();
    forget_all(|connection| is_astray(connection, leads, ranges, &own))
}

/// Addresses of this host that a client may have sent to. Pods know it by two more, which are assigned only while there are pods.
pub(super) fn own_addresses() -> Vec<IpAddr> {
    assigned_ips().unwrap_or_default().into_iter().chain(GATEWAYS).collect()
}

/// Forgets tracked connections of both families.
pub(super) fn forget_all(is_stale: impl Fn(&Connection) -> bool) -> Result<(), NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Netfilter)?;
    for family in [IPV4, IPV6] {
        let mut request = Request::new();
        conntrack::list(&mut request, family);
        let mut stale = Vec::new();
        socket.dump(&request, |answer| {
            stale.extend(conntrack::connection(&answer).filter(|connection| is_stale(connection)));
        })?;
        for connection in stale {
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
    use podstead_pod::host_ports::HostPort;

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

    #[test]
    fn what_leads_to_the_host_or_to_another_pod_is_astray() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let pods = [pod("10.0.0.1", 53, PortProtocol::Udp), pod("10.0.0.2", 80, PortProtocol::Tcp)];
        let leads = leads(pods.iter());
        assert_eq!(leads, [(53, [ip("10.0.0.1")].into())].into());
        let (ranges, own) = (["10.0.0.0/24".parse().unwrap()], [ip("192.0.2.2"), ip("192.0.2.3")]);
        let is_wrong = |destination, answers| super::is_wrong(ip(destination), ip(answers), &leads[&53], &ranges, &own);
        assert!(is_wrong("192.0.2.3", "192.0.2.3"), "begun while the rules were away");
        assert!(is_wrong("127.0.0.1", "127.0.0.1"));
        assert!(is_wrong("192.0.2.3", "10.0.0.9"), "to a pod that is gone");
        assert!(!is_wrong("192.0.2.3", "10.0.0.1"));
        assert!(!is_wrong("198.51.100.1", "198.51.100.1"), "passes through");
        assert!(super::is_wrong(ip("192.0.2.3"), ip("10.0.0.1"), &nowhere(&[53].into())[&53], &ranges, &own));
    }
}
