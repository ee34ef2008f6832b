//! The decision of NetworkPolicies on one connection, for people: from the records of this host, also while no daemon runs.

use super::lease::Lease;
use super::names::Names;
use super::policies::PolicyObjects;
use super::services::recovery;
use super::tracked::own_addresses;
use super::{GATEWAY_V4, GATEWAY_V6, record};
use crate::record::RecordError;
use podstead_pod::host_ports::Protocol;
use podstead_policy::compile::{PolicedPod, Policies, RESOLVER_PORT};
use podstead_policy::definition::Direction;
pub use podstead_policy::explain::Reason;
use podstead_policy::explain::{End, reason};
use podstead_service::allocate::Grant;
use podstead_service::frontends::{Frontend, Frontends};
use podstead_service::name::ObjectName;
use podstead_sys::layout::Paths;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection, as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A Service or a pod of the namespace; a Service goes before a pod of its name.
    Named(ObjectName),
    /// An address.
    Address(IpAddr),
}

/// The decision on a connection over one address family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Address of the source.
    pub source: IpAddr,
    /// Address of the destination.
    pub destination: IpAddr,
    /// Its port.
    pub port: u16,
    /// The address of a Service that leads there.
    pub through: Option<IpAddr>,
    /// The end at that address.
    pub end: Receiver,
    /// The reason of the source's policies.
    pub egress: Reason,
    /// The reason of the destination's policies.
    pub ingress: Reason,
}

/// The end that receives a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// A pod.
    Pod(ObjectName),
    /// The resolver of pods.
    Resolver,
    /// This host, which policies do not filter (N8).
    Host,
    /// Another host.
    Outside,
}

/// Reason why a connection cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A record cannot be read.
    #[error("read the records of the pod network")]
    Records(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No pod of podstead's own network has the name.
    #[error("pod {0} has no address of podstead's own network: NetworkPolicies are not enforced for it, or it does not exist")]
    NoPod(ObjectName),
    /// Nothing is behind a port of a Service.
    #[error("Service {0} has no endpoint at port {1}/{2}: connections are refused")]
    NoEndpoint(ObjectName, u16, Protocol),
    /// Both ends have no family in common.
    #[error("source and destination have no address family in common")]
    NoFamily,
}

impl Traced {
    /// Returns true if the connection passes.
    pub const fn is_allowed(&self) -> bool {
        !matches!(self.egress, Reason::Denied(_)) && !matches!(self.ingress, Reason::Denied(_))
    }
}

fn records<E: std::error::Error + Send + Sync + 'static>(error: E) -> TraceError {
    TraceError::Records(Box::new(error))
}

/// The decisions of the policies in force on a connection of a pod, one of each address family.
pub fn trace(
    paths: &Paths,
    node: &str,
    from: &ObjectName,
    to: &Destination,
    port: (Protocol, u16),
) -> Result<Vec<Traced>, TraceError> {
    let (leases, _) = record::read_leases(paths).map_err(records::<RecordError>)?;
    let objects = record::read_policies(paths).map_err(records::<RecordError>)?;
    let pods: Vec<PolicedPod> = leases.iter().map(|(_, lease)| policed(lease)).filter(|pod| !pod.addresses.is_empty()).collect();
    let own = own_addresses();
    let decide = |to: &Destination, port| decisions(&objects, &pods, &own, node, from, to, port);
    let (protocol, number) = port;
    let addresses = match to {
        Destination::Address(address) => vec![*address],
        Destination::Named(name) => addresses_of_service(paths, name),
    };
    // Without root, or without a table, there are no Services.
    let frontends = recovery::read(&Names::new(paths.instance())).ok().flatten().unwrap_or_default();
    let behind = endpoints(&frontends, &addresses, port);
    let is_pod = matches!(to, Destination::Named(name) if find(&pods, node, name).is_ok());
    if behind.is_empty() {
        return match to {
            Destination::Named(name) if !addresses.is_empty() && !is_pod => {
                Err(TraceError::NoEndpoint(name.clone(), number, protocol))
            }
            Destination::Named(_) | Destination::Address(_) => decide(to, port),
        };
    }
    let mut traced = Vec::new();
    for (address, endpoint) in behind {
        match decide(&Destination::Address(endpoint.ip()), (protocol, endpoint.port())) {
            Ok(found) => traced.extend(found.into_iter().map(|found| Traced { through: Some(address), ..found })),
            // The other family of the Service may do.
            Err(TraceError::NoFamily) => {}
            Err(error) => return Err(error),
        }
    }
    if traced.is_empty() { Err(TraceError::NoFamily) } else { Ok(traced) }
}

