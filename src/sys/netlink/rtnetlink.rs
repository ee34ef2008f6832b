//! Messages of rtnetlink: interfaces, addresses, neighbours, routes. **Pure**.
//!
//! All changes are idempotent where the kernel allows it: what is there is replaced. Interfaces cannot be: a name that is taken is refused.

use super::message::{ACK, Answer, Body, CREATE, DUMP, EXCLUSIVE, REPLACE, Request, attributes, text_of, u32_at};
use std::net::IpAddr;

pub use super::default_route::{DefaultRoute, default_route, delete_default_route, whole_default_route};

pub(super) const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
pub(super) const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
pub(super) const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;

/// `IFF_UP`.
pub const UP: u32 = 1;
/// In every namespace `lo` is interface 1.
pub const LO: u32 = 1;

/// Bytes of `struct ifinfomsg`, `struct ifaddrmsg`, `struct rtmsg`.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
pub(super) const ROUTE_HEADER: usize = 12;

// IFLA_*.
const LINK_MAC: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_PEER: u16 = 5;
const LINK_MASTER: u16 = 10;
const LINK_KIND: u16 = 18;
const LINK_ALIAS: u16 = 20;
const LINK_FAMILIES: u16 = 26;
const LINK_GROUP: u16 = 27;
const LINK_NETNS_FD: u16 = 28;
const LINK_TX_QUEUES: u16 = 31;
const LINK_RX_QUEUES: u16 = 32;

/// `rtm_protocol` of podstead's routes, so that `ip route show proto 112` lists them. None of the registered ones.
pub const ROUTE_PROTOCOL: u8 = 112;
pub(super) const MAIN_TABLE: u8 = 254;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
pub(super) const UNICAST: u8 = 1;

/// A hardware address.
pub type Mac = [u8; 6];

/// One end of a veth pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its hardware address.
    pub mac: Mac,
}

/// Makes a veth pair: one end here, in an interface group, the other one in the namespace of the descriptor. Without `mtu`, packets have
/// up to 1500 bytes.
pub fn make_veth(request: &mut Request, here: VethEnd<'_>, group: u32, there: VethEnd<'_>, netns: i32, mtu: Option<u32>) {
    request.message(format!("create interface {}", here.name), NEW_LINK, ACK | CREATE | EXCLUSIVE, |body| {
        body.raw(&link_header(0, 0));
        body.text(LINK_NAME, here.name);
        body.bytes(LINK_MAC, &here.mac);
        body.u32(LINK_GROUP, group);
        one_queue(body);
        if let Some(mtu) = mtu {
            body.u32(LINK_MTU, mtu);
        }
        body.nest(LINK_KIND, |kind| {
            kind.text(1, "veth");
            kind.nest(2, |veth| {
                // VETH_INFO_PEER: a link message within the message.
                veth.nest(1, |peer| {
                    peer.raw(&link_header(0, 0));
                    peer.text(LINK_NAME, there.name);
                    peer.bytes(LINK_MAC, &there.mac);
                    one_queue(peer);
                    if let Some(mtu) = mtu {
                        peer.u32(LINK_MTU, mtu);
                    }
                    peer.u32(LINK_NETNS_FD, netns.cast_unsigned());
                });
            });
        });
    });
}

/// Without being told, the kernel makes one for each possible processor, uses one, and waits for all processors to have let go of the others.
fn one_queue(link: &mut Body<'_>) {
    link.u32(LINK_TX_QUEUES, 1);
    link.u32(LINK_RX_QUEUES, 1);
}

/// Creates a bridge with ports that forward at once, and without multicast snooping.
pub fn make_bridge(request: &mut Request, name: &str, mac: Mac, group: u32) {
    request.message(format!("create bridge {name}"), NEW_LINK, ACK | CREATE | EXCLUSIVE, |body| {
        body.raw(&link_header(0, 0));
        body.text(LINK_NAME, name);
        body.bytes(LINK_MAC, &mac);
        body.u32(LINK_GROUP, group);
        body.nest(LINK_KIND, |kind| {
            kind.text(1, "bridge");
            kind.nest(2, |bridge| {
                // IFLA_BR_FORWARD_DELAY, IFLA_BR_MCAST_SNOOPING.
                bridge.u32(1, 0);
                bridge.bytes(23, &[0]);
            });
        });
    });
}

