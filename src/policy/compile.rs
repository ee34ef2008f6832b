//! Policies and pods to classes: what each pod may receive and send (N2 to N6).

use crate::definition::{Direction, Namespaces, Peer, PodPeer, Policy, PortName, Rule};
use crate::ranges::{Block, Ports};
use crate::selector::Labels;
use k8s_openapi::api::core::v1::{Container, Pod};
use podstead_pod::SmolStr;
use podstead_pod::host_ports::Protocol;
use podstead_service::name::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Label that every namespace has, with its name (N4).
const NAME_OF_NAMESPACE: &str = "kubernetes.io/metadata.name";
/// Ports of the resolver by name (N9).
const RESOLVER_PORTS: [(&str, Protocol); 2] = [("dns", Protocol::Udp), ("dns-tcp", Protocol::Tcp)];
/// Port at which pods ask the resolver.
pub const RESOLVER_PORT: u16 = 53;

/// The properties of a pod that policies depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicedPod {
    /// Its name.
    pub name: ObjectName,
    /// Its source.
    pub source: Option<String>,
    /// Its labels.
    pub labels: Labels,
    /// Its own addresses: a pod on the host's network has none (N10).
    pub addresses: Vec<IpAddr>,
    /// Ports of its containers that have names.
    pub ports: BTreeMap<PortName, u16>,
}

impl PolicedPod {
    /// From a manifest, without addresses.
    pub fn of(pod: &Pod) -> Self {
        Self {
            name: ObjectName::of(&pod.metadata),
            source: None,
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            addresses: Vec::new(),
            ports: named_ports(pod),
        }
    }

    /// The resolver, which counts as a pod of cluster DNS (N9).
    pub fn resolver(gateways: &[IpAddr]) -> Self {
        Self {
            name: ObjectName { namespace: "kube-system".into(), name: "kube-dns".into() },
            source: None,
            labels: Labels::from([("k8s-app".to_owned(), "kube-dns".to_owned())]),
            addresses: gateways.to_vec(),
            ports: RESOLVER_PORTS.into_iter().map(|(name, protocol)| ((name.to_owned(), protocol), RESOLVER_PORT)).collect(),
        }
    }
}

/// Named ports of containers, then of sidecars; the first of two that are the same counts.
fn named_ports(pod: &Pod) -> BTreeMap<PortName, u16> {
    let Some(spec) = &pod.spec else { return BTreeMap::new() };
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(is_sidecar));
    let mut ports = BTreeMap::new();
    for port in containers.flat_map(|container| container.ports.iter().flatten()) {
        let protocol = match port.protocol.as_deref() {
            Some("UDP") => Protocol::Udp,
            Some("SCTP") => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        if let (Some(name), Ok(number)) = (&port.name, u16::try_from(port.container_port)) {
            ports.entry((name.clone(), protocol)).or_insert(number);
        }
    }
    ports
}

/// Connections that are allowed: with these ends, to these ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allow {
    /// The other ends.
    pub who: Who,
    /// The ports.
    pub what: What,
}

/// The other ends of connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// All.
    Everybody,
    /// Pods.
    Pods(PodPeer),
    /// Addresses.
    Block(Block),
}

/// Destination of connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Any port of any protocol, and protocols without ports.
    Everything,
    /// Ports by number.
    Ports(Ports),
    /// The port that the receiving pod has by this name.
    Named(PortName),
}

/// Connections that pods may receive, or may open: those that any of these allows. None if it is empty.
pub type Class = BTreeSet<Allow>;

/// Classes of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodClasses {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Connections that it may receive; `None` for all.
    pub ingress: Option<Class>,
    /// Connections that it may open; `None` for all.
    pub egress: Option<Class>,
    /// Protocols by which it may not ask the resolver (N9).
    pub mute: BTreeSet<Protocol>,
}

