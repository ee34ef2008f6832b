//! Policies against an evaluator written apart: from manifests, without classes, and packet rules as sets.

use crate::compile::{Classes, PolicedPod, Policies};
use crate::decide::{Decider, Flow};
use crate::definition::{Direction, Policy};
use crate::explain::{End, Reason, reason};
use crate::selector::Labels;
use crate::table::{ChainName, Element, Line, Operation, SetName, Table, difference};
use crate::testing::{address, object, pod, policy, resolver};
use crate::validate;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_pod::host_ports::Protocol;
use podstead_service::range::Family;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

fn compiled(policies: &[Policy], pods: &[PolicedPod]) -> Classes {
    let namespaces = BTreeMap::from([("prod".to_owned(), Labels::from([("purpose".to_owned(), "production".to_owned())]))]);
    let policies = Policies::new(policies.iter().cloned(), namespaces);
    policies.compile(pods.iter().map(|pod| (pod.name.name.as_str(), pod)), &resolver())
}

fn tcp(source: IpAddr, destination: IpAddr, port: u16) -> Flow {
    Flow { source, destination, port: Some((Protocol::Tcp, port)) }
}

fn fields(spec: &str) -> Vec<String> {
    validate::network_policy(&object("shop", "p", spec)).into_iter().map(|problem| problem.field).collect()
}

/// N1.
#[test]
fn faulty_fields_are_named() {
    for (spec, field) in [
        ("podSelector: {}, ingress: [{from: [{}]}]", "spec.ingress[0].from[0]"),
        ("podSelector: {}, ingress: [{from: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}]", "spec.ingress[0].from[0]"),
        ("podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0}}]}]", "spec.egress[0].to[0].ipBlock.cidr"),
        (
            "podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/8]}}]}]",
            "spec.egress[0].to[0].ipBlock.except[0]",
        ),
        (
            "podSelector: {}, egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/9]}}]}]",
            "spec.egress[0].to[0].ipBlock.except[0]",
        ),
        ("podSelector: {}, ingress: [{ports: [{endPort: 5}]}]", "spec.ingress[0].ports[0].port"),
        ("podSelector: {}, ingress: [{ports: [{port: http, endPort: 5}]}]", "spec.ingress[0].ports[0].endPort"),
        ("podSelector: {}, ingress: [{ports: [{port: 6, endPort: 5}]}]", "spec.ingress[0].ports[0].endPort"),
        ("podSelector: {}, ingress: [{ports: [{port: 0}]}]", "spec.ingress[0].ports[0].port"),
        ("podSelector: {}, ingress: [{ports: [{port: 5, protocol: ICMP}]}]", "spec.ingress[0].ports[0].protocol"),
        ("podSelector: {}, policyTypes: [Both]", "spec.policyTypes[0]"),
        ("podSelector: {}, policyTypes: [Ingress, Egress, Ingress]", "spec.policyTypes"),
        ("podSelector: {matchExpressions: [{key: a, operator: In}]}", "spec.podSelector.matchExpressions[0].values"),
        ("podSelector: {matchExpressions: [{key: a, operator: Is}]}", "spec.podSelector.matchExpressions[0].operator"),
        ("podSelector: {matchLabels: {-a: b}}", "spec.podSelector.matchLabels"),
    ] {
        assert_eq!(fields(spec), [field], "{spec}");
    }
    let many = vec!["{port: 1}"; 1001].join(",");
    assert_eq!(fields(&format!("podSelector: {{}}, ingress: [{{ports: [{many}]}}]")), ["spec"]);
    assert_eq!(fields("podSelector: {}, policyTypes: [Ingress]"), [""; 0]);
}

/// N2.
#[test]
fn missing_types_follow_from_rules() {
    let closes = |spec: &str| {
        let policy = policy("shop", "p", spec);
        (policy.ingress.is_some(), policy.egress.is_some())
    };
    assert_eq!(closes("podSelector: {}"), (true, false));
    assert_eq!(closes("podSelector: {}, egress: []"), (true, false));
    assert_eq!(closes("podSelector: {}, egress: [{}]"), (true, true));
    assert_eq!(closes("podSelector: {}, egress: [{}], policyTypes: [Ingress]"), (true, false));
    assert_eq!(closes("podSelector: {}, policyTypes: [Egress]"), (false, true));
}

