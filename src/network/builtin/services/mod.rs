//! The packet rules of Services: fixed rules, and a change of elements for each change of frontends or endpoints. **Pure**, but for the route and for tracked connections.
//!
//! In: frontends of `podstead_service`, through [`super::rules::Rules::serve`]. Out: parts of the transaction that makes the whole table, and
//! transactions of elements (R1). The table has nothing of Services before they have a range.

pub(super) mod bonds;
pub(super) mod datagrams;
mod elements;
pub(super) mod recovery;
pub(super) mod route;
mod table;

#[cfg(test)]
mod tests;

use super::names::Names;
use podstead_service::frontends::{Chain, Change, Frontends, Operation};
use podstead_service::range::{Family, Subnet};
use podstead_sys::netlink::maps::MapElement;
use podstead_sys::netlink::nftables::Batch;
use podstead_sys::netlink::{NetlinkError, Request};
use std::collections::BTreeSet;
use std::error::Error;
use std::net::IpAddr;

pub(super) use table::BASE_CHAINS;

/// Ranges of the addresses of Services; a family without range has no Services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceRanges {
    /// Range of IPv4.
    pub ipv4: Option<Subnet>,
    /// Range of IPv6.
    pub ipv6: Option<Subnet>,
}

impl ServiceRanges {
    /// The ranges that there are.
    pub(super) fn iter(self) -> impl Iterator<Item = Subnet> {
        [self.ipv4, self.ipv6].into_iter().flatten()
    }

    /// Returns true if there is none.
    pub const fn is_empty(self) -> bool {
        self.ipv4.is_none() && self.ipv6.is_none()
    }
}

/// Reason why Services are not reachable as they should be.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The kernel refused a change.
    #[error("change the packet rules of Services")]
    Rules(#[source] NetlinkError),
    /// The host is not ready for pods.
    #[error("prepare the host")]
    Host(#[source] Box<dyn Error + Send + Sync>),
    /// The networks of the host cannot be listed.
    #[error("list the networks of this host")]
    Look(#[source] NetlinkError),
    /// The ranges cannot be read or recorded.
    #[error("record the address ranges of Services")]
    Record(#[source] Box<dyn Error + Send + Sync>),
    /// All default ranges are in use.
    #[error("all default address ranges of Services are in use on this host: set a free range in network.serviceIpv4Range")]
    NoFreeRange,
    /// The daemon is ending, or the work panicked.
    #[error("the change of the packet rules of Services was interrupted")]
    Interrupted,
}

/// Rules and maps of Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceRules {
    /// Ranges of addresses.
    pub(super) ranges: ServiceRanges,
    /// Frontends, and what is behind them.
    pub(super) frontends: Frontends,
}

impl ServiceRules {
    /// IPv4 addresses of endpoints of NodePorts: what has them is reached from 127.0.0.1, too (S10).
    pub(super) fn behind_node_ports(&self) -> BTreeSet<IpAddr> {
        let behind = self.frontends.iter().filter(|(frontend, _)| frontend.is_node_of_ipv4());
        behind.flat_map(|(_, backing)| backing.endpoints.iter().map(|endpoint| endpoint.ip())).collect()
    }

    /// Sets, maps and chains that rules refer to, with all elements.
    pub(super) fn add_maps(&self, batch: &mut Batch<'_>) {
        if self.ranges.is_empty() {
            return;
        }
        for family in Family::ALL {
            table::add_maps(batch, family);
        }
        table::add_fixed_chains(batch);
        add_chains(batch, &self.frontends.chains(), &BTreeSet::new());
        let elements = self.frontends.elements();
        add_operations(batch, elements.into_iter().map(|(key, value)| Operation::Add(key, value)));
    }

    /// Rules for destinations that are addresses of Services. They come after those of the resolver.
    pub(super) fn add_address_rules(&self, batch: &mut Batch<'_>, pod: &[u8]) {
        if !self.ranges.is_empty() {
            table::add_address_rules(batch, pod);
            table::add_guest_rules(batch);
            table::add_unserved(batch, pod, self.ranges);
        }
    }

    /// Rules for ports of the host that lead to Services. They come after hostPorts (R6).
    pub(super) fn add_node_port_rules(&self, batch: &mut Batch<'_>) {
        if !self.ranges.is_empty() {
            table::add_host_address_rules(batch);
            table::add_node_port_rules(batch);
        }
    }

    /// Rules for packets that are passed on, after those of connections that go on.
    pub(super) fn add_passing_rules(&self, batch: &mut Batch<'_>, pod: &[u8]) {
        if !self.ranges.is_empty() {
            table::add_passing_rules(batch, pod);
        }
    }

    /// Rules for first packets that go out. They come before those that rewrite sources.
    pub(super) fn add_outgoing_rules(&self, batch: &mut Batch<'_>) {
        if !self.ranges.is_empty() {
            table::add_outgoing_rules(batch);
        }
    }

    /// Base chains that these rules have.
    pub(super) const fn base_chains(&self) -> usize {
        if self.ranges.is_empty() { 0 } else { BASE_CHAINS }
    }
}

/// A transaction for a change. `made` are the chains that are in the kernel.
pub(super) fn change(names: &Names, change: &Change, made: &BTreeSet<Chain>) -> Request {
    let mut batch = Batch::new(&names.table);
    add_chains(&mut batch, &change.chains, made);
    add_operations(&mut batch, change.operations.iter().copied());
    batch.end()
}

fn add_chains(batch: &mut Batch<'_>, chains: &[Chain], made: &BTreeSet<Chain>) {
    for chain in chains.iter().filter(|chain| !made.contains(chain)) {
        table::add_chain(batch, *chain);
    }
}

/// Neighbours of one map and one direction are one message.
fn add_operations(batch: &mut Batch<'_>, operations: impl Iterator<Item = Operation>) {
    let mut pending: Option<(String, bool, Vec<MapElement>)> = None;
    for operation in operations {
        let (key, value, is_added) = match operation {
            Operation::Add(key, value) => (key, Some(value), true),
            Operation::Remove(key) => (key, None, false),
        };
        let (map, element) = (elements::map_of(&key), elements::element(&key, value));
        match &mut pending {
            Some((of, adds, list)) if *of == map && *adds == is_added => list.push(element),
            _ => {
                flush(batch, pending.take());
                pending = Some((map, is_added, vec![element]));
            }
        }
    }
    flush(batch, pending);
}

fn flush(batch: &mut Batch<'_>, pending: Option<(String, bool, Vec<MapElement>)>) {
    match pending {
        Some((map, true, list)) => batch.add_map_elements(&map, &list),
        Some((map, false, list)) => batch.delete_map_elements(&map, &list),
        None => {}
    }
}
