//! The packet rules of the bridge: a table of the family bridge, for traffic between pods that bypasses the host's routing. **Pure**.
//!
//! The rest is the affair of the other table: what a pod sends to the host or through it comes in by the bridge like by any interface.

use super::names::name_bytes;
use super::sets::{Elements, PodRules};
use podstead_sys::netlink::expressions::{
    ARP_SENDER, ARP_SENDER_HARDWARE, Field, HARDWARE_SOURCE, ICMPV6_TARGET, ICMPV6_TYPE, IPV4_SOURCE, IPV6_SOURCE, Meta, REGISTER,
    Rule, Verdict,
};
use podstead_sys::netlink::nftables::{Batch, Datatype, Hook, SetSpec};
use podstead_sys::netlink::rtnetlink::octets;
use std::net::IpAddr;

/// Base chains of the table.
pub(super) const BASE_CHAINS: usize = 2;

/// Interface and hardware address of pods.
const PORTS: SetSpec<'static> = SetSpec { name: "ports", key: &[Datatype::Interface, Datatype::Hardware], value: &[] };
/// Interface and address of pods.
const PORTS4: SetSpec<'static> = SetSpec { name: "ports4", key: &[Datatype::Interface, Datatype::Ipv4], value: &[] };
/// The same for IPv6.
const PORTS6: SetSpec<'static> = SetSpec { name: "ports6", key: &[Datatype::Interface, Datatype::Ipv6], value: &[] };
/// Interfaces of isolated pods.
const ISOLATED: SetSpec<'static> = SetSpec { name: "isolated", key: &[Datatype::Interface], value: &[] };

// Types of frames, in network byte order.
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];

const ICMPV6: u8 = 58;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;

/// The elements that stand for a pod; none for one that is not on the bridge.
pub(super) fn elements(pod: &PodRules) -> Elements {
    let mut elements = Elements::new();
    let Some(port) = &pod.port else { return elements };
    let name = name_bytes(&port.interface).to_vec();
    let mut add = |set: SetSpec<'static>, more: &[u8]| {
        elements.entry(set.name).or_default().push(([&name, more].concat(), None));
    };
    add(PORTS, &[&port.mac[..], &[0; 2]].concat());
    for address in &pod.addresses {
        match address {
            IpAddr::V4(_) => add(PORTS4, &octets(*address)),
            IpAddr::V6(_) => add(PORTS6, &octets(*address)),
        }
    }
    if pod.is_isolated {
        add(ISOLATED, &[]);
    }
    elements
}

/// Makes sets, chains and rules. `group` is that of interfaces of pods.
pub(super) fn add_all<'a>(batch: &mut Batch<'_>, group: u32, pods: impl Iterator<Item = &'a PodRules>) {
    for set in [PORTS, PORTS4, PORTS6, ISOLATED] {
        batch.add_set(set);
    }
    let mut all = Elements::new();
    for (set, list) in pods.flat_map(elements) {
        all.entry(set).or_default().extend(list);
    }
    for (set, list) in &all {
        batch.add_elements(set, list);
    }
    batch.add_chain("sources6");
    batch.add_base_chain("from_ports", "filter", Hook::Prerouting, -300);
    batch.add_base_chain("between_ports", "filter", Hook::Forward, -200);
    batch.add_rule("from_ports", |rule| {
        rule.is_not(Meta::InputGroup, &group.to_ne_bytes());
        rule.verdict(Verdict::Accept);
    });
    // A pod must not receive frames of others by claiming their addresses.
    batch.add_rule("from_ports", |rule| {
        unless_own(rule, HARDWARE_SOURCE, PORTS);
        drop_it(rule);
    });
    batch.add_rule("from_ports", |rule| {
        rule.is(Meta::FrameType, &IPV4);
        if_own(rule, IPV4_SOURCE, PORTS4);
        rule.verdict(Verdict::Accept);
    });
    add_rules_of_arp(batch);
    add_rules_of_ipv6(batch);
    // All else, too: frames of other kinds can carry anything.
    batch.add_rule("from_ports", drop_it);
    for name in [Meta::InputName, Meta::OutputName] {
        batch.add_rule("between_ports", |rule| {
            rule.load(name, REGISTER);
            rule.is_in(ISOLATED.name, REGISTER);
            drop_it(rule);
        });
    }
}