/// N4, N9.
#[test]
fn resolver_is_cluster_dns() {
    let deny = "podSelector: {}, policyTypes: [Egress]";
    let with = |egress: &str| {
        let policies = [policy("shop", "deny", deny), policy("shop", "dns", &format!("{deny}, egress: [{egress}]"))];
        compiled(&policies, &[pod("shop", "web", 1, &[])]).pods["p1"].mute.clone()
    };
    let both = BTreeSet::from([Protocol::Tcp, Protocol::Udp]);
    assert_eq!(with("{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}"), both);
    assert_eq!(with("{ports: [{port: 53}, {port: 53, protocol: UDP}]}"), BTreeSet::new());
    assert_eq!(with("{ports: [{port: 53, protocol: UDP}]}"), BTreeSet::from([Protocol::Tcp]));
    assert_eq!(with("{ports: [{port: dns, protocol: UDP}]}"), BTreeSet::from([Protocol::Tcp]));
    let of_dns = "podSelector: {matchLabels: {k8s-app: kube-dns}}";
    let namespace = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}";
    assert_eq!(with(&format!("{{to: [{{{namespace}, {of_dns}}}]}}")), BTreeSet::new());
    assert_eq!(with(&format!("{{to: [{{{of_dns}}}]}}")), both, "of the own namespace");
    assert_eq!(with("{to: [{ipBlock: {cidr: 169.254.0.1/32}}]}"), BTreeSet::new());
}

/// N10: a pod on the host's network has no address of its own.
#[test]
fn pods_without_addresses_are_not_policed() {
    let mut on_host = pod("shop", "web", 1, &[]);
    on_host.addresses.clear();
    let classes = compiled(&[policy("shop", "deny", "podSelector: {}")], &[on_host, pod("shop", "web", 2, &[])]);
    assert_eq!(classes.pods.keys().collect::<Vec<_>>(), ["p2"]);
}

#[test]
fn policy_of_restricted_source_polices_its_pods() {
    let deny = Policy { only_of: Some("tenant".to_owned()), ..policy("shop", "deny", "podSelector: {}") };
    let own = PolicedPod { source: Some("tenant".to_owned()), ..pod("shop", "web", 1, &[]) };
    let classes = compiled(&[deny], &[own, pod("shop", "web", 2, &[])]);
    assert_eq!(classes.pods.keys().collect::<Vec<_>>(), ["p1"]);
}

#[test]
fn reason_names_policy_and_rule() {
    let all = [
        policy("shop", "a-deny", "podSelector: {}"),
        policy(
            "shop",
            "b-allow",
            "podSelector: {}, ingress: [{ports: [{port: 1}]}, {from: [{podSelector: {}}], ports: [{port: http}]}]",
        ),
    ];
    let (web, other) = (pod("shop", "web", 1, &[(("http".to_owned(), Protocol::Tcp), 80)]), pod("shop", "db", 2, &[]));
    let policies = Policies::new(all, BTreeMap::new());
    let ask = |port: u16, direction| {
        let end = End { address: other.addresses[0], pod: Some(&other) };
        reason(&policies, direction, &web, end, Some((Protocol::Tcp, port)))
    };
    let Reason::Allowed(name, rule) = ask(80, Direction::Ingress) else { panic!("denied") };
    assert_eq!((name.name.as_str(), rule.as_str()), ("b-allow", "spec.ingress[1]"));
    let Reason::Denied(names) = ask(81, Direction::Ingress) else { panic!("allowed") };
    assert_eq!(names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>(), ["a-deny", "b-allow"]);
    assert_eq!(ask(81, Direction::Egress), Reason::NotSelected);
}

