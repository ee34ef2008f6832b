//! Sets, chains and fixed rules. **Pure**.

use super::super::family::{Ends, ends};
use podstead_pod::host_ports::Protocol;
use podstead_policy::definition::Direction;
use podstead_policy::table::{ChainName, Element, Line, SetName};
use podstead_service::range::Family;
use podstead_sys::netlink::expressions::{DESTINATION_PORT, Meta, REGISTER, Refusal, Rule, TCP_FLAGS, Verdict};
use podstead_sys::netlink::maps::{Elements, MapElement, MapSpec, MapValue, Part, Values};
use podstead_sys::netlink::nftables::Batch;
use podstead_sys::netlink::rtnetlink::octets;

const TCP: u8 = 6;
/// Port at which pods ask the resolver.
const DOMAIN: u16 = 53;
/// Flags of TCP.
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Chain of packets that no policy allows.
pub(in super::super) const DENY: &str = "deny";
const REFUSE: &str = "refuse_policy";
/// Pods whose denied packets are counted, of one direction and family.
const MOST_COUNTED: u32 = 4096;

/// The chain that counts what a pod is denied in a direction, and the one that refuses it.
const fn denying(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => "deny_in",
        Direction::Egress => "deny_out",
    }
}

/// The set of pods with the number of packets that they were denied.
pub(super) fn denied(direction: Direction, family: Family) -> &'static str {
    match (direction, family) {
        (Direction::Ingress, Family::V4) => "denied_in4",
        (Direction::Ingress, Family::V6) => "denied_in6",
        (Direction::Egress, Family::V4) => "denied_out4",
        (Direction::Egress, Family::V6) => "denied_out6",
    }
}

/// A set without elements.
pub(super) fn add_set(batch: &mut Batch<'_>, set: SetName) {
    let name = set.name();
    let mut add =
        |key: &[Part], values: Values<'_>, elements: Elements| batch.add_map(MapSpec { name: &name, key, values, elements });
    match set {
        SetName::Peer(family, _) | SetName::Policed(family) => add(&[ends(family).source_part], Values::None, Elements::Single),
        SetName::Block(family, _) => add(&[ends(family).source_part], Values::None, Elements::Ranges),
        SetName::Ports(_) => add(&[Part::Protocol, Part::DestinationPort], Values::None, Elements::Intervals),
        SetName::SinglePorts(_) => add(&[Part::Protocol, Part::DestinationPort], Values::None, Elements::Single),
        SetName::Named(family, _) => {
            add(&[ends(family).destination_part, Part::Protocol, Part::DestinationPort], Values::None, Elements::Single);
        }
        SetName::Mute(family) => add(&[ends(family).source_part, Part::Protocol], Values::None, Elements::Single),
        SetName::Ingress(family) => add(&[ends(family).destination_part], Values::Verdicts, Elements::Single),
        SetName::Egress(family) => add(&[ends(family).source_part], Values::Verdicts, Elements::Single),
    }
}

/// Elements as the kernel has them.
pub(super) fn elements(elements: &[Element]) -> Vec<MapElement> {
    elements.iter().flat_map(element).collect()
}

fn element(element: &Element) -> Vec<MapElement> {
    let port = |protocol: &Protocol, port: u16| [protocol_bytes(*protocol), padded(port)].concat();
    match element {
        Element::Address(address) => vec![MapElement::key(octets(*address))],
        Element::Addresses(first, last) => MapElement::range(octets(*first), octets(*last)),
        Element::Ports(protocol, first, last) => {
            vec![MapElement { last: Some(port(protocol, *last)), ..MapElement::key(port(protocol, *first)) }]
        }
        Element::Port(protocol, number) => vec![MapElement::key(port(protocol, *number))],
        Element::Socket(address, protocol, number) => {
            vec![MapElement::key([octets(*address), port(protocol, *number)].concat())]
        }
        Element::Protocol(address, protocol) => {
            vec![MapElement::key([octets(*address), protocol_bytes(*protocol)].concat())]
        }
        Element::Jump(address, chain) => {
            vec![MapElement { value: MapValue::Jump(chain.name()), ..MapElement::key(octets(*address)) }]
        }
    }
}

fn protocol_bytes(protocol: Protocol) -> Vec<u8> {
    vec![protocol.number(), 0, 0, 0]
}

/// A part takes a whole register.
fn padded(port: u16) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    vec![high, low, 0, 0]
}

