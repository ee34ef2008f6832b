//! Messages of nftables (nfnetlink): tables, chains, sets and rules. **Pure**.
//!
//! All that is in one [`Batch`] takes effect at once, or nothing of it does.

use super::expressions::Rule;
use super::message::{ACK, APPEND, Answer, Body, CREATE, DUMP, Request, attributes, text_of};

/// `NFNL_SUBSYS_NFTABLES`, in the upper byte of a message's type.
pub(super) const SUBSYSTEM: u16 = 10 << 8;
pub(super) const BATCH_BEGIN: u16 = 16;
pub(super) const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const GET_CHAIN: u16 = 4;
const DELETE_CHAIN: u16 = 5;
pub(super) const NEW_RULE: u16 = 6;
pub(super) const GET_RULE: u16 = 7;
pub(super) const DELETE_RULE: u16 = 8;
pub(super) const NEW_SET: u16 = 9;
const DELETE_SET: u16 = 11;
pub(super) const NEW_ELEMENTS: u16 = 12;
pub(super) const GET_ELEMENTS: u16 = 13;
pub(super) const DELETE_ELEMENTS: u16 = 14;

/// Multicast group of changes to rules, as a bit.
pub const CHANGES: u32 = 1 << 6;

/// `NFPROTO_INET`: both families.
pub const INET: u8 = 1;
/// `NFPROTO_IPV4`.
pub const IPV4: u8 = 2;
/// `NFPROTO_BRIDGE`.
pub const BRIDGE: u8 = 7;
/// `NFPROTO_IPV6`.
pub const IPV6: u8 = 10;

/// Elements in one message, so that their attribute stays far below 64 KiB.
pub(super) const CHUNK: usize = 400;

/// Hook of a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Packets that come in.
    Prerouting,
    /// Packets for this host.
    Input,
    /// Forwarded packets.
    Forward,
    /// Packets of this host.
    Output,
    /// Packets that go out.
    Postrouting,
}

/// A key or value of a set, as `nft` names it; the numbers are its own and make listings readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datatype {
    /// IPv4 address.
    Ipv4,
    /// IPv6 address.
    Ipv6,
    /// Protocol number.
    Protocol,
    /// Port.
    Port,
    /// Interface name, 16 bytes.
    Interface,
    /// Hardware address.
    Hardware,
}

impl Datatype {
    const fn number(self) -> u32 {
        match self {
            Self::Ipv4 => 7,
            Self::Ipv6 => 8,
            Self::Hardware => 9,
            Self::Protocol => 12,
            Self::Port => 13,
            Self::Interface => 41,
        }
    }

    /// Bytes, padded to registers.
    const fn bytes(self) -> u32 {
        match self {
            Self::Ipv4 | Self::Protocol | Self::Port => 4,
            Self::Hardware => 8,
            Self::Ipv6 | Self::Interface => 16,
        }
    }
}

/// A set, or a map if it has values. Keys and values may be concatenated.
#[derive(Clone, Copy, Debug)]
pub struct SetSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Types of its keys.
    pub key: &'a [Datatype],
    /// Types of its values; empty for a set.
    pub value: &'a [Datatype],
}

/// A key, and its value in a map; parts are padded to four bytes each.
pub type Element = (Vec<u8>, Option<Vec<u8>>);

/// A transaction on tables of one name, first of all on that of the family inet.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(super) table: &'a str,
    family: u8,
    request: Request,
    pub(super) sets: u32,
}

impl<'a> Batch<'a> {
    /// An empty transaction.
    pub fn new(table: &'a str) -> Self {
        let mut request = Request::new();
        request.message("start a transaction", BATCH_BEGIN, 0, |body| body.raw(&generic_header(0, 10)));
        Self { table, family: INET, request, sets: 0 }
    }

    /// Switches to the table of another family for the messages that follow.
    pub fn turn_to(&mut self, family: u8) {
        self.family = family;
    }

