//! Addresses and ports that clients connect to, and the endpoints behind them, for packet rules: elements of sets and maps, and never a rule for one Service (R1).

mod difference;
mod elements;

#[cfg(test)]
mod tests;

pub use difference::{Change, Operation, difference, of_elements};
pub use elements::{Chain, Elements, Key, Value};

use crate::allocate::{Grant, Grants};
use crate::definition::{Definition, Exposure, Role};
use crate::endpoints::{Endpoint, ServiceEndpoints, used};
use crate::name::ObjectName;
use crate::range::{Family, Subnet};
use crate::shared_map::SharedMap;
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

impl Excess {
    /// Returns true if all endpoints are used.
    pub fn is_empty(&self) -> bool {
        self.of_service.is_empty() && self.of_host.is_empty()
    }
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
    /// Endpoints that are not on this host, whether they are used or not.
    elsewhere: BTreeSet<SocketAddr>,
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

/// Endpoints, the place of each being its index in the kernel. Copies share them. There are many: one takes 20 bytes here, and 32 as a [`SocketAddr`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints(Arc<[(IpAddr, u16)]>);

impl Endpoints {
    /// The endpoints in order.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|(address, port)| SocketAddr::new(*address, *port))
    }

    /// Number of endpoints.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if this is one of them.
    pub fn contains(&self, endpoint: &SocketAddr) -> bool {
        self.0.contains(&(endpoint.ip(), endpoint.port()))
    }
}

impl FromIterator<SocketAddr> for Endpoints {
    fn from_iter<T: IntoIterator<Item = SocketAddr>>(endpoints: T) -> Self {
        Self(endpoints.into_iter().map(|endpoint| (endpoint.ip(), endpoint.port())).collect())
    }
}

/// The endpoints behind a frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Endpoints, at least one.
    pub endpoints: Endpoints,
    /// Seconds that a client stays bound to one of them, if it does (S20).
    pub affinity: Option<u32>,
    /// The clients that are answered; empty for all (S12).
    pub source_ranges: BTreeSet<Subnet>,
    /// The endpoints that are not on this host.
    pub elsewhere: Elsewhere,
}

/// The endpoints of a frontend that are not on this host (S16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Elsewhere {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// These.
    Some(Arc<BTreeSet<SocketAddr>>),
}

impl Elsewhere {
    /// Of these endpoints, those that are among `all`.
    fn of(endpoints: &Endpoints, mut all: BTreeSet<SocketAddr>) -> Self {
        all.retain(|socket| endpoints.contains(socket));
        match all.len() {
            0 => Self::None,
            count if count == endpoints.len() => Self::All,
            _ => Self::Some(Arc::new(all)),
        }
    }

    fn has(&self, endpoint: &SocketAddr) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(these) => these.contains(endpoint),
        }
    }
}

impl Backing {
    /// The endpoints that are not on this host, with the protocol of the frontend.
    fn elsewhere(&self, protocol: Protocol) -> impl Iterator<Item = Socket> {
        self.endpoints.iter().filter(|endpoint| self.elsewhere.has(endpoint)).map(move |endpoint| Socket::of(endpoint, protocol))
    }
}

/// All frontends that have an endpoint. Who connects to an address of a Service and finds no frontend is refused (S19).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontends {
    // Shared by copies: who decides and who has them in the kernel keep them both.
    frontends: SharedMap<Frontend, Backing>,
    /// Endpoints that are not on this host, each with the number of frontends that lead to it: the source of packets to them is rewritten (S16).
    elsewhere: SharedMap<Socket, u32>,
    /// Number of endpoints of all frontends.
    endpoints: usize,
}

/// Endpoints by their index, seconds of bonds, and the clients that are answered, as the kernel has them.
type Found = (BTreeMap<u32, SocketAddr>, Option<u32>, BTreeSet<Subnet>);

/// A Service and the endpoints of its ports.
pub type Served<'a> = (&'a Definition, &'a ServiceEndpoints);

