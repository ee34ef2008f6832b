//! What is so on this host, for who examines it. Nothing is changed.

use super::names::Names;
use super::rules::{Rules, Way};
use super::{firewalls, links, ranges, record, uplink};
use crate::config::{AddressRange, Paths};
use crate::sys::netlink::NetlinkError;

/// The network of pods as the kernel knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkView {
    /// podstead's table is there with all its chains.
    pub has_rules: bool,
    /// Chains of others that drop what passes and do not accept pods, in words.
    pub dropping: Vec<String>,
    /// firewalld has its table.
    pub has_firewalld: bool,
    /// Ranges of pods that others use as well, in words.
    pub collisions: Vec<String>,
    /// The ranges that pods have their addresses from.
    pub ranges: Vec<String>,
    /// Largest packet of the uplink.
    pub uplink_mtu: Option<u32>,
    /// Of the interfaces of pods.
    pub smallest_pod_mtu: Option<u32>,
    /// Of the interfaces of pods.
    pub largest_pod_mtu: Option<u32>,
}

/// Looks at the network of the daemon with these paths. Needs the right to list packet rules.
pub fn view(paths: &Paths) -> Result<NetworkView, NetlinkError> {
    let names = Names::new(paths.instance());
    let mut rules = Rules::new(names.clone());
    let own: Vec<AddressRange> = record::read_ranges(paths).unwrap_or_default().parsed().into_iter().flatten().collect();
    let mut dropping = Vec::new();
    for chain in rules.dropping_chains(Way::Through)? {
        if !rules.accepts_pods(&chain)? {
            dropping.push(firewalls::described(&chain));
        }
    }
    let mtus: Vec<u32> = links::list(&names).unwrap_or_default().iter().map(|link| link.mtu).collect();
    Ok(NetworkView {
        has_rules: rules.is_there()?,
        dropping,
        has_firewalld: rules.has_base_chain_of("firewalld")?,
        collisions: ranges::collisions(&own, &ranges::used_networks(&names)?).iter().map(ToString::to_string).collect(),
        ranges: own.iter().map(ToString::to_string).collect(),
        uplink_mtu: uplink::mtu(&names)?,
        smallest_pod_mtu: mtus.iter().min().copied(),
        largest_pod_mtu: mtus.iter().max().copied(),
    })
}
