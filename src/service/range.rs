//! Address families, ranges of addresses and ranges of ports.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "IPv4")]
    V4,
    /// IPv6.
    #[serde(rename = "IPv6")]
    V6,
}

impl Family {
    /// Both, in the order of preference.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Bits in an address.
    const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

impl FromStr for Family {
    type Err = NoFamily;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "IPv4" => Ok(Self::V4),
            "IPv6" => Ok(Self::V6),
            _ => Err(NoFamily),
        }
    }
}

/// A text that is no family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be IPv4 or IPv6")]
pub struct NoFamily;

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet {
    first: IpAddr,
    prefix: u8,
}

impl Subnet {
    /// The subnet of an address; `None` for a prefix longer than the address.
    pub fn of(address: IpAddr, prefix: u8) -> Option<Self> {
        let family = Family::of(address);
        let host_bits = u32::from(family.bits().checked_sub(prefix)?);
        let first = number(address).checked_shr(host_bits).and_then(|upper| upper.checked_shl(host_bits)).unwrap_or(0);
        Some(Self { first: numbered(family, first), prefix })
    }

    /// Its family.
    pub const fn family(&self) -> Family {
        Family::of(self.first)
    }

    /// Its first address.
    pub const fn first(&self) -> IpAddr {
        self.first
    }

    /// Its last address.
    pub fn last(&self) -> IpAddr {
        let host_bits = u32::from(self.family().bits() - self.prefix);
        let mask = u128::MAX.checked_shr(128 - host_bits).unwrap_or(0);
        numbered(self.family(), number(self.first) | mask)
    }

    /// Bits that all its addresses begin with.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Returns true if the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::of(address, self.prefix).is_some_and(|subnet| subnet == *self)
    }

    /// Number of addresses that a Service may have, numbered from 1: neither the first, which means the subnet, nor the last of IPv4, which means all.
    pub fn usable(&self) -> u128 {
        let all = u128::MAX.checked_shr(128 - u32::from(self.family().bits() - self.prefix)).unwrap_or(0);
        match self.family() {
            Family::V4 => all.saturating_sub(1),
            Family::V6 => all,
        }
    }

    /// The address with that number, which has to be at most [`Subnet::usable`].
    pub fn nth(&self, nth: u128) -> IpAddr {
        numbered(self.family(), number(self.first).saturating_add(nth))
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn numbered(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        Family::V6 => Ipv6Addr::from_bits(number).into(),
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

/// A text that is no subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a CIDR such as 10.9.8.0/24")]
pub struct NoSubnet;

impl FromStr for Subnet {
    type Err = NoSubnet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = text.split_once('/').ok_or(NoSubnet)?;
        let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
        let prefix = prefix.parse().ok().filter(|_| is_number).ok_or(NoSubnet)?;
        Self::of(address.parse().map_err(|_| NoSubnet)?, prefix).ok_or(NoSubnet)
    }
}

/// Ports of the host from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl PortRange {
    /// The range of Kubernetes for NodePorts (S9).
    pub const NODE_PORTS: Self = Self { first: 30_000, last: 32_767 };

    /// Returns true if the port is in it.
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }

    /// Number of its ports.
    pub fn count(&self) -> u32 {
        u32::from(self.last).saturating_add(1).saturating_sub(self.first.into())
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnet_has_first_last_and_usable() {
        for (text, first, last, usable) in [
            ("10.202.3.9/20", "10.202.0.0", "10.202.15.255", 4094),
            ("0.0.0.0/0", "0.0.0.0", "255.255.255.255", u128::from(u32::MAX) - 1),
            ("10.0.0.1/32", "10.0.0.1", "10.0.0.1", 0),
            ("fd00::7/112", "fd00::", "fd00::ffff", 65_535),
            ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", u128::MAX),
        ] {
            let subnet: Subnet = text.parse().unwrap();
            assert_eq!(
                (subnet.first().to_string(), subnet.last().to_string(), subnet.usable()),
                (first.into(), last.into(), usable)
            );
            assert!(subnet.contains(subnet.first()) && subnet.contains(subnet.last()), "{text}");
        }
        let subnet: Subnet = "10.202.0.0/20".parse().unwrap();
        assert!(!subnet.contains("10.202.16.0".parse().unwrap()) && !subnet.contains("::1".parse().unwrap()));
    }

    #[test]
    fn broken_subnet_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0/8", "::/129", "x/1"] {
            assert_eq!(text.parse::<Subnet>(), Err(NoSubnet), "{text}");
        }
    }
}
