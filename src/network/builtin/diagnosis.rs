//! State of this host's network, for diagnosis. Nothing is changed.

use super::lease::Lease;
use super::names::Names;
use super::policies;
use super::rules::{Rules, Way};
use super::{RESOLVER_ON_HOST, firewalld, firewalls, links, listeners, ranges, record, uplink};
use podstead_pod::PodFullName;
use podstead_pod::host_ports::{HostPort, Protocol};
use podstead_policy::definition::Direction;
use podstead_settings::AddressRange;
use podstead_sys::layout::Paths;
use podstead_sys::netlink::NetlinkError;
use podstead_sys::netlink::nftables::IPV6;
use podstead_sys::netlink::rtnetlink::Link;
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// The network of pods as the kernel knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkView {
    /// podstead's table is there with all its chains.
    pub has_rules: bool,
    /// Chains of others that drop what passes and do not accept pods, in words.
    pub dropping: Vec<String>,
    /// Chains of others that drop what comes to this host and do not accept questions of pods, in words, each with whether it is one of IPv6's iptables.
    pub guarding: Vec<(String, bool)>,
    /// Ranges of pods from which firewalld, if it runs, passes nothing on.
    pub rejected_by_firewalld: Vec<String>,
    /// Commands that make firewalld accept them.
    pub remedy_for_firewalld: String,
    /// Ranges of pods that others use as well, in words.
    pub collisions: Vec<String>,
    /// Pods with a network namespace whose interface is not there, each with the interface's name.
    pub unconnected: Vec<(String, String)>,
    /// Largest packet of the uplink.
    pub uplink_mtu: Option<u32>,
    /// Of the interfaces of pods.
    pub smallest_pod_mtu: Option<u32>,
    /// Of the interfaces of pods.
    pub largest_pod_mtu: Option<u32>,
    /// Packets that NetworkPolicies denied since the table was made.
    pub denied: Vec<Denied>,
}

/// Looks at the network of the daemon with these paths. Needs the right to list packet rules.
pub fn view(paths: &Paths) -> Result<NetworkView, NetlinkError> {
    let names = Names::new(paths.instance());
    let rules = Rules::new(names.clone());
    let own: Vec<AddressRange> = record::read_ranges(paths).unwrap_or_default().parsed().into_iter().flatten().collect();
    let mut dropping = Vec::new();
    for chain in rules.dropping_chains(Way::Through)? {
        if !rules.accepts_pods(&chain)? {
            dropping.push(firewalls::described(&chain));
        }
    }
    let mut guarding = Vec::new();
    for chain in rules.dropping_chains(Way::In)? {
        if !rules.accepts_pods(&chain)? {
            guarding.push(chain);
        }
    }
    let rejected = rules.rejected_by_firewalld(&own)?;
    let links = links::list(&names).unwrap_or_default();
    let mtus: Vec<u32> = links.iter().map(|link| link.mtu).collect();
    Ok(NetworkView {
        has_rules: rules.is_there()?,
        dropping,
        guarding: guarding.iter().map(|chain| (firewalls::described(chain), chain.family == IPV6)).collect(),
        rejected_by_firewalld: rejected.iter().map(ToString::to_string).collect(),
        remedy_for_firewalld: firewalld::remedy(&rejected),
        collisions: ranges::collisions(&own, &ranges::used_networks(&names)?).iter().map(ToString::to_string).collect(),
        unconnected: unconnected(paths, &names, &links),
        uplink_mtu: uplink::mtu(&names)?,
        smallest_pod_mtu: mtus.iter().min().copied(),
        largest_pod_mtu: mtus.iter().max().copied(),
        denied: denied(&names, &leases(paths))?,
    })
}

fn leases(paths: &Paths) -> Vec<Lease> {
    let (leases, _) = record::read_leases(paths).unwrap_or_default();
    leases.into_iter().map(|(_, lease)| lease).collect()
}

/// Packets that NetworkPolicies denied to or of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denied {
    /// The pod.
    pub pod: PodFullName,
    /// Connections to it, or from it.
    pub direction: Direction,
    /// Number of packets.
    pub packets: u64,
}

/// The packets that were denied, added up over the addresses of each of these pods.
pub(super) fn denied(names: &Names, leases: &[Lease]) -> Result<Vec<Denied>, NetlinkError> {
    let mut found: BTreeMap<(PodFullName, Direction), u64> = BTreeMap::new();
    for (direction, address, packets) in policies::denied::read(names)? {
        if let Some(lease) = leases.iter().find(|lease| lease.addresses.contains(&address)) {
            *found.entry((lease.pod.clone(), direction)).or_default() += packets;
        }
    }
    Ok(found.into_iter().map(|((pod, direction), packets)| Denied { pod, direction, packets }).collect())
}

/// Pods that live and have no interface.
fn unconnected(paths: &Paths, names: &Names, links: &[Link]) -> Vec<(String, String)> {
    let (leases, _) = record::read_leases(paths).unwrap_or_default();
    let lacking = leases.iter().filter_map(|(uid, lease)| {
        let interface = names.interface(lease.slot?);
        let lives = fs::symlink_metadata(paths.namespaces(uid).join("net")).is_ok();
        let is_there = links.iter().any(|link| link.name == interface);
        (lives && !is_there).then(|| (format!("{}/{}", lease.pod.namespace, lease.pod.name), interface))
    });
    lacking.collect()
}

const PROC: &str = "/proc";

/// The program on this host that listens at a port that leads to a pod, but for podstead's own resolver; `None` if there is none.
pub fn listener(port: &HostPort) -> Option<String> {
    let is_resolver = |address: IpAddr, _| address == RESOLVER_ON_HOST;
    let listener = listeners::in_the_way(port, is_resolver).ok().flatten()?;
    Some(listeners::owner(Path::new(PROC), &listener).unwrap_or_else(|| "a service on this host".to_owned()))
}

/// Owner of the port that serves DNS for pods on the host's network, if that is not the daemon.
pub fn in_place_of_resolver() -> Option<String> {
    [Protocol::Udp, Protocol::Tcp].into_iter().find_map(|protocol| {
        let port = HostPort { protocol, host_ip: Some(RESOLVER_ON_HOST.into()), host_port: 53, container_port: 53 };
        let owner_of = |is_other: &dyn Fn(IpAddr) -> bool| {
            let found = listeners::in_the_way(&port, |address, _| is_other(address)).ok().flatten()?;
            Some(listeners::owner(Path::new(PROC), &found).unwrap_or_else(|| "a service on this host".to_owned()))
        };
        // One of all addresses may have been there before the daemon's.
        match owner_of(&|address| address != RESOLVER_ON_HOST) {
            Some(owner) => Some(owner).filter(|owner| !owner.starts_with("podstead ")),
            None => owner_of(&|_| false),
        }
    })
}
