//! Sets and maps of nftables beyond addresses and ports: verdicts, indexes, intervals, elements that packets add; and their elements, read
//! from the kernel. **Pure**.
//!
//! The types of keys and values are given as expressions, as `typeof` of `nft` has them: it writes them beside a map as data that the kernel
//! stores without a look, and lists the map with them. Without them a listing calls an index an integer, and cannot be loaded again.

use super::expressions::{GOTO, JUMP, Verdict};
use super::message::{Answer, Body, CREATE, DUMP, Request, attributes, text_of};
use super::nftables::{
    Batch, CHUNK, DELETE_ELEMENTS, GET_ELEMENTS, INET, NEW_ELEMENTS, NEW_SET, SUBSYSTEM, attribute, generic_header,
};

/// A part of a key or value, as an expression of `nft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `ip saddr`.
    Ipv4Source,
    /// `ip daddr`.
    Ipv4Destination,
    /// `ip6 saddr`.
    Ipv6Source,
    /// `ip6 daddr`.
    Ipv6Destination,
    /// `meta l4proto`.
    Protocol,
    /// `th dport`.
    DestinationPort,
    /// `numgen random mod 2`: an index, in this machine's byte order.
    Index,
}

/// Values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values<'a> {
    /// None: a set.
    None,
    /// Chains to go on to.
    Verdicts,
    /// Data.
    Parts(&'a [Part]),
}

/// Elements that a set or map may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Single keys.
    Single,
    /// From one key to another, in each part.
    Intervals,
    /// From one key to another, of a key that has one part.
    Ranges,
    /// Keys that packets add, for some time.
    Dynamic {
        /// The number of elements beyond which none is added.
        most: u32,
    },
    /// Keys that packets add, each with a counter.
    Counted {
        /// The number of elements beyond which none is added.
        most: u32,
    },
}

/// A set or a map.
#[derive(Clone, Copy, Debug)]
pub struct MapSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its keys.
    pub key: &'a [Part],
    /// Its values.
    pub values: Values<'a>,
    /// Its elements.
    pub elements: Elements,
}

/// An element; parts of keys and values are padded to four bytes each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapElement {
    /// Its key; of an interval the first one.
    pub key: Vec<u8>,
    /// The last key of an interval.
    pub last: Option<Vec<u8>>,
    /// Its value.
    pub value: MapValue,
}

/// The value of an element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapValue {
    /// None.
    None,
    /// Data.
    Data(Vec<u8>),
    /// None, and the range before it ends here.
    EndOfRange,
    /// On to a chain, and back after it.
    Jump(String),
    /// On to a chain.
    Goto(String),
}

impl Part {
    /// The number of its type.
    const fn datatype(self) -> u32 {
        match self {
            Self::Index => 4,
            Self::Ipv4Source | Self::Ipv4Destination => 7,
            Self::Ipv6Source | Self::Ipv6Destination => 8,
            Self::Protocol => 12,
            Self::DestinationPort => 13,
        }
    }

    /// Its bytes, without padding.
    const fn length(self) -> u32 {
        match self {
            Self::Protocol => 1,
            Self::DestinationPort => 2,
            Self::Ipv4Source | Self::Ipv4Destination | Self::Index => 4,
            Self::Ipv6Source | Self::Ipv6Destination => 16,
        }
    }

    /// The expression as `nft` writes it: its kind (`EXPR_*`), and fields of that kind.
    fn expression(self) -> Vec<u8> {
        const PAYLOAD: u32 = 7;
        const META: u32 = 9;
        const NUMGEN: u32 = 23;
        let (kind, fields): (u32, &[u32]) = match self {
            // Protocol (PROTO_DESC_*) and number of the field.
            Self::Ipv4Source => (PAYLOAD, &[12, 11]),
            Self::Ipv4Destination => (PAYLOAD, &[12, 12]),
            Self::Ipv6Source => (PAYLOAD, &[13, 8]),
            Self::Ipv6Destination => (PAYLOAD, &[13, 9]),
            Self::DestinationPort => (PAYLOAD, &[11, 2]),
            // NFT_META_L4PROTO.
            Self::Protocol => (META, &[16]),
            // NFT_NG_RANDOM, below 2, from 0 on. The modulus is not part of the type.
            Self::Index => (NUMGEN, &[1, 2, 0]),
        };
        let fields: Vec<u8> = (0_u8..).zip(fields).flat_map(|(number, value)| user_number(number, *value)).collect();
        [user_number(0, kind), user_data(1, &fields)].concat()
    }
}

/// An attribute of user data: type and length are a byte each, nothing is padded.
fn user_data(kind: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, u8::try_from(value.len()).unwrap_or(u8::MAX)];
    bytes.extend(value);
    bytes
}

