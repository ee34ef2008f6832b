//! The decision of packet rules on one connection of a pod, for people: from the records of this host, also while no daemon runs.

mod way;

use super::lease::Lease;
use super::listeners;
use super::policies::PolicyObjects;
use super::tracked::own_addresses;
use super::{GATEWAY_V4, GATEWAY_V6, record};
use crate::record::RecordError;
use podstead_pod::PodUid;
use podstead_pod::host_ports::{HostPort, Protocol};
use podstead_policy::compile::{PolicedPod, Policies, RESOLVER_PORT};
use podstead_policy::definition::Direction;
pub use podstead_policy::explain::Reason;
use podstead_policy::explain::{End, reason};
use podstead_service::name::ObjectName;
use podstead_sys::layout::Paths;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
pub use way::{Owner, Through};
use way::{Translations, Way};

/// The other end of a connection, as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A Service or a pod of the namespace; a Service goes before a pod of its name.
    Named(ObjectName),
    /// A Service.
    Service(ObjectName),
    /// A pod.
    Pod(ObjectName),
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
    /// The Service or the `hostPort` that leads there.
    pub through: Option<Through>,
    /// The end at that address.
    pub end: Receiver,
    /// A rule that is stronger than policies.
    pub barrier: Option<Barrier>,
    /// The reason of the source's policies.
    pub egress: Reason,
    /// The reason of the destination's policies.
    pub ingress: Reason,
    /// Somebody listens there; `None` outside of this host, and if it cannot be determined.
    pub is_heard: Option<bool>,
}

/// A rule that denies a connection whatever policies say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// This pod is isolated from other pods.
    Isolated(ObjectName),
    /// `loadBalancerSourceRanges` of the Service do not contain the source.
    SourceRanges,
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
    #[error(
        "pod {0} has no address of podstead's own network: it does not exist, or it is on the host's network or one of CNI plugins. NetworkPolicies are not enforced for such a pod; if plugins connect it, it reaches addresses of Services where this host is its router, and NodePorts otherwise"
    )]
    NoPod(ObjectName),
    /// Neither a Service nor a pod has the name.
    #[error(
        "neither a Service with an address nor a pod of podstead's own network has the name {0} (a headless Service has no address: name one of its pods)"
    )]
    NoDestination(ObjectName),
    /// No Service of this name has an address.
    #[error(
        "no Service {0} has an address: podstead get services -A lists them (a headless Service has none: name one of its pods)"
    )]
    NoServiceNamed(ObjectName),
    /// An address of the pods' range that no pod has.
    #[error("no pod has the address {0}: nobody answers")]
    NoPodAt(IpAddr),
    /// An address that no Service has.
    #[error("no Service has the address {0}: connections are refused")]
    NoService(IpAddr),
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
        self.barrier.is_none() && !matches!(self.egress, Reason::Denied(_)) && !matches!(self.ingress, Reason::Denied(_))
    }
}

fn records<E: std::error::Error + Send + Sync + 'static>(error: E) -> TraceError {
    TraceError::Records(Box::new(error))
}

/// The state that decides.
struct Rules<'a> {
    policies: Policies,
    pods: &'a [PolicedPod],
    /// Addresses of isolated pods.
    isolated: BTreeSet<IpAddr>,
    /// Addresses of the host.
    own: &'a [IpAddr],
    /// Name of this host.
    node: &'a str,
}

/// The decisions on a connection of a pod, for each endpoint that it may be led to.
pub fn trace(
    paths: &Paths,
    node: &str,
    from: &ObjectName,
    to: &Destination,
    port: (Protocol, u16),
) -> Result<Vec<Traced>, TraceError> {
    let (found, _) = record::read_leases(paths).map_err(records::<RecordError>)?;
    let uid_of = |(uid, lease): &(PodUid, Lease)| (name_of(lease), uid.clone());
    let uids: BTreeMap<ObjectName, PodUid> = found.iter().map(uid_of).collect();
    let leases: Vec<Lease> = found.into_iter().map(|(_, lease)| lease).collect();
    let objects = record::read_policies(paths).map_err(records::<RecordError>)?;
    let own = own_addresses();
    let translations = Translations::read(paths, &leases, &own);
    let mut traced = decisions(&Host { objects, leases, translations, own, node }, from, to, port)?;
    for traced in &mut traced {
        let netns = match &traced.end {
            Receiver::Pod(name) => uids.get(name).map(|uid| paths.namespaces(uid).join("net")),
            Receiver::Host => None,
            Receiver::Resolver | Receiver::Outside => continue,
        };
        let (protocol, host_ip) = (port.0, Some(traced.destination));
        let at = HostPort { protocol, host_ip, host_port: traced.port, container_port: traced.port };
        traced.is_heard = listeners::is_heard(netns.as_deref(), &at);
    }
    Ok(traced)
}

