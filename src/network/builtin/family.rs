//! Fields and parts of packets that differ between the families of addresses. **Pure**.

use super::names::{GATEWAY_V4, GATEWAY_V6};
use podstead_service::range::Family;
use podstead_sys::netlink::expressions::{Field, IPV4_DESTINATION, IPV4_SOURCE, IPV6_DESTINATION, IPV6_SOURCE, Original};
use podstead_sys::netlink::maps::Part;
use podstead_sys::netlink::nftables::{IPV4, IPV6};
use std::net::IpAddr;

/// Source and destination of packets of a family.
pub(super) struct Ends {
    /// Its number in rules.
    pub(super) number: u8,
    pub(super) source: Field,
    pub(super) destination: Field,
    /// The destination before it was translated.
    pub(super) original: Original,
    /// The address of the host for pods.
    pub(super) gateway: IpAddr,
    pub(super) source_part: Part,
    pub(super) destination_part: Part,
    /// Registers of an address.
    pub(super) words: u32,
}

pub(super) fn ends(family: Family) -> Ends {
    match family {
        Family::V4 => Ends {
            number: IPV4,
            source: IPV4_SOURCE,
            destination: IPV4_DESTINATION,
            original: Original::Ipv4Destination,
            gateway: GATEWAY_V4.into(),
            source_part: Part::Ipv4Source,
            destination_part: Part::Ipv4Destination,
            words: 1,
        },
        Family::V6 => Ends {
            number: IPV6,
            source: IPV6_SOURCE,
            destination: IPV6_DESTINATION,
            original: Original::Ipv6Destination,
            gateway: GATEWAY_V6.into(),
            source_part: Part::Ipv6Source,
            destination_part: Part::Ipv6Destination,
            words: 4,
        },
    }
}
