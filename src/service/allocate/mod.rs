//! Addresses of Services and ports of the host that lead to them (S4 to S9, S11).
//!
//! The same Services and the same grants give the same result in any order, but where two new Services ask for one thing: the first one gets
//! it. What was granted stays with its holder; the caller records the grants before anything else tells of them (S6).

mod addresses;
mod place;
mod ports;

#[cfg(test)]
mod tests;

use crate::definition::{Definition, Exposure, Role};
use crate::name::ObjectName;
use crate::range::{Family, PortRange, Subnet};
use podstead_pod::host_ports::Protocol;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// Addresses and ports of one Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Grant {
    /// Its addresses: `clusterIPs`.
    #[serde(default, rename = "clusterIPs")]
    pub cluster_ips: Vec<IpAddr>,
    /// Its NodePorts.
    #[serde(default)]
    pub node_ports: Vec<NodePort>,
    /// Its own ports on addresses of the host: of a load balancer, and of `externalIPs`.
    #[serde(default)]
    pub load_balancer_ports: Vec<HostSocket>,
    /// Addresses of the host that these ports are limited to; empty for all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub host_addresses: BTreeSet<IpAddr>,
}

/// A port of the host that leads to a port of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePort {
    /// Protocol of both.
    pub protocol: Protocol,
    /// Port of the Service.
    pub port: u16,
    /// Port of the host.
    pub node_port: u16,
}

/// A port of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostSocket {
    /// Protocol.
    pub protocol: Protocol,
    /// Number.
    pub port: u16,
}

impl fmt::Display for HostSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}/{}", self.port, self.protocol)
    }
}

/// Grants by Service.
pub type Grants = BTreeMap<ObjectName, Grant>;

/// Addresses and ports that can be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Range of IPv4 addresses, if the host has IPv4.
    pub ipv4: Option<Subnet>,
    /// Range of IPv6 addresses, if the host has IPv6.
    pub ipv6: Option<Subnet>,
    /// Range of NodePorts.
    pub node_ports: PortRange,
    /// Addresses of this host that clients can connect to.
    pub host: BTreeSet<IpAddr>,
    /// Ports that others have, with their holders in words ("pod default/web", "sshd"). A grant that was recorded stays beside them.
    pub taken: BTreeMap<HostSocket, String>,
}

impl Pool {
    /// The range of a family.
    const fn range(&self, family: Family) -> Option<Subnet> {
        match family {
            Family::V4 => self.ipv4,
            Family::V6 => self.ipv6,
        }
    }

    /// Families of the host, the preferred one first.
    fn families(&self) -> Vec<Family> {
        Family::ALL.into_iter().filter(|family| self.range(*family).is_some()).collect()
    }
}

/// The grants of all Services, and what was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// A grant for each Service that has something.
    pub grants: Grants,
    /// Refusals, by Service and field.
    pub refusals: Vec<Refusal>,
}

/// Something that a Service asks for and does not get. The rest of it works.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The Service.
    pub service: ObjectName,
    /// The field as Kubernetes writes it.
    pub field: String,
    /// Class of the refusal.
    pub reason: RefusalReason,
    /// The reason in words, with the holder or the range.
    pub message: String,
}

/// Class of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// An address that another Service has.
    AddressTaken,
    /// An address outside of the range, or none is left in it.
    AddressNotInRange,
    /// A family that the host does not have.
    NoFamily,
    /// A NodePort that somebody has.
    NodePortTaken,
    /// A NodePort outside of the range, or none is left in it.
    NodePortNotInRange,
    /// A port of a load balancer that somebody has.
    LoadBalancerPortTaken,
    /// An address that the host does not have.
    NotOfHost,
    /// Fields that cannot be served together.
    Unserved,
}

/// Gives what Services ask for. `services` are those of all sources, the first of two that ask for the same goes first (S7).
pub fn allocate(services: &[&Definition], recorded: &Grants, pool: &Pool) -> Allocation {
    let mut allocation = Allocation::default();
    addresses::allocate(services, recorded, pool, &mut allocation);
    ports::allocate(services, recorded, pool, &mut allocation);
    allocation.refusals.sort();
    allocation
}

impl Allocation {
    fn refuse(&mut self, service: &ObjectName, field: impl Into<String>, reason: RefusalReason, message: impl Into<String>) {
        self.refusals.push(Refusal { service: service.clone(), field: field.into(), reason, message: message.into() });
    }

    fn grant(&mut self, service: &ObjectName) -> &mut Grant {
        self.grants.entry(service.clone()).or_default()
    }
}

/// Exposure of a Service with addresses.
fn exposure(service: &Definition) -> Option<&Exposure> {
    match &service.role {
        Role::Cluster { exposure, .. } => Some(exposure),
        Role::ExternalName { .. } | Role::Headless(_) => None,
    }
}

/// A number that a name leads to on every host and in every version (S5): FNV-1a with 64 bits, its bits mixed as in MurmurHash 3, since
/// the upper ones of short names are alike.
fn hash(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// The numbers of a range of `count`, once each, from the one that the name leads to: first those from `reserved` on, then the reserved ones.
fn candidates(name: &str, count: u64, reserved: u64) -> impl Iterator<Item = u64> {
    let reserved = if reserved < count { reserved } else { 0 };
    let chosen = count - reserved;
    let start = if chosen == 0 { 0 } else { hash(name) % chosen };
    (0..chosen).map(move |step| reserved + (start + step) % chosen).chain(0..reserved)
}
