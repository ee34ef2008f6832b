//! The policies behind the decision on one connection, for people.

use crate::compile::{PolicedPod, Policies};
use crate::definition::{Direction, Peer, Rule};
use podstead_pod::host_ports::Protocol;
use podstead_service::name::ObjectName;
use std::net::IpAddr;

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Its address.
    pub address: IpAddr,
    /// The pod that has it, or the resolver; `None` for everything else.
    pub pod: Option<&'a PolicedPod>,
}

/// The policies of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No policy selects the pod in this direction: everything passes.
    NotSelected,
    /// A policy allows it: its name, and the field of its rule.
    Allowed(ObjectName, String),
    /// These policies close the direction, and none of them allows it.
    Denied(Vec<ObjectName>),
}

/// The reason in one direction. `of` is the pod that policies select, `other` the other end, and the port that of the destination.
pub fn reason(policies: &Policies, direction: Direction, of: &PolicedPod, other: End<'_>, port: Option<(Protocol, u16)>) -> Reason {
    let mut closing = Vec::new();
    for policy in policies.selecting(of) {
        let Some(rules) = policy.rules(direction) else { continue };
        closing.push(policy.name.clone());
        let receiver = match direction {
            Direction::Ingress => Some(of),
            Direction::Egress => other.pod,
        };
        let matching = rules.iter().position(|rule| is_peer(policies, rule, other) && is_port(rule, receiver, port));
        if let Some(index) = matching {
            return Reason::Allowed(policy.name.clone(), format!("spec.{direction}[{index}]"));
        }
    }
    if closing.is_empty() { Reason::NotSelected } else { Reason::Denied(closing) }
}

fn is_peer(policies: &Policies, rule: &Rule, other: End<'_>) -> bool {
    let Some(peers) = &rule.peers else { return true };
    peers.iter().any(|peer| match peer {
        Peer::Pods(peer) => other.pod.is_some_and(|pod| policies.is_peer(peer, pod)),
        Peer::Block(block) => block.contains(other.address),
    })
}

fn is_port(rule: &Rule, receiver: Option<&PolicedPod>, port: Option<(Protocol, u16)>) -> bool {
    let Some(ports) = &rule.ports else { return true };
    let Some((protocol, number)) = port else { return false };
    let has_name = |pod: &PolicedPod| ports.names.iter().any(|name| name.1 == protocol && pod.ports.get(name) == Some(&number));
    ports.numbers.contains(protocol, number) || receiver.is_some_and(has_name)
}
