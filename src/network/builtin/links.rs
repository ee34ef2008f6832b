//! A pod's interface: a pair of which one end is in the pod, with addresses and routes on both sides; or, on a bridge, in the pod only.
//!
//! ```text
//!   pod: eth0  10.201.0.7/32, fd70:...:7/128   default via 169.254.0.1, fe80::1   (neighbours are fixed)
//!    |
//!   host: ps-7  169.254.0.1/32, fe80::1/64, fd70:...:1/128   route to 10.201.0.7/32 and fd70:...:7/128
//! ```

use super::bridge;
use super::lease::Lease;
use super::names::{GATEWAY_V4, GATEWAY_V6, NEXT_HOP_V6, Names, POD_INTERFACE, gateway, macs};
use podstead_pod::PodFullName;
use podstead_settings::AddressRange;
use podstead_sys::netlink::rtnetlink::{self, Ipv4Setting, LO, Link, LinkSettings, Route, VethEnd};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Reason why a pod is not connected.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// Its namespace cannot be opened.
    #[error("open network namespace {}", path.display())]
    Namespace {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The kernel refused on the host's side.
    #[error("set up the pod's interface on the host")]
    Host(#[source] NetlinkError),
    /// The kernel refused on the pod's side.
    #[error("set up the interface in the pod's namespace")]
    Pod(#[source] NetlinkError),
    /// The interface does not belong to podstead.
    #[error("the host's interface {0} does not belong to podstead")]
    Foreign(String),
}

/// The indexes of both ends.
#[derive(Clone, Copy, Debug)]
struct Pair {
    here: u32,
    there: u32,
}

/// Settings of a pod's interface beside its lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Ports at 127.0.0.1 of the host lead to the pod.
    pub(super) reaches_loopback: bool,
    /// Largest packet, for an interface that is made.
    pub(super) mtu: Option<u32>,
    /// The index of the bridge that it is to be on, and the ranges of its neighbours there; `None` if the host routes.
    pub(super) bridge: Option<(u32, &'a [AddressRange])>,
}

/// Connects a pod as its lease says. What is there already stays as it is, and so do connections through it.
pub(super) fn connect(names: &Names, lease: &Lease, slot: u32, netns: &Path, wanted: Wanted<'_>) -> Result<(), LinkError> {
    let netns = File::open(netns).map_err(|source| LinkError::Namespace { path: netns.to_owned(), source })?;
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    // Most often there is nothing yet, and no question is cheaper than none.
    let (pod, made) =
        NetlinkSocket::open_in_beside(&netns, Protocol::Route, || make_pair(names, slot, &mut host, &netns, wanted.mtu));
    let mut pod = pod.map_err(LinkError::Pod)?;
    let made = match made {
        Err(LinkError::Host(error)) if error.errno() == Some(libc::EEXIST) => {
            match living_pair(names, slot, &mut host, &mut pod)? {
                Some(pair) => Some(pair),
                None => make_pair(names, slot, &mut host, &netns, wanted.mtu)?,
            }
        }
        made => made?,
    };
    let pair = match made {
        Some(pair) => pair,
        None => both_ends(names, slot, &mut host, &mut pod)?,
    };
    let (here, there) = match wanted.bridge {
        None => (host_side(lease, slot, pair.here, wanted.reaches_loopback), pod_side(lease, slot, pair.there)),
        Some((bridge, ranges)) => (bridge::port_side(lease, pair.here, bridge), bridge::pod_side(lease, pair.there, ranges)),
    };
    host.transact(&here, |_| {}).map_err(LinkError::Host)?;
    pod.transact(&there, |_| {}).map_err(LinkError::Pod)
}

/// Gives the host's end of a pod's interface again what it shall have. Whether it is still there.
pub(super) fn restore(lease: &Lease, slot: u32, index: u32, wanted: Wanted<'_>) -> Result<bool, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let here = match wanted.bridge {
        None => host_side(lease, slot, index, wanted.reaches_loopback),
        Some((bridge, _)) => bridge::port_side(lease, index, bridge),
    };
    match host.transact(&here, |_| {}) {
        Err(error) if error.is_not_found() => Ok(false),
        done => done.map(|()| true).map_err(LinkError::Host),
    }
}

/// Returns true if the pod with this namespace has its interface.
pub(super) fn is_connected(names: &Names, slot: u32, netns: &Path) -> Result<bool, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let Some(here) = find(&mut host, &names.interface(slot)).map_err(LinkError::Host)? else { return Ok(false) };
    let netns = File::open(netns).map_err(|source| LinkError::Namespace { path: netns.to_owned(), source })?;
    let mut pod = NetlinkSocket::open_in(&netns, Protocol::Route).map_err(LinkError::Pod)?;
    let there = find(&mut pod, POD_INTERFACE).map_err(LinkError::Pod)?;
    Ok(there.is_some_and(|there| is_pair(&here, &there)))
}