fn add_rules_of_arp(batch: &mut Batch<'_>) {
    batch.add_rule("from_ports", |rule| {
        rule.is(Meta::FrameType, &ARP);
        unless_own(rule, ARP_SENDER_HARDWARE, PORTS);
        drop_it(rule);
    });
    batch.add_rule("from_ports", |rule| {
        rule.is(Meta::FrameType, &ARP);
        if_own(rule, ARP_SENDER, PORTS4);
        rule.verdict(Verdict::Accept);
    });
    // A probe for a free address comes from a host without an address.
    batch.add_rule("from_ports", |rule| {
        rule.is(Meta::FrameType, &ARP);
        rule.field_is(ARP_SENDER, &[0; 4]);
        rule.verdict(Verdict::Accept);
    });
}

fn add_rules_of_ipv6(batch: &mut Batch<'_>) {
    let link_local = |rule: &mut Rule<'_, '_>, field: Field| {
        rule.field_is_masked(field, &[&[0xff, 0xc0][..], &[0; 14]].concat(), &[&[0xfe, 0x80][..], &[0; 14]].concat());
    };
    let message = |rule: &mut Rule<'_, '_>, kind: u8| {
        rule.is(Meta::FrameType, &IPV6);
        rule.is(Meta::Protocol, &[ICMPV6]);
        rule.field_is(ICMPV6_TYPE, &[kind]);
    };
    // The sender of an announcement has that address; all pods have a permanent entry for the gateway.
    batch.add_rule("from_ports", |rule| {
        message(rule, NEIGHBOUR_ADVERTISEMENT);
        if_own(rule, ICMPV6_TARGET, PORTS6);
        rule.verdict(Verdict::Jump("sources6"));
    });
    batch.add_rule("from_ports", |rule| {
        message(rule, NEIGHBOUR_ADVERTISEMENT);
        link_local(rule, ICMPV6_TARGET);
        rule.verdict(Verdict::Jump("sources6"));
    });
    for kind in [NEIGHBOUR_ADVERTISEMENT, ROUTER_ADVERTISEMENT, REDIRECT] {
        batch.add_rule("from_ports", |rule| {
            message(rule, kind);
            drop_it(rule);
        });
    }
    batch.add_rule("from_ports", |rule| {
        rule.is(Meta::FrameType, &IPV6);
        rule.verdict(Verdict::Jump("sources6"));
    });
    batch.add_rule("sources6", |rule| {
        link_local(rule, IPV6_SOURCE);
        rule.verdict(Verdict::Accept);
    });
    batch.add_rule("sources6", |rule| {
        rule.field_is(IPV6_SOURCE, &[0; 16]);
        rule.verdict(Verdict::Accept);
    });
    batch.add_rule("sources6", |rule| {
        if_own(rule, IPV6_SOURCE, PORTS6);
        rule.verdict(Verdict::Accept);
    });
}

fn load_place(rule: &mut Rule<'_, '_>, field: Field) {
    rule.load(Meta::InputName, REGISTER);
    rule.load_field(field, REGISTER + 4);
}

fn if_own(rule: &mut Rule<'_, '_>, field: Field, set: SetSpec<'_>) {
    load_place(rule, field);
    rule.is_in(set.name, REGISTER);
}

fn unless_own(rule: &mut Rule<'_, '_>, field: Field, set: SetSpec<'_>) {
    load_place(rule, field);
    rule.is_not_in(set.name, REGISTER);
}

fn drop_it(rule: &mut Rule<'_, '_>) {
    rule.count();
    rule.verdict(Verdict::Drop);
}

#[cfg(test)]
mod tests {
    use super::super::sets::Port;
    use super::*;

    #[test]
    fn a_pod_on_the_bridge_is_known_by_its_port_and_one_that_is_not_by_nothing() {
        let routed = PodRules {
            interface: "ps-1".into(),
            addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
            ports: Vec::new(),
            is_isolated: true,
            port: None,
        };
        assert!(elements(&routed).is_empty());
        let port = Some(Port { interface: "ps-1".into(), mac: [2, 0x70, 0, 0, 0, 1] });
        let elements = elements(&PodRules { interface: "ps-br".into(), port, ..routed });
        assert_eq!(elements["ports"][0].0, b"ps-1\0\0\0\0\0\0\0\0\0\0\0\0\x02\x70\0\0\0\x01\0\0");
        assert_eq!(elements["ports4"][0].0.len(), 20);
        assert_eq!(elements["ports6"][0].0.len(), 32);
        assert_eq!(elements["isolated"][0].0, b"ps-1\0\0\0\0\0\0\0\0\0\0\0\0");
    }
}
