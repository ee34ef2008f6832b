//! Maps, chains and fixed rules. **Pure**.

use super::super::family::{Ends, ends};
use super::super::guests;
use super::ServiceRanges;
use super::elements::name;
use podstead_service::frontends::Chain;
use podstead_service::range::{Family, Subnet};
use podstead_sys::netlink::expressions::{
    DESTINATION_NAT, DESTINATION_PORT, Field, INVALID, Meta, Original, REGISTER, Refusal, Rule, Update, Verdict,
};
use podstead_sys::netlink::maps::{Elements, MapSpec, Part, Values};
use podstead_sys::netlink::nftables::{Batch, Hook};
use podstead_sys::netlink::rtnetlink::octets;
use std::net::{IpAddr, Ipv6Addr};

/// Base chains: what no endpoint serves, of pods and of the host.
pub(in super::super) const BASE_CHAINS: usize = 2;
/// Clients that are bound to an endpoint, in each family. When there are more, the others are not bound.
const MOST_BONDS: u32 = 65_535;
/// Registers of the name of an interface.
const NAME_WORDS: u32 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Returns true if clients can be bound to endpoints (S20): `nft` 1.0.6 aborts when it loads a listing with such a rule for IPv6 (R4).
fn has_bonds(family: Family) -> bool {
    family == Family::V4
}

/// The maps of a family, without elements.
pub(super) fn add_maps(batch: &mut Batch<'_>, family: Family) {
    let Ends { source_part: source, destination_part: address, .. } = ends(family);
    let socket = [address, Part::Protocol, Part::DestinationPort];
    let port = [Part::Protocol, Part::DestinationPort];
    let target = [address, Part::DestinationPort];
    let mut add = |map: &str, key: &[Part], values: Values<'_>, elements: Elements| {
        batch.add_map(MapSpec { name: &name(map, family), key, values, elements });
    };
    let indexed = |key: &[Part]| [key, &[Part::Index]].concat();
    add("services", &socket, Values::Verdicts, Elements::Single);
    add("elsewhere", &socket, Values::None, Elements::Single);
    add("endpoints", &indexed(&socket), Values::Parts(&target), Elements::Single);
    add("node_ports", &port, Values::Verdicts, Elements::Single);
    add("fenced_ports", &port, Values::Verdicts, Elements::Single);
    add("node_endpoints", &indexed(&port), Values::Parts(&target), Elements::Single);
    add("ranges", &[port[0], port[1], source], Values::None, Elements::Intervals);
    if !has_bonds(family) {
        return;
    }
    add("sticky", &socket, Values::Verdicts, Elements::Single);
    add("sticky_ports", &port, Values::Verdicts, Elements::Single);
    let bond = [source, address, Part::Protocol, Part::DestinationPort];
    add("affinity", &bond, Values::Parts(&target), Elements::Dynamic { most: MOST_BONDS });
}

/// Chains that are there whatever Services there are. The kernel limits ICMP errors to about one a second for a client, RST not (S19).
pub(super) fn add_fixed_chains(batch: &mut Batch<'_>) {
    batch.add_chain("refuse");
    batch.add_rule("refuse", |rule| {
        rule.is(Meta::Protocol, &[TCP]);
        rule.refuse(Refusal::TcpReset);
    });
    batch.add_rule("refuse", |rule| rule.refuse(Refusal::PortUnreachable));
}

/// A chain that elements lead to, with its rules (R1). The chain that it needs is there.
pub(super) fn add_chain(batch: &mut Batch<'_>, chain: Chain) {
    batch.add_chain(&chain.name());
    match chain {
        Chain::Pick(family, count) | Chain::Node(family, count) => {
            let is_node = matches!(chain, Chain::Node(..));
            add_pick(batch, &chain.name(), family, count, is_node);
            // The verdict may be of one generation and the elements of the next: then the index is one that is no more (R2).
            add_pick(batch, &chain.name(), family, 1, is_node);
        }
        Chain::Sticky(family, count) => add_sticky(batch, chain, family, Chain::Pick(family, count)),
        Chain::StickyNode(family, count) => add_sticky(batch, chain, family, Chain::Node(family, count)),
        Chain::Remember(family, seconds) => add_remember(batch, &chain.name(), family, seconds),
        Chain::Fenced(family) => add_fenced(batch, &chain.name(), family),
    }
}

/// Rewrites the destination to one of `count` endpoints.
fn add_pick(batch: &mut Batch<'_>, chain: &str, family: Family, count: u32, is_node: bool) {
    let Ends { number, destination, words, .. } = ends(family);
    batch.add_rule(chain, |rule| {
        rule.is(Meta::Family, &[number]);
        let index = if is_node {
            load_port(rule, REGISTER);
            REGISTER + 2
        } else {
            load_socket(rule, destination, words);
            REGISTER + words + 2
        };
        rule.load_random(count, index);
        rule.look_up_in_map(&name(if is_node { "node_endpoints" } else { "endpoints" }, family), REGISTER);
        rule.rewrite_destination(number, REGISTER, REGISTER + words);
    });
}

