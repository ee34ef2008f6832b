//! Rules of others, as far as they tell packets apart by where these come from: zones of firewalld are rules of that kind. **Pure**.

use super::message::{Answer, DUMP, Request, attributes, text_of};
use super::nftables::{GET_RULE, INET, NEW_RULE, SUBSYSTEM, attribute, generic_header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Packets that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// All that come to it.
    Any,
    /// Those from a network: address and prefix length.
    Network(IpAddr, u8),
    /// Packets from interfaces with this name prefix.
    Interfaces(String),
    /// Something else, or something more.
    Other,
}

/// Outcome for the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They are accepted.
    Accept,
    /// Another chain says.
    Chain(String),
    /// Something else.
    Other,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRule {
    /// The chain that it is in.
    pub chain: String,
    /// The packets.
    pub source: Source,
    /// Their outcome.
    pub outcome: Outcome,
}

// NFT_META_*.
const INPUT_NAME: u32 = 6;
const FAMILY: u32 = 15;
// enum nf_inet verdicts and those of nftables, as signed numbers.
const ACCEPT: i32 = 1;
const JUMP: i32 = -3;
const GOTO: i32 = -4;

/// Asks for all rules of a table of the family inet.
pub fn list_rules_of(request: &mut Request, table: &str) {
    request.message(format!("list rules of table {table}"), SUBSYSTEM | GET_RULE, DUMP, |body| {
        body.raw(&generic_header(INET, 0));
        body.text(1, table);
    });
}

/// Reads a rule of the table; `None` for any other message.
pub fn source_rule(answer: &Answer<'_>, table: &str) -> Option<SourceRule> {
    if answer.kind != SUBSYSTEM | NEW_RULE || text_of(attribute(answer, 1)?) != table {
        return None;
    }
    let chain = text_of(attribute(answer, 2)?);
    let mut reading = Reading::default();
    for (_, element) in attributes(attribute(answer, 4).unwrap_or_default()) {
        let part = |wanted: u16| attributes(element).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        reading.take(&text_of(part(1).unwrap_or_default()), part(2).unwrap_or_default());
    }
    let Reading { source, outcome, .. } = reading;
    Some(SourceRule { chain, source: source.unwrap_or(Source::Any), outcome: outcome.unwrap_or(Outcome::Other) })
}

/// Content of the register that is compared next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Loaded {
    #[default]
    Nothing,
    Family,
    InputName,
    /// A source address, or the beginning of one.
    Address {
        is_ipv4: bool,
    },
}

/// A rule that is read expression by expression.
#[derive(Debug, Default)]
struct Reading {
    loaded: Loaded,
    mask: Option<Vec<u8>>,
    source: Option<Source>,
    outcome: Option<Outcome>,
}

impl Reading {
    fn take(&mut self, name: &str, content: &[u8]) {
        match name {
            "meta" => {
                self.loaded = match number(content, 2) {
                    Some(FAMILY) => Loaded::Family,
                    Some(INPUT_NAME) => Loaded::InputName,
                    Some(_) | None => Loaded::Nothing,
                };
            }
            "payload" => {
                // Base 1 is the network header.
                let place = (number(content, 2), number(content, 3), number(content, 4));
                self.loaded = match place {
                    (Some(1), Some(12), Some(1..=4)) => Loaded::Address { is_ipv4: true },
                    (Some(1), Some(8), Some(1..=16)) => Loaded::Address { is_ipv4: false },
                    _ => Loaded::Nothing,
                };
            }
            "bitwise" => self.mask = nested(content, 4).map(<[u8]>::to_vec),
            "cmp" => self.compare(number(content, 2), nested(content, 3).unwrap_or_default()),
            "immediate" => self.outcome = Some(verdict(content)),
            "counter" => {}
            // Any other expression may invert the meaning.
            _ => self.source = Some(Source::Other),
        }
    }

    fn compare(&mut self, operation: Option<u32>, value: &[u8]) {
        const EQUAL: u32 = 0;
        let mask = self.mask.take();
        let found = match std::mem::take(&mut self.loaded) {
            // The address tells the family, too.
            Loaded::Family if operation == Some(EQUAL) => return,
            // With the NUL at its end, it is a whole name.
            Loaded::InputName if operation == Some(EQUAL) && !value.contains(&0) => Source::Interfaces(text_of(value)),
            Loaded::Address { is_ipv4 } if operation == Some(EQUAL) => {
                network(is_ipv4, value, mask.as_deref()).unwrap_or(Source::Other)
            }
            Loaded::Nothing | Loaded::Family | Loaded::InputName | Loaded::Address { .. } => Source::Other,
        };
        self.source = Some(if self.source.is_none() { found } else { Source::Other });
    }
}