/// The host's ends of all interfaces of pods.
pub(super) fn list(names: &Names) -> Result<Vec<Link>, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let mut request = Request::new();
    rtnetlink::list_links(&mut request);
    let mut links = Vec::new();
    host.dump(&request, |answer| links.extend(rtnetlink::link(&answer).filter(|link| is_own(names, link))))
        .map_err(LinkError::Host)?;
    Ok(links)
}

/// The host's end of a pod's interface.
pub(super) fn find_host_end(names: &Names, slot: u32) -> Result<Option<Link>, LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    let link = find(&mut host, &names.interface(slot)).map_err(LinkError::Host)?;
    Ok(link.filter(|link| is_own(names, link)))
}

/// Removes an interface by its index, which no other one gets. One that is not there is success.
pub(super) fn remove(index: u32) -> Result<(), LinkError> {
    let mut host = NetlinkSocket::open(Protocol::Route).map_err(LinkError::Host)?;
    delete(&mut host, index).map_err(LinkError::Host)
}

fn is_own(names: &Names, link: &Link) -> bool {
    link.group == names.group && link.name.starts_with(&names.prefix) && link.name != names.bridge()
}

pub(super) fn find(socket: &mut NetlinkSocket, name: &str) -> Result<Option<Link>, NetlinkError> {
    let mut request = Request::new();
    rtnetlink::get_link(&mut request, name);
    let mut found = None;
    match socket.transact(&request, |answer| found = rtnetlink::link(&answer).or(found.take())) {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(found),
    }
}

