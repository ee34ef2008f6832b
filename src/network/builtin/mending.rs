//! Repair of pod interfaces that were removed, switched off or emptied: the host's end is completed, and a pod without its interface is set up
//! anew by its worker.

use super::Shared;
use super::lease::Lease;
use super::links::{self, LinkError, Wanted};
use super::names::{GATEWAY_V4, GATEWAY_V6, NEXT_HOP_V6, Names};
use podstead_pod::PodUid;
use podstead_sys::netlink::rtnetlink::{self, Link, Reached, UP};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventType, Subject};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Present state of the host's ends of all pod interfaces.
#[derive(Debug, Default)]
struct HostEnds {
    links: Vec<Link>,
    /// By index of the interface.
    addresses: BTreeSet<(u32, IpAddr)>,
    /// To one address each, by index of the interface.
    routes: BTreeSet<(u32, IpAddr)>,
}

/// State of a pod's interface on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostEnd {
    Whole,
    /// Something of it is missing; its index.
    Incomplete(u32),
    Gone,
}

impl HostEnds {
    fn look(names: &Names) -> Result<Self, LinkError> {
        let mut ends = Self { links: links::list(names)?, ..Self::default() };
        ends.look_closer().map_err(LinkError::Host)?;
        Ok(ends)
    }

    fn look_closer(&mut self) -> Result<(), NetlinkError> {
        let mut host = NetlinkSocket::open(Protocol::Route)?;
        let is_own = |index: u32| self.links.iter().any(|link| link.index == index);
        let mut request = Request::new();
        rtnetlink::list_addresses(&mut request);
        host.dump(&request, |answer| {
            let address = rtnetlink::address(&answer).filter(|address| is_own(address.interface));
            self.addresses.extend(address.map(|address| (address.interface, address.network)));
        })?;
        let mut request = Request::new();
        rtnetlink::list_routes(&mut request);
        host.dump(&request, |answer| {
            let route = rtnetlink::route(&answer).filter(|route| is_own(route.interface));
            let route = route.filter(Reached::is_single);
            self.routes.extend(route.map(|route| (route.interface, route.network)));
        })
    }

    /// Pure. `is_port` says that it is one of a bridge, which has the addresses and routes then.
    fn of(&self, names: &Names, slot: u32, addresses: &[IpAddr], is_port: bool) -> HostEnd {
        let name = names.interface(slot);
        let Some(Link { index, flags, .. }) = self.links.iter().find(|link| link.name == name) else { return HostEnd::Gone };
        let has = |address: IpAddr| self.addresses.contains(&(*index, address));
        let has_gateway = |address: &IpAddr| match address {
            IpAddr::V4(_) => has(GATEWAY_V4.into()),
            IpAddr::V6(_) => has(GATEWAY_V6.into()) && has(NEXT_HOP_V6.into()),
        };
        let leads_there = |address: &IpAddr| self.routes.contains(&(*index, *address));
        let is_whole = flags & UP != 0 && (is_port || addresses.iter().all(|address| has_gateway(address) && leads_there(address)));
        if is_whole { HostEnd::Whole } else { HostEnd::Incomplete(*index) }
    }
}

impl Shared {
    /// Looks whether all pods that were connected still are. `bridge` is its index, if they are on one.
    pub(super) fn look_at_interfaces(&self, bridge: Option<u32>) {
        let connected: Vec<(PodUid, Lease)> = {
            let state = self.state();
            let lease = |uid: &PodUid| Some((uid.clone(), state.leases.get(uid)?.clone()));
            state.connected.iter().filter_map(lease).collect()
        };
        if connected.is_empty() {
            return;
        }
        let ends = match HostEnds::look(&self.names) {
            Ok(ends) => ends,
            Err(error) => return tracing::warn!(error = %error_chain(&error), "cannot list the interfaces of pods"),
        };
        for (uid, lease) in connected {
            let Some(slot) = lease.slot else { continue };
            match ends.of(&self.names, slot, &lease.addresses, bridge.is_some()) {
                HostEnd::Whole => {}
                HostEnd::Incomplete(index) => self.complete(&uid, &lease, slot, index, bridge),
                HostEnd::Gone => self.connect_anew(&uid, &lease, slot),
            }
        }
    }