/// Goes to the endpoint that the client is bound to, else to any (S20).
fn add_sticky(batch: &mut Batch<'_>, chain: Chain, family: Family, pick: Chain) {
    let Ends { number, source, destination, words, .. } = ends(family);
    let chain = chain.name();
    batch.add_rule(&chain, |rule| {
        rule.is(Meta::Family, &[number]);
        rule.load_field(source, REGISTER);
        rule.load_field(destination, REGISTER + words);
        load_port(rule, REGISTER + 2 * words);
        rule.look_up_in_map(&name("affinity", family), REGISTER);
        rule.rewrite_destination(number, REGISTER, REGISTER + words);
    });
    batch.add_rule(&chain, |rule| rule.verdict(Verdict::Goto(&pick.name())));
}

/// Binds the client to the endpoint that was chosen, from this connection on (S20).
fn add_remember(batch: &mut Batch<'_>, chain: &str, family: Family, seconds: u32) {
    let Ends { number, source, destination, original, words, .. } = ends(family);
    for protocol in [TCP, UDP] {
        batch.add_rule(chain, |rule| {
            rule.is(Meta::Protocol, &[protocol]);
            // Without a look at the port the rule could be listed and not loaded: its field has to be of a protocol.
            rule.field_is_not(DESTINATION_PORT, &[0, 0]);
            rule.is(Meta::Family, &[number]);
            rule.load_field(source, REGISTER);
            rule.load_original(original, REGISTER + words);
            rule.load(Meta::Protocol, REGISTER + 2 * words);
            rule.load_original(Original::DestinationPort, REGISTER + 2 * words + 1);
            let value = REGISTER + 2 * words + 2;
            rule.load_field(destination, value);
            rule.load_field(DESTINATION_PORT, value + words);
            rule.update_map(&name("affinity", family), Update { key: REGISTER, value, timeout: u64::from(seconds) * 1000 });
        });
    }
}

/// The host passes, and clients in the ranges of the port (S12).
fn add_fenced(batch: &mut Batch<'_>, chain: &str, family: Family) {
    let Ends { number, source, .. } = ends(family);
    batch.add_rule(chain, |rule| {
        rule.source_is_local();
        load_port(rule, REGISTER);
        rule.look_up_verdict(&name("fenced_ports", family), REGISTER);
    });
    batch.add_rule(chain, |rule| {
        rule.is(Meta::Family, &[number]);
        load_port(rule, REGISTER);
        rule.load_field(source, REGISTER + 2);
        rule.is_in(&name("ranges", family), REGISTER);
        load_port(rule, REGISTER);
        rule.look_up_verdict(&name("fenced_ports", family), REGISTER);
    });
    batch.add_rule(chain, |rule| {
        rule.count();
        rule.verdict(Verdict::Drop);
    });
}

/// Rules for packets of pods and of the host to addresses of Services.
pub(super) fn add_address_rules(batch: &mut Batch<'_>, pod: &[u8]) {
    for family in Family::ALL {
        let Ends { number, destination, words, .. } = ends(family);
        for chain in ["incoming", "own"] {
            batch.add_rule(chain, |rule| {
                if chain == "incoming" {
                    rule.is(Meta::InputGroup, pod);
                }
                rule.is(Meta::Family, &[number]);
                load_socket(rule, destination, words);
                rule.look_up_verdict(&name("services", family), REGISTER);
            });
        }
    }
}

/// Packets of pods that plugins connected to addresses of Services.
pub(super) fn add_guest_rules(batch: &mut Batch<'_>) {
    for family in Family::ALL {
        let Ends { number, destination, words, .. } = ends(family);
        batch.add_rule("incoming", |rule| {
            rule.is(Meta::Family, &[number]);
            is_of_guest(rule, family);
            load_socket(rule, destination, words);
            rule.look_up_verdict(&name("services", family), REGISTER);
        });
    }
}

/// Matches what comes from a pod that plugins connected.
fn is_of_guest(rule: &mut Rule<'_, '_>, family: Family) {
    rule.load(Meta::InputName, REGISTER);
    rule.load_field(ends(family).source, REGISTER + NAME_WORDS);
    rule.is_in(guests::set(family).name, REGISTER);
}

/// Rules for packets of anybody to addresses of the host that only some Services answer at. Pods and the host were led before.
pub(super) fn add_host_address_rules(batch: &mut Batch<'_>) {
    for family in Family::ALL {
        let Ends { number, destination, words, .. } = ends(family);
        batch.add_rule("incoming", |rule| {
            rule.is(Meta::Family, &[number]);
            rule.destination_is_local();
            load_socket(rule, destination, words);
            rule.look_up_verdict(&name("services", family), REGISTER);
        });
    }
}