/// The network that an address is compared with; `None` for one that has no prefix.
fn network(is_ipv4: bool, value: &[u8], mask: Option<&[u8]>) -> Option<Source> {
    let mut bytes = [0_u8; 16];
    bytes.get_mut(..value.len())?.copy_from_slice(value);
    let prefix = match mask {
        None => value.len() * 8,
        Some(mask) => {
            let ones: usize = mask.iter().map(|byte| byte.leading_ones() as usize).sum();
            // Nothing follows the first zero.
            let is_prefix = mask.iter().enumerate().all(|(at, byte)| {
                let wanted = ones.saturating_sub(at * 8).min(8);
                byte.leading_ones() as usize == wanted && byte.count_ones() as usize == wanted
            });
            is_prefix.then_some(ones)?
        }
    };
    let [a, b, c, d, ..] = bytes;
    let address = if is_ipv4 { IpAddr::from(Ipv4Addr::new(a, b, c, d)) } else { Ipv6Addr::from(bytes).into() };
    Some(Source::Network(address, u8::try_from(prefix).ok()?))
}

fn verdict(content: &[u8]) -> Outcome {
    let found = || {
        let data = attributes(content).find(|(kind, _)| *kind == 2)?.1;
        let verdict = attributes(data).find(|(kind, _)| *kind == 2)?.1;
        let chain = || attributes(verdict).find(|(kind, _)| *kind == 2).map(|(_, name)| text_of(name));
        match number(verdict, 1)?.cast_signed() {
            ACCEPT => Some(Outcome::Accept),
            JUMP | GOTO => Some(Outcome::Chain(chain()?)),
            _ => None,
        }
    };
    found().unwrap_or(Outcome::Other)
}

/// A number in network byte order.
fn number(content: &[u8], wanted: u16) -> Option<u32> {
    let (_, value) = attributes(content).find(|(kind, _)| *kind == wanted)?;
    <[u8; 4]>::try_from(value).ok().map(u32::from_be_bytes)
}

/// The value in an attribute of data.
fn nested(content: &[u8], wanted: u16) -> Option<&[u8]> {
    let (_, data) = attributes(content).find(|(kind, _)| *kind == wanted)?;
    attributes(data).find(|(kind, _)| *kind == 1).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::answers;
    use crate::netlink::expressions::{IPV4_DESTINATION, IPV4_SOURCE, IPV6_SOURCE, Meta, Rule, Verdict};
    use crate::netlink::nftables::Batch;

    fn read(fill: impl FnOnce(&mut Rule<'_, '_>)) -> (Source, Outcome) {
        let mut batch = Batch::new("firewalld");
        batch.add_rule("zones", fill);
        let request = batch.end();
        let rules: Vec<SourceRule> = answers(request.bytes()).filter_map(|answer| source_rule(&answer, "firewalld")).collect();
        assert!(answers(request.bytes()).all(|answer| source_rule(&answer, "other").is_none()));
        let [rule] = <[SourceRule; 1]>::try_from(rules).unwrap();
        assert_eq!(rule.chain, "zones");
        (rule.source, rule.outcome)
    }

    #[test]
    fn rules_of_zones_are_read_as_they_are_written() {
        let go = || Outcome::Chain("trusted".into());
        let network = |text: &str, prefix| Source::Network(text.parse().unwrap(), prefix);
        // ip saddr 10.201.16.0/20
        let masked = read(|rule| {
            rule.is(Meta::Family, &[2]);
            rule.field_is_masked(IPV4_SOURCE, &[255, 255, 240, 0], &[10, 201, 16, 0]);
            rule.count();
            rule.verdict(Verdict::Jump("trusted"));
        });
        assert_eq!(masked, (network("10.201.16.0", 20), go()));
        // ip6 saddr fd70::/64 is compared as eight bytes.
        let mut field = IPV6_SOURCE;
        field.length = 8;
        let short = read(|rule| {
            rule.field_is(field, &[0xfd, 0x70, 0, 0, 0, 0, 0, 0]);
            rule.verdict(Verdict::Jump("trusted"));
        });
        assert_eq!(short, (network("fd70::", 64), go()));
        let named = read(|rule| {
            rule.begins_with(Meta::InputName, b"ps-");
            rule.verdict(Verdict::Accept);
        });
        assert_eq!(named, (Source::Interfaces("ps-".into()), Outcome::Accept));
        assert_eq!(read(|rule| rule.verdict(Verdict::Accept)), (Source::Any, Outcome::Accept));
        assert_eq!(read(|rule| rule.verdict(Verdict::Drop)), (Source::Any, Outcome::Other));
    }

    #[test]
    fn what_is_not_understood_wholly_is_not_taken_for_what_is() {
        let source = |fill: fn(&mut Rule<'_, '_>)| read(fill).0;
        assert_eq!(source(|rule| rule.field_is(IPV4_DESTINATION, &[10, 0, 0, 1])), Source::Other);
        assert_eq!(source(|rule| rule.is_not(Meta::InputName, b"ps-")), Source::Other);
        assert_eq!(source(|rule| rule.is(Meta::InputName, b"ps-1\0")), Source::Other);
        assert_eq!(source(|rule| rule.has_state(2)), Source::Other);
        assert_eq!(source(|rule| rule.field_is_masked(IPV4_SOURCE, &[255, 0, 255, 0], &[10, 0, 1, 0])), Source::Other);
        let two = |rule: &mut Rule<'_, '_>| {
            rule.field_is(IPV4_SOURCE, &[10, 0, 0, 1]);
            rule.is(Meta::Protocol, &[6]);
        };
        assert_eq!(source(two), Source::Other);
    }
}