    fn complete(&self, uid: &PodUid, lease: &Lease, slot: u32, index: u32, bridge: Option<u32>) {
        let reaches_loopback = self.reaches_loopback(lease);
        let wanted = Wanted { reaches_loopback, mtu: None, bridge: bridge.map(|index| (index, &[][..])) };
        let consequence = match links::restore(lease, slot, index, wanted) {
            Ok(true) => "restored it".to_owned(),
            // The pod has just gone.
            Ok(false) => return,
            Err(error) => format!("cannot restore it: {}", error_chain(&error)),
        };
        let name = self.names.interface(slot);
        let message = format!("interface {name} of the host was down, or lacked addresses or routes; {consequence}");
        self.tell_of_pod(uid, lease, &message);
    }

    fn connect_anew(&self, uid: &PodUid, lease: &Lease, slot: u32) {
        // A teardown in the meantime takes precedence.
        if !self.state().connected.remove(uid) {
            return;
        }
        self.news().insert(uid.clone());
        let message = format!("interface {} is gone; reconnecting the pod", self.names.interface(slot));
        self.tell_of_pod(uid, lease, &message);
        // A daemon that ends hears nothing.
        self.links.pokes.send(uid.clone()).ok();
    }

    fn tell_of_pod(&self, uid: &PodUid, lease: &Lease, message: &str) {
        tracing::warn!(pod_uid = %uid, message, "network");
        let subject = Subject::Pod { uid: uid.clone(), full_name: lease.pod.clone(), field_path: None };
        self.links.events.record(&subject, EventType::Warning, "NetworkCheckFailed", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> (Names, HostEnds, Vec<IpAddr>) {
        let names = Names::new(None);
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let addresses = vec![ip("10.201.0.3"), ip("fd70:6f64:7374:1::3")];
        let ends = HostEnds {
            links: vec![Link { index: 7, name: names.interface(3), flags: UP, ..Link::default() }],
            addresses: [GATEWAY_V4.into(), GATEWAY_V6.into(), NEXT_HOP_V6.into()].map(|address| (7, address)).into(),
            routes: addresses.iter().map(|address| (7, *address)).collect(),
        };
        (names, ends, addresses)
    }

    #[test]
    fn what_is_missing_of_a_pods_interface_is_noticed() {
        let (names, ends, addresses) = whole();
        assert_eq!(ends.of(&names, 3, &addresses, false), HostEnd::Whole);
        assert_eq!(ends.of(&names, 4, &addresses, false), HostEnd::Gone);
        let without = |change: &dyn Fn(&mut HostEnds)| {
            let (names, mut ends, addresses) = whole();
            change(&mut ends);
            ends.of(&names, 3, &addresses, false)
        };
        assert_eq!(without(&|ends| ends.links[0].flags = 0), HostEnd::Incomplete(7));
        for address in [IpAddr::from(GATEWAY_V4), GATEWAY_V6.into(), NEXT_HOP_V6.into()] {
            assert_eq!(without(&|ends| ends.addresses.retain(|has| *has != (7, address))), HostEnd::Incomplete(7), "{address}");
        }
        for address in addresses {
            assert_eq!(without(&|ends| ends.routes.retain(|has| *has != (7, address))), HostEnd::Incomplete(7), "{address}");
        }
    }

    #[test]
    fn a_port_of_a_bridge_needs_no_addresses_and_a_pod_without_ipv6_none_of_ipv6() {
        let (names, ends, addresses) = whole();
        let bare = HostEnds { addresses: BTreeSet::new(), routes: BTreeSet::new(), ..ends };
        assert_eq!(bare.of(&names, 3, &addresses, true), HostEnd::Whole);
        assert_eq!(bare.of(&names, 3, &addresses, false), HostEnd::Incomplete(7));
        let (names, mut ends, addresses) = whole();
        ends.addresses.retain(|(_, address)| address.is_ipv4());
        assert_eq!(ends.of(&names, 3, &addresses[..1], false), HostEnd::Whole);
    }
}
