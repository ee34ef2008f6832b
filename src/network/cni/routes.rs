//! A pod's default routes, where it asks for them on another interface than its first one (`default-route`).
//!
//! ```text
//!   what leads to other pods and the host by the first interface ---> the new default route ---> the others away
//! ```

use podstead_pod::networks::FIRST_INTERFACE;
use podstead_runtime::OwnRoute;
use podstead_sys::netlink::rtnetlink::{self, DefaultRoute, Link, Route};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Reason why the default routes cannot be set.
#[derive(Debug, thiserror::Error)]
pub(super) enum RouteError {
    /// The namespace is gone.
    #[error("open network namespace {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The interface is gone.
    #[error("the pod has no interface {0}")]
    NoInterface(String),
    /// `default-route: []`, and plugins made none.
    #[error("default-route names no gateway, and no plugin created a default route on interface {0}")]
    NoRoute(String),
    /// The kernel refused.
    #[error("set the default route of interface {interface}")]
    Kernel {
        interface: String,
        #[source]
        source: NetlinkError,
    },
}

/// Default routes of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lead {
    /// Name of the interface in the pod.
    pub(super) interface: String,
    /// Routers, at most one of each family; none: those that plugins gave it.
    pub(super) gateways: Vec<IpAddr>,
}

/// Required changes of routes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    add: Vec<IpAddr>,
    remove: Vec<DefaultRoute>,
}

/// From the routes that are there (pure). Families that the lead says nothing about stay as they are.
fn changes(routes: &[DefaultRoute], index: u32, gateways: &[IpAddr]) -> Changes {
    let mut changes = Changes::default();
    for is_ipv4 in [true, false] {
        let of_family = || routes.iter().filter(|route| route.is_ipv4 == is_ipv4);
        let gateway = gateways.iter().copied().find(|gateway| gateway.is_ipv4() == is_ipv4);
        let is_wanted = |route: &&DefaultRoute| route.interface == index && (gateways.is_empty() || route.via == gateway);
        let has_it = of_family().any(|route| is_wanted(&route));
        match gateway {
            None if !gateways.is_empty() || !has_it => continue,
            Some(gateway) if !has_it => changes.add.push(gateway),
            Some(_) | None => {}
        }
        changes.remove.extend(of_family().filter(|route| !is_wanted(route)));
    }
    changes
}

/// The interfaces and default routes of a pod.
struct Seen {
    socket: NetlinkSocket,
    links: Vec<Link>,
    routes: Vec<DefaultRoute>,
}

impl Seen {
    fn look(netns: &Path, interface: &str) -> Result<Self, RouteError> {
        let file = File::open(netns).map_err(|source| RouteError::Open { path: netns.to_owned(), source })?;
        let kernel = |source| RouteError::Kernel { interface: interface.to_owned(), source };
        let mut socket = NetlinkSocket::open_in(&file, Protocol::Route).map_err(kernel)?;
        let (mut links, mut routes) = (Vec::new(), Vec::new());
        let mut request = Request::new();
        rtnetlink::list_links(&mut request);
        socket.dump(&request, |answer| links.extend(rtnetlink::link(&answer))).map_err(kernel)?;
        let mut request = Request::new();
        rtnetlink::list_routes(&mut request);
        socket.dump(&request, |answer| routes.extend(rtnetlink::whole_default_route(&answer))).map_err(kernel)?;
        Ok(Self { socket, links, routes })
    }

    fn index(&self, interface: &str) -> Option<u32> {
        self.links.iter().find(|link| link.name == interface).map(|link| link.index)
    }
}