impl Frontends {
    /// The frontends that take the place of `self`. Endpoints that stay keep their index, so that few elements change (R1). Names also the Services
    /// of which some endpoints are left out: new ones, never one that is in the rules (S28).
    pub fn next<'a>(&self, services: impl IntoIterator<Item = Served<'a>>, grants: &Grants) -> (Self, Excess) {
        let services = services.into_iter().filter(|(service, _)| service.has_packet_rules);
        let wanted: Vec<Wanted<'_>> = services.flat_map(|(service, endpoints)| self.wanted(service, endpoints, grants)).collect();
        let kept: usize = wanted.iter().map(|wanted| wanted.kept.len()).sum();
        let (backings, excess) = self.decide(wanted, MOST_ENDPOINTS_OF_HOST.saturating_sub(kept));
        (backings.into_iter().collect(), excess)
    }

    /// The same where only some Services are others than before. `had` are the frontends that these had, `services` are those that are there now.
    /// `None` if the host has no room for all of their endpoints: then [`Frontends::next`] says who gets it.
    pub fn with<'a>(
        &self,
        had: impl IntoIterator<Item = Frontend>,
        services: impl IntoIterator<Item = Served<'a>>,
        grants: &Grants,
    ) -> Option<(Self, Excess)> {
        let services = services.into_iter().filter(|(service, _)| service.has_packet_rules);
        let wanted: Vec<Wanted<'_>> = services.flat_map(|(service, endpoints)| self.wanted(service, endpoints, grants)).collect();
        let touched: BTreeSet<Frontend> = had.into_iter().chain(wanted.iter().map(|wanted| wanted.frontend)).collect();
        let known = |frontend: &Frontend| self.frontends.get(frontend).map_or(0, |backing| backing.endpoints.len());
        let of_others = self.endpoints.saturating_sub(touched.iter().map(known).sum());
        let kept: usize = wanted.iter().map(|wanted| wanted.kept.len()).sum();
        let (backings, excess) = self.decide(wanted, MOST_ENDPOINTS_OF_HOST.saturating_sub(of_others + kept));
        if !excess.of_host.is_empty() {
            return None;
        }
        let mut backings: BTreeMap<Frontend, Backing> = backings.into_iter().collect();
        let mut next = self.clone();
        for frontend in touched {
            next.set(frontend, backings.remove(&frontend));
        }
        Some((next, excess))
    }

    /// The endpoints of frontends, with so much room for new ones.
    fn decide(&self, wanted: Vec<Wanted<'_>>, mut room: usize) -> (Vec<(Frontend, Backing)>, Excess) {
        let (mut next, mut excess) = (Vec::with_capacity(wanted.len()), Excess::default());
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
            let before = of_backing(self.frontends.get(&frontend));
            let endpoints: Endpoints = arrange(&before, kept).into_iter().collect();
            if endpoints.is_empty() {
                continue;
            }
            let elsewhere = Elsewhere::of(&endpoints, elsewhere);
            // `nft` 1.0.6 cannot load a listing with rules that bind clients over IPv6 (R4).
            let affinity = service.affinity.filter(|_| frontend.family() == Family::V4);
            let endpoints = if before == endpoints { before } else { endpoints };
            next.push((frontend, Backing { endpoints, affinity, source_ranges, elsewhere }));
        }
        (next, excess)
    }

    /// Sets what is behind a frontend.
    fn set(&mut self, frontend: Frontend, backing: Option<Backing>) {
        let before = match backing.clone() {
            Some(backing) => self.frontends.insert(frontend, backing),
            None => self.frontends.remove(&frontend),
        };
        let (before, backing) = (before.as_ref(), backing.as_ref());
        let length = |backing: Option<&Backing>| backing.map_or(0, |backing| backing.endpoints.len());
        self.endpoints = self.endpoints + length(backing) - length(before);
        let sockets = |backing: Option<&Backing>| -> BTreeSet<Socket> {
            backing.into_iter().flat_map(|backing| backing.elsewhere(frontend.protocol())).collect()
        };
        let (before, after) = (sockets(before), sockets(backing));
        for socket in after.difference(&before) {
            let count = self.elsewhere.get(socket).copied().unwrap_or_default();
            self.elsewhere.insert(*socket, count + 1);
        }
        for socket in before.difference(&after) {
            let count = self.elsewhere.get(socket).copied().unwrap_or_default();
            if count > 1 {
                self.elsewhere.insert(*socket, count - 1);
            } else {
                self.elsewhere.remove(socket);
            }
        }
    }

    /// The frontends of a Service with the endpoints that they shall have.
    fn wanted<'a>(&self, service: &'a Definition, endpoints: &ServiceEndpoints, grants: &Grants) -> Vec<Wanted<'a>> {
        let frontends = of_service(service, grants.get(&service.name)).into_iter();
        let wanted = frontends.map(|(frontend, index, source_ranges)| {
            let family = frontend.family();
            let list: Vec<&Endpoint> = endpoints.ports.get(index).into_iter().flat_map(|list| used(list, family)).collect();
            let sockets: BTreeSet<SocketAddr> = list.iter().map(|endpoint| endpoint.socket).collect();
            let before: BTreeSet<SocketAddr> = of_backing(self.frontends.get(&frontend)).iter().collect();
            let elsewhere = list.iter().filter(|endpoint| endpoint.is_elsewhere);
            Wanted {
                service,
                frontend,
                kept: sockets.intersection(&before).copied().collect(),
                new: sockets.difference(&before).copied().collect(),
                source_ranges,
                elsewhere: elsewhere.map(|endpoint| endpoint.socket).collect(),
            }
        });
        wanted.collect()
    }

    /// The frontends that elements in the kernel stand for. What lacks its endpoints, or ranges that it shall be limited to, is left out.
    pub fn recovered(elements: &Elements) -> Self {
        let (mut found, mut elsewhere) = (Vec::new(), BTreeSet::new());
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
                let endpoints: Endpoints = endpoints.into_values().collect();
                let is_elsewhere = |endpoint: &SocketAddr| elsewhere.contains(&Socket::of(*endpoint, frontend.protocol()));
                let elsewhere = Elsewhere::of(&endpoints, endpoints.iter().filter(is_elsewhere).collect());
                found.push((frontend, Backing { endpoints, affinity, source_ranges, elsewhere }));
            }
        }
        found.into_iter().collect()
    }

    /// These frontends, and of `earlier` ones the endpoints that are kept (R8).
    pub fn keeping(self, earlier: &Self, is_kept: impl Fn(&Frontend, IpAddr) -> bool) -> Self {
        let mut next = self;
        for (frontend, before) in earlier.frontends.iter() {
            let kept: BTreeSet<SocketAddr> = before.endpoints.iter().filter(|endpoint| is_kept(frontend, endpoint.ip())).collect();
            if kept.is_empty() {
                continue;
            }
            let now = next.frontends.get(frontend).cloned();
            let now =
                now.unwrap_or_else(|| Backing { endpoints: Endpoints::default(), elsewhere: Elsewhere::None, ..before.clone() });
            let of_now = now.endpoints.iter().filter(|endpoint| now.elsewhere.has(endpoint));
            let elsewhere = of_now.chain(kept.iter().copied().filter(|endpoint| before.elsewhere.has(endpoint))).collect();
            let wanted: BTreeSet<SocketAddr> = now.endpoints.iter().chain(kept).collect();
            let endpoints: Endpoints = arrange(&before.endpoints, wanted).into_iter().collect();
            let elsewhere = Elsewhere::of(&endpoints, elsewhere);
            next.set(*frontend, Some(Backing { endpoints, elsewhere, ..now }));
        }
        next
    }

    /// The frontends that Services have, whatever is behind them.
    pub fn of_services<'a>(services: impl IntoIterator<Item = &'a Definition>, grants: &Grants) -> BTreeSet<Frontend> {
        let services = services.into_iter().filter(|service| service.has_packet_rules);
        services.flat_map(|service| Self::of_one(service, grants.get(&service.name))).collect()
    }

    /// The frontends that a Service with this grant has, whatever is behind them.
    pub fn of_one(service: &Definition, grant: Option<&Grant>) -> Vec<Frontend> {
        of_service(service, grant).into_iter().map(|(frontend, ..)| frontend).collect()
    }

    /// The endpoints of a frontend.
    pub fn get(&self, frontend: &Frontend) -> Option<&Backing> {
        self.frontends.get(frontend)
    }

    /// The frontends that differ, with what is behind them in `self` and in `after`. Those that both share cost nothing.
    pub fn differences<'a>(
        &'a self,
        after: &'a Self,
    ) -> impl Iterator<Item = (&'a Frontend, Option<&'a Backing>, Option<&'a Backing>)> {
        self.frontends.differences(&after.frontends)
    }

    /// The frontends and what is behind them.
    pub fn iter(&self) -> impl Iterator<Item = (&Frontend, &Backing)> {
        self.frontends.iter()
    }

    /// UDP frontends behind which another endpoint is, or none, than before: tracked connections to them may lead nowhere (S22).
    pub fn moved_udp(&self, after: &Self) -> BTreeSet<Frontend> {
        let moved = self.differences(after).filter(|(frontend, before, now)| {
            let now = of_backing(*now);
            let is_lost = |before: &Backing| before.endpoints.iter().any(|endpoint| !now.contains(&endpoint));
            frontend.protocol() == Protocol::Udp && before.is_none_or(is_lost)
        });
        moved.map(|(frontend, ..)| *frontend).collect()
    }

    /// IPv4 addresses of endpoints that NodePorts have in `after` and did not have.
    pub fn new_behind_node_ports(&self, after: &Self) -> BTreeSet<IpAddr> {
        let changed = self.differences(after).filter(|(frontend, ..)| frontend.is_node_of_ipv4());
        let new = changed.flat_map(|(_, before, now)| {
            let before = of_backing(before);
            let now = now.into_iter().flat_map(|backing| backing.endpoints.iter());
            now.filter(move |endpoint| !before.contains(endpoint)).map(|endpoint| endpoint.ip())
        });
        new.collect()
    }
}

