//! Addresses and ports that clients connect to, and the endpoints behind them, for packet rules: elements of sets and maps, and never a rule for one Service (R1).

mod difference;
mod elements;

#[cfg(test)]
mod tests;

pub use difference::{Change, Operation, difference, of_elements};
pub use elements::{Chain, Elements, Key, Value};

use crate::allocate::Grants;
use crate::definition::{Definition, Exposure, Role};
use crate::endpoints::{Endpoint, ServiceEndpoints, used};
use crate::name::ObjectName;
use crate::range::{Family, Subnet};
use podstead_pod::host_ports::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Endpoints behind one frontend (S28).
pub const MOST_ENDPOINTS: usize = 256;
/// Endpoints behind all frontends of the host (S28).
pub const MOST_ENDPOINTS_OF_HOST: usize = 25_000;

/// Services of which some endpoints are left out (S28).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excess {
    /// Those that have more than [`MOST_ENDPOINTS`].
    pub of_service: BTreeSet<ObjectName>,
    /// Those for whose new endpoints the host has no room ([`MOST_ENDPOINTS_OF_HOST`]).
    pub of_host: BTreeSet<ObjectName>,
}

/// A frontend on its way into the rules.
struct Wanted<'a> {
    service: &'a Definition,
    frontend: Frontend,
    /// Endpoints that are in the rules and stay.
    kept: BTreeSet<SocketAddr>,
    /// Endpoints that come.
    new: Vec<SocketAddr>,
    source_ranges: BTreeSet<Subnet>,
    elsewhere: BTreeSet<Socket>,
}

/// An address and a port that clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frontend {
    /// An address of a Service, or an address of the host that only some Services answer at (S11).
    Address(Socket),
    /// A port of all addresses of the host.
    Node(NodeSocket),
}

/// An address, a protocol and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Socket {
    /// Address.
    pub address: IpAddr,
    /// Protocol.
    pub protocol: Protocol,
    /// Port.
    pub port: u16,
}

/// A port of the host's addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSocket {
    /// Family.
    pub family: Family,
    /// Protocol.
    pub protocol: Protocol,
    /// Port.
    pub port: u16,
}

/// The endpoints behind a frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Endpoints, at least one; the place of each is its index in the kernel.
    pub endpoints: Arc<[SocketAddr]>,
    /// Seconds that a client stays bound to one of them, if it does (S20).
    pub affinity: Option<u32>,
    /// The clients that are answered; empty for all (S12).
    pub source_ranges: BTreeSet<Subnet>,
}

/// All frontends that have an endpoint. Who connects to an address of a Service and finds no frontend is refused (S19).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontends {
    // Shared by copies: who decides and who has them in the kernel keep them both.
    frontends: Arc<BTreeMap<Frontend, Backing>>,
    /// Endpoints that are not on this host: the source of packets to them is rewritten (S16).
    elsewhere: Arc<BTreeSet<Socket>>,
}

/// Endpoints by their index, seconds of bonds, and the clients that are answered, as the kernel has them.
type Found = (BTreeMap<u32, SocketAddr>, Option<u32>, BTreeSet<Subnet>);

/// A Service and the endpoints of its ports.
pub type Served<'a> = (&'a Definition, &'a ServiceEndpoints);