/// The endpoints behind a port of these addresses, each with the address (pure).
fn endpoints(frontends: &Frontends, addresses: &[IpAddr], (protocol, number): (Protocol, u16)) -> Vec<(IpAddr, SocketAddr)> {
    let mut found = Vec::new();
    for (frontend, backing) in frontends.iter() {
        if let Frontend::Address(socket) = frontend
            && addresses.contains(&socket.address)
            && (socket.protocol, socket.port) == (protocol, number)
        {
            found.extend(backing.endpoints.iter().map(|endpoint| (socket.address, *endpoint)));
        }
    }
    found
}

/// The addresses that a Service has on record; none if there is no such Service.
fn addresses_of_service(paths: &Paths, name: &ObjectName) -> Vec<IpAddr> {
    #[derive(Deserialize)]
    struct Record {
        grant: Grant,
    }
    /// The names of Services are DNS labels.
    const SAFE: fn(char) -> bool = |character| character.is_ascii_alphanumeric() || character == '-';
    if ![&name.namespace, &name.name].iter().all(|part| part.chars().all(SAFE)) {
        return Vec::new();
    }
    let path = paths.services().join(format!("{}_{}.json", name.namespace, name.name));
    let record = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
    record.map(|record| record.grant.cluster_ips).unwrap_or_default()
}

fn policed(lease: &Lease) -> PolicedPod {
    lease.facts.policed(&lease.pod, lease.addresses.clone())
}

/// The pod of that name, or of that name on the node.
fn find<'a>(pods: &'a [PolicedPod], node: &str, name: &ObjectName) -> Result<&'a PolicedPod, TraceError> {
    let on_node = format!("{}-{node}", name.name);
    let in_namespace = pods.iter().filter(|pod| pod.name.namespace == name.namespace);
    let named = |wanted: &str| in_namespace.clone().find(|pod| pod.name.name == wanted);
    named(&name.name).or_else(|| named(&on_node)).ok_or_else(|| TraceError::NoPod(name.clone()))
}

/// The decisions (pure).
fn decisions(
    objects: &PolicyObjects,
    pods: &[PolicedPod],
    own: &[IpAddr],
    node: &str,
    from: &ObjectName,
    to: &Destination,
    port: (Protocol, u16),
) -> Result<Vec<Traced>, TraceError> {
    let policies = objects.read();
    let source = find(pods, node, from)?;
    let destinations = match to {
        Destination::Address(address) => vec![*address],
        Destination::Named(name) => find(pods, node, name)?.addresses.clone(),
    };
    let pair = |address: &IpAddr| {
        let own = source.addresses.iter().find(|own| own.is_ipv4() == address.is_ipv4())?;
        Some((*own, *address))
    };
    let traced: Vec<Traced> = destinations
        .iter()
        .filter_map(pair)
        .map(|(own_address, address)| one(&policies, pods, own, (source, own_address), address, port))
        .collect();
    if traced.is_empty() { Err(TraceError::NoFamily) } else { Ok(traced) }
}