/// R10, R12: pods with the same permissions share a chain, and a pod that comes or goes makes no rule.
#[test]
fn pod_that_comes_changes_elements_only() {
    let policies = [policy(
        "shop",
        "web",
        "podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}]",
    )];
    let mut pods = vec![pod("shop", "web", 1, &[]), pod("shop", "web", 2, &[]), pod("shop", "db", 3, &[])];
    let before = Table::default().next(&compiled(&policies, &pods));
    assert_eq!(before.chains.len(), 1);
    pods.push(pod("shop", "web", 4, &[]));
    let after = before.next(&compiled(&policies, &pods));
    let steps = difference(&before, &after);
    // Policed, led to its class, and a peer: in each family.
    assert_eq!(steps.len(), 6, "{steps:?}");
    assert!(steps.iter().all(|step| matches!(step, Operation::Add(_, elements) if elements.len() == 1)));
    let gone = difference(&after, &after.next(&Classes::default()));
    assert_eq!(gone.iter().filter(|step| matches!(step, Operation::RemoveChain(_))).count(), 1);
}

/// The kernel's view: sets and chains, and what packets meet.
#[derive(Default)]
struct Kernel {
    sets: BTreeMap<SetName, BTreeSet<Element>>,
    chains: BTreeMap<ChainName, Vec<Line>>,
}

impl Kernel {
    fn apply(&mut self, steps: &[Operation]) {
        for step in steps {
            match step {
                Operation::AddSet(set) => assert!(self.sets.insert(*set, BTreeSet::new()).is_none(), "{set:?} is there"),
                Operation::Add(set, elements) => {
                    for element in elements {
                        if let Element::Jump(_, chain) = element {
                            assert!(self.chains.contains_key(chain));
                        }
                        assert!(self.sets.get_mut(set).unwrap().insert(*element), "{element:?} is there");
                    }
                }
                Operation::AddChain(name, lines) => {
                    let refers = |line: &Line| [line.other, line.ports, line.named].into_iter().flatten();
                    assert!(lines.iter().flat_map(refers).all(|set| self.sets.contains_key(&set)));
                    assert!(self.chains.insert(*name, lines.clone()).is_none());
                }
                Operation::Remove(set, elements) => {
                    for element in elements {
                        assert!(self.sets.get_mut(set).unwrap().remove(element), "{element:?} is not there");
                    }
                }
                Operation::RemoveChain(name) => {
                    let leads = |element: &Element| matches!(element, Element::Jump(_, chain) if chain == name);
                    assert!(!self.sets.values().flatten().any(leads));
                    assert!(self.chains.remove(name).is_some());
                }
                Operation::RemoveSet(set) => {
                    let refers = |line: &Line| [line.other, line.ports, line.named].contains(&Some(*set));
                    assert!(!self.chains.values().flatten().any(refers));
                    assert!(self.sets.remove(set).is_some());
                }
            }
        }
        let ranges = |elements: &BTreeSet<Element>| -> Vec<(IpAddr, IpAddr)> {
            elements
                .iter()
                .filter_map(|element| if let Element::Addresses(first, last) = element { Some((*first, *last)) } else { None })
                .collect()
        };
        assert!(self.sets.values().map(ranges).all(|list| list.windows(2).all(|pair| pair[0].1 < pair[1].0)));
    }

    fn has(&self, set: SetName, is: impl Fn(&Element) -> bool) -> bool {
        self.sets[&set].iter().any(is)
    }

    /// The verdict of the rules of the chain `passing` on the first packet of a connection.
    fn passes(&self, flow: &Flow) -> bool {
        let family = Family::of(flow.source);
        let is_passed = |map: SetName, of: IpAddr, other: IpAddr| {
            let jump = self.sets[&map].iter().find_map(|element| match element {
                Element::Jump(address, chain) if *address == of => Some(chain),
                _ => None,
            });
            jump.is_none_or(|chain| self.chains[chain].iter().any(|line| self.is_met(line, family, other, flow)))
        };
        flow.source == flow.destination
            || (is_passed(SetName::Egress(family), flow.source, flow.destination)
                && is_passed(SetName::Ingress(family), flow.destination, flow.source))
    }