impl Frontends {
    /// The frontends that take the place of `self`. Endpoints that stay keep their index, so that few elements change (R1). Names also the Services
    /// of which some endpoints are left out: new ones, never one that is in the rules (S28).
    pub fn next<'a>(&self, services: impl IntoIterator<Item = Served<'a>>, grants: &Grants) -> (Self, Excess) {
        let (mut next, mut next_elsewhere, mut excess) = (BTreeMap::new(), BTreeSet::new(), Excess::default());
        let services = services.into_iter().filter(|(service, _)| service.has_packet_rules);
        let wanted: Vec<Wanted<'_>> = services.flat_map(|(service, endpoints)| self.wanted(service, endpoints, grants)).collect();
        let kept: usize = wanted.iter().map(|wanted| wanted.kept.len()).sum();
        let mut room = MOST_ENDPOINTS_OF_HOST.saturating_sub(kept);
        for Wanted { service, frontend, mut kept, mut new, source_ranges, elsewhere } in wanted {
            let room_of_service = MOST_ENDPOINTS.saturating_sub(kept.len());
            if new.len() > room_of_service {
                excess.of_service.insert(service.name.clone());
                new.truncate(room_of_service);
            }
            if new.len() > room {
                excess.of_host.insert(service.name.clone());
                new.truncate(room);
            }
            room -= new.len();
            kept.extend(new);
            let before = self.frontends.get(&frontend).map(|backing| &*backing.endpoints).unwrap_or_default();
            let endpoints = arrange(before, kept);
            if endpoints.is_empty() {
                continue;
            }
            let is_used = |socket: &Socket| endpoints.contains(&SocketAddr::new(socket.address, socket.port));
            next_elsewhere.extend(elsewhere.into_iter().filter(is_used));
            // `nft` 1.0.6 cannot load a listing with rules that bind clients over IPv6 (R4).
            let affinity = service.affinity.filter(|_| frontend.family() == Family::V4);
            let known = self.frontends.get(&frontend).filter(|backing| *backing.endpoints == *endpoints);
            let endpoints = known.map_or_else(|| endpoints.into(), |backing| Arc::clone(&backing.endpoints));
            next.insert(frontend, Backing { endpoints, affinity, source_ranges });
        }
        // A map that is filled in order is half empty; one that is made of another is not.
        next = next.into_iter().collect();
        (Self { frontends: Arc::new(next), elsewhere: Arc::new(next_elsewhere) }, excess)
    }

    /// The frontends of a Service with the endpoints that they shall have.
    fn wanted<'a>(&self, service: &'a Definition, endpoints: &ServiceEndpoints, grants: &Grants) -> Vec<Wanted<'a>> {
        let frontends = of_service(service, grants).into_iter();
        let wanted = frontends.map(|(frontend, index, source_ranges)| {
            let (protocol, family) = (frontend.protocol(), frontend.family());
            let list: Vec<&Endpoint> = endpoints.ports.get(index).into_iter().flat_map(|list| used(list, family)).collect();
            let sockets: BTreeSet<SocketAddr> = list.iter().map(|endpoint| endpoint.socket).collect();
            let before = self.frontends.get(&frontend).map(|backing| &*backing.endpoints).unwrap_or_default();
            let before: BTreeSet<SocketAddr> = before.iter().copied().collect();
            let elsewhere = list.iter().filter(|endpoint| endpoint.is_elsewhere);
            Wanted {
                service,
                frontend,
                kept: sockets.intersection(&before).copied().collect(),
                new: sockets.difference(&before).copied().collect(),
                source_ranges,
                elsewhere: elsewhere.map(|endpoint| Socket::of(endpoint.socket, protocol)).collect(),
            }
        });
        wanted.collect()
    }

    /// The frontends that elements in the kernel stand for. What lacks its endpoints, or ranges that it shall be limited to, is left out.
    pub fn recovered(elements: &Elements) -> Self {
        let (mut found, mut elsewhere) = (BTreeMap::new(), BTreeSet::new());
        let mut backings: BTreeMap<Frontend, Found> = BTreeMap::new();
        let (mut entries, mut fenced) = (BTreeSet::new(), BTreeSet::new());
        for (key, value) in elements {
            match (*key, *value) {
                (Key::Endpoint(socket, index), Value::Target(target)) => {
                    backings.entry(Frontend::Address(socket)).or_default().0.insert(index, target);
                }
                (Key::NodeEndpoint(socket, index), Value::Target(target)) => {
                    backings.entry(Frontend::Node(socket)).or_default().0.insert(index, target);
                }
                (Key::Sticky(socket), Value::Verdict(Chain::Remember(_, seconds))) => {
                    backings.entry(Frontend::Address(socket)).or_default().1 = Some(seconds);
                }
                (Key::StickyPort(socket), Value::Verdict(Chain::Remember(_, seconds))) => {
                    backings.entry(Frontend::Node(socket)).or_default().1 = Some(seconds);
                }
                (Key::SourceRange(socket, range), _) => {
                    backings.entry(Frontend::Node(socket)).or_default().2.insert(range);
                }
                (Key::Elsewhere(socket), _) => drop(elsewhere.insert(socket)),
                (Key::Service(socket), _) => drop(entries.insert(Frontend::Address(socket))),
                (Key::NodePort(socket), _) => drop(entries.insert(Frontend::Node(socket))),
                (Key::FencedPort(socket), _) => drop(fenced.insert(Frontend::Node(socket))),
                (Key::Endpoint(..) | Key::NodeEndpoint(..) | Key::Sticky(_) | Key::StickyPort(_), _) => {}
            }
        }
        for (frontend, (endpoints, affinity, source_ranges)) in backings {
            let is_limited = fenced.contains(&frontend) != source_ranges.is_empty();
            if entries.contains(&frontend) && !endpoints.is_empty() && is_limited {
                let endpoints = endpoints.into_values().collect();
                found.insert(frontend, Backing { endpoints, affinity, source_ranges });
            }
        }
        Self { frontends: Arc::new(found), elsewhere: Arc::new(elsewhere) }
    }

    /// These frontends, and of `earlier` ones the endpoints that are kept (R8).
    pub fn keeping(mut self, earlier: &Self, is_kept: impl Fn(&Frontend, IpAddr) -> bool) -> Self {
        let (frontends, used_elsewhere) = (Arc::make_mut(&mut self.frontends), Arc::make_mut(&mut self.elsewhere));
        for (frontend, before) in &*earlier.frontends {
            let kept = before.endpoints.iter().copied().filter(|endpoint| is_kept(frontend, endpoint.ip()));
            let kept: Vec<SocketAddr> = kept.collect();
            if kept.is_empty() {
                continue;
            }
            let elsewhere = kept.iter().map(|endpoint| Socket::of(*endpoint, frontend.protocol()));
            used_elsewhere.extend(elsewhere.filter(|socket| earlier.elsewhere.contains(socket)));
            let backing = frontends.entry(*frontend).or_insert_with(|| Backing { endpoints: Arc::default(), ..before.clone() });
            let wanted: BTreeSet<SocketAddr> = backing.endpoints.iter().copied().chain(kept).collect();
            backing.endpoints = arrange(&before.endpoints, wanted).into();
        }
        self
    }

    /// The frontends that Services have, whatever is behind them.
    pub fn of_services<'a>(services: impl IntoIterator<Item = &'a Definition>, grants: &Grants) -> BTreeSet<Frontend> {
        let services = services.into_iter().filter(|service| service.has_packet_rules);
        services.flat_map(|service| of_service(service, grants)).map(|(frontend, ..)| frontend).collect()
    }

    /// The frontends and what is behind them.
    pub fn iter(&self) -> impl Iterator<Item = (&Frontend, &Backing)> {
        self.frontends.iter()
    }

    /// UDP frontends behind which another endpoint is, or none, than before: tracked connections to them may lead nowhere (S22).
    pub fn moved_udp(&self, after: &Self) -> BTreeSet<Frontend> {
        let lost = |(frontend, backing): (&Frontend, &Backing)| {
            let now = after.frontends.get(frontend).map(|backing| &*backing.endpoints).unwrap_or_default();
            let is_lost = backing.endpoints.iter().any(|endpoint| !now.contains(endpoint));
            (frontend.protocol() == Protocol::Udp && is_lost).then_some(*frontend)
        };
        let new = |frontend: &Frontend| frontend.protocol() == Protocol::Udp && !self.frontends.contains_key(frontend);
        self.frontends.iter().filter_map(lost).chain(after.frontends.keys().filter(|frontend| new(frontend)).copied()).collect()
    }
}

