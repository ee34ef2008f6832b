//! A range of addresses, written as `10.201.0.0/20`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    network: IpAddr,
    prefix: u8,
}

impl AddressRange {
    /// The range of `prefix` bits that an address is in; `None` if no address has so many bits.
    pub fn of(address: IpAddr, prefix: u8) -> Option<Self> {
        let width = width(address);
        if u32::from(prefix) > width {
            return None;
        }
        let host_bits = width - u32::from(prefix);
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        Some(Self { network: address_of(number(address) & mask, address.is_ipv4()), prefix })
    }

    /// Its first address.
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// Reports whether it is one of IPv4.
    pub const fn is_ipv4(&self) -> bool {
        self.network.is_ipv4()
    }

    /// Bits that its addresses have in common.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Reports whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4() && Self::of(address, self.prefix).is_some_and(|range| range == *self)
    }

    /// Reports whether an address is in both.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.prefix <= other.prefix { self.contains(other.network) } else { other.contains(self.network) }
    }

    /// Number of pods that fit: all addresses but the first and the last.
    pub fn capacity(&self) -> u32 {
        let host_bits = width(self.network) - u32::from(self.prefix);
        1_u32.checked_shl(host_bits).map_or(u32::MAX, |addresses| addresses.saturating_sub(2))
    }

    /// The `number`th address; the first one, 0, is the network's own. `None` behind its end.
    pub fn nth(&self, nth: u32) -> Option<IpAddr> {
        let address = address_of(number(self.network).checked_add(u128::from(nth))?, self.is_ipv4());
        self.contains(address).then_some(address)
    }
}

const fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn address_of(number: u128, is_ipv4: bool) -> IpAddr {
    // A number from an address of 32 bits, plus what is checked to stay in its range; one beyond it is in no range.
    match u32::try_from(number) {
        Ok(number) if is_ipv4 => Ipv4Addr::from(number).into(),
        Ok(_) | Err(_) => Ipv6Addr::from(number).into(),
    }
}

/// The text is not an address range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an address range such as 10.201.0.0/20 or fd00:1::/64")]
pub struct NoRange;

impl FromStr for AddressRange {
    type Err = NoRange;

    /// The bits behind the prefix have to be zero.
    fn from_str(text: &str) -> Result<Self, NoRange> {
        let (address, prefix) = text.split_once('/').ok_or(NoRange)?;
        let address: IpAddr = address.parse().map_err(|_| NoRange)?;
        let prefix: u8 = prefix.parse().map_err(|_| NoRange)?;
        Self::of(address, prefix).filter(|range| range.network == address).ok_or(NoRange)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_has_its_own_addresses_and_no_others() {
        let small = range("10.201.16.0/29");
        assert_eq!(small.capacity(), 6);
        assert_eq!(small.nth(0), Some("10.201.16.0".parse().unwrap()));
        assert_eq!(small.nth(7), Some("10.201.16.7".parse().unwrap()));
        assert_eq!(small.nth(8), None);
        assert_eq!(range("255.255.255.248/29").nth(8), None);
        assert_eq!(range("fd00::/64").nth(u32::MAX), Some("fd00::ffff:ffff".parse().unwrap()));
        assert_eq!(range("fd00::/64").capacity(), u32::MAX);
        assert!(small.contains("10.201.16.5".parse().unwrap()) && !small.contains("10.201.16.8".parse().unwrap()));
        assert!(!range("0.0.0.0/0").contains("::".parse().unwrap()));
        assert_eq!(range("10.0.0.1/32").capacity(), 0);
    }

    #[test]
    fn overlaps_go_both_ways() {
        for (one, other, overlap) in [
            ("10.0.0.0/8", "10.201.0.0/20", true),
            ("10.201.16.0/20", "10.201.0.0/20", false),
            ("0.0.0.0/0", "10.201.0.0/20", true),
            ("0.0.0.0/0", "fd00::/64", false),
            ("fd00::/8", "fd00:1::/64", true),
        ] {
            assert_eq!(range(one).overlaps(&range(other)), overlap, "{one} {other}");
            assert_eq!(range(other).overlaps(&range(one)), overlap, "{other} {one}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.1/24", "10.0.0.0/33", "fd00::/129", "a/8", "10.0.0.0/-1", "10.0.0.0/8/8"] {
            assert_eq!(text.parse::<AddressRange>(), Err(NoRange), "{text}");
        }
        assert_eq!(range("fd00:1::/64").to_string(), "fd00:1::/64");
    }
}
