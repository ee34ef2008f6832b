//! The elements of sets and maps that stand for frontends.

use super::{Backing, Frontend, Frontends, NodeSocket, Socket};
use crate::range::{Family, Subnet};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The key of an element; each variant is a set or map of each family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `endpoints`: the endpoint at an index.
    Endpoint(Socket, u32),
    /// `node_endpoints`: the same behind a port of the host.
    NodeEndpoint(NodeSocket, u32),
    /// `ranges`: clients of a port of the host.
    SourceRange(NodeSocket, Subnet),
    /// `fenced_ports`: a port of the host that answers some clients only.
    FencedPort(NodeSocket),
    /// `elsewhere`: an endpoint that is not on this host.
    Elsewhere(Socket),
    /// `sticky`: a frontend with affinity.
    Sticky(Socket),
    /// `sticky_ports`: a port of the host with affinity.
    StickyPort(NodeSocket),
    /// `services`: an address of a Service.
    Service(Socket),
    /// `node_ports`: a port of the host.
    NodePort(NodeSocket),
}

/// The value of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// None: the element is of a set.
    Present,
    /// The destination of connections.
    Target(SocketAddr),
    /// The chain that goes on.
    Verdict(Chain),
}

/// A chain that elements lead to. It is made when it is first needed, and stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chain {
    /// `pick4_3`: one of three endpoints of an address.
    Pick(Family, u32),
    /// `node4_3`: one of three endpoints of a port of the host.
    Node(Family, u32),
    /// `sticky4_3`: the endpoint that the client is bound to, else one of three.
    Sticky(Family, u32),
    /// `sticky_node4_3`: the same for a port of the host.
    StickyNode(Family, u32),
    /// `remember4_10800`: binds the client for that many seconds.
    Remember(Family, u32),
    /// `fenced4`: answers clients in the ranges.
    Fenced(Family),
}

impl Chain {
    /// Its name in the kernel.
    pub fn name(self) -> String {
        let digit = |family: Family| match family {
            Family::V4 => 4,
            Family::V6 => 6,
        };
        match self {
            Self::Pick(family, count) => format!("pick{}_{count}", digit(family)),
            Self::Node(family, count) => format!("node{}_{count}", digit(family)),
            Self::Sticky(family, count) => format!("sticky{}_{count}", digit(family)),
            Self::StickyNode(family, count) => format!("sticky_node{}_{count}", digit(family)),
            Self::Remember(family, seconds) => format!("remember{}_{seconds}", digit(family)),
            Self::Fenced(family) => format!("fenced{}", digit(family)),
        }
    }

    /// The chain that it goes to, which has to be made before.
    pub const fn needs(self) -> Option<Self> {
        match self {
            Self::Sticky(family, count) => Some(Self::Pick(family, count)),
            Self::StickyNode(family, count) => Some(Self::Node(family, count)),
            Self::Pick(..) | Self::Node(..) | Self::Remember(..) | Self::Fenced(_) => None,
        }
    }
}

impl Key {
    /// Its family.
    pub const fn family(&self) -> Family {
        match self {
            Self::Endpoint(socket, _) | Self::Elsewhere(socket) | Self::Sticky(socket) | Self::Service(socket) => {
                Family::of(socket.address)
            }
            Self::NodeEndpoint(socket, _)
            | Self::SourceRange(socket, _)
            | Self::FencedPort(socket)
            | Self::StickyPort(socket)
            | Self::NodePort(socket) => socket.family,
        }
    }

    /// Returns true for what clients meet first; what it leads to is there before it and goes after it.
    pub(super) const fn is_entry(&self) -> bool {
        match self {
            Self::Sticky(_) | Self::StickyPort(_) | Self::Service(_) | Self::NodePort(_) => true,
            Self::Endpoint(..) | Self::NodeEndpoint(..) | Self::SourceRange(..) | Self::FencedPort(_) | Self::Elsewhere(_) => false,
        }
    }
}

/// Elements of all sets and maps.
pub type Elements = BTreeMap<Key, Value>;

impl Frontends {
    /// All elements.
    pub fn elements(&self) -> Elements {
        let mut all: Elements = self.frontends.iter().flat_map(|(frontend, backing)| of(frontend, backing)).collect();
        all.extend(self.elsewhere.keys().map(|socket| (Key::Elsewhere(*socket), Value::Present)));
        all
    }

    /// The chains that its elements lead to, each after the one that it needs.
    pub fn chains(&self) -> Vec<Chain> {
        chains(self.elements().into_values())
    }
}

/// The chains of verdicts, once each, and each after the one that it needs.
pub(super) fn chains(values: impl Iterator<Item = Value>) -> Vec<Chain> {
    let named = values.filter_map(|value| match value {
        Value::Verdict(chain) => Some(chain),
        Value::Present | Value::Target(_) => None,
    });
    let named: BTreeSet<Chain> = named.collect();
    let needed: BTreeSet<Chain> = named.iter().filter_map(|chain| chain.needs()).collect();
    let others = named.difference(&needed).copied();
    needed.iter().copied().chain(others).collect()
}

/// The elements of one frontend.
pub(super) fn of(frontend: &Frontend, backing: &Backing) -> Elements {
    let mut elements = Elements::new();
    let family = frontend.family();
    let count = u32::try_from(backing.endpoints.len()).unwrap_or(u32::MAX);
    let remember = backing.affinity.map(|seconds| Value::Verdict(Chain::Remember(family, seconds)));
    let indexed = (0_u32..).zip(backing.endpoints.iter());
    match frontend {
        Frontend::Address(socket) => {
            let pick = if remember.is_some() { Chain::Sticky(family, count) } else { Chain::Pick(family, count) };
            elements.insert(Key::Service(*socket), Value::Verdict(pick));
            elements.extend(remember.map(|remember| (Key::Sticky(*socket), remember)));
            elements.extend(indexed.map(|(index, target)| (Key::Endpoint(*socket, index), Value::Target(target))));
        }
        Frontend::Node(socket) => {
            let pick =
                Value::Verdict(if remember.is_some() { Chain::StickyNode(family, count) } else { Chain::Node(family, count) });
            if backing.source_ranges.is_empty() {
                elements.insert(Key::NodePort(*socket), pick);
            } else {
                elements.insert(Key::NodePort(*socket), Value::Verdict(Chain::Fenced(family)));
                elements.insert(Key::FencedPort(*socket), pick);
                let ranges = disjoint(&backing.source_ranges);
                elements.extend(ranges.map(|range| (Key::SourceRange(*socket, range), Value::Present)));
            }
            elements.extend(remember.map(|remember| (Key::StickyPort(*socket), remember)));
            elements.extend(indexed.map(|(index, target)| (Key::NodeEndpoint(*socket, index), Value::Target(target))));
        }
    }
    elements
}

/// Ranges that no other one includes: intervals of concatenations must not overlap (R11).
fn disjoint(ranges: &BTreeSet<Subnet>) -> impl Iterator<Item = Subnet> {
    let is_within =
        |range: &Subnet, other: &Subnet| range != other && other.prefix() < range.prefix() && other.contains(range.first());
    ranges.iter().filter(move |range| !ranges.iter().any(|other| is_within(range, other))).copied()
}
