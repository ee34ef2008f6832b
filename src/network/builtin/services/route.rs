//! The route to the range of Services (R5), and routing of 127.0.0.1 to pods behind NodePorts (S10).

use super::super::names::{GATEWAY_V4, GATEWAY_V6};
use super::ServiceRanges;
use podstead_service::range::Family;
use podstead_sys::netlink::rtnetlink::{Route, add_route_from};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::fs;
use std::io;
use std::net::IpAddr;

/// `lo`.
const LOOPBACK: u32 = 1;

/// Makes the routes through `lo`, so that the host may connect to Services without a default route. The kernel refuses while no interface has the
/// source address; the interface of the first pod brings it, and the routes go with that of the last one.
pub(in super::super) fn keep(ranges: ServiceRanges) -> Result<(), NetlinkError> {
    let mut request = Request::new();
    for range in ranges.iter() {
        let source: IpAddr = match range.family() {
            Family::V4 => GATEWAY_V4.into(),
            Family::V6 => GATEWAY_V6.into(),
        };
        let route = Route { to: (range.first(), range.prefix()), via: None, interface: LOOPBACK };
        add_route_from(&mut request, route, Some(source));
    }
    if ranges.is_empty() { Ok(()) } else { NetlinkSocket::open(Protocol::Route)?.transact(&request, |_| {}) }
}

/// Lets packets of 127.0.0.0/8 pass an interface. What pods send to these addresses is dropped by the rules.
pub(in super::super) fn reach_from_loopback(interface: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv4/conf/{interface}/route_localnet"), "1")
}
