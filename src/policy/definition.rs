//! A NetworkPolicy that has no problems: what is optional or a text in the API is typed here.

use crate::ranges::{Block, Ports};
use crate::selector::Selector;
use crate::validate;
use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_pod::host_ports::Protocol;
use podstead_service::name::ObjectName;
use podstead_service::range::Subnet;
use podstead_workload::problem::Problem;
use std::collections::BTreeSet;
use std::fmt;

/// Direction of a connection, as the pod sees it that a policy selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the pod.
    Ingress,
    /// From the pod.
    Egress,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

/// A NetworkPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name. It selects pods of its namespace.
    pub name: ObjectName,
    /// The source whose pods alone it selects; `None` for pods of all sources.
    pub only_of: Option<String>,
    /// The pods that it selects.
    pub pods: Selector,
    /// Rules for connections to them; `None` if it leaves these alone (N2).
    pub ingress: Option<Vec<Rule>>,
    /// Rules for connections from them; `None` if it leaves these alone (N2).
    pub egress: Option<Vec<Rule>>,
}

/// A rule: connections with one of the peers to one of the ports are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The other ends; `None` for all, outside the host too (N3).
    pub peers: Option<Vec<Peer>>,
    /// Ports; `None` for all, and for protocols without ports (N6).
    pub ports: Option<RulePorts>,
}

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Pods.
    Pods(PodPeer),
    /// Addresses.
    Block(Block),
}

/// Pods that are peers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPeer {
    /// Their namespaces.
    pub namespaces: Namespaces,
    /// Their labels.
    pub pods: Selector,
}

/// Namespaces of peers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Namespaces {
    /// The policy's own.
    Own(String),
    /// Those with these labels.
    Matching(Selector),
}

/// Ports of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulePorts {
    /// By number.
    pub numbers: Ports,
    /// By name, resolved at the pod that receives the connection.
    pub names: BTreeSet<PortName>,
}

/// Name and protocol of a port of pods.
pub type PortName = (String, Protocol);

impl Policy {
    /// The policy in a manifest, or all its problems.
    pub fn of(object: &NetworkPolicy) -> Result<Self, Vec<Problem>> {
        let problems = validate::network_policy(object);
        if !problems.is_empty() {
            return Err(problems);
        }
        let default = NetworkPolicySpec::default();
        let spec = object.spec.as_ref().unwrap_or(&default);
        let name = ObjectName::of(&object.metadata);
        let written = spec.policy_types.as_deref().unwrap_or_default();
        let has = |direction: &str| written.iter().any(|kind| kind == direction);
        let has_egress_rules = spec.egress.iter().flatten().next().is_some();
        let (closes_ingress, closes_egress) =
            if written.is_empty() { (true, has_egress_rules) } else { (has("Ingress"), has("Egress")) };
        let rule = |peers: Option<&[NetworkPolicyPeer]>, ports: Option<&[NetworkPolicyPort]>| Rule {
            peers: peers
                .filter(|list| !list.is_empty())
                .map(|list| list.iter().filter_map(|written| peer(written, &name.namespace)).collect()),
            ports: ports.filter(|list| !list.is_empty()).map(self::ports),
        };
        let ingress = spec.ingress.iter().flatten().map(|written| rule(written.from.as_deref(), written.ports.as_deref()));
        let egress = spec.egress.iter().flatten().map(|written| rule(written.to.as_deref(), written.ports.as_deref()));
        let (ingress, egress) = (ingress.collect(), egress.collect());
        Ok(Self {
            only_of: None,
            pods: spec.pod_selector.as_ref().and_then(Selector::of).unwrap_or_default(),
            ingress: closes_ingress.then_some(ingress),
            egress: closes_egress.then_some(egress),
            name,
        })
    }

    /// Its rules for a direction; `None` if it leaves that one alone.
    pub fn rules(&self, direction: Direction) -> Option<&[Rule]> {
        match direction {
            Direction::Ingress => self.ingress.as_deref(),
            Direction::Egress => self.egress.as_deref(),
        }
    }
}

/// `None` for what validation refuses: such a peer is nobody.
fn peer(peer: &NetworkPolicyPeer, namespace: &str) -> Option<Peer> {
    if let Some(written) = &peer.ip_block {
        return block(written).map(Peer::Block);
    }
    let namespaces = match &peer.namespace_selector {
        None => Namespaces::Own(namespace.to_owned()),
        Some(selector) => Namespaces::Matching(Selector::of(selector)?),
    };
    let pods = match &peer.pod_selector {
        None => Selector::default(),
        Some(selector) => Selector::of(selector)?,
    };
    Some(Peer::Pods(PodPeer { namespaces, pods }))
}

fn block(block: &IPBlock) -> Option<Block> {
    let except: Option<Vec<Subnet>> = block.except.iter().flatten().map(|text| text.parse().ok()).collect();
    Some(Block::new(block.cidr.parse().ok()?, &except?))
}

fn ports(written: &[NetworkPolicyPort]) -> RulePorts {
    let mut names = BTreeSet::new();
    let mut numbers = Vec::new();
    for port in written {
        let Some(protocol) = protocol(port.protocol.as_deref()) else { continue };
        match &port.port {
            None => numbers.push((protocol, 0, u16::MAX)),
            Some(IntOrString::String(name)) => drop(names.insert((name.clone(), protocol))),
            Some(IntOrString::Int(first)) => {
                let last = port.end_port.unwrap_or(*first);
                if let (Ok(first), Ok(last)) = (u16::try_from(*first), u16::try_from(last)) {
                    numbers.push((protocol, first, last));
                }
            }
        }
    }
    RulePorts { numbers: Ports::new(numbers), names }
}

/// The protocol that a manifest names, TCP if it names none (N6).
fn protocol(name: Option<&str>) -> Option<Protocol> {
    match name.unwrap_or("TCP") {
        "TCP" | "" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        _ => None,
    }
}
