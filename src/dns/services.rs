//! Names of Services, for the zone (S23). **Pure**.

use podstead_pod::SmolStr;
use podstead_pod::host_ports::Protocol;
use podstead_service::allocate::Grants;
use podstead_service::definition::{Definition, Role};
use podstead_service::endpoints::{Endpoint, ServiceEndpoints};
use podstead_service::name::ObjectName;
use podstead_service::shared_map::SharedMap;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A Service as names show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceNames {
    /// Its name.
    pub(super) name: ObjectName,
    /// Destinations of its name, sorted; empty for a headless one without ready endpoints (S24).
    pub(super) addresses: Box<[IpAddr]>,
    /// The addresses are its own, and lead back to it.
    pub(super) owns_addresses: bool,
    /// Properties beside them. There are many Services, and most have none.
    more: Option<Box<MoreNames>>,
}

/// Names below that of a Service, and the one that it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MoreNames {
    /// Endpoints by their names below it, of a headless one.
    members: BTreeMap<String, BTreeSet<IpAddr>>,
    /// By port and protocol, as `_port` and `_protocol`.
    ports: BTreeMap<(String, String), BTreeSet<PortTarget>>,
    /// The name that it stands for, without a final dot, of one of type ExternalName (S25).
    alias: Option<String>,
}

/// The names of all Services. Copies share what they have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamesOfServices {
    by_name: SharedMap<ByName, Arc<ServiceNames>>,
    /// Those that own an address.
    by_address: SharedMap<IpAddr, Arc<ServiceNames>>,
    /// Number of Services of each namespace.
    namespaces: SharedMap<SmolStr, usize>,
}

/// Names as their own key.
#[derive(Clone, Debug)]
struct ByName(Arc<ServiceNames>);

impl Borrow<ObjectName> for ByName {
    fn borrow(&self) -> &ObjectName {
        &self.0.name
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl NamesOfServices {
    /// Sets the names of a Service.
    pub fn insert(&mut self, names: ServiceNames) {
        self.remove(&names.name.clone());
        let names = Arc::new(names);
        for address in names.addresses.iter().filter(|_| names.owns_addresses) {
            self.by_address.insert(*address, Arc::clone(&names));
        }
        let count = self.namespaces.get(&names.name.namespace).copied().unwrap_or_default();
        self.namespaces.insert(names.name.namespace.clone(), count + 1);
        self.by_name.insert(ByName(Arc::clone(&names)), names);
    }

    /// Removes the names of a Service.
    pub fn remove(&mut self, service: &ObjectName) {
        let Some(names) = self.by_name.remove(service) else { return };
        for address in names.addresses.iter().filter(|_| names.owns_addresses) {
            // Another one may have it meanwhile.
            if self.by_address.get(address).is_some_and(|owner| owner.name == *service) {
                self.by_address.remove(address);
            }
        }
        let count = self.namespaces.get(&service.namespace).copied().unwrap_or_default();
        if count > 1 {
            self.namespaces.insert(service.namespace.clone(), count - 1);
        } else {
            self.namespaces.remove(&service.namespace);
        }
    }

    /// These names without those of Services that have lost an address of their own in `next`.
    #[must_use]
    pub fn without_lost_addresses(&self, next: &Self) -> Self {
        let mut without = self.clone();
        for (_, names, now) in self.by_address.differences(&next.by_address) {
            if let Some(names) = names.filter(|names| now.is_none_or(|now| now.name != names.name)) {
                without.remove(&names.name);
            }
        }
        without
    }

    /// The Services that have other names in `other`.
    pub(super) fn changed<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a ObjectName> {
        self.by_name.differences(&other.by_name).map(|(name, ..)| &name.0.name)
    }

    /// The names of a Service.
    pub fn get(&self, service: &ObjectName) -> Option<&ServiceNames> {
        self.by_name.get(service).map(|names| &**names)
    }

    /// Number of Services with names.
    pub const fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns true if no Service has names.
    pub const fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<&ServiceNames> {
        self.get(&ObjectName { namespace: namespace.into(), name: name.into() })
    }

    pub(super) fn owner(&self, address: IpAddr) -> Option<&ServiceNames> {
        self.by_address.get(&address).map(|names| &**names)
    }

    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contains_key(namespace)
    }
}

impl FromIterator<ServiceNames> for NamesOfServices {
    fn from_iter<T: IntoIterator<Item = ServiceNames>>(names: T) -> Self {
        let all: Vec<Arc<ServiceNames>> = names.into_iter().map(Arc::new).collect();
        let mut namespaces: BTreeMap<SmolStr, usize> = BTreeMap::new();
        for names in &all {
            *namespaces.entry(names.name.namespace.clone()).or_default() += 1;
        }
        let owners = all.iter().filter(|names| names.owns_addresses);
        let addresses = owners.flat_map(|names| names.addresses.iter().map(move |address| (*address, Arc::clone(names))));
        Self {
            by_address: addresses.collect(),
            by_name: all.iter().map(|names| (ByName(Arc::clone(names)), Arc::clone(names))).collect(),
            namespaces: namespaces.into_iter().collect(),
        }
    }
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
        let (mut addresses, mut more) = (BTreeSet::new(), MoreNames::default());
        match &service.role {
            Role::ExternalName { target } => more.alias = Some(target.clone()),
            Role::Cluster { .. } => {
                addresses.extend(&grants.get(&service.name)?.cluster_ips);
                for port in &service.ports {
                    more.add_port(&port.name, port.protocol, PortTarget { member: None, port: port.number });
                }
            }
            Role::Headless(_) => {
                for endpoint in endpoints.addresses.iter().filter(|endpoint| endpoint.is_ready) {
                    addresses.insert(endpoint.socket.ip());
                    more.members.entry(member(endpoint)).or_default().insert(endpoint.socket.ip());
                }
                for (port, list) in service.ports.iter().zip(&endpoints.ports) {
                    for endpoint in list.iter().filter(|endpoint| endpoint.is_ready) {
                        let target = PortTarget { member: Some(member(endpoint)), port: endpoint.socket.port() };
                        more.add_port(&port.name, port.protocol, target);
                    }
                }
            }
        }
        let owns_addresses = matches!(service.role, Role::Cluster { .. });
        let more = (more != MoreNames::default()).then(|| Box::new(more));
        let names = Self { name: service.name.clone(), addresses: addresses.into_iter().collect(), owns_addresses, more };
        (!owns_addresses || !names.addresses.is_empty()).then_some(names)
    }

    /// The name that it stands for, without a final dot.
    pub(super) fn alias(&self) -> Option<&str> {
        self.more.as_ref()?.alias.as_deref()
    }

    /// Addresses of the endpoints of this name below it.
    pub(super) fn member(&self, name: &str) -> Option<&BTreeSet<IpAddr>> {
        self.more.as_ref()?.members.get(name)
    }

    /// Its ports that have names, by these and by protocol, as `_port` and `_protocol`.
    pub(super) fn ports(&self) -> impl Iterator<Item = &(String, String)> {
        self.more.iter().flat_map(|more| more.ports.keys())
    }

    /// Destinations of a port, by its name and protocol.
    pub(super) fn port(&self, labels: &(String, String)) -> Option<&BTreeSet<PortTarget>> {
        self.more.as_ref()?.ports.get(labels)
    }
}

impl MoreNames {
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