const fn everywhere(gateway: IpAddr) -> (IpAddr, u8) {
    match gateway {
        IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        IpAddr::V6(_) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}

/// Returns true if the pod's default routes are as they should be. Blocks.
pub(super) fn is_led(netns: &Path, lead: &Lead) -> Result<bool, RouteError> {
    let seen = Seen::look(netns, &lead.interface)?;
    Ok(seen.index(&lead.interface).is_some_and(|index| changes(&seen.routes, index, &lead.gateways) == Changes::default()))
}

/// Makes the pod's default routes those of an interface; `own` stays with the first interface. Idempotent. Blocks.
pub(super) fn lead(netns: &Path, lead: &Lead, own: &[OwnRoute]) -> Result<(), RouteError> {
    let Lead { interface, gateways } = lead;
    let mut seen = Seen::look(netns, interface)?;
    let kernel = |source| RouteError::Kernel { interface: interface.clone(), source };
    let index = seen.index(interface).ok_or_else(|| RouteError::NoInterface(interface.clone()))?;
    if gateways.is_empty() && !seen.routes.iter().any(|route| route.interface == index) {
        return Err(RouteError::NoRoute(interface.clone()));
    }
    let Changes { add, remove } = changes(&seen.routes, index, gateways);
    let mut request = Request::new();
    if let Some(first) = seen.index(FIRST_INTERFACE).filter(|first| *first != index) {
        for (to, via) in own {
            rtnetlink::add_route(&mut request, Route { to: *to, via: Some(*via), interface: first });
        }
    }
    for gateway in add {
        rtnetlink::add_route(&mut request, Route { to: everywhere(gateway), via: Some(gateway), interface: index });
    }
    if request.acknowledged() > 0 {
        seen.socket.transact(&request, |_| {}).map_err(kernel)?;
    }
    for route in remove {
        let mut request = Request::new();
        rtnetlink::delete_default_route(&mut request, route);
        match seen.socket.transact(&request, |_| {}) {
            // The new one has replaced it.
            Err(error) if !error.is_not_found() => return Err(kernel(error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Gives the first interface the default routes back that its plugins made, in families that have none. Blocks.
pub(super) fn give_back(netns: &Path, gateways: &[IpAddr]) -> Result<(), RouteError> {
    let mut seen = Seen::look(netns, FIRST_INTERFACE)?;
    let Some(index) = seen.index(FIRST_INTERFACE) else { return Ok(()) };
    let mut request = Request::new();
    for gateway in gateways {
        let is_ipv4 = gateway.is_ipv4();
        if !seen.routes.iter().any(|route| route.is_ipv4 == is_ipv4 && route.interface == index) {
            rtnetlink::add_route(&mut request, Route { to: everywhere(*gateway), via: Some(*gateway), interface: index });
        }
    }
    if request.acknowledged() == 0 {
        return Ok(());
    }
    let kernel = |source| RouteError::Kernel { interface: FIRST_INTERFACE.to_owned(), source };
    seen.socket.transact(&request, |_| {}).map_err(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(interface: u32, via: &str) -> DefaultRoute {
        let via: IpAddr = via.parse().unwrap();
        DefaultRoute { is_ipv4: via.is_ipv4(), interface, via: Some(via), metric: 0 }
    }

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_new_route_replaces_those_of_its_family() {
        let there = [route(2, "169.254.0.1"), route(2, "fe80::1")];
        let wanted = Changes { add: ips(&["10.7.0.1"]), remove: vec![there[0]] };
        assert_eq!(changes(&there, 3, &ips(&["10.7.0.1"])), wanted, "IPv6 stays");
        let after = [route(3, "10.7.0.1"), route(2, "fe80::1")];
        assert_eq!(changes(&after, 3, &ips(&["10.7.0.1"])), Changes::default(), "nothing is left to do");
        let other = Changes { add: ips(&["10.7.0.2"]), remove: vec![after[0]] };
        assert_eq!(changes(&after, 3, &ips(&["10.7.0.2"])), other, "another router on the same interface");
        let both = changes(&there, 3, &ips(&["10.7.0.1", "fd07::1"]));
        assert_eq!((both.add.len(), both.remove.len()), (2, 2));
    }

    #[test]
    fn without_a_router_the_routes_that_plugins_made_stay_alone() {
        let there = [route(2, "169.254.0.1"), route(3, "10.7.0.1"), route(2, "fe80::1")];
        assert_eq!(changes(&there, 3, &[]), Changes { add: Vec::new(), remove: vec![there[0]] });
        assert_eq!(changes(&there[..1], 3, &[]), Changes::default(), "there is none");
    }
}
