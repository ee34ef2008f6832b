//! The expressions that rules of nftables are made of. **Pure**.

use super::message::Body;

/// The first of the sixteen registers of four bytes, `NFT_REG32_00`.
pub const REGISTER: u32 = 8;

/// The expressions of a rule, in the order in which the kernel evaluates them.
#[derive(Debug)]
pub struct Rule<'r, 'b> {
    expressions: &'r mut Body<'b>,
}

/// Facts about a packet (`NFT_META_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meta {
    /// Name of the interface that it came by.
    InputName,
    /// Name of the interface that it goes by.
    OutputName,
    /// Group of the interface that it came by.
    InputGroup,
    /// Kind of that interface, if it is a virtual one.
    InputKind,
    /// Group of the interface that it goes by.
    OutputGroup,
    /// Address family.
    Family,
    /// Type of the frame, in network byte order.
    FrameType,
    /// Protocol of layer 4.
    Protocol,
}

impl Meta {
    const fn number(self) -> u32 {
        match self {
            Self::FrameType => 1,
            Self::InputName => 6,
            Self::OutputName => 7,
            Self::Family => 15,
            Self::Protocol => 16,
            Self::InputGroup => 21,
            Self::OutputGroup => 22,
            Self::InputKind => 26,
        }
    }
}

/// Position of a field in a packet.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// 0: header of the frame, 1: network header, 2: transport header.
    base: u32,
    offset: u32,
    /// Its length in bytes.
    pub length: u32,
}

/// Hardware address that a frame comes from.
pub const HARDWARE_SOURCE: Field = Field { base: 0, offset: 6, length: 6 };
/// Hardware address that the sender of an ARP packet says it has.
pub const ARP_SENDER_HARDWARE: Field = Field { base: 1, offset: 8, length: 6 };
/// IPv4 address that it says it has.
pub const ARP_SENDER: Field = Field { base: 1, offset: 14, length: 4 };
/// Type of a message of ICMPv6.
pub const ICMPV6_TYPE: Field = Field { base: 2, offset: 0, length: 1 };
/// Address that a message about neighbours is about.
pub const ICMPV6_TARGET: Field = Field { base: 2, offset: 8, length: 16 };
/// Source address of IPv4.
pub const IPV4_SOURCE: Field = Field { base: 1, offset: 12, length: 4 };
/// Destination address of IPv4.
pub const IPV4_DESTINATION: Field = Field { base: 1, offset: 16, length: 4 };
/// Source address of IPv6.
pub const IPV6_SOURCE: Field = Field { base: 1, offset: 8, length: 16 };
/// Destination address of IPv6.
pub const IPV6_DESTINATION: Field = Field { base: 1, offset: 24, length: 16 };
/// Flags of TCP.
pub const TCP_FLAGS: Field = Field { base: 2, offset: 13, length: 1 };
/// Destination port of TCP, UDP, SCTP.
pub const DESTINATION_PORT: Field = Field { base: 2, offset: 2, length: 2 };

/// Verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It is gone.
    Drop,
    /// This chain is done with it.
    Accept,
    /// Back to where the chain was jumped to from.
    Return,
    /// On to a chain, and back after it.
    Jump(&'a str),
    /// On to a chain, and after it back to where this chain was jumped to from.
    Goto(&'a str),
}

impl<'a> Verdict<'a> {
    /// The attributes of `NFTA_DATA_VERDICT`.
    pub(super) fn write(self, body: &mut Body<'_>) {
        let (code, chain) = match self {
            Verdict::Drop => (0_i32, None),
            Verdict::Accept => (1, None),
            Verdict::Return => (-5, None),
            Verdict::Jump(chain) => (JUMP, Some(chain)),
            Verdict::Goto(chain) => (GOTO, Some(chain)),
        };
        body.be32(1, code.cast_unsigned());
        if let Some(chain) = chain {
            body.text(2, chain);
        }
    }
}

/// `NFT_JUMP`.
pub(super) const JUMP: i32 = -3;
/// `NFT_GOTO`.
pub(super) const GOTO: i32 = -4;

/// The reason that a refused client is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// RST of TCP, for which the packet has to be of TCP.
    TcpReset,
    /// ICMP of the packet's family: nobody has the port.
    PortUnreachable,
    /// ICMP of the packet's family: it is forbidden.
    Prohibited,
}

/// A fact about a tracked connection in its original direction (`NFT_CT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Original {
    /// IPv4 address that the client connected to.
    Ipv4Destination,
    /// IPv6 address that it connected to.
    Ipv6Destination,
    /// Port that it connected to.
    DestinationPort,
}

impl Original {
    const fn number(self) -> u32 {
        match self {
            Self::DestinationPort => 12,
            Self::Ipv4Destination => 20,
            Self::Ipv6Destination => 22,
        }
    }
}

/// Registers of an element that a packet adds to a map.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The first register of its key.
    pub key: u32,
    /// The first register of its value.
    pub value: u32,
    /// Milliseconds from the last update until it goes.
    pub timeout: u64,
}

