//! The addresses that this host is known by.

use super::builtin::GATEWAY_V6;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The host's primary address of each family, IPv4 first: the source address of its default route, else its first global address.
/// Empty on a host without network; never an error for that.
pub fn host_ips() -> io::Result<Vec<IpAddr>> {
    let assigned: Vec<IpAddr> = getifaddrs()?
        .filter(|entry| entry.flags.contains(InterfaceFlags::IFF_UP) && !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK))
        .filter_map(|entry| ip_of(&entry.address?))
        .collect();
    Ok(choose(&assigned, [route_source(PROBE_V4), route_source(PROBE_V6)]))
}

/// Addresses that machines beside this host can connect to.
pub fn reachable_ips() -> io::Result<Vec<IpAddr>> {
    let is_reachable = |address: &IpAddr| match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    };
    Ok(assigned_ips()?.into_iter().filter(is_reachable).collect())
}

/// All addresses that are assigned to this host, of any scope.
pub(super) fn assigned_ips() -> io::Result<Vec<IpAddr>> {
    Ok(getifaddrs()?.filter_map(|entry| ip_of(&entry.address?)).collect())
}

/// Interfaces of this host, by the addresses that are assigned to them.
pub(super) fn assigned_to() -> io::Result<BTreeMap<IpAddr, String>> {
    let assigned = getifaddrs()?.filter_map(|entry| Some((ip_of(&entry.address?)?, entry.interface_name)));
    Ok(assigned.collect())
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// Addresses for documentation: nobody has a better route to them than the default one. No packet is sent.
const PROBE_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
const PROBE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// The address that the kernel would send from to `target`; `None` without a route.
fn route_source(target: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(target, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// One address per family: the source of the default route if it is assigned and global, else the first that is (pure).
fn choose(assigned: &[IpAddr], sources: [Option<IpAddr>; 2]) -> Vec<IpAddr> {
    let usable = |ip: &IpAddr| is_global(ip) && assigned.contains(ip);
    let of_family = |v4: bool| {
        let source = sources.into_iter().flatten().find(|ip| ip.is_ipv4() == v4 && usable(ip));
        source.or_else(|| assigned.iter().copied().find(|ip| ip.is_ipv4() == v4 && is_global(ip)))
    };
    [of_family(true), of_family(false)].into_iter().flatten().collect()
}

/// Reachable from other hosts; private ranges count, link-local ones do not.
fn is_global(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !(ip.is_loopback() || ip.is_link_local() || ip.is_unspecified() || ip.is_multicast()),
        // Pods reach every host by that one.
        IpAddr::V6(ip) if *ip == GATEWAY_V6 => false,
        IpAddr::V6(ip) => !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified() || ip.is_multicast()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_default_route_decides_and_without_one_the_first_global_address() {
        let assigned = ips(&["169.254.3.3", "172.17.0.1", "192.0.2.2", "fe80::1", "fd00::2", "fd00::3"]);
        let source = |text: &str| Some(text.parse().unwrap());
        assert_eq!(choose(&assigned, [source("192.0.2.2"), source("fd00::3")]), ips(&["192.0.2.2", "fd00::3"]));
        assert_eq!(choose(&assigned, [None, None]), ips(&["172.17.0.1", "fd00::2"]));
        assert_eq!(choose(&assigned, [source("198.51.100.9"), None]), ips(&["172.17.0.1", "fd00::2"]), "not assigned here");
        assert_eq!(choose(&ips(&["fe80::1", "fd00::2"]), [None, None]), ips(&["fd00::2"]));
        assert_eq!(choose(&ips(&["169.254.3.3", "fe80::1"]), [source("169.254.3.3"), source("fe80::1")]), ips(&[]));
        assert_eq!(choose(&ips(&["fd70:6f64:7374::1"]), [None, None]), ips(&[]), "the host as its own pods see it");
        assert_eq!(choose(&[], [None, None]), ips(&[]));
    }

    #[test]
    fn this_host_can_be_asked() {
        let ips = host_ips().unwrap();
        assert!(ips.len() <= 2 && ips.iter().all(is_global), "{ips:?}");
    }
}