/// Frontends, each once.
impl FromIterator<(Frontend, Backing)> for Frontends {
    fn from_iter<T: IntoIterator<Item = (Frontend, Backing)>>(backings: T) -> Self {
        let frontends: SharedMap<Frontend, Backing> = backings.into_iter().collect();
        let mut elsewhere: BTreeMap<Socket, u32> = BTreeMap::new();
        for socket in frontends.iter().flat_map(|(frontend, backing)| backing.elsewhere(frontend.protocol())) {
            *elsewhere.entry(socket).or_default() += 1;
        }
        let endpoints = frontends.values().map(|backing| backing.endpoints.len()).sum();
        Self { frontends, elsewhere: elsewhere.into_iter().collect(), endpoints }
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

    /// Returns true for a port of the host's IPv4 addresses.
    pub fn is_node_of_ipv4(&self) -> bool {
        matches!(self, Self::Node(socket) if socket.family == Family::V4)
    }
}

impl Socket {
    fn of(socket: SocketAddr, protocol: Protocol) -> Self {
        Self { address: socket.ip(), protocol, port: socket.port() }
    }
}

/// The frontends of a Service, each with the index of its port and the clients that it answers.
fn of_service(service: &Definition, grant: Option<&Grant>) -> Vec<(Frontend, usize, BTreeSet<Subnet>)> {
    let (Role::Cluster { exposure, .. }, Some(grant)) = (&service.role, grant) else { return Vec::new() };
    let families: BTreeSet<Family> = grant.cluster_ips.iter().map(|address| Family::of(*address)).collect();
    let ranges = match exposure {
        Exposure::Internal | Exposure::NodePort => BTreeSet::new(),
        Exposure::LoadBalancer(balancer) => balancer.source_ranges.clone(),
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

/// The endpoints behind a frontend, none if nothing is.
fn of_backing(backing: Option<&Backing>) -> Endpoints {
    backing.map(|backing| backing.endpoints.clone()).unwrap_or_default()
}

/// Endpoints by index: those that stay keep theirs, new ones fill holes, then the last ones do.
fn arrange(before: &Endpoints, wanted: BTreeSet<SocketAddr>) -> Vec<SocketAddr> {
    let mut new = wanted.iter().filter(|socket| !before.contains(socket)).copied();
    let mut slots: Vec<Option<SocketAddr>> = before.iter().map(|socket| wanted.contains(&socket).then_some(socket)).collect();
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
