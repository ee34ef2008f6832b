//! Frontends and their differences, by example and by property.

use super::*;
use crate::allocate::{Pool, allocate};
use crate::endpoints::{Backend, Backends};
use crate::range::PortRange;
use crate::testing::{definition, pod};
use proptest::prelude::*;

fn grants(services: &[Definition]) -> Grants {
    let pool = Pool {
        ipv4: Some("10.202.0.0/20".parse().unwrap()),
        ipv6: Some("fd00::/112".parse().unwrap()),
        node_ports: PortRange::NODE_PORTS,
        host: ["192.0.2.2".parse().unwrap(), "192.0.2.3".parse().unwrap(), "2001:db8::2".parse().unwrap()].into(),
        taken: BTreeMap::new(),
    };
    allocate(&services.iter().collect::<Vec<_>>(), &Grants::new(), &pool).grants
}

fn next(before: &Frontends, services: &[Definition], pods: &[Backend]) -> Frontends {
    let backends = Backends::new(pods, []);
    let endpoints: Vec<ServiceEndpoints> = services.iter().map(|service| backends.endpoints(service)).collect();
    before.next(services.iter().zip(&endpoints), &grants(services)).0
}

fn apply(elements: &mut Elements, change: &Change) {
    for operation in &change.operations {
        match operation {
            Operation::Add(key, value) => assert_eq!(elements.insert(*key, *value), None, "{key:?} is there"),
            Operation::Remove(key) => assert!(elements.remove(key).is_some(), "{key:?} is not there"),
        }
    }
}

fn web(more: &str) -> Definition {
    definition("web", &format!("selector: {{app: web}}, clusterIP: 10.202.0.9, ports: [{{port: 80, targetPort: 8080}}]{more}"))
}

#[test]
fn fenced_port_is_not_recovered_as_open() {
    let balancer = web(", type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]");
    let frontends = next(&Frontends::default(), &[balancer], &pods([1]));
    let mut elements = frontends.elements();
    assert_eq!(Frontends::recovered(&elements), frontends);
    elements.retain(|key, _| !matches!(key, Key::SourceRange(..)));
    let is_open = |(frontend, _): (&Frontend, &Backing)| matches!(frontend, Frontend::Node(socket) if socket.port == 80);
    assert!(!Frontends::recovered(&elements).iter().any(is_open));
}

#[test]
fn addresses_of_the_host_are_frontends() {
    let node = |frontends: &Frontends| frontends.iter().any(|(frontend, _)| matches!(frontend, Frontend::Node(_)));
    let at = |frontends: &Frontends| -> Vec<String> {
        let address = |frontend: &Frontend| match frontend {
            Frontend::Address(socket) => Some(format!("{}:{}", socket.address, socket.port)),
            Frontend::Node(_) => None,
        };
        frontends.iter().filter_map(|(frontend, _)| address(frontend)).collect()
    };
    for (more, expected) in [
        // IPv6 is no family of the Service.
        (", externalIPs: [192.0.2.2, 192.0.2.9, '2001:db8::2']", &["10.202.0.9:80", "192.0.2.2:80"][..]),
        (
            ", type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerIP: 192.0.2.3",
            &["10.202.0.9:80", "192.0.2.3:80"],
        ),
        (", type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerIP: 192.0.2.9", &["10.202.0.9:80"]),
    ] {
        let found = next(&Frontends::default(), &[web(more)], &pods([1]));
        assert_eq!((at(&found), node(&found)), (expected.iter().map(|text| (*text).to_owned()).collect(), false), "{more}");
    }
}

fn pods(lasts: impl IntoIterator<Item = u8>) -> Vec<Backend> {
    lasts.into_iter().map(|last| pod(&format!("p{last}"), last)).collect()
}