/// Makes an interface a port of a bridge in hairpin mode: a pod may reach itself through a host port where the kernel has packets of
/// bridges rewritten (br_netfilter).
pub fn attach_to_bridge(request: &mut Request, index: u32, bridge: u32) {
    request.message(format!("attach interface {index} to bridge {bridge}"), NEW_LINK, ACK, |body| {
        body.raw(&link_header(index, 0));
        body.u32(LINK_MASTER, bridge);
    });
    request.message(format!("configure port {index} of bridge {bridge}"), NEW_LINK, ACK, |body| {
        body.raw(&link_header(index, 0));
        body.nest(LINK_KIND, |kind| {
            // IFLA_INFO_SLAVE_KIND, IFLA_INFO_SLAVE_DATA with IFLA_BRPORT_MODE.
            kind.text(4, "bridge");
            kind.nest(5, |port| port.bytes(4, &[1]));
        });
    });
}

/// Settings of an interface's IPv4 side, by their numbers in the kernel (`IPV4_DEVCONF_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv4Setting {
    /// Packets that come in here may go on elsewhere.
    Forwarding,
    /// Senders are told of shorter ways.
    SendRedirects,
    /// 1: a source must be reachable through here.
    RpFilter,
    /// 127.0.0.0/8 is an address like others here.
    RouteLocalnet,
}

impl Ipv4Setting {
    const fn number(self) -> u16 {
        match self {
            Self::Forwarding => 1,
            Self::SendRedirects => 6,
            Self::RpFilter => 8,
            Self::RouteLocalnet => 26,
        }
    }
}

/// Settings of an interface, made before it is set up.
#[derive(Clone, Copy, Debug)]
pub struct LinkSettings<'a> {
    /// Its description.
    pub alias: &'a str,
    /// Of its IPv4 side.
    pub ipv4: &'a [(Ipv4Setting, u32)],
    /// The kernel must not assign IPv6 addresses to it.
    pub without_own_ipv6: bool,
}

/// Gives an interface its settings: one message, since each one has the kernel tell all listeners of the interface.
pub fn set_up_link(request: &mut Request, index: u32, settings: LinkSettings<'_>) {
    let LinkSettings { alias, ipv4, without_own_ipv6 } = settings;
    request.message(format!("configure interface {index}"), NEW_LINK, ACK, |body| {
        body.raw(&link_header(index, 0));
        body.text(LINK_ALIAS, alias);
        if ipv4.is_empty() && !without_own_ipv6 {
            return;
        }
        body.nest(LINK_FAMILIES, |families| {
            if !ipv4.is_empty() {
                families.nest(u16::from(family_number(true)), |family| {
                    // IFLA_INET_CONF.
                    family.nest(1, |settings| {
                        for (setting, value) in ipv4 {
                            settings.u32(setting.number(), *value);
                        }
                    });
                });
            }
            if without_own_ipv6 {
                // IFLA_INET6_ADDR_GEN_MODE: none.
                families.nest(u16::from(family_number(false)), |family| family.bytes(8, &[1]));
            }
        });
    });
}

/// Switches an interface on.
pub fn switch_on(request: &mut Request, index: u32) {
    request.message(format!("set interface {index} up"), NEW_LINK, ACK, |body| body.raw(&link_header(index, UP)));
}

/// Removes an interface, and with it the other end of a pair.
pub fn delete_link(request: &mut Request, index: u32) {
    request.message(format!("remove interface {index}"), DELETE_LINK, ACK, |body| body.raw(&link_header(index, 0)));
}

/// Asks for one interface.
pub fn get_link(request: &mut Request, name: &str) {
    request.message(format!("get interface {name}"), GET_LINK, ACK, |body| {
        body.raw(&link_header(0, 0));
        body.text(LINK_NAME, name);
    });
}

/// Asks for all interfaces.
pub fn list_links(request: &mut Request) {
    request.message("list interfaces", GET_LINK, DUMP, |body| body.raw(&link_header(0, 0)));
}

/// Asks for all addresses.
pub fn list_addresses(request: &mut Request) {
    request.message("list addresses", GET_ADDRESS, DUMP, |body| body.raw(&[0; ADDRESS_HEADER]));
}

/// Asks for the routes of both families.
pub fn list_routes(request: &mut Request) {
    request.message("list routes", GET_ROUTE, DUMP, |body| body.raw(&[0; ROUTE_HEADER]));
}