fn user_number(kind: u8, value: u32) -> Vec<u8> {
    user_data(kind, &value.to_ne_bytes())
}

/// `typeof` of a concatenation (`EXPR_CONCAT`).
fn type_of(kind: u8, parts: &[Part]) -> Vec<u8> {
    const CONCAT: u32 = 13;
    let parts: Vec<u8> = (0_u8..).zip(parts).flat_map(|(number, part)| user_data(number, &part.expression())).collect();
    user_data(kind, &[user_number(0, CONCAT), user_data(1, &parts)].concat())
}

/// `NFTNL_UDATA_SET_*`: byte orders of key and value, types of both, and that values are no intervals.
fn set_user_data(key: &[Part], value: &[Part]) -> Vec<u8> {
    [user_number(0, 0), user_number(1, 0), type_of(3, key), type_of(4, value), user_number(6, 0)].concat()
}

fn number_of(parts: &[Part]) -> u32 {
    parts.iter().fold(0, |number, part| (number << 6) | part.datatype())
}

fn bytes_of(parts: &[Part]) -> u32 {
    parts.iter().map(|part| part.length().next_multiple_of(4)).sum()
}

impl Batch<'_> {
    /// Makes a set or a map.
    pub fn add_map(&mut self, spec: MapSpec<'_>) {
        // NFT_SET_*.
        const INTERVAL: u32 = 4;
        const MAP: u32 = 8;
        const TIMEOUT: u32 = 0x10;
        const EVALUATED: u32 = 0x20;
        const CONCATENATION: u32 = 0x80;
        const VERDICT: u32 = 0xffff_ff00;
        let MapSpec { name, key, values, elements } = spec;
        let table = self.table;
        self.sets += 1;
        let id = self.sets;
        let flags = match elements {
            Elements::Single => 0,
            Elements::Intervals => INTERVAL | CONCATENATION,
            Elements::Ranges => INTERVAL,
            Elements::Dynamic { .. } => TIMEOUT | EVALUATED,
            Elements::Counted { .. } => EVALUATED,
        };
        self.message(format!("create map {name}"), NEW_SET, CREATE, |body| {
            body.text(1, table);
            body.text(2, name);
            body.be32(3, if values == Values::None { flags } else { flags | MAP });
            body.be32(4, number_of(key));
            body.be32(5, bytes_of(key));
            match values {
                Values::None => {}
                Values::Verdicts => {
                    body.be32(6, VERDICT);
                    body.be32(7, 0);
                }
                Values::Parts(parts) => {
                    body.be32(6, number_of(parts));
                    body.be32(7, bytes_of(parts));
                    body.bytes(13, &set_user_data(key, parts));
                }
            }
            match elements {
                Elements::Single | Elements::Ranges => {}
                Elements::Intervals => body.nest(9, |description| {
                    description.nest(2, |fields| {
                        for part in key {
                            fields.nest(1, |field| field.be32(1, part.length()));
                        }
                    });
                }),
                Elements::Dynamic { most } | Elements::Counted { most } => body.nest(9, |description| description.be32(1, most)),
            }
            body.be32(10, id);
        });
    }

    /// Adds elements of a map; those that are there stay.
    pub fn add_map_elements(&mut self, map: &str, elements: &[MapElement]) {
        self.map_elements(map, NEW_ELEMENTS, CREATE, elements);
    }

    /// Removes elements of a map, each of which must be there. Their values do not matter.
    pub fn delete_map_elements(&mut self, map: &str, elements: &[MapElement]) {
        self.map_elements(map, DELETE_ELEMENTS, 0, elements);
    }

    fn map_elements(&mut self, map: &str, kind: u16, flags: u16, elements: &[MapElement]) {
        let table = self.table;
        for chunk in elements.chunks(CHUNK) {
            self.message(format!("change the elements of {map}"), kind, flags, |body| {
                body.text(1, table);
                body.text(2, map);
                body.nest(3, |list| {
                    for element in chunk {
                        list.nest(1, |body| element.write(kind == NEW_ELEMENTS, body));
                    }
                });
            });
        }
    }
}

impl MapElement {
    /// An element of a set.
    pub const fn key(key: Vec<u8>) -> Self {
        Self { key, last: None, value: MapValue::None }
    }

    /// A range of a set of [`Elements::Ranges`]: two elements, the second of which is where it ends.
    pub fn range(first: Vec<u8>, last: Vec<u8>) -> Vec<Self> {
        let mut after = last;
        // The next key: there is none after the last one of all, and such a range has no end.
        let has_next = after.iter_mut().rev().any(|byte| {
            *byte = byte.wrapping_add(1);
            *byte != 0
        });
        let end = Self { value: MapValue::EndOfRange, ..Self::key(after) };
        std::iter::once(Self::key(first)).chain(has_next.then_some(end)).collect()
    }

