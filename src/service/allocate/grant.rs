//! Grants of addresses and ports, the pool that they come from, and refusals. **Pure**.

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
    pub(super) const fn range(&self, family: Family) -> Option<Subnet> {
        match family {
            Family::V4 => self.ipv4,
            Family::V6 => self.ipv6,
        }
    }

    /// Families of the host, the preferred one first.
    pub(super) fn families(&self) -> Vec<Family> {
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

impl Allocation {
    pub(super) fn refuse(
        &mut self,
        service: &ObjectName,
        field: impl Into<String>,
        reason: RefusalReason,
        message: impl Into<String>,
    ) {
        self.refusals.push(Refusal { service: service.clone(), field: field.into(), reason, message: message.into() });
    }

    pub(super) fn grant(&mut self, service: &ObjectName) -> &mut Grant {
        self.grants.entry(service.clone()).or_default()
    }
}