    fn is_met(&self, line: &Line, family: Family, other: IpAddr, flow: &Flow) -> bool {
        let has_other = line.other.is_none_or(|set| {
            self.has(set, |element| match element {
                Element::Address(address) => *address == other,
                Element::Addresses(first, last) => *first <= other && other <= *last,
                _ => false,
            })
        });
        let has_port = line.ports.is_none_or(|set| {
            let is = |protocol, port: u16| {
                self.has(set, |element| match element {
                    Element::Ports(of, first, last) => *of == protocol && (*first..=*last).contains(&port),
                    Element::Port(of, number) => (*of, *number) == (protocol, port),
                    _ => false,
                })
            };
            flow.port.is_some_and(|(protocol, port)| is(protocol, port))
        });
        let has_name = line.named.is_none_or(|set| {
            flow.port.is_some_and(|(protocol, port)| {
                self.has(set, |element| *element == Element::Socket(flow.destination, protocol, port))
            })
        });
        line.family.is_none_or(|of| of == family) && has_other && has_port && has_name
    }
}

/// The evaluator written apart: from the manifests.
struct Reference<'a> {
    objects: &'a [NetworkPolicy],
    pods: &'a [PolicedPod],
}

impl Reference<'_> {
    fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
        selector.is_none_or(|selector| podstead_workload::selector::matches(selector, labels))
    }

    fn pod(&self, address: IpAddr) -> Option<&PolicedPod> {
        self.pods.iter().find(|pod| pod.addresses.contains(&address))
    }

    fn peer(&self, peer: &NetworkPolicyPeer, namespace: &str, other: IpAddr) -> bool {
        if let Some(block) = &peer.ip_block {
            return in_cidr(&block.cidr, other) && !block.except.iter().flatten().any(|except| in_cidr(except, other));
        }
        let Some(pod) = self.pod(other) else { return false };
        let mut labels = Labels::from([("kubernetes.io/metadata.name".to_owned(), pod.name.namespace.to_string())]);
        if pod.name.namespace == "prod" {
            labels.insert("purpose".to_owned(), "production".to_owned());
        }
        let in_namespace = match &peer.namespace_selector {
            None => pod.name.namespace == namespace,
            selector => Self::selects(selector.as_ref(), &labels),
        };
        in_namespace && Self::selects(peer.pod_selector.as_ref(), &pod.labels)
    }

    fn port(&self, port: &NetworkPolicyPort, flow: &Flow) -> bool {
        let Some((protocol, number)) = flow.port else { return false };
        let is_protocol = port.protocol.as_deref().unwrap_or("TCP") == protocol.to_string();
        let is_number = match &port.port {
            None => true,
            Some(IntOrString::Int(first)) => (*first..=port.end_port.unwrap_or(*first)).contains(&i32::from(number)),
            Some(IntOrString::String(name)) => {
                self.pod(flow.destination).is_some_and(|pod| pod.ports.get(&(name.clone(), protocol)) == Some(&number))
            }
        };
        is_protocol && is_number
    }

    fn allows(&self, flow: &Flow, is_ingress: bool) -> bool {
        let (own, other) = if is_ingress { (flow.destination, flow.source) } else { (flow.source, flow.destination) };
        let Some(pod) = self.pod(own) else { return true };
        let (mut is_closed, mut is_allowed) = (false, false);
        for object in self.objects {
            let (namespace, spec) = (object.metadata.namespace.as_deref().unwrap(), object.spec.as_ref().unwrap());
            let kinds = spec.policy_types.clone().unwrap_or_else(|| {
                let egress = spec.egress.as_ref().is_some_and(|rules| !rules.is_empty());
                if egress { vec!["Ingress".into(), "Egress".into()] } else { vec!["Ingress".into()] }
            });
            let kind = if is_ingress { "Ingress" } else { "Egress" };
            if namespace != pod.name.namespace
                || !Self::selects(spec.pod_selector.as_ref(), &pod.labels)
                || !kinds.iter().any(|of| of == kind)
            {
                continue;
            }
            is_closed = true;
            let rules: Vec<_> = if is_ingress {
                spec.ingress.iter().flatten().map(|rule| (rule.from.as_deref(), rule.ports.as_deref())).collect()
            } else {
                spec.egress.iter().flatten().map(|rule| (rule.to.as_deref(), rule.ports.as_deref())).collect()
            };
            is_allowed |= rules.into_iter().any(|(peers, ports)| {
                let (peers, ports) = (peers.unwrap_or_default(), ports.unwrap_or_default());
                (peers.is_empty() || peers.iter().any(|peer| self.peer(peer, namespace, other)))
                    && (ports.is_empty() || ports.iter().any(|port| self.port(port, flow)))
            });
        }
        !is_closed || is_allowed
    }

    fn passes(&self, flow: &Flow) -> bool {
        flow.source == flow.destination || (self.allows(flow, true) && self.allows(flow, false))
    }
}