/// Gives an interface an address, at once and without asking the neighbours (no DAD).
pub fn add_address(request: &mut Request, index: u32, address: IpAddr, prefix: u8) {
    request.message(format!("add address {address} to interface {index}"), NEW_ADDRESS, ACK | CREATE | REPLACE, |body| {
        let mut header = vec![family_number(address.is_ipv4()), prefix, 0, SCOPE_UNIVERSE];
        header.extend(index.to_ne_bytes());
        body.raw(&header);
        // IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS: IFA_F_NODAD.
        body.bytes(1, &octets(address));
        body.bytes(2, &octets(address));
        if address.is_ipv6() {
            body.u32(8, 2);
        }
    });
}

/// Route of packets.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Destination: network and prefix length; a default route has an unspecified address and 0.
    pub to: (IpAddr, u8),
    /// Next hop, if it is not the destination itself.
    pub via: Option<IpAddr>,
    /// Interface.
    pub interface: u32,
}

/// Adds a route.
pub fn add_route(request: &mut Request, route: Route) {
    add_route_from(request, route, None);
}

/// Adds a route for which this host has a source address of its own choice: one that it has on any interface.
pub fn add_route_from(request: &mut Request, route: Route, source: Option<IpAddr>) {
    let Route { to: (network, prefix), via, interface } = route;
    request.message(format!("add route to {network}/{prefix}"), NEW_ROUTE, ACK | CREATE | REPLACE, |body| {
        let scope = if via.is_some() || network.is_ipv6() { SCOPE_UNIVERSE } else { SCOPE_LINK };
        body.raw(&[family_number(network.is_ipv4()), prefix, 0, 0, MAIN_TABLE, ROUTE_PROTOCOL, scope, UNICAST, 0, 0, 0, 0]);
        if prefix > 0 {
            body.bytes(1, &octets(network));
        }
        if let Some(via) = via {
            body.bytes(5, &octets(via));
        }
        if let Some(source) = source {
            body.bytes(7, &octets(source));
        }
        body.u32(4, interface);
    });
}

/// Adds a permanent neighbour entry, so that no resolution is needed and no other host can claim the address.
pub fn add_neighbour(request: &mut Request, interface: u32, address: IpAddr, mac: Mac) {
    const PERMANENT: u16 = 0x80;
    request.message(format!("add neighbour {address}"), NEW_NEIGHBOUR, ACK | CREATE | REPLACE, |body| {
        body.raw(&neighbour_header(interface, address, PERMANENT));
        body.bytes(1, &octets(address));
        body.bytes(2, &mac);
    });
}

/// Forgets which hardware address a neighbour has, however that was learned.
pub fn forget_neighbour(request: &mut Request, interface: u32, address: IpAddr) {
    request.message(format!("delete neighbour {address}"), DELETE_NEIGHBOUR, ACK, |body| {
        body.raw(&neighbour_header(interface, address, 0));
        body.bytes(1, &octets(address));
    });
}

/// `struct ndmsg`.
fn neighbour_header(interface: u32, address: IpAddr, state: u16) -> Vec<u8> {
    let mut header = vec![family_number(address.is_ipv4()), 0, 0, 0];
    header.extend(interface.to_ne_bytes());
    header.extend(state.to_ne_bytes());
    header.extend([0, 0]);
    header
}

/// An interface as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// `IFF_*`.
    pub flags: u32,
    /// Index of the other end of a pair, which may be in another namespace.
    pub peer: Option<u32>,
    /// Interface group.
    pub group: u32,
    /// Largest packet.
    pub mtu: u32,
    /// Type of a virtual interface.
    pub kind: Option<String>,
    /// Description.
    pub alias: Option<String>,
}

/// Reads an interface; `None` for a message that is none.
pub fn link(answer: &Answer<'_>) -> Option<Link> {
    if answer.kind != NEW_LINK {
        return None;
    }
    let mut link = Link { index: u32_at(answer.body, 4)?, flags: u32_at(answer.body, 8)?, ..Link::default() };
    for (kind, value) in attributes(answer.body.get(LINK_HEADER..)?) {
        match kind {
            LINK_NAME => link.name = text_of(value),
            LINK_PEER => link.peer = u32_at(value, 0),
            LINK_GROUP => link.group = u32_at(value, 0)?,
            LINK_MTU => link.mtu = u32_at(value, 0)?,
            LINK_ALIAS => link.alias = Some(text_of(value)),
            LINK_KIND => link.kind = attributes(value).find(|(kind, _)| *kind == 1).map(|(_, name)| text_of(name)),
            _ => {}
        }
    }
    Some(link)
}

/// A network that an interface reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Address or network.
    pub network: IpAddr,
    /// Prefix length.
    pub prefix: u8,
    /// The interface; 0 where there is none.
    pub interface: u32,
    /// Its neighbours are there: an address of this host is in it, or the kernel or a router on the link says so.
    pub is_on_link: bool,
}