pub(super) fn delete(socket: &mut NetlinkSocket, index: u32) -> Result<(), NetlinkError> {
    let mut request = Request::new();
    rtnetlink::delete_link(&mut request, index);
    match socket.transact(&request, |_| {}) {
        Err(error) if !error.is_not_found() => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Two ends know each other's index, which is unique in its namespace only; names and group of the host's end do the rest.
pub(super) fn is_pair(here: &Link, there: &Link) -> bool {
    here.peer == Some(there.index) && there.peer == Some(here.index)
}

/// The pair, if it is whole. What is left of another one is removed.
fn living_pair(names: &Names, slot: u32, host: &mut NetlinkSocket, pod: &mut NetlinkSocket) -> Result<Option<Pair>, LinkError> {
    let name = names.interface(slot);
    let here = find(host, &name).map_err(LinkError::Host)?;
    if here.as_ref().is_some_and(|here| here.group != names.group) {
        return Err(LinkError::Foreign(name));
    }
    let there = find(pod, POD_INTERFACE).map_err(LinkError::Pod)?;
    if let (Some(here), Some(there)) = (&here, &there)
        && is_pair(here, there)
    {
        return Ok(Some(Pair { here: here.index, there: there.index }));
    }
    if let Some(here) = here {
        delete(host, here.index).map_err(LinkError::Host)?;
    }
    if let Some(there) = there {
        delete(pod, there.index).map_err(LinkError::Pod)?;
    }
    Ok(None)
}

/// Creates the pair; `None` if the kernel reported only one end.
fn make_pair(
    names: &Names,
    slot: u32,
    host: &mut NetlinkSocket,
    netns: &File,
    mtu: Option<u32>,
) -> Result<Option<Pair>, LinkError> {
    let (name, (host_mac, pod_mac)) = (names.interface(slot), macs(slot));
    let mut request = Request::new();
    let here = VethEnd { name: &name, mac: host_mac };
    let there = VethEnd { name: POD_INTERFACE, mac: pod_mac };
    rtnetlink::make_veth(&mut request, here, names.group, there, netns.as_raw_fd(), mtu);
    rtnetlink::get_link(&mut request, &name);
    let mut made = None;
    host.transact(&request, |answer| made = rtnetlink::link(&answer).or(made.take())).map_err(LinkError::Host)?;
    Ok(made.and_then(|link| Some(Pair { here: link.index, there: link.peer? })))
}

/// The new pair, on a kernel that does not report the index of the other end.
fn both_ends(names: &Names, slot: u32, host: &mut NetlinkSocket, pod: &mut NetlinkSocket) -> Result<Pair, LinkError> {
    let name = names.interface(slot);
    let missing = || LinkError::Foreign(name.clone());
    let here = find(host, &name).map_err(LinkError::Host)?.ok_or_else(missing)?.index;
    let there = find(pod, POD_INTERFACE).map_err(LinkError::Pod)?.ok_or_else(missing)?.index;
    Ok(Pair { here, there })
}

/// Prefix of the description of a pod's interface.
const ALIAS: &str = "podstead: ";

/// Description of the host's end (pure).
pub(super) fn alias(lease: &Lease) -> String {
    format!("{ALIAS}{}/{}", lease.pod.namespace, lease.pod.name)
}

/// The pod that a description is about (pure).
pub(super) fn pod_of(alias: &str) -> Option<PodFullName> {
    let (namespace, name) = alias.strip_prefix(ALIAS)?.split_once('/')?;
    Some(PodFullName { namespace: namespace.to_owned(), name: name.to_owned() })
}

/// Settings of the host's end (pure).
fn host_side(lease: &Lease, slot: u32, index: u32, reaches_loopback: bool) -> Request {
    let mut request = Request::new();
    let (_, pod_mac) = macs(slot);
    let settings = [
        (Ipv4Setting::Forwarding, 1),
        (Ipv4Setting::SendRedirects, 0),
        // Packets of other sources are dropped even while the packet rules are away.
        (Ipv4Setting::RpFilter, 1),
        (Ipv4Setting::RouteLocalnet, u32::from(reaches_loopback)),
    ];
    let without_own_ipv6 = lease.addresses.iter().any(IpAddr::is_ipv6);
    rtnetlink::set_up_link(&mut request, index, LinkSettings { alias: &alias(lease), ipv4: &settings, without_own_ipv6 });
    rtnetlink::switch_on(&mut request, index);
    for address in &lease.addresses {
        let (gateway, prefix) = match address {
            IpAddr::V4(_) => (IpAddr::from(GATEWAY_V4), 32),
            IpAddr::V6(_) => (IpAddr::from(GATEWAY_V6), 128),
        };
        rtnetlink::add_address(&mut request, index, gateway, prefix);
        if address.is_ipv6() {
            rtnetlink::add_address(&mut request, index, NEXT_HOP_V6.into(), 64);
        }
        rtnetlink::add_route(&mut request, Route { to: (*address, prefix), via: None, interface: index });
        rtnetlink::add_neighbour(&mut request, index, *address, pod_mac);
    }
    request
}

/// Settings of the pod's end (pure).
fn pod_side(lease: &Lease, slot: u32, index: u32) -> Request {
    let mut request = Request::new();
    let (host_mac, _) = macs(slot);
    rtnetlink::switch_on(&mut request, LO);
    rtnetlink::switch_on(&mut request, index);
    for address in &lease.addresses {
        rtnetlink::add_address(&mut request, index, *address, if address.is_ipv4() { 32 } else { 128 });
        match gateway(*address) {
            gateway @ IpAddr::V4(_) => {
                rtnetlink::add_route(&mut request, Route { to: (gateway, 32), via: None, interface: index });
                let everywhere = (Ipv4Addr::UNSPECIFIED.into(), 0);
                rtnetlink::add_route(&mut request, Route { to: everywhere, via: Some(gateway), interface: index });
                rtnetlink::add_neighbour(&mut request, index, gateway, host_mac);
            }
            IpAddr::V6(_) => {
                let everywhere = (Ipv6Addr::UNSPECIFIED.into(), 0);
                rtnetlink::add_route(&mut request, Route { to: everywhere, via: Some(NEXT_HOP_V6.into()), interface: index });
                rtnetlink::add_neighbour(&mut request, index, NEXT_HOP_V6.into(), host_mac);
            }
        }
    }
    request
}
