//! Ports of the host that lead to Services: NodePorts (S9), and ports of load balancers (S11).

use super::place::{Place, place};
use super::{Allocation, Grants, HostSocket, NodePort, Pool, RefusalReason, candidates};
use crate::definition::{Definition, Exposure, Port, Role};
use crate::name::ObjectName;
use podstead_pod::host_ports::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A port of a Service.
type Owner<'a> = (&'a ObjectName, Protocol, u16);

/// Ports of the host and their holders.
#[derive(Default)]
struct Ports<'a> {
    /// Every port that is given.
    holders: BTreeMap<HostSocket, &'a ObjectName>,
    /// NodePorts by what they lead to.
    node_ports: BTreeMap<Owner<'a>, u16>,
    /// Ports of load balancers.
    balanced: BTreeSet<Owner<'a>>,
}

impl<'a> Ports<'a> {
    /// The holder of a port in words; `None` if it is free.
    fn holder(&self, socket: HostSocket, pool: &Pool) -> Option<String> {
        match self.holders.get(&socket) {
            Some(name) => Some(format!("Service {name}")),
            None => pool.taken.get(&socket).cloned(),
        }
    }

    /// Gives a NodePort. Returns true if another one became free thereby.
    fn give_node_port(&mut self, owner: Owner<'a>, number: u16) -> bool {
        let before = self.node_ports.insert(owner, number);
        if let Some(before) = before {
            self.holders.remove(&HostSocket { protocol: owner.1, port: before });
        }
        self.holders.insert(HostSocket { protocol: owner.1, port: number }, owner.0);
        before.is_some()
    }

    /// Gives a port of a load balancer.
    fn give_balanced(&mut self, owner: Owner<'a>) {
        self.holders.insert(HostSocket { protocol: owner.1, port: owner.2 }, owner.0);
        self.balanced.insert(owner);
    }
}

fn owner<'a>(service: &'a Definition, port: &Port) -> Owner<'a> {
    (&service.name, port.protocol, port.number)
}

/// The lowest ports of the range, which are given only to those who ask for them.
fn reserved(pool: &Pool) -> u64 {
    (u64::from(pool.node_ports.count()) / 32).clamp(16, 128)
}

/// Wishes for ports.
struct Wishes<'a> {
    /// NodePorts, and whether one is given to a port that asks for none.
    node_ports: Vec<(&'a Definition, usize, &'a Port, bool)>,
    /// The Services' own ports on addresses of the host.
    load_balancers: Vec<(&'a Definition, usize, &'a Port)>,
    /// The addresses of these, where they are not all.
    places: BTreeMap<&'a ObjectName, BTreeSet<IpAddr>>,
}

fn wishes<'a>(services: &[&'a Definition], pool: &Pool, allocation: &mut Allocation) -> Wishes<'a> {
    let mut wishes = Wishes { node_ports: Vec::new(), load_balancers: Vec::new(), places: BTreeMap::new() };
    for service in services {
        let (has_node_ports, allocates) = match exposure(service) {
            None => continue,
            Some(Exposure::Internal) => (false, false),
            Some(Exposure::NodePort) => (true, true),
            Some(Exposure::LoadBalancer(balancer)) => (true, balancer.allocates_node_ports),
        };
        let is_balanced = match place(service, pool, allocation) {
            Place::Nowhere => false,
            Place::Everywhere => true,
            Place::At(addresses) => {
                wishes.places.insert(&service.name, addresses);
                true
            }
        };
        for (index, port) in service.ports.iter().enumerate() {
            if has_node_ports && (allocates || port.node_port.is_some()) {
                wishes.node_ports.push((service, index, port, allocates));
            }
            if is_balanced {
                wishes.load_balancers.push((service, index, port));
            }
        }
    }
    wishes
}

/// Gives ports: first to those who have them, then to those who ask for certain ones, then to the others.
pub(super) fn allocate(services: &[&Definition], recorded: &Grants, pool: &Pool, allocation: &mut Allocation) {
    let wishes = wishes(services, pool, allocation);
    let mut ports = keep(&wishes, recorded, pool);
    give_asked_node_ports(&wishes, pool, &mut ports, allocation);
    for (service, index, port) in &wishes.load_balancers {
        let owner = owner(service, port);
        let socket = HostSocket { protocol: port.protocol, port: port.number };
        if ports.balanced.contains(&owner) {
            continue;
        }
        match ports.holder(socket, pool) {
            None => ports.give_balanced(owner),
            Some(words) => {
                let field = format!("spec.ports[{index}].port");
                let message = format!("{socket} belongs to {words}");
                allocation.refuse(&service.name, field, RefusalReason::LoadBalancerPortTaken, message);
            }
        }
    }
    let mut others: Vec<_> = wishes.node_ports.iter().filter(|(_, _, port, _)| port.node_port.is_none()).collect();
    others.sort_by_key(|(service, _, port, _)| owner(service, port));
    for (service, index, port, _) in others {
        let owner = owner(service, port);
        if ports.node_ports.contains_key(&owner) {
            continue;
        }
        match choose(owner, pool, &ports) {
            Some(number) => {
                ports.give_node_port(owner, number);
            }
            None => {
                let message = format!("all ports of {} are in use", pool.node_ports);
                let field = format!("spec.ports[{index}].nodePort");
                allocation.refuse(&service.name, field, RefusalReason::NodePortNotInRange, message);
            }
        }
    }
    for ((name, protocol, port), node_port) in ports.node_ports {
        allocation.grant(name).node_ports.push(NodePort { protocol, port, node_port });
    }
    for (name, protocol, port) in ports.balanced {
        let grant = allocation.grant(name);
        grant.load_balancer_ports.push(HostSocket { protocol, port });
        if let Some(addresses) = wishes.places.get(name) {
            grant.host_addresses.clone_from(addresses);
        }
    }
}