    fn write(&self, with_value: bool, body: &mut Body<'_>) {
        body.nest(1, |field| field.bytes(1, &self.key));
        if let Some(last) = &self.last {
            body.nest(10, |field| field.bytes(1, last));
        }
        if self.value == MapValue::EndOfRange {
            // NFT_SET_ELEM_INTERVAL_END.
            body.be32(3, 1);
        }
        if !with_value {
            return;
        }
        match &self.value {
            MapValue::None | MapValue::EndOfRange => {}
            MapValue::Data(value) => body.nest(2, |field| field.bytes(1, value)),
            MapValue::Jump(chain) => body.nest(2, |field| field.nest(2, |verdict| Verdict::Jump(chain).write(verdict))),
            MapValue::Goto(chain) => body.nest(2, |field| field.nest(2, |verdict| Verdict::Goto(chain).write(verdict))),
        }
    }

    /// Reads an element; `None` for one of a kind that nothing here makes.
    fn read(bytes: &[u8]) -> Option<Self> {
        let find = |bytes, wanted| attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        let value = match find(bytes, 2) {
            None if find(bytes, 3).is_some_and(|flags| flags.last().is_some_and(|byte| byte & 1 != 0)) => MapValue::EndOfRange,
            None => MapValue::None,
            Some(data) => match (find(data, 1), find(data, 2)) {
                (Some(value), _) => MapValue::Data(value.to_vec()),
                (None, Some(verdict)) => {
                    let code = <[u8; 4]>::try_from(find(verdict, 1)?).ok().map(i32::from_be_bytes)?;
                    let chain = text_of(find(verdict, 2)?);
                    match code {
                        JUMP => MapValue::Jump(chain),
                        GOTO => MapValue::Goto(chain),
                        _ => return None,
                    }
                }
                (None, None) => return None,
            },
        };
        let last = find(bytes, 10).and_then(|field| find(field, 1)).map(<[u8]>::to_vec);
        Some(Self { key: find(find(bytes, 1)?, 1)?.to_vec(), last, value })
    }
}

/// Reads the counted keys in one answer of many, each with its number of packets.
pub fn counted(answer: &Answer<'_>) -> Vec<(Vec<u8>, u64)> {
    if answer.kind != SUBSYSTEM | NEW_ELEMENTS {
        return Vec::new();
    }
    attributes(attribute(answer, 3).unwrap_or_default()).filter_map(|(_, element)| counted_key(element)).collect()
}

/// Key and packets of an element; `None` for one without a counter.
fn counted_key(element: &[u8]) -> Option<(Vec<u8>, u64)> {
    fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
        attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    }
    let expression = find(element, 7)?;
    let packets = <[u8; 8]>::try_from(find(find(expression, 2)?, 2)?).ok()?;
    let is_counter = find(expression, 1).is_some_and(|name| text_of(name) == "counter");
    is_counter.then_some((find(find(element, 1)?, 1)?.to_vec(), u64::from_be_bytes(packets)))
}

/// Asks for all elements of a map of a table of the family inet.
pub fn list_elements(request: &mut Request, table: &str, map: &str) {
    request.message(format!("list the elements of {map}"), SUBSYSTEM | GET_ELEMENTS, DUMP, |body| {
        body.raw(&generic_header(INET, 0));
        body.text(1, table);
        body.text(2, map);
    });
}

