//! The chains and rules of the table, which are the same whatever pods there are. **Pure**.

use super::resolver_rules::{add_guard_of_resolver, add_resolver};
use super::sets::{FAMILIES, Family, Switches, VIRTUAL, Whole};
use podstead_sys::netlink::expressions::{
    DESTINATION_NAT, DESTINATION_PORT, ESTABLISHED_OR_RELATED, IPV4_DESTINATION, IPV4_SOURCE, IPV6_SOURCE, Meta, REGISTER, Rule,
    Verdict,
};
use podstead_sys::netlink::nftables::{Batch, Hook, IPV4, IPV6};

/// Adds all of them. `pod` is the group of interfaces of pods; the sets are there already.
pub(super) fn add_all(batch: &mut Batch<'_>, pod: &[u8], parts: Whole<'_>) {
    let Whole { switches, services, policies, guests: _ } = parts;
    add_chains(batch);
    if let Some(port) = switches.dns_port {
        add_guard_of_resolver(batch, pod, port);
    }
    add_source_checks(batch, pod);
    if let Some(port) = switches.dns_port {
        policies.add_resolver_rules(batch, pod, port);
        add_resolver(batch, pod, port);
    }
    services.add_address_rules(batch, pod);
    add_ways_to_host_ports(batch, switches);
    services.add_node_port_rules(batch);
    for family in &FAMILIES {
        add_port_rules(batch, family);
    }
    services.add_outgoing_rules(batch);
    add_outgoing_rules(batch, pod, switches);
    add_rules_between_pods(batch, pod);
    batch.add_rule("passing", |rule| {
        rule.has_state(ESTABLISHED_OR_RELATED);
        rule.verdict(Verdict::Accept);
    });
    services.add_passing_rules(batch, pod);
    policies.add_passing_rules(batch, pod);
    add_ways_to_pods(batch, pod);
    add_guards(batch, switches);
}

fn add_chains(batch: &mut Batch<'_>) {
    batch.add_chain("to_pods");
    batch.add_chain("host_ports");
    // Packets of pods are checked before anything else is done with them.
    batch.add_base_chain("from_pods", "filter", Hook::Prerouting, -300);
    batch.add_base_chain("incoming", "nat", Hook::Prerouting, -100);
    batch.add_base_chain("own", "nat", Hook::Output, -100);
    batch.add_base_chain("outgoing", "nat", Hook::Postrouting, 100);
    batch.add_base_chain("passing", "filter", Hook::Forward, 0);
}

/// Drops what comes from an interface of a pod and not from its address.
fn add_source_checks(batch: &mut Batch<'_>, pod: &[u8]) {
    batch.add_rule("from_pods", |rule| {
        rule.is_not(Meta::InputGroup, pod);
        rule.verdict(Verdict::Accept);
    });
    // Interfaces of pods that are reached from 127.0.0.1 take 127.0.0.0/8 for an address like others.
    batch.add_rule("from_pods", |rule| {
        rule.is(Meta::Family, &[IPV4]);
        rule.field_is_masked(IPV4_DESTINATION, &[255, 0, 0, 0], &[127, 0, 0, 0]);
        rule.count();
        rule.verdict(Verdict::Drop);
    });
    // Neighbour discovery: link-local addresses, and none yet. Neither gets beyond the interface.
    batch.add_rule("from_pods", |rule| {
        rule.is(Meta::Family, &[IPV6]);
        rule.field_is_masked(IPV6_SOURCE, &[&[0xff, 0xc0][..], &[0; 14]].concat(), &[&[0xfe, 0x80][..], &[0; 14]].concat());
        rule.verdict(Verdict::Accept);
    });
    batch.add_rule("from_pods", |rule| {
        rule.is(Meta::Family, &[IPV6]);
        rule.field_is(IPV6_SOURCE, &[0; 16]);
        rule.verdict(Verdict::Accept);
    });
    for family in &FAMILIES {
        batch.add_rule("from_pods", |rule| {
            rule.is(Meta::Family, &[family.number]);
            rule.load(Meta::InputName, REGISTER);
            rule.load_field(family.source, REGISTER + 4);
            rule.is_not_in(family.sources.name, REGISTER);
            rule.count();
            rule.verdict(Verdict::Drop);
        });
    }
}

/// Looks for a port of the host, for what comes from outside and for what the host itself sends.
fn add_ways_to_host_ports(batch: &mut Batch<'_>, switches: Switches) {
    for chain in ["incoming", "own"] {
        // Root's services win, whichever came first: who listens below 1024 is asked for each connection.
        if switches.sees_listeners && chain == "incoming" {
            batch.add_rule(chain, |rule| {
                rule.destination_is_local();
                rule.field_is_below(DESTINATION_PORT, 1024);
                rule.has_listener();
                rule.verdict(Verdict::Return);
            });
        }
        batch.add_rule(chain, |rule| {
            rule.destination_is_local();
            rule.verdict(Verdict::Jump("host_ports"));
        });
    }
}

