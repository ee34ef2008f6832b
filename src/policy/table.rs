//! Classes as the sets, chains and elements of packet rules (R10 to R12), and the difference of two.
//!
//! Sets and chains are numbered. A chain never changes: a pod whose permissions change is led to another chain. What nothing refers to goes with
//! the change that takes the last reference away.

use crate::compile::{Allow, Class, Classes, What, Who};
use crate::definition::{Direction, PodPeer, PortName};
use crate::ranges::{Block, Ports};
use podstead_pod::host_ports::Protocol;
use podstead_service::range::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A set or map of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetName {
    /// Addresses of peers.
    Peer(Family, u32),
    /// Ranges of addresses.
    Block(Family, u32),
    /// Ranges of ports.
    Ports(u32),
    /// Ports without ranges: the kernel finds them by a hash.
    SinglePorts(u32),
    /// Addresses with the number that a port of one name has there.
    Named(Family, u32),
    /// Addresses of pods that a policy selects.
    Policed(Family),
    /// Addresses and protocols of those that may not ask the resolver.
    Mute(Family),
    /// Addresses of pods to the chain for what they receive.
    Ingress(Family),
    /// Addresses of pods to the chain for what they send.
    Egress(Family),
}

impl SetName {
    /// Sets that are there whatever policies there are.
    pub fn fixed() -> impl Iterator<Item = Self> {
        Family::ALL
            .into_iter()
            .flat_map(|family| [Self::Policed(family), Self::Mute(family), Self::Ingress(family), Self::Egress(family)])
    }

    /// Its name in the kernel.
    pub fn name(self) -> String {
        let digit = |family: Family| match family {
            Family::V4 => 4,
            Family::V6 => 6,
        };
        match self {
            Self::Peer(family, number) => format!("peer{}_{number}", digit(family)),
            Self::Block(family, number) => format!("block{}_{number}", digit(family)),
            Self::Ports(number) => format!("port_{number}"),
            Self::SinglePorts(number) => format!("ports_{number}"),
            Self::Named(family, number) => format!("named{}_{number}", digit(family)),
            Self::Policed(family) => format!("policed{}", digit(family)),
            Self::Mute(family) => format!("mute{}", digit(family)),
            Self::Ingress(family) => format!("ingress{}", digit(family)),
            Self::Egress(family) => format!("egress{}", digit(family)),
        }
    }
}

/// A chain: the class of pods in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainName {
    /// Direction.
    pub direction: Direction,
    /// Number.
    pub number: u32,
}

impl ChainName {
    /// Its name in the kernel.
    pub fn name(self) -> String {
        match self.direction {
            Direction::Ingress => format!("in_{}", self.number),
            Direction::Egress => format!("out_{}", self.number),
        }
    }
}

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// An address.
    Address(IpAddr),
    /// From one address to another.
    Addresses(IpAddr, IpAddr),
    /// From one port to another.
    Ports(Protocol, u16, u16),
    /// A port.
    Port(Protocol, u16),
    /// An address and a port.
    Socket(IpAddr, Protocol, u16),
    /// An address and a protocol.
    Protocol(IpAddr, Protocol),
    /// An address, and the chain that it leads to.
    Jump(IpAddr, ChainName),
}

/// A rule of a chain: packets that are in all of these sets may pass in this direction. After the last one, what is left is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Its family; `None` for both.
    pub family: Option<Family>,
    /// The other end.
    pub other: Option<SetName>,
    /// The port of the destination.
    pub ports: Option<SetName>,
    /// The destination and its port.
    pub named: Option<SetName>,
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    numbers: Numbers,
    /// Elements by set.
    pub sets: BTreeMap<SetName, BTreeSet<Element>>,
    /// Rules by chain.
    pub chains: BTreeMap<ChainName, Vec<Line>>,
}

/// Numbers of what is in a table. None is given twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Numbers {
    last: u32,
    peers: BTreeMap<PodPeer, u32>,
    blocks: BTreeMap<Block, u32>,
    ports: BTreeMap<Ports, u32>,
    named: BTreeMap<PortName, u32>,
    chains: BTreeMap<(Direction, Class), u32>,
}

impl Numbers {
    /// The number that something has, or the next one.
    fn of<T: Ord + Clone>(last: &mut u32, old: &BTreeMap<T, u32>, new: &mut BTreeMap<T, u32>, what: &T) -> u32 {
        if let Some(number) = new.get(what) {
            return *number;
        }
        let number = old.get(what).copied().unwrap_or_else(|| {
            *last += 1;
            *last
        });
        new.insert(what.clone(), number);
        number
    }
}

/// A step from one table to another; to be made in order, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Makes a set.
    AddSet(SetName),
    /// Adds elements.
    Add(SetName, Vec<Element>),
    /// Makes a chain.
    AddChain(ChainName, Vec<Line>),
    /// Removes elements.
    Remove(SetName, Vec<Element>),
    /// Removes a chain that nothing leads to.
    RemoveChain(ChainName),
    /// Removes a set that no rule refers to.
    RemoveSet(SetName),
}

impl Table {
    /// The table for these classes, which takes the place of `self`: what stays keeps its number.
    pub fn next(&self, classes: &Classes) -> Self {
        let mut table = Self { numbers: Numbers { last: self.numbers.last, ..Numbers::default() }, ..Self::default() };
        table.sets.extend(SetName::fixed().map(|set| (set, BTreeSet::new())));
        for pod in classes.pods.values() {
            let class = |class: &Option<Class>, direction: Direction, table: &mut Self| {
                class.as_ref().map(|class| table.chain(&self.numbers, classes, direction, class))
            };
            let ingress = class(&pod.ingress, Direction::Ingress, &mut table);
            let egress = class(&pod.egress, Direction::Egress, &mut table);
            for address in &pod.addresses {
                let family = Family::of(*address);
                table.add(SetName::Policed(family), [Element::Address(*address)]);
                table.add(SetName::Ingress(family), ingress.map(|chain| Element::Jump(*address, chain)));
                table.add(SetName::Egress(family), egress.map(|chain| Element::Jump(*address, chain)));
                let mute = pod.mute.iter().map(|protocol| Element::Protocol(*address, *protocol));
                table.add(SetName::Mute(family), mute);
            }
        }
        table
    }