impl Reached {
    /// Returns true if it is one address.
    pub const fn is_single(&self) -> bool {
        self.prefix == if self.network.is_ipv4() { 32 } else { 128 }
    }
}

/// Reads an address with the network that it is in; `None` for a message that is none.
pub fn address(answer: &Answer<'_>) -> Option<Reached> {
    if answer.kind != NEW_ADDRESS {
        return None;
    }
    let prefix = *answer.body.get(1)?;
    let interface = u32_at(answer.body, 4)?;
    let (_, value) = attributes(answer.body.get(ADDRESS_HEADER..)?).find(|(kind, _)| *kind == 1)?;
    Some(Reached { network: ip_of(value)?, prefix, interface, is_on_link: true })
}

/// Reads the destination of a unicast route; `None` for a default route and for a message that is none.
pub fn route(answer: &Answer<'_>) -> Option<Reached> {
    if answer.kind != NEW_ROUTE || *answer.body.get(7)? != UNICAST {
        return None;
    }
    let prefix = *answer.body.get(1)?;
    let mut network = None;
    let mut interface = 0;
    // RTPROT_KERNEL, RTPROT_RA.
    let mut is_on_link = matches!(*answer.body.get(5)?, 2 | 9);
    for (kind, value) in attributes(answer.body.get(ROUTE_HEADER..)?) {
        match kind {
            1 => network = ip_of(value),
            4 => interface = u32_at(value, 0)?,
            // RTA_GATEWAY, RTA_VIA.
            5 | 18 => is_on_link = false,
            _ => {}
        }
    }
    (prefix > 0).then_some(Reached { network: network?, prefix, interface, is_on_link })
}

/// The bytes of an address.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(super) fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// `AF_INET` or `AF_INET6`.
pub(super) const fn family_number(is_v4: bool) -> u8 {
    if is_v4 { 2 } else { 10 }
}

fn link_header(index: u32, flags: u32) -> [u8; LINK_HEADER] {
    let mut header = [0; LINK_HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    // The flags, and the mask of the changed ones.
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::answers;

    /// The value of the attribute at the end of a path of nested ones.
    fn find<'a>(bytes: &'a [u8], path: &[u16]) -> Option<&'a [u8]> {
        let (first, rest) = path.split_first()?;
        let (_, value) = attributes(bytes).find(|(kind, _)| kind == first)?;
        if rest.is_empty() { Some(value) } else { find(value, rest) }
    }

    #[test]
    fn all_settings_of_an_interface_are_one_message() {
        let mut request = Request::new();
        let ipv4 = [(Ipv4Setting::RpFilter, 1)];
        set_up_link(&mut request, 3, LinkSettings { alias: "a", ipv4: &ipv4, without_own_ipv6: true });
        assert_eq!(answers(request.bytes()).count(), 1);
        let answer = answers(request.bytes()).next().unwrap();
        let outer = &answer.body[LINK_HEADER..];
        assert_eq!(find(outer, &[LINK_FAMILIES, 2, 1, 8]), Some(&1_u32.to_ne_bytes()[..]));
        assert_eq!(find(outer, &[LINK_FAMILIES, 10, 8]), Some(&[1][..]));
        let mut request = Request::new();
        set_up_link(&mut request, 3, LinkSettings { alias: "a", ipv4: &[], without_own_ipv6: false });
        let answer = answers(request.bytes()).next().unwrap();
        assert_eq!(find(&answer.body[LINK_HEADER..], &[LINK_FAMILIES]), None);
    }

    #[test]
    fn both_ends_of_a_pair_have_one_queue_each_way() {
        let mut request = Request::new();
        let (here, there) = (VethEnd { name: "ps-1", mac: [2; 6] }, VethEnd { name: "eth0", mac: [4; 6] });
        make_veth(&mut request, here, 7, there, 3, None);
        let answer = answers(request.bytes()).next().unwrap();
        let outer = &answer.body[LINK_HEADER..];
        // IFLA_LINKINFO, IFLA_INFO_DATA, VETH_INFO_PEER.
        let peer = &find(outer, &[LINK_KIND, 2, 1]).unwrap()[LINK_HEADER..];
        for end in [outer, peer] {
            let queues = [LINK_TX_QUEUES, LINK_RX_QUEUES].map(|kind| u32_at(find(end, &[kind]).unwrap(), 0));
            assert_eq!(queues, [Some(1); 2]);
        }
    }
}