/// Recorded ports that are still wanted: the grant of a port of a Service stays while it asks for no other one.
fn keep<'a>(wishes: &Wishes<'a>, recorded: &Grants, pool: &Pool) -> Ports<'a> {
    let mut ports = Ports::default();
    let mut by_name: Vec<Owner<'a>> = wishes.load_balancers.iter().map(|(service, _, port)| owner(service, port)).collect();
    by_name.sort_unstable();
    for owner in by_name {
        let socket = HostSocket { protocol: owner.1, port: owner.2 };
        let is_granted = recorded.get(owner.0).is_some_and(|grant| grant.load_balancer_ports.contains(&socket));
        if is_granted && !ports.holders.contains_key(&socket) {
            ports.give_balanced(owner);
        }
    }
    let mut by_name: Vec<Owner<'a>> = wishes.node_ports.iter().map(|(service, _, port, _)| owner(service, port)).collect();
    by_name.sort_unstable();
    for owner in by_name {
        let granted = recorded.get(owner.0).into_iter().flat_map(|grant| &grant.node_ports);
        let found = granted.copied().find(|grant| (grant.protocol, grant.port) == (owner.1, owner.2));
        let Some(grant) = found.filter(|grant| pool.node_ports.contains(grant.node_port)) else { continue };
        if !ports.holders.contains_key(&HostSocket { protocol: owner.1, port: grant.node_port }) {
            ports.give_node_port(owner, grant.node_port);
        }
    }
    ports
}

/// Gives NodePorts to those who ask for them. Who moves makes place for others, so that all are asked again.
fn give_asked_node_ports<'a>(wishes: &Wishes<'a>, pool: &Pool, ports: &mut Ports<'a>, allocation: &mut Allocation) {
    let asking: Vec<_> =
        wishes.node_ports.iter().filter_map(|(service, index, port, _)| Some((*service, *index, *port, port.node_port?))).collect();
    let mut give = |service: &'a Definition, port: &Port, asked: u16| {
        let is_free = ports.holder(HostSocket { protocol: port.protocol, port: asked }, pool).is_none();
        is_free && pool.node_ports.contains(asked) && ports.give_node_port(owner(service, port), asked)
    };
    while asking.iter().any(|(service, _, port, asked)| give(service, port, *asked)) {}
    for (service, index, port, asked) in asking {
        let field = format!("spec.ports[{index}].nodePort");
        let socket = HostSocket { protocol: port.protocol, port: asked };
        if !pool.node_ports.contains(asked) {
            let message = format!("{asked} is not in the range of NodePorts, {}", pool.node_ports);
            allocation.refuse(&service.name, field, RefusalReason::NodePortNotInRange, message);
        } else if ports.node_ports.get(&owner(service, port)) != Some(&asked) {
            let words = ports.holder(socket, pool).unwrap_or_default();
            allocation.refuse(&service.name, field, RefusalReason::NodePortTaken, format!("{socket} belongs to {words}"));
        }
    }
}

/// The first free port from the one that the names lead to. TCP and UDP of one number lead to the same.
fn choose(owner: Owner<'_>, pool: &Pool, ports: &Ports<'_>) -> Option<u16> {
    let name = format!("{}:{}", owner.0, owner.2);
    candidates(&name, pool.node_ports.count().into(), reserved(pool))
        .filter_map(|number| u16::try_from(u64::from(pool.node_ports.first) + number).ok())
        .find(|number| ports.holder(HostSocket { protocol: owner.1, port: *number }, pool).is_none())
}

/// Exposure of a Service with addresses.
pub(super) fn exposure(service: &Definition) -> Option<&Exposure> {
    match &service.role {
        Role::Cluster { exposure, .. } => Some(exposure),
        Role::ExternalName { .. } | Role::Headless(_) => None,
    }
}