    fn add(&mut self, set: SetName, elements: impl IntoIterator<Item = Element>) {
        self.sets.entry(set).or_default().extend(elements);
    }

    fn chain(&mut self, old: &Numbers, classes: &Classes, direction: Direction, class: &Class) -> ChainName {
        let key = (direction, class.clone());
        let number = Numbers::of(&mut self.numbers.last, &old.chains, &mut self.numbers.chains, &key);
        let name = ChainName { direction, number };
        if !self.chains.contains_key(&name) {
            let lines = class.iter().flat_map(|allow| self.lines(old, classes, allow)).collect();
            self.chains.insert(name, lines);
        }
        name
    }

    fn lines(&mut self, old: &Numbers, classes: &Classes, allow: &Allow) -> Vec<Line> {
        let ports = match &allow.what {
            What::Ports(ports) => Some(self.ports(old, ports)),
            What::Everything | What::Named(_) => None,
        };
        let named = match &allow.what {
            What::Named(name) => Some(self.named(old, classes, name)),
            What::Everything | What::Ports(_) => None,
        };
        let line = |family: Option<Family>, other: Option<SetName>| Line {
            family,
            other,
            ports,
            named: named.zip(family).map(|(number, family)| SetName::Named(family, number)),
        };
        match &allow.who {
            Who::Everybody if named.is_none() => vec![line(None, None)],
            Who::Everybody => Family::ALL.map(|family| line(Some(family), None)).to_vec(),
            Who::Pods(peer) => {
                let number = self.peer(old, classes, peer);
                Family::ALL.map(|family| line(Some(family), Some(SetName::Peer(family, number)))).to_vec()
            }
            Who::Block(block) => {
                let number = Numbers::of(&mut self.numbers.last, &old.blocks, &mut self.numbers.blocks, block);
                let set = SetName::Block(block.family, number);
                self.add(set, block.iter().map(|(first, last)| Element::Addresses(first, last)));
                vec![line(Some(block.family), Some(set))]
            }
        }
    }

    fn ports(&mut self, old: &Numbers, ports: &Ports) -> SetName {
        let number = Numbers::of(&mut self.numbers.last, &old.ports, &mut self.numbers.ports, ports);
        if ports.iter().all(|(_, first, last)| first == last) {
            let set = SetName::SinglePorts(number);
            self.add(set, ports.iter().map(|(protocol, port, _)| Element::Port(protocol, port)));
            return set;
        }
        let set = SetName::Ports(number);
        self.add(set, ports.iter().map(|(protocol, first, last)| Element::Ports(protocol, first, last)));
        set
    }

    fn peer(&mut self, old: &Numbers, classes: &Classes, peer: &PodPeer) -> u32 {
        let number = Numbers::of(&mut self.numbers.last, &old.peers, &mut self.numbers.peers, peer);
        let members = classes.peers.get(peer).into_iter().flatten().copied();
        for family in Family::ALL {
            let of_family = members.clone().filter(|address| Family::of(*address) == family);
            self.add(SetName::Peer(family, number), of_family.map(Element::Address));
        }
        number
    }

    fn named(&mut self, old: &Numbers, classes: &Classes, name: &PortName) -> u32 {
        let number = Numbers::of(&mut self.numbers.last, &old.named, &mut self.numbers.named, name);
        let members = classes.named.get(name).into_iter().flatten();
        for family in Family::ALL {
            let of_family = members.clone().filter(|(address, _)| Family::of(*address) == family);
            self.add(SetName::Named(family, number), of_family.map(|(address, port)| Element::Socket(*address, name.1, *port)));
        }
        number
    }

    /// Steps that make the whole table where there is nothing of it.
    pub fn operations(&self) -> Vec<Operation> {
        difference(&Self::default(), self)
    }
}

/// Steps from one table to the one that [`Table::next`] made of it.
pub fn difference(before: &Table, after: &Table) -> Vec<Operation> {
    let mut steps = Vec::new();
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    let nothing = BTreeSet::new();
    for (set, elements) in &after.sets {
        let old = before.sets.get(set);
        if old.is_none() {
            steps.push(Operation::AddSet(*set));
        }
        let old = old.unwrap_or(&nothing);
        let new: Vec<Element> = elements.difference(old).copied().collect();
        let gone: Vec<Element> = old.difference(elements).copied().collect();
        if !gone.is_empty() {
            removed.push(Operation::Remove(*set, gone));
        }
        if !new.is_empty() {
            added.push(Operation::Add(*set, new));
        }
    }
    // Elements of maps lead to chains, and chains refer to sets.
    steps.extend(
        after
            .chains
            .iter()
            .filter(|(name, _)| !before.chains.contains_key(name))
            .map(|(name, lines)| Operation::AddChain(*name, lines.clone())),
    );
    steps.extend(removed);
    steps.extend(added);
    steps.extend(before.chains.keys().filter(|name| !after.chains.contains_key(name)).map(|name| Operation::RemoveChain(*name)));
    steps.extend(before.sets.keys().filter(|set| !after.sets.contains_key(set)).map(|set| Operation::RemoveSet(*set)));
    steps
}
