//! Recovery of a lease with an unreadable record from the interface of its pod.

use super::lease::{Facts, Lease};
use super::links::{self, LinkError};
use super::names::{Names, POD_INTERFACE};
use podstead_pod::{PodFullName, PodUid};
use podstead_settings::AddressRange;
use podstead_sys::layout::Paths;
use podstead_sys::netlink::rtnetlink::{self, Link};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::fs::File;
use std::io;
use std::net::IpAddr;

/// Lease of a pod; `None` for one without interface. `ranges` are those that pods may have addresses from.
pub(super) fn lease(names: &Names, paths: &Paths, uid: &PodUid, ranges: &[AddressRange]) -> Result<Option<Lease>, LinkError> {
    let path = paths.namespaces(uid).join("net");
    let netns = match File::open(&path) {
        Ok(netns) => netns,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LinkError::Namespace { path, source }),
    };
    let mut pod = NetlinkSocket::open_in(&netns, Protocol::Route).map_err(LinkError::Pod)?;
    let Some(there) = links::find(&mut pod, POD_INTERFACE).map_err(LinkError::Pod)? else { return Ok(None) };
    let Some(here) = links::list(names)?.into_iter().find(|here| links::is_pair(here, &there)) else { return Ok(None) };
    let routes = routes_to(here.index).map_err(LinkError::Host)?;
    let inside = addresses_of(&mut pod, there.index).map_err(LinkError::Pod)?;
    Ok(described(names, uid, &here, routes, &inside, ranges))
}

/// Lease from the host's end and the addresses (pure). The pod may have given itself others: what counts is where the host's routes lead,
/// and of a pod on a bridge, which has none, the addresses that belong to its number.
fn described(
    names: &Names,
    uid: &PodUid,
    here: &Link,
    routes: Vec<IpAddr>,
    inside: &[IpAddr],
    ranges: &[AddressRange],
) -> Option<Lease> {
    let slot = names.slot(&here.name)?;
    let mut addresses = routes;
    if addresses.is_empty() {
        addresses.extend(ranges.iter().filter_map(|range| range.nth(slot)).filter(|address| inside.contains(address)));
    }
    if addresses.is_empty() {
        return None;
    }
    addresses.sort_by_key(IpAddr::is_ipv6);
    let unknown = || PodFullName { namespace: "default".to_owned(), name: uid.to_string() };
    let pod = here.alias.as_deref().and_then(links::pod_of).unwrap_or_else(unknown);
    // Its worker tells at once what else it has. If others had been kept away from it, they are until then.
    let facts = Facts::default();
    Some(Lease { pod, slot: Some(slot), addresses, ports: Vec::new(), is_isolated: true, facts, holds_ports: false })
}

/// Single addresses that podstead's routes reach by an interface of the host.
fn routes_to(index: u32) -> Result<Vec<IpAddr>, NetlinkError> {
    let mut request = Request::new();
    rtnetlink::list_routes(&mut request);
    let mut found = Vec::new();
    NetlinkSocket::open(Protocol::Route)?.dump(&request, |answer| {
        let route = rtnetlink::route(&answer).filter(|route| route.interface == index && route.is_single());
        // The kernel's own lead to the host's addresses.
        let route = route.filter(|route| !route.is_on_link);
        found.extend(route.map(|route| route.network));
    })?;
    Ok(found)
}

fn addresses_of(pod: &mut NetlinkSocket, index: u32) -> Result<Vec<IpAddr>, NetlinkError> {
    let mut request = Request::new();
    rtnetlink::list_addresses(&mut request);
    let mut found = Vec::new();
    pod.dump(&request, |answer| {
        let address = rtnetlink::address(&answer).filter(|address| address.interface == index);
        found.extend(address.map(|address| address.network));
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_lease_is_what_the_interface_says() {
        let names = Names::new(None);
        let link = |alias: Option<&str>| Link { name: names.interface(0x1f), alias: alias.map(str::to_owned), ..Link::default() };
        let uid = PodUid::new("uid");
        let here = link(Some("podstead: shop/db"));
        let ranges = ["10.201.0.0/20".parse().unwrap(), "fd70:6f64:7374:1::/64".parse().unwrap()];
        let routed = described(&names, &uid, &here, ips(&["fd70:6f64:7374:1::1f", "10.9.0.31"]), &[], &ranges).unwrap();
        assert_eq!((routed.slot, routed.addresses), (Some(0x1f), ips(&["10.9.0.31", "fd70:6f64:7374:1::1f"])));
        assert_eq!(routed.pod, PodFullName { namespace: "shop".into(), name: "db".into() });
        assert!(routed.is_isolated && routed.ports.is_empty());
        let inside = ips(&["10.201.0.31", "10.201.0.1", "fe80::1"]);
        let bridged = described(&names, &uid, &link(None), Vec::new(), &inside, &ranges).unwrap();
        assert_eq!((bridged.addresses, bridged.pod.name), (ips(&["10.201.0.31"]), "uid".to_owned()), "not one that it took");
        assert_eq!(described(&names, &uid, &here, Vec::new(), &[], &ranges), None);
        let bridge = Link { name: names.bridge(), ..Link::default() };
        assert_eq!(described(&names, &uid, &bridge, ips(&["10.201.0.31"]), &[], &ranges), None);
    }
}