impl Frontend {
    /// Its protocol.
    pub const fn protocol(&self) -> Protocol {
        match self {
            Self::Address(socket) => socket.protocol,
            Self::Node(socket) => socket.protocol,
        }
    }

    /// Its family.
    pub const fn family(&self) -> Family {
        match self {
            Self::Address(socket) => Family::of(socket.address),
            Self::Node(socket) => socket.family,
        }
    }
}

impl Socket {
    fn of(socket: SocketAddr, protocol: Protocol) -> Self {
        Self { address: socket.ip(), protocol, port: socket.port() }
    }
}

/// The frontends of a Service, each with the index of its port and the clients that it answers.
fn of_service(service: &Definition, grants: &Grants) -> Vec<(Frontend, usize, BTreeSet<Subnet>)> {
    let (Role::Cluster { exposure, .. }, Some(grant)) = (&service.role, grants.get(&service.name)) else { return Vec::new() };
    let families: BTreeSet<Family> = grant.cluster_ips.iter().map(|address| Family::of(*address)).collect();
    let ranges = match exposure {
        Exposure::Internal | Exposure::NodePort => BTreeSet::new(),
        Exposure::LoadBalancer { source_ranges, .. } => source_ranges.clone(),
    };
    let is_for_all_addresses = grant.host_addresses.is_empty();
    let host_addresses = || grant.host_addresses.iter().filter(|address| families.contains(&Family::of(**address)));
    let mut frontends = Vec::new();
    for (index, port) in service.ports.iter().enumerate() {
        for address in &grant.cluster_ips {
            let socket = Socket { address: *address, protocol: port.protocol, port: port.number };
            frontends.push((Frontend::Address(socket), index, BTreeSet::new()));
        }
        let is_granted = |granted: u16, protocol: Protocol| (granted, protocol) == (port.number, port.protocol);
        if grant.load_balancer_ports.iter().any(|socket| is_granted(socket.port, socket.protocol)) {
            let socket = |address: &IpAddr| Socket { address: *address, protocol: port.protocol, port: port.number };
            frontends.extend(host_addresses().map(|address| (Frontend::Address(socket(address)), index, BTreeSet::new())));
        }
        let node_ports = grant.node_ports.iter().filter(|node_port| is_granted(node_port.port, node_port.protocol));
        let balanced =
            grant.load_balancer_ports.iter().filter(|socket| is_granted(socket.port, socket.protocol) && is_for_all_addresses);
        let node_ports = node_ports.map(|node_port| (node_port.node_port, false)).chain(balanced.map(|socket| (socket.port, true)));
        for (number, is_balanced) in node_ports {
            for family in &families {
                let socket = NodeSocket { family: *family, protocol: port.protocol, port: number };
                let of_family = |range: &&Subnet| range.family() == *family;
                let own = if is_balanced { ranges.iter().filter(of_family).copied().collect() } else { BTreeSet::new() };
                // Where only the other family is limited to ranges, nobody of this one is answered.
                if is_balanced && own.is_empty() && !ranges.is_empty() {
                    continue;
                }
                frontends.push((Frontend::Node(socket), index, own));
            }
        }
    }
    frontends
}

/// Endpoints by index: those that stay keep theirs, new ones fill holes, then the last ones do.
fn arrange(before: &[SocketAddr], wanted: BTreeSet<SocketAddr>) -> Vec<SocketAddr> {
    let mut new = wanted.iter().filter(|socket| !before.contains(socket)).copied();
    let mut slots: Vec<Option<SocketAddr>> = before.iter().map(|socket| wanted.contains(socket).then_some(*socket)).collect();
    for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
        *slot = new.next();
    }
    slots.extend(new.map(Some));
    let mut index = 0;
    while let Some(slot) = slots.get(index) {
        if slot.is_some() {
            index += 1;
        } else {
            slots.swap_remove(index);
        }
    }
    slots.into_iter().flatten().take(MOST_ENDPOINTS).collect()
}