/// Bits of `ct state`.
pub const ESTABLISHED_OR_RELATED: u32 = 2 | 4;
/// Bit of `ct state`: no packet of a connection that is tracked, and none that begins one.
pub const INVALID: u32 = 1;
/// Bit of `ct status`: the destination was rewritten.
pub const DESTINATION_NAT: u32 = 1 << 5;

impl<'r, 'b> Rule<'r, 'b> {
    /// A rule without expressions.
    pub(super) fn new(expressions: &'r mut Body<'b>) -> Self {
        Self { expressions }
    }

    fn expression(&mut self, name: &str, fill: impl FnOnce(&mut Body<'_>)) {
        self.expressions.nest(1, |expression| {
            expression.text(1, name);
            expression.nest(2, fill);
        });
    }

    /// Loads a fact into a register.
    pub fn load(&mut self, meta: Meta, register: u32) {
        self.expression("meta", |body| {
            body.be32(1, register);
            body.be32(2, meta.number());
        });
    }

    /// Loads a field into a register.
    pub fn load_field(&mut self, field: Field, register: u32) {
        self.expression("payload", |body| {
            body.be32(1, register);
            body.be32(2, field.base);
            body.be32(3, field.offset);
            body.be32(4, field.length);
        });
    }

    fn compare(&mut self, is_equal: bool, value: &[u8]) {
        self.expression("cmp", |body| {
            body.be32(1, REGISTER);
            body.be32(2, u32::from(!is_equal));
            body.nest(3, |field| field.bytes(1, value));
        });
    }

    /// Goes on only if the fact is this.
    pub fn is(&mut self, meta: Meta, value: &[u8]) {
        self.load(meta, REGISTER);
        self.compare(true, value);
    }

    /// Goes on only if the fact, a name, begins so.
    pub fn begins_with(&mut self, meta: Meta, prefix: &[u8]) {
        self.load(meta, REGISTER);
        // The compared part is as long as the value.
        self.compare(true, prefix);
    }

    /// Goes on only if the fact is not this.
    pub fn is_not(&mut self, meta: Meta, value: &[u8]) {
        self.load(meta, REGISTER);
        self.compare(false, value);
    }

    /// Goes on only if the field is this.
    pub fn field_is(&mut self, field: Field, value: &[u8]) {
        self.load_field(field, REGISTER);
        self.compare(true, value);
    }

    /// Goes on only if the field, under the mask, is this.
    pub fn field_is_masked(&mut self, field: Field, mask: &[u8], value: &[u8]) {
        self.load_field(field, REGISTER);
        self.mask(mask);
        self.compare(true, value);
    }

    /// Goes on only if the field, under the mask, is not this.
    pub fn field_is_not_masked(&mut self, field: Field, mask: &[u8], value: &[u8]) {
        self.load_field(field, REGISTER);
        self.mask(mask);
        self.compare(false, value);
    }

    fn mask(&mut self, mask: &[u8]) {
        self.expression("bitwise", |body| {
            body.be32(1, REGISTER);
            body.be32(2, REGISTER);
            body.be32(3, u32::try_from(mask.len()).unwrap_or(0));
            body.nest(4, |field| field.bytes(1, mask));
            body.nest(5, |field| field.bytes(1, &vec![0; mask.len()]));
        });
    }

    /// Goes on only if the destination is an address of this host.
    pub fn destination_is_local(&mut self) {
        // NFTA_FIB_F_DADDR.
        self.is_local(2);
    }

    /// Goes on only if the source is an address of this host.
    pub fn source_is_local(&mut self) {
        // NFTA_FIB_F_SADDR.
        self.is_local(1);
    }

    fn is_local(&mut self, end: u32) {
        const LOCAL: u32 = 2;
        self.expression("fib", |body| {
            body.be32(1, REGISTER);
            // NFT_FIB_RESULT_ADDRTYPE.
            body.be32(2, 3);
            body.be32(3, end);
        });
        self.compare(true, &LOCAL.to_ne_bytes());
    }

    /// Goes on only if the field is not this.
    pub fn field_is_not(&mut self, field: Field, value: &[u8]) {
        self.load_field(field, REGISTER);
        self.compare(false, value);
    }

    /// Loads a random number below `modulus`, in this machine's byte order.
    pub fn load_random(&mut self, modulus: u32, register: u32) {
        self.expression("numgen", |body| {
            body.be32(1, register);
            body.be32(2, modulus);
            // NFT_NG_RANDOM, from 0 on.
            body.be32(3, 1);
            body.be32(4, 0);
        });
    }

    /// Loads a fact about the connection, as it was before anything was rewritten.
    pub fn load_original(&mut self, fact: Original, register: u32) {
        self.expression("ct", |body| {
            body.be32(1, register);
            body.be32(2, fact.number());
            // IP_CT_DIR_ORIGINAL.
            body.bytes(3, &[0]);
        });
    }

    /// Goes on to the chain that what was loaded from `register` on leads to; the rule goes on if it leads to none.
    pub fn look_up_verdict(&mut self, map: &str, register: u32) {
        self.look_up(map, register, |body| body.be32(3, 0));
    }

    /// Adds an element to a map, or renews the one that is there.
    pub fn update_map(&mut self, map: &str, update: Update) {
        self.expression("dynset", |body| {
            body.text(1, map);
            // NFT_DYNSET_OP_UPDATE.
            body.be32(3, 1);
            body.be32(4, update.key);
            body.be32(5, update.value);
            body.bytes(6, &update.timeout.to_be_bytes());
        });
    }

    /// Counts the packet in the element of a set whose key was loaded from `register` on; the element is made if it is not there. The rule ends here if
    /// the set is full.
    pub fn count_in(&mut self, set: &str, register: u32) {
        self.expression("dynset", |body| {
            body.text(1, set);
            // NFT_DYNSET_OP_ADD.
            body.be32(3, 0);
            body.be32(4, register);
            body.nest(7, |expression| {
                expression.text(1, "counter");
                expression.nest(2, |_| {});
            });
        });
    }

    /// Refuses the packet.
    pub fn refuse(&mut self, refusal: Refusal) {
        // NFT_REJECT_TCP_RST; NFT_REJECT_ICMPX_UNREACH with NFT_REJECT_ICMPX_PORT_UNREACH or _ADMIN_PROHIBITED.
        let (kind, code) = match refusal {
            Refusal::TcpReset => (1, 0),
            Refusal::PortUnreachable => (2, 1),
            Refusal::Prohibited => (2, 3),
        };
        self.expression("reject", |body| {
            body.be32(1, kind);
            body.bytes(2, &[code]);
        });
    }

    /// Goes on only if the connection has one of these `ct state` bits.
    pub fn has_state(&mut self, bits: u32) {
        self.connection(0, bits);
    }

    /// Goes on only if the connection has one of these `ct status` bits.
    pub fn has_status(&mut self, bits: u32) {
        self.connection(2, bits);
    }

    fn connection(&mut self, key: u32, bits: u32) {
        self.expression("ct", |body| {
            body.be32(1, REGISTER);
            body.be32(2, key);
        });
        self.mask(&bits.to_ne_bytes());
        self.compare(false, &[0; 4]);
    }

    /// Goes on only if a socket of this host listens for the packet. Not for packets of this host.
    pub fn has_listener(&mut self) {
        self.expression("socket", |body| {
            // NFT_SOCKET_WILDCARD: 0 or 1 if there is a socket, and the end of the rule if there is none.
            body.be32(1, 2);
            body.be32(2, REGISTER);
        });
    }

    /// Goes on only if the field, as a number, is below `limit`.
    pub fn field_is_below(&mut self, field: Field, limit: u16) {
        self.load_field(field, REGISTER);
        self.expression("cmp", |body| {
            body.be32(1, REGISTER);
            // NFT_CMP_LT.
            body.be32(2, 2);
            body.nest(3, |value| value.bytes(1, &limit.to_be_bytes()));
        });
    }

    /// Goes on only if what was loaded from `register` on is in the set.
    pub fn is_in(&mut self, set: &str, register: u32) {
        self.look_up(set, register, |_| {});
    }

    /// Goes on only if what was loaded from `register` on is not in the set.
    pub fn is_not_in(&mut self, set: &str, register: u32) {
        self.look_up(set, register, |body| body.be32(5, 1));
    }

    /// Goes on only if what was loaded from `register` on is in the map, and loads its value into the registers from [`REGISTER`] on.
    pub fn look_up_in_map(&mut self, map: &str, register: u32) {
        self.look_up(map, register, |body| body.be32(3, REGISTER));
    }

    fn look_up(&mut self, set: &str, register: u32, more: impl FnOnce(&mut Body<'_>)) {
        self.expression("lookup", |body| {
            body.text(1, set);
            body.be32(2, register);
            more(body);
        });
    }

    /// Loads a constant into the registers from this one on.
    pub fn load_constant(&mut self, value: &[u8], register: u32) {
        self.expression("immediate", |body| {
            body.be32(1, register);
            body.nest(2, |field| field.bytes(1, value));
        });
    }

    /// Rewrites the destination to the address and the port in these registers.
    pub fn rewrite_destination(&mut self, family: u8, address: u32, port: u32) {
        self.expression("nat", |body| {
            body.be32(1, 1);
            body.be32(2, u32::from(family));
            body.be32(3, address);
            body.be32(4, address);
            body.be32(5, port);
            body.be32(6, port);
        });
    }

    /// Rewrites the source to this host's address.
    pub fn masquerade(&mut self) {
        self.expression("masq", |_| {});
    }

    /// Counts packets and bytes, for readers of the rules.
    pub fn count(&mut self) {
        self.expression("counter", |body| {
            body.bytes(1, &[0; 8]);
            body.bytes(2, &[0; 8]);
        });
    }

    /// Ends the rule.
    pub fn verdict(&mut self, verdict: Verdict<'_>) {
        self.expression("immediate", |body| {
            body.be32(1, 0);
            body.nest(2, |field| {
                field.nest(2, |attributes| verdict.write(attributes));
            });
        });
    }
}
