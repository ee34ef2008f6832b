//! Names of Services, for the zone (S23). **Pure**.

use podstead_pod::host_ports::Protocol;
use podstead_service::allocate::Grants;
use podstead_service::definition::{Definition, Role};
use podstead_service::endpoints::{Endpoint, ServiceEndpoints};
use podstead_service::name::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A Service as names show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceNames {
    /// Its name.
    pub(super) name: ObjectName,
    /// Destinations of its name, sorted; empty for a headless one without ready endpoints (S24).
    pub(super) addresses: Vec<IpAddr>,
    /// The addresses are its own, and lead back to it.
    pub(super) owns_addresses: bool,
    /// Endpoints by their names below it, of a headless one.
    pub(super) members: BTreeMap<String, BTreeSet<IpAddr>>,
    /// By port and protocol, as `_port` and `_protocol`.
    pub(super) ports: BTreeMap<(String, String), BTreeSet<PortTarget>>,
    /// The name that it stands for, without a final dot, of one of type ExternalName (S25).
    pub(super) alias: Option<String>,
}

/// Destination of a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortTarget {
    /// The name below the Service, if it is not the Service itself.
    pub(super) member: Option<String>,
    /// Number.
    pub(super) port: u16,
}

impl ServiceNames {
    /// The name of the Service.
    pub fn name(&self) -> &ObjectName {
        &self.name
    }

    /// The names of a Service; `None` if it has no address and is not headless.
    pub fn of(service: &Definition, grants: &Grants, endpoints: &ServiceEndpoints) -> Option<Self> {
        let (namespace, name) = (service.name.namespace.clone(), service.name.name.clone());
        let mut names = Self {
            name: ObjectName { namespace, name },
            addresses: Vec::new(),
            owns_addresses: false,
            members: BTreeMap::new(),
            ports: BTreeMap::new(),
            alias: None,
        };
        let mut addresses = BTreeSet::new();
        match &service.role {
            Role::ExternalName { target } => names.alias = Some(target.clone()),
            Role::Cluster { .. } => {
                addresses.extend(&grants.get(&service.name)?.cluster_ips);
                names.owns_addresses = true;
                for port in &service.ports {
                    names.add_port(&port.name, port.protocol, PortTarget { member: None, port: port.number });
                }
            }
            Role::Headless(_) => {
                for endpoint in endpoints.addresses.iter().filter(|endpoint| endpoint.is_ready) {
                    addresses.insert(endpoint.socket.ip());
                    names.members.entry(member(endpoint)).or_default().insert(endpoint.socket.ip());
                }
                for (port, list) in service.ports.iter().zip(&endpoints.ports) {
                    for endpoint in list.iter().filter(|endpoint| endpoint.is_ready) {
                        let target = PortTarget { member: Some(member(endpoint)), port: endpoint.socket.port() };
                        names.add_port(&port.name, port.protocol, target);
                    }
                }
            }
        }
        names.addresses = addresses.into_iter().collect();
        (!names.owns_addresses || !names.addresses.is_empty()).then_some(names)
    }

    /// Only ports with names have them in names.
    fn add_port(&mut self, name: &str, protocol: Protocol, target: PortTarget) {
        if !name.is_empty() {
            let labels = (format!("_{name}"), format!("_{}", protocol.to_string().to_lowercase()));
            self.ports.entry(labels).or_default().insert(target);
        }
    }
}

/// The name of an endpoint below its Service: its host name, else its address.
fn member(endpoint: &Endpoint) -> String {
    let dashed = || endpoint.socket.ip().to_string().replace(['.', ':'], "-");
    endpoint.hostname.as_ref().map_or_else(dashed, |hostname| hostname.to_ascii_lowercase())
}