    /// The finished transaction.
    pub fn end(mut self) -> Request {
        self.request.message("commit packet rules", BATCH_END, 0, |body| body.raw(&generic_header(0, 10)));
        self.request
    }

    pub(super) fn message(&mut self, label: String, kind: u16, flags: u16, fill: impl FnOnce(&mut Body<'_>)) {
        let family = self.family;
        self.request.message(label, SUBSYSTEM | kind, flags | ACK, |body| {
            body.raw(&generic_header(family, 0));
            fill(body);
        });
    }

    /// Makes the table if it is not there.
    pub fn add_table(&mut self) {
        let table = self.table;
        self.message(format!("create table {table}"), NEW_TABLE, CREATE, |body| {
            body.text(1, table);
            body.be32(2, 0);
        });
    }

    /// Removes the table with all that is in it.
    pub fn delete_table(&mut self) {
        let table = self.table;
        self.message(format!("remove table {table}"), DELETE_TABLE, 0, |body| body.text(1, table));
    }

    /// Makes a chain that packets come to at a hook.
    pub fn add_base_chain(&mut self, name: &str, kind: &str, hook: Hook, priority: i32) {
        let table = self.table;
        let hook = match hook {
            Hook::Prerouting => 0,
            Hook::Input => 1,
            Hook::Forward => 2,
            Hook::Output => 3,
            Hook::Postrouting => 4,
        };
        self.message(format!("create chain {name}"), NEW_CHAIN, CREATE, |body| {
            body.text(1, table);
            body.text(3, name);
            body.nest(4, |place| {
                place.be32(1, hook);
                place.be32(2, priority.cast_unsigned());
            });
            // Packets that reach its end are accepted.
            body.be32(5, 1);
            body.text(7, kind);
        });
    }

    /// Makes a chain that rules jump to.
    pub fn add_chain(&mut self, name: &str) {
        let table = self.table;
        self.message(format!("create chain {name}"), NEW_CHAIN, CREATE, |body| {
            body.text(1, table);
            body.text(3, name);
        });
    }

    /// Appends a rule.
    pub fn add_rule(&mut self, chain: &str, fill: impl FnOnce(&mut Rule<'_, '_>)) {
        let table = self.table;
        self.message(format!("add a rule to chain {chain}"), NEW_RULE, CREATE | APPEND, |body| {
            body.text(1, table);
            body.text(2, chain);
            body.nest(4, |expressions| fill(&mut Rule::new(expressions)));
        });
    }

    /// Removes all rules of a chain.
    pub fn flush_chain(&mut self, chain: &str) {
        let table = self.table;
        self.message(format!("remove the rules of chain {chain}"), DELETE_RULE, 0, |body| {
            body.text(1, table);
            body.text(2, chain);
        });
    }

    /// Removes a chain that nothing leads to, with its rules.
    pub fn delete_chain(&mut self, chain: &str) {
        self.flush_chain(chain);
        let table = self.table;
        self.message(format!("remove chain {chain}"), DELETE_CHAIN, 0, |body| {
            body.text(1, table);
            body.text(3, chain);
        });
    }

    /// Removes a set or a map that no rule refers to.
    pub fn delete_set(&mut self, set: &str) {
        let table = self.table;
        self.message(format!("remove set {set}"), DELETE_SET, 0, |body| {
            body.text(1, table);
            body.text(2, set);
        });
    }

    /// Makes a set or a map.
    pub fn add_set(&mut self, spec: SetSpec<'_>) {
        const MAP: u32 = 8;
        let (table, SetSpec { name, key, value }) = (self.table, spec);
        self.sets += 1;
        let id = self.sets;
        let number = |parts: &[Datatype]| parts.iter().fold(0, |number, part| (number << 6) | part.number());
        let bytes = |parts: &[Datatype]| parts.iter().map(|part| part.bytes()).sum();
        // The length of a single short value is its own; in a concatenation each takes whole registers.
        self.message(format!("create set {name}"), NEW_SET, CREATE, |body| {
            body.text(1, table);
            body.text(2, name);
            body.be32(3, if value.is_empty() { 0 } else { MAP });
            body.be32(4, number(key));
            body.be32(5, bytes(key));
            if !value.is_empty() {
                body.be32(6, number(value));
                body.be32(7, bytes(value));
            }
            body.be32(10, id);
            // Names are listed as empty, and the listing cannot be loaded again, unless their byte order is written beside the set as `nft` does:
            // NFTNL_UDATA_SET_KEYBYTEORDER, that of this machine.
            if key == [Datatype::Interface] {
                body.bytes(13, &[&[0, 4][..], &1_u32.to_ne_bytes()].concat());
            }
        });
    }

    /// Adds elements; those that are there stay.
    pub fn add_elements(&mut self, set: &str, elements: &[Element]) {
        self.elements(set, NEW_ELEMENTS, CREATE, elements);
    }

    /// Removes elements, each of which must be there.
    pub fn delete_elements(&mut self, set: &str, elements: &[Element]) {
        self.elements(set, DELETE_ELEMENTS, 0, elements);
    }

    fn elements(&mut self, set: &str, kind: u16, flags: u16, elements: &[Element]) {
        let table = self.table;
        for chunk in elements.chunks(CHUNK) {
            self.message(format!("change the elements of {set}"), kind, flags, |body| {
                body.text(1, table);
                body.text(2, set);
                body.nest(3, |list| {
                    for (key, value) in chunk {
                        list.nest(1, |element| {
                            element.nest(1, |field| field.bytes(1, key));
                            if let Some(value) = value {
                                element.nest(2, |field| field.bytes(1, value));
                            }
                        });
                    }
                });
            });
        }
    }
}

/// `struct nfgenmsg`: family, version 0, resource in network byte order.
pub(super) fn generic_header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// Returns true if a notification reports a removal from a table of that name.
pub fn is_removal(answer: &Answer<'_>, table: &str) -> bool {
    let is_removal =
        [DELETE_TABLE, DELETE_CHAIN, DELETE_RULE, DELETE_SET, DELETE_ELEMENTS].iter().any(|kind| answer.kind == SUBSYSTEM | kind);
    is_removal && attribute(answer, 1).is_some_and(|name| text_of(name) == table)
}

/// Asks for all chains.
pub fn list_chains(request: &mut Request) {
    request.message("list chains of packet rules", SUBSYSTEM | GET_CHAIN, DUMP, |body| body.raw(&generic_header(0, 0)));
}

/// A base chain of any owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseChain {
    /// Family number.
    pub family: u8,
    /// Table.
    pub table: String,
    /// Name.
    pub name: String,
    /// Number of the hook (2: forward).
    pub hook: u32,
    /// True if its policy is to drop packets.
    pub drops: bool,
}

/// Reads a chain; `None` for one that is no base chain and for a message that is none.
pub fn base_chain(answer: &Answer<'_>) -> Option<BaseChain> {
    if answer.kind != SUBSYSTEM | NEW_CHAIN {
        return None;
    }
    let number = |value: &[u8]| <[u8; 4]>::try_from(value).ok().map(u32::from_be_bytes);
    let place = attribute(answer, 4)?;
    let hook = attributes(place).find(|(kind, _)| *kind == 1).and_then(|(_, value)| number(value))?;
    Some(BaseChain {
        family: *answer.body.first()?,
        table: text_of(attribute(answer, 1)?),
        name: text_of(attribute(answer, 3)?),
        hook,
        drops: attribute(answer, 5).and_then(number) == Some(0),
    })
}

pub(super) fn attribute<'a>(answer: &Answer<'a>, wanted: u16) -> Option<&'a [u8]> {
    attributes(answer.body.get(4..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}