/// Rules for packets of anybody to ports of the host. ::1 is left alone: answers to it would never leave a pod.
pub(super) fn add_node_port_rules(batch: &mut Batch<'_>) {
    for family in Family::ALL {
        let Ends { number, destination, .. } = ends(family);
        for chain in ["incoming", "own"] {
            batch.add_rule(chain, |rule| {
                rule.is(Meta::Family, &[number]);
                if family == Family::V6 {
                    rule.field_is_not(destination, &octets(IpAddr::V6(Ipv6Addr::LOCALHOST)));
                }
                rule.destination_is_local();
                load_port(rule, REGISTER);
                rule.look_up_verdict(&name("node_ports", family), REGISTER);
            });
        }
    }
}

/// First packets of connections whose destination was rewritten: bonds are made here, where the choice is visible, and sources are rewritten
/// of what goes elsewhere (S16).
pub(super) fn add_outgoing_rules(batch: &mut Batch<'_>) {
    for family in Family::ALL {
        let Ends { number, source, destination, original, words, .. } = ends(family);
        for protocol in [TCP, UDP].into_iter().filter(|_| has_bonds(family)) {
            batch.add_rule("outgoing", |rule| {
                rule.has_status(DESTINATION_NAT);
                rule.is(Meta::Protocol, &[protocol]);
                rule.is(Meta::Family, &[number]);
                rule.load_original(original, REGISTER);
                rule.load(Meta::Protocol, REGISTER + words);
                rule.load_original(Original::DestinationPort, REGISTER + words + 1);
                rule.look_up_verdict(&name("sticky", family), REGISTER);
            });
            batch.add_rule("outgoing", |rule| {
                rule.has_status(DESTINATION_NAT);
                rule.is(Meta::Protocol, &[protocol]);
                rule.is(Meta::Family, &[number]);
                rule.load(Meta::Protocol, REGISTER);
                rule.load_original(Original::DestinationPort, REGISTER + 1);
                rule.look_up_verdict(&name("sticky_ports", family), REGISTER);
            });
        }
        batch.add_rule("outgoing", |rule| {
            rule.has_status(DESTINATION_NAT);
            rule.is(Meta::Family, &[number]);
            load_socket(rule, destination, words);
            rule.is_in(&name("elsewhere", family), REGISTER);
            rule.masquerade();
        });
        // From one pod of a bridge of plugins to another one: the answer would go there at once, not through the host that has rewritten the destination.
        batch.add_rule("outgoing", |rule| {
            rule.has_status(DESTINATION_NAT);
            rule.is(Meta::Family, &[number]);
            rule.load(Meta::OutputName, REGISTER);
            rule.load_field(source, REGISTER + NAME_WORDS);
            rule.is_in(guests::set(family).name, REGISTER);
            rule.masquerade();
        });
    }
}

/// Drops what pods send late in a connection that is not tracked any more: with a source that was not rewritten, the other end would answer it with
/// a reset of a good connection (S22).
pub(super) fn add_passing_rules(batch: &mut Batch<'_>, pod: &[u8]) {
    batch.add_rule("passing", |rule| {
        rule.is(Meta::InputGroup, pod);
        rule.has_state(INVALID);
        rule.count();
        rule.verdict(Verdict::Drop);
    });
}

/// Refuses what is still for an address of the range after destinations were rewritten (S19).
pub(super) fn add_unserved(batch: &mut Batch<'_>, pod: &[u8], ranges: ServiceRanges) {
    batch.add_base_chain("unserved", "filter", Hook::Prerouting, -90);
    batch.add_base_chain("unserved_own", "filter", Hook::Output, 0);
    for range in ranges.iter() {
        let Ends { number, destination, .. } = ends(range.family());
        let is_in_range = |rule: &mut Rule<'_, '_>| {
            rule.is(Meta::Family, &[number]);
            rule.field_is_masked(destination, &mask(range), &octets(range.first()));
        };
        for chain in ["unserved", "unserved_own"] {
            batch.add_rule(chain, |rule| {
                if chain == "unserved" {
                    rule.is(Meta::InputGroup, pod);
                }
                is_in_range(rule);
                rule.verdict(Verdict::Goto("refuse"));
            });
        }
        batch.add_rule("unserved", |rule| {
            is_in_range(rule);
            is_of_guest(rule, range.family());
            rule.verdict(Verdict::Goto("refuse"));
        });
    }
}

/// The bits that all addresses of the range have in common.
fn mask(range: Subnet) -> Vec<u8> {
    let differs = octets(range.first()).into_iter().zip(octets(range.last())).map(|(first, last)| first ^ last);
    differs.map(|bits| !bits).collect()
}

/// Loads destination, protocol and port.
fn load_socket(rule: &mut Rule<'_, '_>, destination: Field, words: u32) {
    rule.load_field(destination, REGISTER);
    load_port(rule, REGISTER + words);
}

/// Loads protocol and destination port into two registers.
fn load_port(rule: &mut Rule<'_, '_>, register: u32) {
    rule.load(Meta::Protocol, register);
    rule.load_field(DESTINATION_PORT, register + 1);
}