#[test]
fn elements_are_those_of_the_design() {
    let after = next(&Frontends::default(), &[web("")], &pods([1, 2]));
    let shown: Vec<String> = after.elements().into_iter().map(|(key, value)| show(key, value)).collect();
    assert_eq!(
        shown,
        ["endpoint 10.202.0.9:80 0 10.201.0.1:8080", "endpoint 10.202.0.9:80 1 10.201.0.2:8080", "service 10.202.0.9:80 pick4_2"]
    );
    let sticky = next(&Frontends::default(), &[web(", sessionAffinity: ClientIP")], &pods([1]));
    let names: Vec<String> = sticky.chains().into_iter().map(Chain::name).collect();
    assert_eq!(names, ["pick4_1", "sticky4_1", "remember4_10800"]);
}

fn show(key: Key, value: Value) -> String {
    let value = match value {
        Value::Present => String::new(),
        Value::Target(socket) => socket.to_string(),
        Value::Verdict(chain) => chain.name(),
    };
    match key {
        Key::Endpoint(socket, index) => format!("endpoint {}:{} {index} {value}", socket.address, socket.port),
        Key::Service(socket) => format!("service {}:{} {value}", socket.address, socket.port),
        other => format!("{other:?} {value}"),
    }
}

#[test]
fn last_endpoint_takes_the_hole() {
    let service = [web("")];
    let three = next(&Frontends::default(), &service, &pods([1, 2, 3]));
    let two = next(&three, &service, &pods([2, 3]));
    let lasts = |frontends: &Frontends| -> Vec<String> {
        frontends.iter().flat_map(|(_, backing)| backing.endpoints.iter()).map(|socket| socket.ip().to_string()).collect()
    };
    assert_eq!(lasts(&two), ["10.201.0.3", "10.201.0.2"]);
    assert_eq!(lasts(&next(&three, &service, &pods([1, 3, 4]))), ["10.201.0.1", "10.201.0.4", "10.201.0.3"]);
    assert_eq!(lasts(&next(&three, &service, &[])), [""; 0]);
}

#[test]
fn endpoints_come_before_and_go_after_verdicts() {
    let service = [web("")];
    let two = next(&Frontends::default(), &service, &pods([1, 2]));
    let three = next(&two, &service, &pods([1, 2, 3]));
    let words = |change: &Change| -> Vec<&str> {
        let word = |operation: &Operation| match operation {
            Operation::Add(Key::Endpoint(..), _) => "+endpoint",
            Operation::Remove(Key::Endpoint(..)) => "-endpoint",
            Operation::Add(..) => "+verdict",
            Operation::Remove(_) => "-verdict",
        };
        change.operations.iter().map(word).collect()
    };
    assert_eq!(words(&difference(&two, &three)), ["+endpoint", "-verdict", "+verdict"]);
    assert_eq!(words(&difference(&three, &two)), ["-verdict", "+verdict", "-endpoint"]);
    assert_eq!(words(&difference(&two, &Frontends::default())), ["-verdict", "-endpoint", "-endpoint"]);
}

#[test]
fn more_services_and_endpoints_cost_no_more() {
    let change = |services: u8, endpoints: u8| {
        let services: Vec<Definition> = (0..services)
            .map(|number| definition(&format!("s{number}"), &format!("selector: {{app: s{number}}}, ports: [{{port: 80}}]")))
            .collect();
        let labelled = |number: usize, last: u8| Backend {
            labels: BTreeMap::from([("app".to_owned(), format!("s{number}"))]),
            ..pod(&format!("p{number}-{last}"), last)
        };
        let all: Vec<Backend> =
            (0..services.len()).flat_map(|number| (1..=endpoints).map(move |last| labelled(number, last))).collect();
        let before = next(&Frontends::default(), &services, &all);
        let count = |after: &Frontends| difference(&before, after).operations.len();
        let more = [&all[..], &[labelled(0, 250)]].concat();
        let replaced = [&all[1..], &[labelled(0, 250)]].concat();
        [
            count(&next(&before, &services, &more)),
            count(&next(&before, &services, &all[1..])),
            count(&next(&before, &services, &replaced)),
        ]
    };
    assert_eq!(change(2, 3), [3, 5, 2]);
    assert_eq!(change(30, 40), change(2, 3));
}