fn in_cidr(cidr: &str, address: IpAddr) -> bool {
    let (network, prefix) = cidr.split_once('/').unwrap();
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let (network, address) = (bits(network.parse().unwrap()), bits(address));
    let bit = |bytes: &[u8], index: usize| bytes[index / 8] >> (7 - index % 8) & 1;
    network.len() == address.len() && (0..prefix.parse().unwrap()).all(|index| bit(&network, index) == bit(&address, index))
}

fn selector() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{}",
        "{matchLabels: {app: a}}",
        "{matchLabels: {app: b}}",
        "{matchExpressions: [{key: app, operator: In, values: [a, c]}]}",
        "{matchExpressions: [{key: app, operator: NotIn, values: [a]}]}",
        "{matchExpressions: [{key: none, operator: DoesNotExist}]}",
        "{matchExpressions: [{key: app, operator: Exists}]}",
    ])
}

fn peer() -> impl Strategy<Value = String> {
    let namespace = prop::sample::select(vec![
        "{}",
        "{matchLabels: {purpose: production}}",
        "{matchLabels: {kubernetes.io/metadata.name: shop}}",
        "{matchExpressions: [{key: purpose, operator: DoesNotExist}]}",
    ]);
    let block = prop::sample::select(vec![
        "{cidr: 10.201.0.0/24, except: [10.201.0.4/30, 10.201.0.5/32]}",
        "{cidr: 192.0.2.0/24, except: [192.0.2.77/32]}",
        "{cidr: 0.0.0.0/0, except: [10.0.0.0/8]}",
        "{cidr: '::/0', except: ['fd00::4/126']}",
        "{cidr: 10.201.0.3/32}",
    ]);
    prop_oneof![
        selector().prop_map(|pods| format!("{{podSelector: {pods}}}")),
        namespace.clone().prop_map(|namespace| format!("{{namespaceSelector: {namespace}}}")),
        (namespace, selector()).prop_map(|(namespace, pods)| format!("{{namespaceSelector: {namespace}, podSelector: {pods}}}")),
        block.prop_map(|block| format!("{{ipBlock: {block}}}")),
    ]
}

fn rule(peers: &'static str) -> impl Strategy<Value = String> {
    let port = prop::sample::select(vec![
        "{port: 80}",
        "{port: http}",
        "{port: http, protocol: UDP}",
        "{protocol: UDP}",
        "{port: 80, endPort: 90}",
        "{port: 85, endPort: 8080}",
        "{port: 80, protocol: SCTP}",
        "{}",
    ]);
    (prop::collection::vec(peer(), 0..3), prop::collection::vec(port, 0..3))
        .prop_map(move |(list, ports)| format!("{{{peers}: [{}], ports: [{}]}}", list.join(", "), ports.join(", ")))
}

fn any_policy() -> impl Strategy<Value = NetworkPolicy> {
    let kinds =
        prop::sample::select(vec!["", ", policyTypes: [Ingress]", ", policyTypes: [Egress]", ", policyTypes: [Ingress, Egress]"]);
    let namespace = prop::sample::select(vec!["shop", "prod"]);
    (namespace, selector(), kinds, prop::collection::vec(rule("from"), 0..3), prop::collection::vec(rule("to"), 0..3)).prop_map(
        |(namespace, pods, kinds, ingress, egress)| {
            let spec = format!("podSelector: {pods}, ingress: [{}], egress: [{}]{kinds}", ingress.join(", "), egress.join(", "));
            object(namespace, "p", &spec)
        },
    )
}