/// Reads the elements in one answer of many; none for a message that has none.
pub fn elements(answer: &Answer<'_>) -> Vec<MapElement> {
    if answer.kind != SUBSYSTEM | NEW_ELEMENTS {
        return Vec::new();
    }
    attributes(attribute(answer, 3).unwrap_or_default()).filter_map(|(_, element)| MapElement::read(element)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::expressions::{
        DESTINATION_PORT, IPV4_DESTINATION, IPV4_SOURCE, IPV6_DESTINATION, Meta, Original, REGISTER, Refusal, Update,
    };
    use crate::netlink::nftables::{Hook, IPV4, IPV6};
    use crate::netlink::{NetlinkSocket, Protocol, answers};
    use crate::testing::in_new_netns;
    use proptest::prelude::*;
    use std::fs::File;
    use std::io::Write;
    use std::process::{Command, Stdio};

    const TABLE: &str = "podstead_test";

    fn spec<'a>(name: &'a str, key: &'a [Part], values: Values<'a>, elements: Elements) -> MapSpec<'a> {
        MapSpec { name, key, values, elements }
    }

    /// A table with a map of each kind, and rules with each expression.
    fn table() -> Request {
        use Part::{DestinationPort, Index, Ipv4Destination, Ipv4Source, Ipv6Destination, Protocol};
        let mut batch = Batch::new(TABLE);
        batch.add_table();
        for chain in ["refuse", "pick4", "pick6", "sticky4", "remember4", "fenced4"] {
            batch.add_chain(chain);
        }
        batch.add_base_chain("incoming", "nat", Hook::Prerouting, -100);
        batch.add_base_chain("outgoing", "nat", Hook::Postrouting, 100);
        let frontend = [Ipv4Destination, Protocol, DestinationPort];
        batch.add_map(spec("services4", &frontend, Values::Verdicts, Elements::Single));
        let key = [Ipv4Destination, Protocol, DestinationPort, Index];
        batch.add_map(spec("endpoints4", &key, Values::Parts(&[Ipv4Destination, DestinationPort]), Elements::Single));
        let key = [Ipv6Destination, Protocol, DestinationPort, Index];
        batch.add_map(spec("endpoints6", &key, Values::Parts(&[Ipv6Destination, DestinationPort]), Elements::Single));
        let key = [Ipv4Source, Ipv4Destination, Protocol, DestinationPort];
        let bonds = Elements::Dynamic { most: 65_535 };
        batch.add_map(spec("affinity4", &key, Values::Parts(&[Ipv4Destination, DestinationPort]), bonds));
        batch.add_map(spec("ranges4", &[Protocol, DestinationPort, Ipv4Source], Values::None, Elements::Intervals));
        batch.add_rule("refuse", |rule| {
            rule.is(Meta::Protocol, &[6]);
            rule.refuse(Refusal::TcpReset);
        });
        batch.add_rule("refuse", |rule| rule.refuse(Refusal::PortUnreachable));
        for (chain, family, number, destination, map) in
            [("pick4", IPV4, 2, IPV4_DESTINATION, "endpoints4"), ("pick6", IPV6, 3, IPV6_DESTINATION, "endpoints6")]
        {
            let words = destination.length / 4;
            batch.add_rule(chain, |rule| {
                rule.is(Meta::Family, &[family]);
                rule.load_field(destination, REGISTER);
                rule.load(Meta::Protocol, REGISTER + words);
                rule.load_field(DESTINATION_PORT, REGISTER + words + 1);
                rule.load_random(number, REGISTER + words + 2);
                rule.look_up_in_map(map, REGISTER);
                rule.rewrite_destination(family, REGISTER, REGISTER + words);
            });
        }
        batch.add_rule("remember4", |rule| {
            rule.is(Meta::Protocol, &[6]);
            rule.field_is_not(DESTINATION_PORT, &[0, 0]);
            rule.is(Meta::Family, &[IPV4]);
            rule.load_field(IPV4_SOURCE, REGISTER);
            rule.load_original(Original::Ipv4Destination, REGISTER + 1);
            rule.load(Meta::Protocol, REGISTER + 2);
            rule.load_original(Original::DestinationPort, REGISTER + 3);
            rule.load_field(IPV4_DESTINATION, REGISTER + 4);
            rule.load_field(DESTINATION_PORT, REGISTER + 5);
            rule.update_map("affinity4", Update { key: REGISTER, value: REGISTER + 4, timeout: 10_800_000 });
        });
        batch.add_rule("fenced4", |rule| {
            rule.source_is_local();
            rule.verdict(Verdict::Goto("pick4"));
        });
        batch.add_rule("incoming", |rule| {
            rule.is(Meta::Family, &[IPV4]);
            rule.load_field(IPV4_DESTINATION, REGISTER);
            rule.load(Meta::Protocol, REGISTER + 1);
            rule.load_field(DESTINATION_PORT, REGISTER + 2);
            rule.look_up_verdict("services4", REGISTER);
        });
        batch.add_map_elements("services4", &[service(80, "pick4"), service(81, "refuse")]);
        batch.add_map_elements("endpoints4", &[endpoint(0), endpoint(1)]);
        batch.add_map_elements("ranges4", &[range()]);
        batch.end()
    }

    fn service(port: u8, chain: &str) -> MapElement {
        MapElement { key: vec![10, 202, 1, 17, 6, 0, 0, 0, 0, port, 0, 0], last: None, value: MapValue::Goto(chain.to_owned()) }
    }

    fn endpoint(index: u32) -> MapElement {
        let key = [&[10, 202, 1, 17, 6, 0, 0, 0, 0, 80, 0, 0], &index.to_ne_bytes()[..]].concat();
        MapElement { key, last: None, value: MapValue::Data(vec![10, 201, 0, 7, 0x1f, 0x90, 0, 0]) }
    }

    fn range() -> MapElement {
        let last = Some(vec![6, 0, 0, 0, 0, 80, 0, 0, 10, 255, 255, 255]);
        MapElement { last, ..MapElement::key(vec![6, 0, 0, 0, 0, 80, 0, 0, 10, 0, 0, 0]) }
    }

    fn nft(netns: &std::path::Path, arguments: &[&str], input: &str) -> String {
        let mut child = Command::new("nsenter")
            .arg(format!("--net={}", netns.display()))
            .arg("nft")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "nft {arguments:?}: {}\n{input}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn read(socket: &mut NetlinkSocket, map: &str) -> Vec<MapElement> {
        let mut request = Request::new();
        list_elements(&mut request, TABLE, map);
        let mut found = Vec::new();
        socket.dump(&request, |answer| found.extend(elements(&answer))).unwrap();
        found.sort();
        found
    }

    #[test]
    fn listing_is_that_of_nft_and_loads() {
        in_new_netns(|netns, _| {
            let mut socket = NetlinkSocket::open_in(&File::open(netns).unwrap(), Protocol::Netfilter).unwrap();
            socket.transact(&table(), |_| {}).unwrap();
            let listed = nft(netns, &["list", "ruleset"], "");
            for line in [
                "typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport",
                "typeof ip6 daddr . meta l4proto . th dport . numgen random mod 2 : ip6 daddr . th dport",
                "typeof ip saddr . ip daddr . meta l4proto . th dport : ip daddr . th dport",
                "elements = { 10.202.1.17 . tcp . 80 . 0 : 10.201.0.7 . 8080,",
                "elements = { 10.202.1.17 . tcp . 80 : goto pick4,",
                "elements = { tcp . 80 . 10.0.0.0/8 }",
                "dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints4",
                "dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints6",
                "ip daddr . meta l4proto . th dport vmap @services4",
                "tcp dport != 0 update @affinity4 { ip saddr . ct original ip daddr . meta l4proto . ct original proto-dst timeout 3h : ip daddr . tcp dport }",
                "fib saddr type local goto pick4",
                "meta l4proto tcp reject with tcp reset",
                "reject\n",
            ] {
                assert!(listed.contains(line), "{line}\n{listed}");
            }
            in_new_netns(|other, _| {
                nft(other, &["-f", "-"], &listed);
                assert_eq!(nft(other, &["list", "ruleset"], ""), listed);
            });
        });
    }

    #[test]
    fn elements_are_read_back() {
        in_new_netns(|netns, _| {
            let mut socket = NetlinkSocket::open_in(&File::open(netns).unwrap(), Protocol::Netfilter).unwrap();
            socket.transact(&table(), |_| {}).unwrap();
            assert_eq!(read(&mut socket, "services4"), [service(80, "pick4"), service(81, "refuse")]);
            let mut endpoints = [endpoint(0), endpoint(1)];
            endpoints.sort();
            assert_eq!(read(&mut socket, "endpoints4"), endpoints);
            assert_eq!(read(&mut socket, "ranges4"), [range()]);
            let mut batch = Batch::new(TABLE);
            batch.delete_map_elements("services4", &[service(80, "another")]);
            batch.add_map_elements("services4", &[service(80, "refuse")]);
            batch.delete_map_elements("endpoints4", &[endpoint(1)]);
            batch.flush_chain("pick4");
            socket.transact(&batch.end(), |_| {}).unwrap();
            assert_eq!(read(&mut socket, "services4"), [service(80, "refuse"), service(81, "refuse")]);
            assert_eq!(read(&mut socket, "endpoints4"), [endpoint(0)]);
            let chain = nft(netns, &["list", "chain", "inet", TABLE, "pick4"], "");
            assert!(!chain.contains("dnat"), "{chain}");
        });
    }

    #[test]
    fn many_elements_fit_into_messages() {
        let elements: Vec<MapElement> = (0..25_000).map(endpoint).collect();
        let mut batch = Batch::new(TABLE);
        batch.add_map_elements("endpoints4", &elements);
        assert!(!batch.end().is_too_long());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut message = (u32::try_from(bytes.len()).unwrap() + 16).to_ne_bytes().to_vec();
            message.extend((SUBSYSTEM | NEW_ELEMENTS).to_ne_bytes());
            message.extend([0; 10]);
            message.extend(&bytes);
            for answer in answers(&message) {
                let length: usize = elements(&answer).iter().map(|element| element.key.len()).sum();
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