fn one(
    policies: &Policies,
    pods: &[PolicedPod],
    own: &[IpAddr],
    (source, source_address): (&PolicedPod, IpAddr),
    address: IpAddr,
    port: (Protocol, u16),
) -> Traced {
    let gateways = [GATEWAY_V4.into(), GATEWAY_V6.into()];
    let resolver = PolicedPod::resolver(&gateways);
    let pod = pods.iter().find(|pod| pod.addresses.contains(&address));
    let is_resolver = gateways.contains(&address) && port.1 == RESOLVER_PORT && port.0 != Protocol::Sctp;
    let end = match pod {
        Some(pod) => Receiver::Pod(pod.name.clone()),
        None if is_resolver => Receiver::Resolver,
        None if own.contains(&address) || gateways.contains(&address) => Receiver::Host,
        None => Receiver::Outside,
    };
    let is_filtered = end != Receiver::Host && source_address != address;
    let far = End { address, pod: pod.or(is_resolver.then_some(&resolver)) };
    let near = End { address: source_address, pod: Some(source) };
    let egress = if is_filtered { reason(policies, Direction::Egress, source, far, Some(port)) } else { Reason::NotSelected };
    let ingress = match pod.filter(|_| is_filtered) {
        Some(pod) => reason(policies, Direction::Ingress, pod, near, Some(port)),
        None => Reason::NotSelected,
    };
    Traced { source: source_address, destination: address, port: port.1, through: None, end, egress, ingress }
}

#[cfg(test)]
mod tests {
    use super::super::policies::ScopedPolicy;
    use super::*;
    use std::collections::BTreeMap;

    fn pod(app: &str, last: u8) -> PolicedPod {
        PolicedPod {
            name: ObjectName { namespace: "shop".into(), name: format!("{app}-edge") },
            source: None,
            labels: BTreeMap::from([("app".to_owned(), app.to_owned())]),
            addresses: vec![IpAddr::from([10, 201, 0, last])],
            ports: BTreeMap::new(),
        }
    }

    fn asked(to: &str, port: u16) -> Result<Traced, TraceError> {
        let policy = |text: &str| ScopedPolicy { object: serde_yaml::from_str(text).unwrap(), only_of: None };
        let policies = vec![
            policy("{metadata: {name: deny, namespace: shop}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}"),
            policy(
                "{metadata: {name: web, namespace: shop}, spec: {podSelector: {}, egress: [{ports: [{port: 80}]}], ingress: [{ports: [{port: 80}]}]}}",
            ),
        ];
        let objects = PolicyObjects { policies, ..PolicyObjects::default() };
        let name = |name: &str| ObjectName { namespace: "shop".into(), name: name.into() };
        let to = to.parse().map_or_else(|_| Destination::Named(name(to)), Destination::Address);
        let own = ["192.0.2.1".parse().unwrap()];
        decisions(&objects, &[pod("web", 1), pod("db", 2)], &own, "edge", &name("db"), &to, (Protocol::Tcp, port))
            .map(|mut traced| traced.remove(0))
    }

    #[test]
    fn ends_and_policies_are_named() {
        let passed = asked("web", 80).unwrap();
        assert_eq!(passed.end, Receiver::Pod(ObjectName { namespace: "shop".into(), name: "web-edge".into() }));
        let web = ObjectName { namespace: "shop".into(), name: "web".into() };
        assert_eq!(passed.egress, Reason::Allowed(web.clone(), "spec.egress[0]".into()));
        assert_eq!(passed.ingress, Reason::Allowed(web, "spec.ingress[0]".into()));
        assert!(passed.is_allowed() && !asked("web", 81).unwrap().is_allowed());
        for (address, end, is_allowed) in [
            ("192.0.2.1", Receiver::Host, true),
            ("192.0.2.9", Receiver::Outside, false),
            ("169.254.0.1", Receiver::Resolver, false),
            ("10.201.0.2", Receiver::Pod(ObjectName { namespace: "shop".into(), name: "db-edge".into() }), true),
        ] {
            let traced = asked(address, 53).unwrap();
            assert_eq!((traced.end.clone(), traced.is_allowed()), (end, is_allowed), "{address}");
        }
        assert!(matches!(asked("nobody", 1), Err(TraceError::NoPod(_))));
        assert!(matches!(asked("::1", 1), Err(TraceError::NoFamily)));
    }
}
