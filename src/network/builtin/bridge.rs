//! The bridge of pods where `network.mode` is bridge: the host's ends of their interfaces are its ports.
//!
//! ```text
//!   pod: eth0  10.201.0.7/20, fd70:...:7/64    default via 169.254.0.1, fe80::1   (these neighbours are fixed)
//!    |
//!   host: ps-7 --port of--> ps-br  169.254.0.1/32, fe80::1/64, fd70:...:1/128   routes to 10.201.0.0/20 and fd70:...:/64
//! ```

use super::lease::Lease;
use super::links::{LinkError, alias, delete, find};
use super::names::{GATEWAY_V4, GATEWAY_V6, NEXT_HOP_V6, Names, bridge_mac};
use podstead_settings::AddressRange;
use podstead_sys::netlink::rtnetlink::{self, Ipv4Setting, LO, Link, LinkSettings, Route};
use podstead_sys::netlink::{NetlinkSocket, Protocol, Request};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kind of the interface in the kernel.
const KIND: &str = "bridge";

/// The bridge's index. It is made if it is not there; what is missing of a bridge that is there is for [`restore`].
pub(super) fn present(names: &Names, ranges: &[AddressRange]) -> Result<u32, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    match own(names, &mut host)? {
        Some(bridge) => Ok(bridge.index),
        None => restore(names, ranges),
    }
}

/// Makes the bridge as it shall be, with the interfaces of all pods as its ports. What is so already stays; its index.
pub(super) fn restore(names: &Names, ranges: &[AddressRange]) -> Result<u32, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let index = match own(names, &mut host)? {
        Some(bridge) => bridge.index,
        None => {
            let mut request = Request::new();
            rtnetlink::make_bridge(&mut request, &names.bridge(), bridge_mac(), names.group);
            host.transact(&request, |_| {}).map_err(LinkError::Host)?;
            own(names, &mut host)?.ok_or_else(|| LinkError::Foreign(names.bridge()))?.index
        }
    };
    host.transact(&host_side(ranges, index), |_| {}).map_err(LinkError::Host)?;
    for link in super::links::list(names)? {
        let mut request = Request::new();
        rtnetlink::attach_to_bridge(&mut request, link.index, index);
        match host.transact(&request, |_| {}) {
            // Its pod has just gone.
            Err(error) if !error.is_not_found() => return Err(LinkError::Host(error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(index)
}

/// Removes the bridge, if there is one. Whether there was.
pub(super) fn remove(names: &Names) -> Result<bool, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let found = find(&mut host, &names.bridge()).map_err(LinkError::Host)?;
    let Some(bridge) = found.filter(|link| is_own(names, link)) else { return Ok(false) };
    delete(&mut host, bridge.index).map_err(LinkError::Host)?;
    Ok(true)
}

/// Has the host forget which hardware address a pod that is gone had there: nobody answers for its addresses any more. What is not known is success.
pub(super) fn forget_neighbours(names: &Names, addresses: &[IpAddr]) -> Result<(), LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let Some(bridge) = own(names, &mut host)? else { return Ok(()) };
    for address in addresses {
        let mut request = Request::new();
        rtnetlink::forget_neighbour(&mut request, bridge.index, *address);
        match host.transact(&request, |_| {}) {
            Err(error) if !error.is_not_found() => return Err(LinkError::Host(error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn own(names: &Names, host: &mut NetlinkSocket) -> Result<Option<Link>, LinkError> {
    match find(host, &names.bridge()).map_err(LinkError::Host)? {
        Some(link) if !is_own(names, &link) => Err(LinkError::Foreign(link.name)),
        found => Ok(found),
    }
}

fn is_own(names: &Names, link: &Link) -> bool {
    link.group == names.group && link.kind.as_deref() == Some(KIND)
}

/// Settings of the bridge itself (pure).
fn host_side(ranges: &[AddressRange], index: u32) -> Request {
    let mut request = Request::new();
    let settings = [
        (Ipv4Setting::Forwarding, 1),
        (Ipv4Setting::SendRedirects, 0),
        (Ipv4Setting::RpFilter, 1),
        // Some pod may have a port of 127.0.0.1. What pods send there is dropped.
        (Ipv4Setting::RouteLocalnet, 1),
    ];
    let without_own_ipv6 = ranges.iter().any(|range| !range.is_ipv4());
    let settings = LinkSettings { alias: "podstead: pods", ipv4: &settings, without_own_ipv6 };
    rtnetlink::set_up_link(&mut request, index, settings);
    rtnetlink::switch_on(&mut request, index);
    for range in ranges {
        let (gateway, prefix) = match range.is_ipv4() {
            true => (IpAddr::from(GATEWAY_V4), 32),
            false => (IpAddr::from(GATEWAY_V6), 128),
        };
        rtnetlink::add_address(&mut request, index, gateway, prefix);
        if !range.is_ipv4() {
            rtnetlink::add_address(&mut request, index, NEXT_HOP_V6.into(), 64);
        }
        if let Some(network) = range.nth(0) {
            rtnetlink::add_route(&mut request, Route { to: (network, range.prefix()), via: None, interface: index });
        }
    }
    request
}

/// Settings of the host's end of a pod's interface (pure).
pub(super) fn port_side(lease: &Lease, index: u32, bridge: u32) -> Request {
    let mut request = Request::new();
    let without_own_ipv6 = lease.addresses.iter().any(IpAddr::is_ipv6);
    rtnetlink::set_up_link(&mut request, index, LinkSettings { alias: &alias(lease), ipv4: &[], without_own_ipv6 });
    rtnetlink::attach_to_bridge(&mut request, index, bridge);
    rtnetlink::switch_on(&mut request, index);
    request
}

/// Settings of the pod's end (pure).
pub(super) fn pod_side(lease: &Lease, index: u32, ranges: &[AddressRange]) -> Request {
    let mut request = Request::new();
    rtnetlink::switch_on(&mut request, LO);
    rtnetlink::switch_on(&mut request, index);
    for address in &lease.addresses {
        let range = ranges.iter().find(|range| range.contains(*address));
        // An address of an earlier range has no neighbours.
        let prefix = range.map_or(if address.is_ipv4() { 32 } else { 128 }, AddressRange::prefix);
        rtnetlink::add_address(&mut request, index, *address, prefix);
        let (gateway, everywhere) = match address {
            IpAddr::V4(_) => (IpAddr::from(GATEWAY_V4), IpAddr::from(Ipv4Addr::UNSPECIFIED)),
            IpAddr::V6(_) => (IpAddr::from(NEXT_HOP_V6), IpAddr::from(Ipv6Addr::UNSPECIFIED)),
        };
        if gateway.is_ipv4() {
            rtnetlink::add_route(&mut request, Route { to: (gateway, 32), via: None, interface: index });
        }
        rtnetlink::add_route(&mut request, Route { to: (everywhere, 0), via: Some(gateway), interface: index });
        rtnetlink::add_neighbour(&mut request, index, gateway, bridge_mac());
    }
    request
}