/// Policies and pods, compiled. Only pods that a policy selects are in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Selected pods by key.
    pub pods: BTreeMap<String, PodClasses>,
    /// Addresses of pods that are peers.
    pub peers: BTreeMap<PodPeer, BTreeSet<IpAddr>>,
    /// Ports of pods by name.
    pub named: BTreeMap<PortName, BTreeSet<(IpAddr, u16)>>,
}

/// All policies, and the labels of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    by_namespace: BTreeMap<SmolStr, Vec<Policy>>,
    namespaces: BTreeMap<String, Labels>,
}

impl Policies {
    /// Sorts policies. `namespaces` are the labels of those that have an object.
    pub fn new(policies: impl IntoIterator<Item = Policy>, namespaces: BTreeMap<String, Labels>) -> Self {
        let mut by_namespace: BTreeMap<SmolStr, Vec<Policy>> = BTreeMap::new();
        for policy in policies {
            by_namespace.entry(policy.name.namespace.clone()).or_default().push(policy);
        }
        for list in by_namespace.values_mut() {
            list.sort_by(|one, other| one.name.cmp(&other.name));
        }
        Self { by_namespace, namespaces }
    }

    /// Returns true if there is no policy.
    pub fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }

    /// All policies.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.by_namespace.values().flatten()
    }

    /// The policies that select a pod, in the order of their names.
    pub fn selecting<'a>(&'a self, pod: &'a PolicedPod) -> impl Iterator<Item = &'a Policy> {
        let own = self.by_namespace.get(&pod.name.namespace).into_iter().flatten();
        let is_in_scope = |policy: &&Policy| policy.only_of.is_none() || policy.only_of == pod.source;
        own.filter(is_in_scope).filter(|policy| policy.pods.matches(&pod.labels))
    }

    /// Labels of a namespace (N4).
    pub fn labels(&self, namespace: &str) -> Labels {
        let mut labels = self.namespaces.get(namespace).cloned().unwrap_or_default();
        labels.insert(NAME_OF_NAMESPACE.to_owned(), namespace.to_owned());
        labels
    }

    /// Returns true if a pod is one of these peers (N3).
    pub fn is_peer(&self, peer: &PodPeer, pod: &PolicedPod) -> bool {
        let is_in = match &peer.namespaces {
            Namespaces::Own(name) => *name == pod.name.namespace,
            Namespaces::Matching(selector) => selector.matches(&self.labels(&pod.name.namespace)),
        };
        is_in && peer.pods.matches(&pod.labels)
    }

    /// The classes of pods, each with a key of its own. `resolver` is who answers for names.
    pub fn compile<'a>(&self, pods: impl IntoIterator<Item = (&'a str, &'a PolicedPod)>, resolver: &PolicedPod) -> Classes {
        if self.is_empty() {
            return Classes::default();
        }
        let pods: Vec<(&str, &PolicedPod)> = pods.into_iter().collect();
        let mut classes = Classes::default();
        for (key, pod) in pods.iter().filter(|(_, pod)| !pod.addresses.is_empty()) {
            let selecting: Vec<&Policy> = self.selecting(pod).collect();
            let ingress = class(&selecting, Direction::Ingress, pod);
            let egress = class(&selecting, Direction::Egress, pod);
            if ingress.is_none() && egress.is_none() {
                continue;
            }
            let asks = |protocol: Protocol| egress.as_ref().is_none_or(|class| self.may_ask(class, resolver, protocol));
            let mute = [Protocol::Tcp, Protocol::Udp].into_iter().filter(|protocol| !asks(*protocol)).collect();
            let of_pod = PodClasses { addresses: pod.addresses.clone(), ingress, egress, mute };
            classes.pods.insert((*key).to_owned(), of_pod);
        }
        self.fill(&mut classes, &pods);
        classes
    }

    /// Finds the members of all peers and named ports that classes refer to.
    fn fill(&self, classes: &mut Classes, pods: &[(&str, &PolicedPod)]) {
        let all = classes.pods.values().flat_map(|pod| pod.ingress.iter().chain(&pod.egress).flatten());
        let (mut peers, mut names) = (BTreeSet::new(), BTreeSet::new());
        for allow in all {
            if let Who::Pods(peer) = &allow.who {
                peers.insert(peer.clone());
            }
            if let What::Named(name) = &allow.what {
                names.insert(name.clone());
            }
        }
        let mut by_namespace: BTreeMap<&str, Vec<&PolicedPod>> = BTreeMap::new();
        for (_, pod) in pods {
            by_namespace.entry(&pod.name.namespace).or_default().push(pod);
        }
        for peer in peers {
            let mut members = BTreeSet::new();
            let is_in = |namespace: &str| match &peer.namespaces {
                Namespaces::Own(name) => name == namespace,
                Namespaces::Matching(selector) => selector.matches(&self.labels(namespace)),
            };
            for (_, list) in by_namespace.iter().filter(|(namespace, _)| is_in(namespace)) {
                members
                    .extend(list.iter().filter(|pod| peer.pods.matches(&pod.labels)).flat_map(|pod| pod.addresses.iter().copied()));
            }
            classes.peers.insert(peer, members);
        }
        for name in names {
            let numbers = pods.iter().filter_map(|(_, pod)| pod.ports.get(&name).map(|number| (pod, *number)));
            let members = numbers.flat_map(|(pod, number)| pod.addresses.iter().map(move |address| (*address, number))).collect();
            classes.named.insert(name, members);
        }
    }

    /// Returns true if the class allows questions to the resolver.
    fn may_ask(&self, class: &Class, resolver: &PolicedPod, protocol: Protocol) -> bool {
        class.iter().any(|allow| {
            let is_peer = match &allow.who {
                Who::Everybody => true,
                Who::Pods(peer) => self.is_peer(peer, resolver),
                Who::Block(block) => resolver.addresses.iter().any(|address| block.contains(*address)),
            };
            let is_port = match &allow.what {
                What::Everything => true,
                What::Ports(ports) => ports.contains(protocol, RESOLVER_PORT),
                What::Named(name) => name.1 == protocol && resolver.ports.contains_key(name),
            };
            is_peer && is_port
        })
    }
}