fn name_of(lease: &Lease) -> ObjectName {
    ObjectName { namespace: (&lease.pod.namespace).into(), name: (&lease.pod.name).into() }
}

/// Records of the host.
struct Host<'a> {
    objects: PolicyObjects,
    leases: Vec<Lease>,
    translations: Translations,
    /// Its addresses.
    own: Vec<IpAddr>,
    /// Its name.
    node: &'a str,
}

/// The decisions (pure).
fn decisions(host: &Host<'_>, from: &ObjectName, to: &Destination, port: (Protocol, u16)) -> Result<Vec<Traced>, TraceError> {
    let Host { objects, leases, translations, own, node } = host;
    let pods: Vec<PolicedPod> = leases.iter().map(policed).filter(|pod| !pod.addresses.is_empty()).collect();
    let isolated = leases.iter().filter(|lease| lease.is_isolated).flat_map(|lease| lease.addresses.iter().copied()).collect();
    let rules = Rules { policies: objects.read(), pods: &pods, isolated, own, node };
    let source = rules.find(from).ok_or_else(|| TraceError::NoPod(from.clone()))?;
    let mut traced = Vec::new();
    let mut refusal = None;
    for address in rules.addresses(to, translations)? {
        let Some(near) = source.addresses.iter().find(|own| own.is_ipv4() == address.is_ipv4()) else { continue };
        match translations.ways(&source.addresses, address, port) {
            Ok(ways) => {
                let all: Vec<Traced> = ways.into_iter().map(|way| rules.one((source, *near), port.0, way)).collect();
                match all.iter().find(|one| one.end == Receiver::Outside && translations.is_of_pods(one.destination)) {
                    Some(lost) => refusal = refusal.or(Some(TraceError::NoPodAt(lost.destination))),
                    None => traced.extend(all),
                }
            }
            // The other family of the Service may do.
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    match (traced.is_empty(), refusal) {
        (false, _) => Ok(traced),
        (true, Some(error)) => Err(error),
        (true, None) => Err(TraceError::NoFamily),
    }
}

fn policed(lease: &Lease) -> PolicedPod {
    lease.facts.policed(&lease.pod, lease.addresses.clone())
}

impl Rules<'_> {
    /// The pod of that name, or of that name on the node.
    fn find(&self, name: &ObjectName) -> Option<&PolicedPod> {
        let on_node = format!("{}-{}", name.name, self.node);
        let in_namespace = self.pods.iter().filter(|pod| pod.name.namespace == name.namespace);
        let named = |wanted: &str| in_namespace.clone().find(|pod| pod.name.name == wanted);
        named(&name.name).or_else(|| named(&on_node))
    }

    fn addresses(&self, to: &Destination, translations: &Translations) -> Result<Vec<IpAddr>, TraceError> {
        let of_pod = |name: &ObjectName| self.find(name).map(|pod| pod.addresses.clone());
        match to {
            Destination::Address(address) => Ok(vec![*address]),
            Destination::Pod(name) => of_pod(name).ok_or_else(|| TraceError::NoPod(name.clone())),
            Destination::Service(name) => translations.addresses_of(name).ok_or_else(|| TraceError::NoServiceNamed(name.clone())),
            Destination::Named(name) => {
                let found = translations.addresses_of(name).or_else(|| of_pod(name));
                let elsewhere = || {
                    let name = in_namespace(name)?;
                    translations.addresses_of(&name).or_else(|| of_pod(&name))
                };
                found.or_else(elsewhere).ok_or_else(|| TraceError::NoDestination(name.clone()))
            }
        }
    }

    fn one(&self, (source, near): (&PolicedPod, IpAddr), protocol: Protocol, way: Way) -> Traced {
        let Way { to, through, is_fenced } = way;
        let (address, port) = (to.ip(), (protocol, to.port()));
        let gateways = [GATEWAY_V4.into(), GATEWAY_V6.into()];
        let resolver = PolicedPod::resolver(&gateways);
        let pod = self.pods.iter().find(|pod| pod.addresses.contains(&address));
        let is_resolver = gateways.contains(&address) && port.1 == RESOLVER_PORT && port.0 != Protocol::Sctp;
        let end = match pod {
            Some(pod) => Receiver::Pod(pod.name.clone()),
            None if is_resolver => Receiver::Resolver,
            None if self.own.contains(&address) || gateways.contains(&address) => Receiver::Host,
            None => Receiver::Outside,
        };
        let is_filtered = end != Receiver::Host && near != address;
        let far = End { address, pod: pod.or(is_resolver.then_some(&resolver)) };
        let here = End { address: near, pod: Some(source) };
        let policies = &self.policies;
        let egress = if is_filtered { reason(policies, Direction::Egress, source, far, Some(port)) } else { Reason::NotSelected };
        let ingress = match pod.filter(|_| is_filtered) {
            Some(pod) => reason(policies, Direction::Ingress, pod, here, Some(port)),
            None => Reason::NotSelected,
        };
        let isolated =
            [Some(source), pod].into_iter().flatten().find(|pod| pod.addresses.iter().any(|own| self.isolated.contains(own)));
        let barrier = match isolated.filter(|_| pod.is_some() && is_filtered) {
            _ if is_fenced => Some(Barrier::SourceRanges),
            Some(pod) => Some(Barrier::Isolated(pod.name.clone())),
            None => None,
        };
        Traced { source: near, destination: address, port: port.1, through, end, barrier, egress, ingress, is_heard: None }
    }
}

/// `web.shop`, `web.shop.svc` and longer names as the object that they mean; `None` for a name without a namespace.
fn in_namespace(name: &ObjectName) -> Option<ObjectName> {
    let mut labels = name.name.split('.');
    let (name, namespace, svc) = (labels.next()?, labels.next()?, labels.next());
    let is_name = svc.is_none_or(|label| label == "svc") && !name.is_empty() && !namespace.is_empty();
    is_name.then(|| ObjectName { namespace: namespace.into(), name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::super::lease::Facts;
    use super::super::policies::ScopedPolicy;
    use super::*;
    use podstead_pod::PodFullName;

    fn pod(app: &str, last: u8) -> Lease {
        Lease {
            pod: PodFullName { namespace: "shop".into(), name: format!("{app}-edge") },
            slot: Some(last.into()),
            addresses: vec![IpAddr::from([10, 201, 0, last])],
            ports: Vec::new(),
            is_isolated: app == "alone",
            facts: Facts { labels: BTreeMap::from([("app".to_owned(), app.to_owned())]), ..Facts::default() },
            holds_ports: false,
        }
    }

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "shop".into(), name: name.into() }
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
        let to = to.parse().map_or_else(|_| Destination::Named(name(to)), Destination::Address);
        let own = ["192.0.2.1".parse().unwrap()];
        let leases = vec![pod("web", 1), pod("db", 2), pod("alone", 3)];
        let host = Host { objects, leases, translations: Translations::default(), own: own.to_vec(), node: "edge" };
        decisions(&host, &name("db"), &to, (Protocol::Tcp, port)).map(|mut traced| traced.remove(0))
    }

    #[test]
    fn ends_and_policies_are_named() {
        let passed = asked("web", 80).unwrap();
        assert_eq!(passed.end, Receiver::Pod(name("web-edge")));
        assert_eq!(passed.egress, Reason::Allowed(name("web"), "spec.egress[0]".into()));
        assert_eq!(passed.ingress, Reason::Allowed(name("web"), "spec.ingress[0]".into()));
        assert!(passed.is_allowed() && !asked("web", 81).unwrap().is_allowed());
        for (address, end, is_allowed) in [
            ("192.0.2.1", Receiver::Host, true),
            ("192.0.2.9", Receiver::Outside, false),
            ("169.254.0.1", Receiver::Resolver, false),
            ("10.201.0.2", Receiver::Pod(name("db-edge")), true),
        ] {
            let traced = asked(address, 53).unwrap();
            assert_eq!((traced.end.clone(), traced.is_allowed()), (end, is_allowed), "{address}");
        }
        assert!(matches!(asked("nobody", 1), Err(TraceError::NoDestination(_))));
        assert!(matches!(asked("::1", 1), Err(TraceError::NoFamily)));
    }

    #[test]
    fn names_may_have_their_namespace() {
        for text in ["web.shop", "web.shop.svc", "web.shop.svc.cluster.local"] {
            assert_eq!(asked(text, 80).unwrap().end, Receiver::Pod(name("web-edge")), "{text}");
        }
        assert!(matches!(asked("web.shop.example", 80), Err(TraceError::NoDestination(_))));
        assert!(matches!(asked("web.other", 80), Err(TraceError::NoDestination(_))));
    }

    #[test]
    fn isolation_is_stronger_than_policies() {
        let traced = asked("alone", 80).unwrap();
        assert_eq!((traced.barrier.clone(), traced.is_allowed()), (Some(Barrier::Isolated(name("alone-edge"))), false));
        assert_eq!(asked("web", 80).unwrap().barrier, None);
    }
}
