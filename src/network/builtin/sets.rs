//! Sets and maps of the packet rules, and data of pods that become elements of them. **Pure**.

use super::guests::Guest;
use super::names::{GATEWAY_V4, GATEWAY_V6};
use super::policies::PolicyRules;
use super::services::ServiceRules;
use podstead_pod::PodUid;
use podstead_pod::host_ports::HostPort;
use podstead_sys::netlink::expressions::{Field, IPV4_DESTINATION, IPV4_SOURCE, IPV6_DESTINATION, IPV6_SOURCE};
use podstead_sys::netlink::nftables::{Datatype, Element, IPV4, IPV6, SetSpec};
use podstead_sys::netlink::rtnetlink::Mac;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Data of a pod for the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodRules {
    /// Incoming interface of its packets: the host's end of its interface, or the bridge.
    pub(super) interface: String,
    /// Its addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// Ports of the host that lead to it.
    pub(super) ports: Vec<HostPort>,
    /// Other pods are kept away from it.
    pub(super) is_isolated: bool,
    /// Its place on the bridge, if it is on one.
    pub(super) port: Option<Port>,
}

/// Settings of the rules beside the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// podstead enabled IPv4 forwarding: only pod traffic is forwarded.
    pub(super) guards_ipv4: bool,
    /// The same for IPv6.
    pub(super) guards_ipv6: bool,
    /// The kernel can look up listening sockets (`nft_socket`).
    pub(super) sees_listeners: bool,
    /// Port that serves the DNS queries that pods send to port 53 of the host, as they see it.
    pub(super) dns_port: Option<u16>,
    /// Pods are on a bridge.
    pub(super) is_bridged: bool,
}

/// The sets of one family.
pub(super) struct Family {
    pub(super) number: u8,
    pub(super) is_ipv4: bool,
    pub(super) source: Field,
    pub(super) destination: Field,
    /// The host, as pods see it.
    pub(super) gateway: IpAddr,
    /// Addresses of pods.
    pub(super) pods: SetSpec<'static>,
    /// Interface and address of pods: what a pod sends comes from both.
    pub(super) sources: SetSpec<'static>,
    /// Address twice: a pod that talks to itself through a port of the host.
    pub(super) selves: SetSpec<'static>,
    /// Addresses of isolated pods.
    pub(super) isolated: SetSpec<'static>,
    /// Protocol and port to address and port of a pod.
    pub(super) ports: SetSpec<'static>,
    /// The same for ports of one address of the host.
    pub(super) ports_at: SetSpec<'static>,
}

macro_rules! family {
    ($number:expr, $is_ipv4:expr, $source:expr, $destination:expr, $gateway:expr, $type:ident, $digit:literal) => {
        Family {
            number: $number,
            is_ipv4: $is_ipv4,
            source: $source,
            destination: $destination,
            gateway: $gateway,
            pods: SetSpec { name: concat!("pods", $digit), key: &[Datatype::$type], value: &[] },
            sources: SetSpec { name: concat!("sources", $digit), key: &[Datatype::Interface, Datatype::$type], value: &[] },
            selves: SetSpec { name: concat!("selves", $digit), key: &[Datatype::$type, Datatype::$type], value: &[] },
            isolated: SetSpec { name: concat!("isolated", $digit), key: &[Datatype::$type], value: &[] },
            ports: SetSpec {
                name: concat!("ports", $digit),
                key: &[Datatype::Protocol, Datatype::Port],
                value: &[Datatype::$type, Datatype::Port],
            },
            ports_at: SetSpec {
                name: concat!("ports_at", $digit),
                key: &[Datatype::$type, Datatype::Protocol, Datatype::Port],
                value: &[Datatype::$type, Datatype::Port],
            },
        }
    };
}

pub(super) const FAMILIES: [Family; 2] = [
    family!(IPV4, true, IPV4_SOURCE, IPV4_DESTINATION, IpAddr::V4(GATEWAY_V4), Ipv4, "4"),
    family!(IPV6, false, IPV6_SOURCE, IPV6_DESTINATION, IpAddr::V6(GATEWAY_V6), Ipv6, "6"),
];

/// Kinds of virtual interfaces of other engines' containers and machines: their owners decide about forwarding.
pub(super) const VIRTUAL: SetSpec<'static> = SetSpec { name: "virtual", key: &[Datatype::Interface], value: &[] };

/// Elements by set.
pub(super) type Elements = BTreeMap<&'static str, Vec<Element>>;

/// Parts of the table beside the pods.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<'a> {
    /// Settings.
    pub(super) switches: Switches,
    /// Services.
    pub(super) services: &'a ServiceRules,
    /// NetworkPolicies.
    pub(super) policies: &'a PolicyRules,
    /// Pods that plugins connected.
    pub(super) guests: &'a BTreeSet<Guest>,
}

/// The rules of all pods, as they shall be in the kernel.
pub(super) type PodsRules = BTreeMap<PodUid, PodRules>;

/// A pod's place on the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    /// The host's end of its interface.
    pub(super) interface: String,
    /// The hardware address of the pod's end.
    pub(super) mac: Mac,
}