/// The class of a pod in one direction; `None` if no policy closes it (N2).
fn class(policies: &[&Policy], direction: Direction, pod: &PolicedPod) -> Option<Class> {
    let mut closing = policies.iter().filter_map(|policy| policy.rules(direction)).peekable();
    closing.peek()?;
    Some(closing.flatten().flat_map(|rule| allows(rule, direction, pod)).collect())
}

/// A rule as single permissions. Names of ports are the pod's own ones on ingress, each receiver's on egress (N6).
fn allows(rule: &Rule, direction: Direction, pod: &PolicedPod) -> Vec<Allow> {
    let everybody = || vec![Who::Everybody];
    let who = rule.peers.as_ref().map_or_else(everybody, |peers| peers.iter().filter_map(who).collect());
    let what: Vec<What> = match (&rule.ports, direction) {
        (None, _) => vec![What::Everything],
        (Some(ports), Direction::Ingress) => {
            let own = ports.names.iter().filter_map(|name| pod.ports.get(name).map(|number| (name.1, *number, *number)));
            vec![What::Ports(Ports::new(ports.numbers.iter().chain(own)))]
        }
        (Some(ports), Direction::Egress) => {
            let named = ports.names.iter().cloned().map(What::Named);
            std::iter::once(What::Ports(ports.numbers.clone())).chain(named).collect()
        }
    };
    let is_something = |what: &&What| !matches!(what, What::Ports(ports) if ports.is_empty());
    let what: Vec<&What> = what.iter().filter(is_something).collect();
    who.into_iter().flat_map(|who| what.iter().map(move |what| Allow { who: who.clone(), what: (*what).clone() })).collect()
}

fn who(peer: &Peer) -> Option<Who> {
    match peer {
        Peer::Pods(peer) => Some(Who::Pods(peer.clone())),
        Peer::Block(block) => (!block.is_empty()).then(|| Who::Block(block.clone())),
    }
}