/// Chains that are there whatever policies there are (N13).
pub(super) fn add_fixed_chains(batch: &mut Batch<'_>, pod: &[u8]) {
    batch.add_chain(REFUSE);
    batch.add_rule(REFUSE, |rule| {
        rule.is(Meta::Protocol, &[TCP]);
        rule.refuse(Refusal::TcpReset);
    });
    batch.add_rule(REFUSE, |rule| rule.refuse(Refusal::Prohibited));
    batch.add_chain(DENY);
    batch.add_rule(DENY, |rule| {
        rule.is(Meta::InputGroup, pod);
        rule.count();
        rule.verdict(Verdict::Goto(REFUSE));
    });
    batch.add_rule(DENY, |rule| {
        rule.count();
        rule.verdict(Verdict::Drop);
    });
    for direction in [Direction::Ingress, Direction::Egress] {
        batch.add_chain(denying(direction));
        for family in Family::ALL {
            let Ends { number, source, destination, source_part, destination_part, .. } = ends(family);
            let (pod, part) = match direction {
                Direction::Ingress => (destination, destination_part),
                Direction::Egress => (source, source_part),
            };
            let set = denied(direction, family);
            let elements = Elements::Counted { most: MOST_COUNTED };
            batch.add_map(MapSpec { name: set, key: &[part], values: Values::None, elements });
            batch.add_rule(denying(direction), |rule| {
                rule.is(Meta::Family, &[number]);
                rule.load_field(pod, REGISTER);
                rule.count_in(set, REGISTER);
            });
        }
        batch.add_rule(denying(direction), |rule| rule.verdict(Verdict::Goto(DENY)));
    }
}

/// A chain with its rules: what one of them allows goes back, for the other direction (R10).
pub(super) fn add_chain(batch: &mut Batch<'_>, chain: ChainName, lines: &[Line]) {
    let name = chain.name();
    batch.add_chain(&name);
    for line in lines {
        batch.add_rule(&name, |rule| {
            add_line(rule, chain.direction, *line);
            rule.verdict(Verdict::Return);
        });
    }
    batch.add_rule(&name, |rule| rule.verdict(Verdict::Goto(denying(chain.direction))));
}

fn add_line(rule: &mut Rule<'_, '_>, direction: Direction, line: Line) {
    if let Some(family) = line.family {
        let Ends { number, source, destination, words, .. } = ends(family);
        rule.is(Meta::Family, &[number]);
        if let Some(set) = line.other {
            let other = match direction {
                Direction::Ingress => source,
                Direction::Egress => destination,
            };
            rule.load_field(other, REGISTER);
            rule.is_in(&set.name(), REGISTER);
        }
        if let Some(set) = line.named {
            rule.load_field(destination, REGISTER);
            load_port(rule, REGISTER + words);
            rule.is_in(&set.name(), REGISTER);
        }
    }
    if let Some(set) = line.ports {
        load_port(rule, REGISTER);
        rule.is_in(&set.name(), REGISTER);
    }
}

fn load_port(rule: &mut Rule<'_, '_>, register: u32) {
    rule.load(Meta::Protocol, register);
    rule.load_field(DESTINATION_PORT, register + 1);
}

/// Questions to the resolver, at the port that pods ask and at its own, are refused to those that may not ask (N9).
pub(super) fn add_resolver_rules(batch: &mut Batch<'_>, pod: &[u8], port: u16) {
    for family in Family::ALL {
        let Ends { number, source, destination, gateway, words, .. } = ends(family);
        for port in [DOMAIN, port] {
            batch.add_rule("from_pods", |rule| {
                rule.is(Meta::InputGroup, pod);
                rule.is(Meta::Family, &[number]);
                rule.field_is(destination, &octets(gateway));
                rule.field_is(DESTINATION_PORT, &port.to_be_bytes());
                rule.load_field(source, REGISTER);
                rule.load(Meta::Protocol, REGISTER + words);
                rule.is_in(&SetName::Mute(family).name(), REGISTER);
                rule.verdict(Verdict::Goto(denying(Direction::Egress)));
            });
        }
    }
}

/// First packets of connections: what their source may send, then what their destination may receive (N7).
pub(super) fn add_passing_rules(batch: &mut Batch<'_>, pod: &[u8]) {
    for family in Family::ALL {
        let Ends { number, source, destination, .. } = ends(family);
        // A connection that was cut would be opened anew by an end that goes on sending (N12).
        for end in [source, destination] {
            batch.add_rule("passing", |rule| {
                rule.is(Meta::Protocol, &[TCP]);
                rule.field_is_not_masked(TCP_FLAGS, &[SYN | ACK], &[SYN]);
                rule.is(Meta::Family, &[number]);
                rule.load_field(end, REGISTER);
                rule.is_in(&SetName::Policed(family).name(), REGISTER);
                rule.refuse(Refusal::TcpReset);
            });
        }
    }
    for family in Family::ALL {
        let Ends { number, source, destination, .. } = ends(family);
        let ways =
            [(Meta::InputGroup, source, SetName::Egress(family)), (Meta::OutputGroup, destination, SetName::Ingress(family))];
        for (group, end, map) in ways {
            batch.add_rule("passing", |rule| {
                rule.is(group, pod);
                rule.is(Meta::Family, &[number]);
                rule.load_field(end, REGISTER);
                rule.look_up_verdict(&map.name(), REGISTER);
            });
        }
    }
}