/// Rewrites sources whose answers would not come back.
fn add_outgoing_rules(batch: &mut Batch<'_>, pod: &[u8], switches: Switches) {
    // A connection from 127.0.0.1 has to come back.
    batch.add_rule("outgoing", |rule| {
        rule.is(Meta::OutputGroup, pod);
        rule.is(Meta::Family, &[IPV4]);
        rule.field_is_masked(IPV4_SOURCE, &[255, 0, 0, 0], &[127, 0, 0, 0]);
        rule.masquerade();
    });
    for family in &FAMILIES {
        // To itself through a port of the host: without this the answer would never leave the pod.
        batch.add_rule("outgoing", |rule| {
            rule.is(Meta::OutputGroup, pod);
            rule.is(Meta::Family, &[family.number]);
            rule.load_field(family.source, REGISTER);
            rule.load_field(family.destination, REGISTER + family.source.length / 4);
            rule.is_in(family.selves.name, REGISTER);
            rule.masquerade();
        });
        // On a bridge, a pod would answer its neighbour at once, not through the host that has rewritten the destination.
        if switches.is_bridged {
            batch.add_rule("outgoing", |rule| {
                rule.is(Meta::OutputGroup, pod);
                rule.has_status(DESTINATION_NAT);
                rule.is(Meta::Family, &[family.number]);
                rule.load_field(family.source, REGISTER);
                rule.is_in(family.pods.name, REGISTER);
                rule.masquerade();
            });
        }
        // Out of the host: other hosts have no routes to pods.
        batch.add_rule("outgoing", |rule| {
            rule.is_not(Meta::OutputGroup, pod);
            rule.is(Meta::Family, &[family.number]);
            rule.load_field(family.source, REGISTER);
            rule.is_in(family.pods.name, REGISTER);
            rule.masquerade();
        });
    }
}

/// Destinations are rewritten: what one address of the host has goes before what all have.
fn add_port_rules(batch: &mut Batch<'_>, family: &Family) {
    let words = family.source.length / 4;
    let to_pod = |rule: &mut Rule<'_, '_>| rule.rewrite_destination(family.number, REGISTER, REGISTER + words);
    batch.add_rule("host_ports", |rule| {
        rule.is(Meta::Family, &[family.number]);
        rule.load_field(family.destination, REGISTER);
        rule.load(Meta::Protocol, REGISTER + words);
        rule.load_field(DESTINATION_PORT, REGISTER + words + 1);
        rule.look_up_in_map(family.ports_at.name, REGISTER);
        to_pod(rule);
    });
    batch.add_rule("host_ports", |rule| {
        rule.is(Meta::Family, &[family.number]);
        rule.load(Meta::Protocol, REGISTER);
        rule.load_field(DESTINATION_PORT, REGISTER + 1);
        rule.look_up_in_map(family.ports.name, REGISTER);
        to_pod(rule);
    });
}

/// Isolation counts even for what is established: an annotation takes effect at once.
fn add_rules_between_pods(batch: &mut Batch<'_>, pod: &[u8]) {
    for family in &FAMILIES {
        batch.add_rule("passing", |rule| {
            rule.is(Meta::InputGroup, pod);
            rule.is(Meta::OutputGroup, pod);
            rule.is(Meta::Family, &[family.number]);
            rule.load_field(family.source, REGISTER);
            rule.load_field(family.destination, REGISTER + family.source.length / 4);
            rule.is_in(family.selves.name, REGISTER);
            rule.verdict(Verdict::Accept);
        });
        for end in [family.source, family.destination] {
            batch.add_rule("passing", |rule| {
                rule.is(Meta::InputGroup, pod);
                rule.is(Meta::OutputGroup, pod);
                rule.is(Meta::Family, &[family.number]);
                rule.load_field(end, REGISTER);
                rule.is_in(family.isolated.name, REGISTER);
                rule.count();
                rule.verdict(Verdict::Drop);
            });
        }
    }
}

fn add_ways_to_pods(batch: &mut Batch<'_>, pod: &[u8]) {
    batch.add_rule("passing", |rule| {
        rule.is(Meta::InputGroup, pod);
        rule.verdict(Verdict::Accept);
    });
    batch.add_rule("passing", |rule| {
        rule.is(Meta::OutputGroup, pod);
        rule.verdict(Verdict::Jump("to_pods"));
    });
    // From outside, a pod is reached through ports of the host and in no other way.
    batch.add_rule("to_pods", |rule| {
        rule.has_status(DESTINATION_NAT);
        rule.verdict(Verdict::Accept);
    });
    batch.add_rule("to_pods", |rule| {
        rule.count();
        rule.verdict(Verdict::Drop);
    });
}

/// A host that forwarded nothing before podstead forwards pod traffic only.
fn add_guards(batch: &mut Batch<'_>, switches: Switches) {
    if !switches.guards_ipv4 && !switches.guards_ipv6 {
        return;
    }
    batch.add_rule("passing", |rule| {
        rule.has_status(DESTINATION_NAT);
        rule.verdict(Verdict::Accept);
    });
    batch.add_rule("passing", |rule| {
        rule.load(Meta::InputKind, REGISTER);
        rule.is_in(VIRTUAL.name, REGISTER);
        rule.verdict(Verdict::Accept);
    });
    for (guards, family) in [(switches.guards_ipv4, IPV4), (switches.guards_ipv6, IPV6)] {
        if guards {
            batch.add_rule("passing", |rule| {
                rule.is(Meta::Family, &[family]);
                rule.count();
                rule.verdict(Verdict::Drop);
            });
        }
    }
}
