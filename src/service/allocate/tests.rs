//! Allocation of addresses and ports, by example and by property.

use super::candidates::hash;
use super::ports::exposure;
use super::*;
use crate::definition::{Exposure, Role};
use crate::range::PortRange;
use crate::testing::{definition, named};
use podstead_pod::host_ports::Protocol;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn pool() -> Pool {
    Pool {
        ipv4: Some("10.202.0.0/20".parse().unwrap()),
        ipv6: Some("fd70:6f64:7374:5001::/112".parse().unwrap()),
        node_ports: PortRange::NODE_PORTS,
        host: ["192.0.2.2".parse().unwrap(), "2001:db8::2".parse().unwrap()].into(),
        taken: BTreeMap::new(),
    }
}

fn ask(services: &[Definition], recorded: &Grants, pool: &Pool) -> Allocation {
    allocate(&services.iter().collect::<Vec<_>>(), recorded, pool)
}

fn said(allocation: &Allocation) -> Vec<String> {
    let refusals = allocation.refusals.iter();
    refusals.map(|refusal| format!("{} {} {}", refusal.service.name, refusal.field, refusal.message)).collect()
}

fn address(allocation: &Allocation, name: &str) -> String {
    let grant = allocation.grants.get(&named(name));
    grant.into_iter().flat_map(|grant| &grant.cluster_ips).map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn web(name: &str, more: &str) -> Definition {
    definition(name, &format!("ports: [{{port: 80}}], {more}"))
}

/// Names lead to these addresses and ports for ever: repositories and people rely on them (S5).
#[test]
fn names_lead_to_addresses_for_ever() {
    let service = definition("web", "type: NodePort, ipFamilyPolicy: PreferDualStack, ports: [{port: 80}]");
    let grants = ask(&[service], &Grants::new(), &pool()).grants;
    let json = serde_json::to_string(&grants[&named("web")]).unwrap();
    assert_eq!(json, EXPECTED);
    assert_eq!(serde_json::from_str::<Grant>(&json).unwrap(), grants[&named("web")]);
}

const EXPECTED: &str = r#"{"clusterIPs":["10.202.9.11","fd70:6f64:7374:5001::d437"],"nodePorts":[{"protocol":"TCP","port":80,"nodePort":31408}],"loadBalancerPorts":[]}"#;

#[test]
fn asked_address_in_the_range_is_given() {
    let (pool, none) = (pool(), Grants::new());
    assert_eq!(address(&ask(&[web("a", "clusterIP: 10.202.0.5")], &none, &pool), "a"), "10.202.0.5");
    for (asked, message) in [
        ("10.203.0.5", "10.203.0.5 is not in the range of Services, 10.202.0.0/20"),
        ("10.202.0.0", "10.202.0.0 is not in the range of Services, 10.202.0.0/20"),
        ("10.202.15.255", "10.202.15.255 is not in the range of Services, 10.202.0.0/20"),
    ] {
        let result = ask(&[web("a", &format!("clusterIP: {asked}"))], &none, &pool);
        assert_eq!((said(&result), address(&result, "a")), (vec![format!("a spec.clusterIPs[0] {message}")], String::new()));
    }
}

#[test]
fn first_of_two_gets_what_both_ask_for() {
    let services = [web("b", "clusterIP: 10.202.0.5"), web("a", "clusterIP: 10.202.0.5")];
    let result = ask(&services, &Grants::new(), &pool());
    assert_eq!((address(&result, "b").as_str(), address(&result, "a").as_str()), ("10.202.0.5", ""));
    assert_eq!(said(&result), ["a spec.clusterIPs[0] 10.202.0.5 belongs to Service shop/b"]);
}

#[test]
fn holder_keeps_its_address_against_those_before_it() {
    let held = ask(&[web("b", "")], &Grants::new(), &pool());
    let of_b = address(&held, "b");
    let services = [web("a", &format!("clusterIP: {of_b}")), web("b", "")];
    let result = ask(&services, &held.grants, &pool());
    assert_eq!((address(&result, "a"), address(&result, "b")), (String::new(), of_b.clone()));
    assert_eq!(said(&result), [format!("a spec.clusterIPs[0] {of_b} belongs to Service shop/b")]);
}

#[test]
fn only_addresses_of_the_host_are_served() {
    let elsewhere = "198.51.100.7 is no address of this host, which has 192.0.2.2, 2001:db8::2";
    for (spec, ports, addresses, refused) in [
        ("externalIPs: [192.0.2.2, '2001:db8::2']", 1, "192.0.2.2 2001:db8::2", String::new()),
        ("externalIPs: [192.0.2.2, 198.51.100.7]", 1, "192.0.2.2", format!("a spec.externalIPs {elsewhere}")),
        ("externalIPs: [198.51.100.7]", 0, "", format!("a spec.externalIPs {elsewhere}")),
        ("type: LoadBalancer, loadBalancerIP: 192.0.2.2", 1, "192.0.2.2", String::new()),
        ("type: LoadBalancer, loadBalancerIP: 198.51.100.7", 0, "", format!("a spec.loadBalancerIP {elsewhere}")),
        ("type: LoadBalancer, externalIPs: [192.0.2.2]", 1, "", String::new()),
        (
            "type: LoadBalancer, loadBalancerIP: 192.0.2.2, loadBalancerSourceRanges: [10.0.0.0/8]",
            0,
            "",
            "a spec.loadBalancerSourceRanges cannot be served together with spec.loadBalancerIP: the Service gets no port of this host; remove one of both".to_owned(),
        ),
    ] {
        let result = ask(&[web("a", spec)], &Grants::new(), &pool());
        let grant = &result.grants[&named("a")];
        let given = grant.host_addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!((grant.load_balancer_ports.len(), given.as_str()), (ports, addresses), "{spec}");
        assert_eq!(said(&result).join("; "), refused, "{spec}");
    }
    // Ports are those of one Service, whatever its addresses.
    let result = ask(&[web("a", "externalIPs: [192.0.2.2]"), web("b", "type: LoadBalancer")], &Grants::new(), &pool());
    assert_eq!(said(&result), ["b spec.ports[0].port port 80/TCP belongs to Service shop/a"]);
}

#[test]
fn who_moves_makes_place_for_others() {
    let recorded = ask(&[web("a", "clusterIP: 10.202.0.1"), web("b", "clusterIP: 10.202.0.2")], &Grants::new(), &pool()).grants;
    let chain = [web("a", "clusterIP: 10.202.0.2"), web("b", "clusterIP: 10.202.0.3")];
    let result = ask(&chain, &recorded, &pool());
    assert_eq!((address(&result, "a").as_str(), address(&result, "b").as_str()), ("10.202.0.2", "10.202.0.3"));
    let refused = [web("a", "clusterIP: 10.1.1.1"), web("b", "type: ExternalName, externalName: x").clone()];
    let result = ask(&refused, &recorded, &pool());
    assert_eq!((address(&result, "a").as_str(), address(&result, "b").as_str()), ("10.202.0.1", ""), "it keeps what it had");
}

#[test]
fn families_are_those_of_service_and_host() {
    let both = pool();
    let ipv4 = Pool { ipv6: None, ..pool() };
    let ipv6 = Pool { ipv4: None, ..pool() };
    for (spec, pool, expected) in [
        ("", &both, "4"),
        ("", &ipv6, "6"),
        ("ipFamilies: [IPv6]", &both, "6"),
        ("ipFamilies: [IPv6]", &ipv4, "this host has no IPv6 addresses for Services"),
        ("ipFamilyPolicy: PreferDualStack", &both, "46"),
        ("ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6]", &both, "64"),
        ("ipFamilyPolicy: PreferDualStack, ipFamilies: [IPv6]", &ipv4, "4"),
        ("ipFamilyPolicy: RequireDualStack", &both, "46"),
        ("ipFamilyPolicy: RequireDualStack", &ipv4, "this host has no IPv6 addresses for Services"),
        ("ipFamilies: [IPv6, IPv4]", &both, "64"),
    ] {
        let result = ask(&[web("a", spec)], &Grants::new(), pool);
        let families: String = match result.refusals.first() {
            Some(refusal) => refusal.message.clone(),
            None => result.grants[&named("a")].cluster_ips.iter().map(|ip| if ip.is_ipv4() { '4' } else { '6' }).collect(),
        };
        assert_eq!(families, expected, "{spec}");
    }
}

#[test]
fn refused_address_is_not_replaced_by_another() {
    let service = web("a", "clusterIPs: [10.202.0.5, 'fd00::1']");
    let result = ask(&[service], &Grants::new(), &pool());
    assert_eq!(address(&result, "a"), "10.202.0.5");
    assert_eq!(said(&result), ["a spec.clusterIPs[1] fd00::1 is not in the range of Services, fd70:6f64:7374:5001::/112"]);
}

#[test]
fn largest_range_has_addresses_for_all_names() {
    let pool = Pool { ipv6: Some("::/0".parse().unwrap()), ipv4: None, ..pool() };
    let services: Vec<Definition> = (0..200).map(|number| web(&format!("s{number}"), "")).collect();
    assert_eq!(ask(&services, &Grants::new(), &pool).grants.len(), 200);
    let none = Pool { ipv6: None, ..pool };
    assert_eq!(said(&ask(&services[..1], &Grants::new(), &none)), ["s0 spec.ipFamilies this host has no addresses for Services"]);
}

#[test]
fn node_ports_of_others_are_refused_by_name() {
    let node = |name: &str, port: u16| definition(name, &format!("type: NodePort, ports: [{{port: 80, nodePort: {port}}}]"));
    let mut pool = pool();
    pool.taken.insert(HostSocket { protocol: Protocol::Tcp, port: 30_081 }, "pod shop/db".to_owned());
    let services = [node("a", 30_080), node("b", 30_080), node("c", 30_081), node("d", 29_999)];
    let result = ask(&services, &Grants::new(), &pool);
    assert_eq!(
        said(&result),
        [
            "b spec.ports[0].nodePort port 30080/TCP belongs to Service shop/a",
            "c spec.ports[0].nodePort port 30081/TCP belongs to pod shop/db",
            "d spec.ports[0].nodePort 29999 is not in the range of NodePorts, 30000-32767",
        ]
    );
    assert!(result.grants.values().all(|grant| grant.cluster_ips.len() == 1), "the rest of the Service works");
    let kept = ask(&services[1..2], &Grants::from([(named("b"), result.grants[&named("a")].clone())]), &pool);
    assert_eq!(kept.grants[&named("b")].node_ports[0].node_port, 30_080);
}

#[test]
fn one_number_serves_tcp_and_udp() {
    let ports = "[{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]";
    let result = ask(&[definition("dns", &format!("type: NodePort, ports: {ports}"))], &Grants::new(), &pool());
    let granted = &result.grants[&named("dns")].node_ports;
    assert_eq!(granted.len(), 2);
    assert_eq!(granted[0].node_port, granted[1].node_port);
}

#[test]
fn load_balancer_waits_for_its_port() {
    let balancer = |name: &str| definition(name, "type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]");
    let result = ask(&[balancer("b"), balancer("a")], &Grants::new(), &pool());
    assert_eq!(said(&result), ["a spec.ports[0].port port 80/TCP belongs to Service shop/b"]);
    assert_eq!(result.grants[&named("b")].load_balancer_ports, [HostSocket { protocol: Protocol::Tcp, port: 80 }]);
    assert_eq!(result.grants[&named("b")].node_ports, []);
    let later = ask(&[balancer("a")], &result.grants, &pool());
    assert_eq!((said(&later).len(), later.grants[&named("a")].load_balancer_ports.len()), (0, 1));
}

#[test]
fn full_range_is_said() {
    let pool = Pool { ipv4: Some("10.202.0.0/30".parse().unwrap()), ..pool() };
    let services: Vec<Definition> = ["a", "b", "c"].map(|name| web(name, "")).into();
    let result = ask(&services, &Grants::new(), &pool);
    assert_eq!(said(&result), ["c spec.clusterIPs all addresses of 10.202.0.0/30 are in use"]);
}

/// Services with few names, addresses and ports, so that they meet.
fn services() -> impl Strategy<Value = Vec<Definition>> {
    let one = (0..12_u8, 0..6_u8, proptest::option::of(0..6_u8), proptest::option::of(29_999..30_004_u16)).prop_map(
        |(name, kind, address, port)| {
            let asked = address.map_or_else(String::new, |last| format!(", clusterIP: 10.202.0.{last}"));
            let node = port.map_or_else(String::new, |port| format!(", nodePort: {port}"));
            let name = format!("s{name}");
            match kind {
                0 => definition(&name, &format!("ports: [{{port: 80}}]{asked}")),
                1 => definition(&name, &format!("ports: [{{port: 80}}], ipFamilyPolicy: PreferDualStack{asked}")),
                2 => definition(&name, &format!("type: LoadBalancer, ports: [{{port: 30001{node}}}]{asked}")),
                3 => definition(&name, "clusterIP: None"),
                _ => definition(&name, &format!("type: NodePort, ports: [{{port: 80{node}}}]{asked}")),
            }
        },
    );
    proptest::collection::btree_map(0..12_u8, one, 0..12).prop_map(|map| {
        let mut seen = BTreeSet::new();
        map.into_values().filter(|service| seen.insert(service.name.clone())).collect()
    })
}

fn small_pool() -> Pool {
    let ports = PortRange { first: 30_000, last: 30_020 };
    Pool { ipv4: Some("10.202.0.0/28".parse().unwrap()), node_ports: ports, ..pool() }
}

fn asks_for_nothing(services: &[Definition]) -> Vec<Definition> {
    let mut services = services.to_vec();
    for service in &mut services {
        if let Role::Cluster { asked, .. } = &mut service.role {
            *asked = Box::default();
        }
        service.ports.iter_mut().for_each(|port| port.node_port = None);
    }
    services
}

proptest! {
    #[test]
    fn nothing_is_given_twice(first in services(), second in services()) {
        let pool = small_pool();
        let before = ask(&first, &Grants::new(), &pool);
        let after = ask(&second, &before.grants, &pool);
        for result in [&before, &after] {
            let addresses: Vec<_> = result.grants.values().flat_map(|grant| &grant.cluster_ips).collect();
            prop_assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), addresses.len());
            let node_ports = result.grants.values().flat_map(|grant| &grant.node_ports);
            let node_ports = node_ports.map(|port| HostSocket { protocol: port.protocol, port: port.node_port });
            let sockets: Vec<_> =
                node_ports.chain(result.grants.values().flat_map(|grant| grant.load_balancer_ports.iter().copied())).collect();
            prop_assert_eq!(sockets.iter().collect::<BTreeSet<_>>().len(), sockets.len());
        }
        for service in &second {
            let Role::Cluster { asked, .. } = &service.role else { continue };
            let held = before.grants.get(&service.name).and_then(|grant| grant.cluster_ips.first());
            if let Some(held) = held.filter(|_| asked.is_empty()) {
                prop_assert_eq!(after.grants[&service.name].cluster_ips.first(), Some(held), "who asks for nothing keeps its address");
            }
        }
    }

    #[test]
    fn same_grants_give_the_same_again(services in services()) {
        let pool = small_pool();
        let once = ask(&services, &Grants::new(), &pool);
        prop_assert_eq!(&ask(&services, &once.grants, &pool), &once);
    }

    #[test]
    fn order_does_not_matter_where_nobody_asks(services in services(), seed in any::<u64>()) {
        let pool = small_pool();
        // Two load balancers with one port are asking for it.
        let services: Vec<Definition> = asks_for_nothing(&services)
            .into_iter()
            .filter(|service| !matches!(exposure(service), Some(Exposure::LoadBalancer(_))))
            .collect();
        let mut shuffled = services.clone();
        shuffled.sort_by_key(|service| hash(&format!("{seed}{}", service.name)));
        prop_assert_eq!(ask(&services, &Grants::new(), &pool), ask(&shuffled, &Grants::new(), &pool));
    }
}