fn any_pods() -> impl Strategy<Value = Vec<PolicedPod>> {
    let of_pod = (prop::sample::select(vec!["shop", "prod", "dev"]), prop::sample::select(vec!["a", "b", "c"]), 0_usize..4);
    prop::collection::vec(of_pod, 0..8).prop_map(|list| {
        (1..)
            .zip(list)
            .map(|(last, (namespace, app, kind))| {
                let http = |protocol| ("http".to_owned(), protocol);
                let ports = [
                    vec![],
                    vec![(http(Protocol::Tcp), 80)],
                    vec![(http(Protocol::Tcp), 8080), (http(Protocol::Udp), 53)],
                    vec![(http(Protocol::Udp), 80)],
                ];
                pod(namespace, app, last, &ports[kind])
            })
            .collect()
    })
}

fn flows(pods: &[PolicedPod]) -> Vec<Flow> {
    let mut ends: Vec<IpAddr> = pods.iter().flat_map(|pod| pod.addresses.clone()).collect();
    ends.extend(["192.0.2.77", "192.0.2.1", "10.9.9.9", "2001:db8::1"].map(|text| text.parse::<IpAddr>().unwrap()));
    let ports = [
        None,
        Some((Protocol::Tcp, 80)),
        Some((Protocol::Tcp, 8080)),
        Some((Protocol::Udp, 80)),
        Some((Protocol::Udp, 53)),
        Some((Protocol::Sctp, 80)),
        Some((Protocol::Tcp, 443)),
    ];
    let pairs = ends.iter().flat_map(|source| ends.iter().map(move |destination| (*source, *destination)));
    let of_family = pairs.filter(|(source, destination)| source.is_ipv4() == destination.is_ipv4());
    of_family.flat_map(|(source, destination)| ports.map(|port| Flow { source, destination, port })).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// R10 to R13: classes, and sets after any number of changes, decide as the evaluator does.
    #[test]
    fn sets_and_classes_agree_with_the_evaluator(
        steps in prop::collection::vec((prop::collection::vec(any_policy(), 0..4), any_pods()), 1..4)
    ) {
        let (mut kernel, mut table) = (Kernel::default(), Table::default());
        for (objects, pods) in &steps {
            let policies: Vec<Policy> = objects.iter().map(|object| Policy::of(object).unwrap()).collect();
            let classes = compiled(&policies, pods);
            let next = table.next(&classes);
            kernel.apply(&difference(&table, &next));
            table = next;
            prop_assert_eq!(&kernel.sets, &table.sets);
            prop_assert_eq!(&kernel.chains, &table.chains);
            let (reference, decider) = (Reference { objects, pods }, Decider::new(&classes));
            for flow in flows(pods) {
                let wanted = reference.passes(&flow);
                prop_assert_eq!(decider.denied(&flow).is_none(), wanted, "decision on {:?}", flow);
                prop_assert_eq!(kernel.passes(&flow), wanted, "sets for {:?}", flow);
            }
        }
    }
}

#[test]
fn egress_and_ingress_must_allow() {
    let policies = [
        policy("shop", "in", "podSelector: {matchLabels: {app: web}}, ingress: [{}]"),
        policy("shop", "out", "podSelector: {matchLabels: {app: db}}, policyTypes: [Egress]"),
    ];
    let classes = compiled(&policies, &[pod("shop", "web", 1, &[]), pod("shop", "db", 2, &[])]);
    let decider = Decider::new(&classes);
    assert_eq!(decider.denied(&tcp(address(2), address(1), 80)), Some(Direction::Egress));
    assert_eq!(decider.denied(&tcp(address(1), address(2), 80)), None);
    assert_eq!(decider.denied(&tcp(address(2), address(2), 80)), None);
}
