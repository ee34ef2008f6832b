//! The decision on one connection, from compiled classes (R13).

use crate::compile::{Allow, Class, Classes, PodClasses, What, Who};
use crate::definition::Direction;
use podstead_pod::host_ports::Protocol;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A connection between two ends that are not the host: after the address of a Service was replaced, with the client's own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The end that opens it.
    pub source: IpAddr,
    /// The end that receives it.
    pub destination: IpAddr,
    /// Protocol and port; `None` for a protocol without ports.
    pub port: Option<(Protocol, u16)>,
}

/// Compiled classes, by address of their pods.
#[derive(Debug)]
pub struct Decider<'a> {
    classes: &'a Classes,
    pods: BTreeMap<IpAddr, &'a PodClasses>,
}

impl<'a> Decider<'a> {
    /// For these classes.
    pub fn new(classes: &'a Classes) -> Self {
        let pods = classes.pods.values().flat_map(|pod| pod.addresses.iter().map(move |address| (*address, pod))).collect();
        Self { classes, pods }
    }

    /// The direction in which a connection is denied; `None` if it is allowed. Both ends have to allow it (N7); a pod with itself always passes (N8).
    pub fn denied(&self, flow: &Flow) -> Option<Direction> {
        if flow.source == flow.destination {
            return None;
        }
        let class =
            |address: &IpAddr, of: fn(&PodClasses) -> &Option<Class>| self.pods.get(address).and_then(|pod| of(pod).as_ref());
        if class(&flow.source, |pod| &pod.egress).is_some_and(|class| !self.allows(class, flow.destination, flow)) {
            return Some(Direction::Egress);
        }
        if class(&flow.destination, |pod| &pod.ingress).is_some_and(|class| !self.allows(class, flow.source, flow)) {
            return Some(Direction::Ingress);
        }
        None
    }

    fn allows(&self, class: &Class, other: IpAddr, flow: &Flow) -> bool {
        class.iter().any(|Allow { who, what }| {
            let is_peer = match who {
                Who::Everybody => true,
                Who::Pods(peer) => self.classes.peers.get(peer).is_some_and(|members| members.contains(&other)),
                Who::Block(block) => block.contains(other),
            };
            let is_port = match what {
                What::Everything => true,
                What::Ports(ports) => flow.port.is_some_and(|(protocol, port)| ports.contains(protocol, port)),
                What::Named(name) => {
                    let members = self.classes.named.get(name);
                    let has = |port: u16| members.is_some_and(|members| members.contains(&(flow.destination, port)));
                    flow.port.is_some_and(|(protocol, port)| protocol == name.1 && has(port))
                }
            };
            is_peer && is_port
        })
    }
}
