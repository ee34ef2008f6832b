//! Ranges of ports and of addresses, made disjoint: the kernel refuses intervals that overlap (R11).

use podstead_pod::host_ports::Protocol;
use podstead_service::range::{Family, Subnet};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ports of some protocols: disjoint ranges that do not touch, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ports(BTreeSet<(Protocol, u16, u16)>);

impl Ports {
    /// The ports in any of these ranges, each with its first and last port.
    pub fn new(ranges: impl IntoIterator<Item = (Protocol, u16, u16)>) -> Self {
        let mut by_protocol: BTreeMap<Protocol, Vec<(u128, u128)>> = BTreeMap::new();
        for (protocol, first, last) in ranges {
            by_protocol.entry(protocol).or_default().push((first.into(), last.into()));
        }
        let port = |number: u128| u16::try_from(number).unwrap_or(u16::MAX);
        let merged = by_protocol.into_iter().flat_map(|(protocol, ranges)| {
            merged(ranges).into_iter().map(move |(first, last)| (protocol, port(first), port(last)))
        });
        Self(merged.collect())
    }

    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = (Protocol, u16, u16)> + '_ {
        self.0.iter().copied()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the port is in one of them.
    pub fn contains(&self, protocol: Protocol, port: u16) -> bool {
        self.0.iter().any(|(of, first, last)| *of == protocol && (*first..=*last).contains(&port))
    }
}

/// The addresses of a block without the excepted ones (N5): disjoint ranges of one family, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Family of its addresses.
    pub family: Family,
    ranges: BTreeSet<(IpAddr, IpAddr)>,
}

impl Block {
    /// The addresses of `all` that are in none of `except`.
    pub fn new(all: Subnet, except: &[Subnet]) -> Self {
        let family = all.family();
        let within = except.iter().filter(|subnet| subnet.family() == family);
        let holes = merged(within.map(|subnet| (number(subnet.first()), number(subnet.last()))).collect());
        let (mut next, end) = (Some(number(all.first())), number(all.last()));
        let mut ranges = BTreeSet::new();
        for (first, last) in holes.into_iter().filter(|(first, last)| *last >= number(all.first()) && *first <= end) {
            let Some(start) = next.filter(|start| *start <= end) else { break };
            if first > start {
                ranges.insert((address(family, start), address(family, first - 1)));
            }
            next = last.checked_add(1).map(|after| after.max(start));
        }
        if let Some(start) = next.filter(|start| *start <= end) {
            ranges.insert((address(family, start), address(family, end)));
        }
        Self { family, ranges }
    }

    /// The ranges, each with its first and last address.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> + '_ {
        self.ranges.iter().copied()
    }

    /// Returns true if nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns true if the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        Family::of(address) == self.family && self.ranges.iter().any(|(first, last)| *first <= address && address <= *last)
    }
}

/// Ranges with the same numbers that neither overlap nor touch, in order.
fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut all: Vec<(u128, u128)> = Vec::new();
    for (first, last) in ranges {
        match all.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => all.push((first, last)),
        }
    }
    all
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn address(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        Family::V6 => Ipv6Addr::from_bits(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_are_merged_by_protocol() {
        let ports = Ports::new([(Protocol::Tcp, 80, 90), (Protocol::Tcp, 91, 91), (Protocol::Udp, 85, 99), (Protocol::Tcp, 5, 5)]);
        let ranges: Vec<_> = ports.iter().collect();
        assert_eq!(ranges, [(Protocol::Tcp, 5, 5), (Protocol::Tcp, 80, 91), (Protocol::Udp, 85, 99)]);
    }

    #[test]
    fn blocks_have_their_holes_at_any_end() {
        let block = |all: &str, except: &[&str]| -> Vec<String> {
            let except: Vec<Subnet> = except.iter().map(|text| text.parse().unwrap()).collect();
            Block::new(all.parse().unwrap(), &except).iter().map(|(first, last)| format!("{first}-{last}")).collect()
        };
        assert_eq!(block("192.0.2.0/24", &["192.0.2.77/32"]), ["192.0.2.0-192.0.2.76", "192.0.2.78-192.0.2.255"]);
        assert_eq!(block("0.0.0.0/0", &["0.0.0.0/8", "255.0.0.0/8"]), ["1.0.0.0-254.255.255.255"]);
        assert_eq!(block("::/0", &["8000::/1"]), ["::-7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);
        assert_eq!(block("10.0.0.0/8", &["10.0.0.0/9", "10.128.0.0/9"]), [""; 0]);
    }

    proptest! {
        #[test]
        fn block_has_what_is_not_excepted(
            all in 20_u8..30, holes in proptest::collection::vec((any::<u16>(), 20_u8..33), 0..6), probes in proptest::collection::vec(any::<u16>(), 40)
        ) {
            let at = |low: u16| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 | u32::from(low)));
            let all = Subnet::of(at(0x1234), all).unwrap();
            let holes: Vec<Subnet> = holes.iter().map(|(low, prefix)| Subnet::of(at(*low), *prefix).unwrap()).collect();
            let block = Block::new(all, &holes);
            for probe in probes.iter().map(|low| at(*low)).chain(holes.iter().flat_map(|hole| [hole.first(), hole.last()])) {
                let wanted = all.contains(probe) && !holes.iter().any(|hole| hole.contains(probe));
                prop_assert_eq!(block.contains(probe), wanted, "{}", probe);
            }
            let ends: Vec<_> = block.iter().collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
