//! Names of podstead's objects in the kernel, and the addresses that are the same on every host. **Pure**.

use podstead_sys::netlink::rtnetlink::Mac;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The pod's interface.
pub(super) const POD_INTERFACE: &str = "eth0";

/// The host, as pods see it over IPv4. Every pod interface of the host has it. Link-local, so that no uplink's range can collide with it,
/// and of the part of that block from which no host picks an address for itself (RFC 3927).
pub(crate) const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 0, 1);

/// The host, as pods see it over IPv6: for services, and as the source of what the host sends to pods.
pub(crate) const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfd70, 0x6f64, 0x7374, 0, 0, 0, 0, 1);

/// Address of the resolver for pods on the host's network: of the loopback network, of which every host has every address.
pub(crate) const RESOLVER_ON_HOST: Ipv4Addr = Ipv4Addr::new(127, 112, 115, 53);

/// The next hop of pods over IPv6.
pub(super) const NEXT_HOP_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// Ranges that are tried in this order where the configuration names none. Not those that docker, podman, Kubernetes distributions and
/// home routers take by default.
pub(super) const RANGES_V4: [&str; 4] = ["10.201.0.0/20", "10.213.0.0/20", "172.29.240.0/20", "192.168.208.0/20"];
/// The same for IPv6: unique local addresses, never seen outside of the host.
pub(super) const RANGES_V6: [&str; 3] = ["fd70:6f64:7374:1::/64", "fd70:6f64:7374:2::/64", "fd70:6f64:7374:3::/64"];
/// Ranges of Services to choose from (S4). They overlap no range of pods.
pub(super) const SERVICE_RANGES_V4: [&str; 4] = ["10.202.0.0/20", "10.214.0.0/20", "172.29.224.0/20", "192.168.192.0/20"];
/// The same for IPv6.
pub(super) const SERVICE_RANGES_V6: [&str; 3] =
    ["fd70:6f64:7374:5001::/112", "fd70:6f64:7374:5002::/112", "fd70:6f64:7374:5003::/112"];

/// Names of one daemon's things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// The nftables table.
    pub(super) table: String,
    /// Prefix of the names of the host's ends of pod interfaces.
    pub(super) prefix: String,
    /// Interface group of these ends.
    pub(super) group: u32,
}

impl Names {
    /// `instance` tells daemons with run directories of their own apart.
    pub(super) fn new(instance: Option<u32>) -> Self {
        const GROUP: u32 = u32::from_be_bytes(*b"pstd");
        match instance {
            None => Self { table: "podstead".into(), prefix: "ps-".into(), group: GROUP },
            Some(instance) => Self {
                table: format!("podstead_{instance:08x}"),
                prefix: format!("ps{:04x}-", instance >> 16),
                group: if instance == 0 || instance == GROUP { GROUP + 1 } else { instance },
            },
        }
    }

    /// The host's end of the pod interface in a slot: at most 15 bytes.
    pub(super) fn interface(&self, slot: u32) -> String {
        format!("{}{slot:x}", self.prefix)
    }

    /// The slot of the interface with this name.
    pub(super) fn slot(&self, interface: &str) -> Option<u32> {
        let slot = u32::from_str_radix(interface.strip_prefix(&self.prefix)?, 16).ok()?;
        (self.interface(slot) == interface).then_some(slot)
    }

    /// Names of the table that stands in for this one while it is replaced.
    pub(super) fn standby(&self) -> Self {
        Self { table: format!("{}_standby", self.table), ..self.clone() }
    }

    /// The bridge, where pods are on one: no slot's interface, whose name has digits only.
    pub(super) fn bridge(&self) -> String {
        format!("{}br", self.prefix)
    }
}

/// Of the bridge: that of no slot's interface.
pub(super) const fn bridge_mac() -> Mac {
    [0x06, 0x70, 0xff, 0xff, 0xff, 0xff]
}

/// As rules know interfaces.
pub(super) fn name_bytes(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (byte, letter) in bytes.iter_mut().zip(name.bytes()) {
        *byte = letter;
    }
    bytes
}

/// Hardware addresses of both ends, the host's first: locally administered, and known to the other end from the start.
pub(super) fn macs(slot: u32) -> (Mac, Mac) {
    let [a, b, c, d] = slot.to_be_bytes();
    ([0x06, 0x70, a, b, c, d], [0x02, 0x70, a, b, c, d])
}

/// The host's address of the same family.
pub(super) const fn gateway(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(GATEWAY_V4),
        IpAddr::V6(_) => IpAddr::V6(GATEWAY_V6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_settings::AddressRange;

    #[test]
    fn interface_names_fit_into_the_kernels_field() {
        for instance in [None, Some(0), Some(u32::MAX)] {
            let names = Names::new(instance);
            assert!(names.interface(u32::MAX).len() <= 15, "{}", names.interface(u32::MAX));
            assert_ne!(names.group, 0);
        }
        assert_ne!(Names::new(None).prefix, Names::new(Some(7)).prefix);
        let names = Names::new(None);
        assert_eq!(names.interface(0x1f), "ps-1f");
        assert_eq!(["ps-1f", "ps-01f", "ps-br", "ps+1"].map(|name| names.slot(name)), [Some(0x1f), None, None, None]);
    }

    #[test]
    fn the_default_ranges_are_ranges_and_none_has_a_gateway_in_it() {
        for (text, is_ipv4) in RANGES_V4.iter().map(|text| (text, true)).chain(RANGES_V6.iter().map(|text| (text, false))) {
            let range: AddressRange = text.parse().unwrap();
            assert_eq!(range.is_ipv4(), is_ipv4);
            assert!(!range.contains(GATEWAY_V4.into()) && !range.contains(GATEWAY_V6.into()));
            assert!(range.capacity() >= 4094);
        }
    }
}