#[test]
fn ports_of_the_host_may_be_fenced() {
    let balancer = definition(
        "web",
        "type: LoadBalancer, selector: {app: web}, ports: [{port: 80, nodePort: 30080}], loadBalancerSourceRanges: [10.0.0.0/8, 10.1.0.0/16, 'fd00::/8']",
    );
    let elements = next(&Frontends::default(), &[balancer], &pods([1])).elements();
    let socket = |port: u16| NodeSocket { family: Family::V4, protocol: Protocol::Tcp, port };
    let node = Value::Verdict(Chain::Node(Family::V4, 1));
    assert_eq!(elements[&Key::NodePort(socket(30_080))], node, "NodePorts are not limited");
    assert_eq!(elements[&Key::NodePort(socket(80))], Value::Verdict(Chain::Fenced(Family::V4)));
    assert_eq!(elements[&Key::FencedPort(socket(80))], node);
    let ranges: Vec<String> = elements
        .keys()
        .filter_map(|key| match key {
            Key::SourceRange(_, range) => Some(range.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ranges, ["10.0.0.0/8"]);
}

#[test]
fn too_many_endpoints_are_reported() {
    let mut wanted = BTreeSet::new();
    for number in 0..300_u16 {
        let [high, low] = number.to_be_bytes();
        wanted.insert(SocketAddr::new(IpAddr::from([10, 201, high, low]), 80));
    }
    let arranged: Endpoints = arrange(&Endpoints::default(), wanted.clone()).into_iter().collect();
    assert_eq!(arranged.len(), MOST_ENDPOINTS);
    assert_eq!(arrange(&arranged, wanted).into_iter().collect::<Endpoints>(), arranged, "those that are there stay");
}

/// S28.
#[test]
fn endpoints_in_the_rules_go_before_new_ones() {
    let pod = |number: usize| {
        let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
        Backend {
            name: crate::testing::named(&format!("p{number}")),
            addresses: vec![IpAddr::from([10, 201, high, low])],
            ..pod("p", 1)
        }
    };
    let pods: Vec<Backend> = (1..=MOST_ENDPOINTS + 1).map(pod).collect();
    let full = MOST_ENDPOINTS_OF_HOST / MOST_ENDPOINTS;
    let web = |number: usize| definition(&format!("s{number}"), "selector: {app: web}, ports: [{port: 80}]");
    let mut services: Vec<Definition> = (0..=full).map(web).collect();
    let decide = |before: &Frontends, services: &[Definition]| {
        let backends = Backends::new(&pods, []);
        let endpoints: Vec<ServiceEndpoints> = services.iter().map(|service| backends.endpoints(service)).collect();
        before.next(services.iter().zip(&endpoints), &grants(services))
    };
    let total = |frontends: &Frontends| frontends.iter().map(|(_, backing)| backing.endpoints.len()).sum::<usize>();
    let (first, excess) = decide(&Frontends::default(), &services);
    assert_eq!((total(&first), excess.of_service.len()), (MOST_ENDPOINTS_OF_HOST, full + 1));
    assert_eq!(excess.of_host, [crate::testing::named(&format!("s{full}"))].into());
    // A new one that comes first gets none of what runs.
    services.insert(0, web(full + 1));
    let (second, excess) = decide(&first, &services);
    assert_eq!(total(&second), MOST_ENDPOINTS_OF_HOST);
    assert!(first.iter().all(|(frontend, backing)| second.iter().any(|(other, same)| other == frontend && same == backing)));
    assert!(excess.of_host.contains(&crate::testing::named(&format!("s{}", full + 1))));
    // Without room for all of its endpoints, one Service is not decided about alone.
    let (backends, last) = (Backends::new(&pods, []), &services[0]);
    let endpoints = backends.endpoints(last);
    assert_eq!(first.with([], [(last, &endpoints)], &grants(&services)), None);
    let nothing = Backends::new([], []).endpoints(last);
    assert!(first.with([], [(last, &nothing)], &grants(&services)).is_some());
}

#[test]
fn udp_frontends_that_lost_an_endpoint_are_named() {
    let dns = [definition("dns", "selector: {app: web}, ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53}]")];
    let (none, one) = (Frontends::default(), next(&Frontends::default(), &dns, &pods([1])));
    let two = next(&one, &dns, &pods([1, 2]));
    assert_eq!(
        [none.moved_udp(&one).len(), one.moved_udp(&two).len(), two.moved_udp(&one).len(), one.moved_udp(&none).len()],
        [1, 0, 1, 1]
    );
}

/// Services of all kinds that select pods by numbers.
fn services() -> impl Strategy<Value = Vec<Definition>> {
    let one = (0..6_u8, 0..5_u8, any::<bool>()).prop_map(|(name, kind, is_sticky)| {
        let sticky = if is_sticky { ", sessionAffinity: ClientIP" } else { "" };
        let rest = match kind {
            0 => "",
            1 => ", type: NodePort",
            2 => ", type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]",
            3 => ", ipFamilyPolicy: PreferDualStack",
            _ => ", type: LoadBalancer",
        };
        let ports = format!("[{{name: a, port: {}, targetPort: 80}}, {{name: b, port: 53, protocol: UDP}}]", 80 + u16::from(name));
        definition(&format!("s{name}"), &format!("selector: {{app: web}}, ports: {ports}{sticky}{rest}"))
    });
    proptest::collection::vec(one, 0..6).prop_map(|list| {
        let mut seen = BTreeSet::new();
        list.into_iter().filter(|service| seen.insert(service.name.clone())).collect()
    })
}

fn backends() -> impl Strategy<Value = Vec<Backend>> {
    proptest::collection::btree_map(1..12_u8, (any::<bool>(), any::<bool>(), any::<bool>()), 0..10).prop_map(|map| {
        let backend = |(last, (is_ready, is_terminating, has_ipv6)): (u8, (bool, bool, bool))| {
            let mut addresses = vec![IpAddr::from([10, 201, 0, last])];
            addresses.extend(has_ipv6.then(|| format!("fd01::{last}").parse::<IpAddr>().unwrap()));
            Backend { is_ready, is_terminating, addresses, ..pod(&format!("p{last}"), last) }
        };
        map.into_iter().map(backend).collect()
    })
}

proptest! {
    #[test]
    fn difference_leads_from_before_to_after(
        steps in proptest::collection::vec((services(), backends()), 1..5),
    ) {
        let mut frontends = Frontends::default();
        let mut elements = Elements::new();
        for (services, pods) in steps {
            let after = next(&frontends, &services, &pods);
            let change = difference(&frontends, &after);
            apply(&mut elements, &change);
            prop_assert_eq!(&elements, &after.elements());
            prop_assert!(difference(&after, &next(&after, &services, &pods)).is_empty(), "the same again changes nothing");
            let needed: BTreeSet<Chain> = after.chains().into_iter().collect();
            prop_assert!(change.chains.iter().all(|chain| needed.contains(chain)));
            prop_assert_eq!(&Frontends::recovered(&elements), &after);
            let had: Vec<Frontend> = frontends.iter().map(|(frontend, _)| *frontend).collect();
            let backends = Backends::new(&pods, []);
            let endpoints: Vec<ServiceEndpoints> = services.iter().map(|service| backends.endpoints(service)).collect();
            let changed = frontends.with(had, services.iter().zip(&endpoints), &grants(&services)).map(|(frontends, _)| frontends);
            prop_assert_eq!(changed.as_ref(), Some(&after));
            frontends = after;
        }
    }
}
