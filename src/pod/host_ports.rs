//! Requests of a pod to its network: ports of the host that are forwarded to it, and isolation from other pods.

use super::Pod;
use super::containers::{self, ContainerKind, list, spec};
use super::networks::{DEFAULT_NETWORK, NETWORKS};
use super::quantity::Amount;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

pub use crate::annotations::ISOLATED;

/// Annotation that limits what a pod receives, in bits per second.
pub const INGRESS_BANDWIDTH: &str = "kubernetes.io/ingress-bandwidth";
/// Annotation that limits what a pod sends, in bits per second.
pub const EGRESS_BANDWIDTH: &str = "kubernetes.io/egress-bandwidth";
/// Annotations with requests of a pod to its network.
const NETWORK_ANNOTATIONS: [&str; 4] = [INGRESS_BANDWIDTH, EGRESS_BANDWIDTH, NETWORKS, DEFAULT_NETWORK];

/// Bits in a second that the kubelet's ecosystem takes for reasonable.
const LEAST_BANDWIDTH: i64 = 1_000;
const MOST_BANDWIDTH: i64 = 1_000_000_000_000_000;

/// Protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Its number in IP headers.
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        })
    }
}

/// A port of the host that leads to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostPort {
    /// Protocol.
    pub protocol: Protocol,
    /// The host's address; `None` for all. An unspecified address stands for all of its family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
    /// The host's port.
    pub host_port: u16,
    /// The pod's port.
    pub container_port: u16,
}

impl HostPort {
    /// Returns true if both cannot exist at once: kubelet and scheduler take any unspecified address for all addresses.
    pub fn collides(&self, other: &Self) -> bool {
        let all = |ip: Option<IpAddr>| ip.filter(|ip| !ip.is_unspecified());
        let same_ip = match (all(self.host_ip), all(other.host_ip)) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        self.protocol == other.protocol && self.host_port == other.host_port && same_ip
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host_ip {
            None => write!(f, "{}/{}", self.host_port, self.protocol),
            Some(IpAddr::V4(ip)) => write!(f, "{ip}:{}/{}", self.host_port, self.protocol),
            Some(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}/{}", self.host_port, self.protocol),
        }
    }
}

/// The ports of the host that a pod wants, sorted; those of init containers, which end before anything serves, are not among them.
pub fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let all = containers::all(pod).filter(|(kind, _)| match kind {
        ContainerKind::Init => false,
        ContainerKind::Sidecar | ContainerKind::Main => true,
    });
    let port = |number: i32| u16::try_from(number).ok().filter(|number| *number != 0);
    let mut ports: Vec<HostPort> = all
        .flat_map(|(_, container)| list(&container.ports))
        .filter_map(|written| {
            Some(HostPort {
                protocol: match written.protocol.as_deref() {
                    Some("UDP") => Protocol::Udp,
                    Some("SCTP") => Protocol::Sctp,
                    Some(_) | None => Protocol::Tcp,
                },
                host_ip: written.host_ip.as_deref().and_then(|ip| ip.parse().ok()),
                host_port: port(written.host_port?)?,
                container_port: port(written.container_port)?,
            })
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Bits in a second, as an annotation limits them; what is wrong with it, in words that follow the annotation's name.
pub fn bandwidth(text: &str) -> Result<u64, String> {
    match text.parse::<Amount>().map_err(|error| format!("{text:?} {error}"))?.value() {
        bits @ LEAST_BANDWIDTH..=MOST_BANDWIDTH => Ok(bits.unsigned_abs()),
        ..LEAST_BANDWIDTH => Err(format!("{text:?} is unreasonably small (< 1kbit/s)")),
        _ => Err(format!("{text:?} is unreasonably large (> 1Pbit/s)")),
    }
}

/// Returns true if the pod and other pods must not reach each other.
pub fn is_isolated(pod: &Pod) -> bool {
    pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ISOLATED)).is_some_and(|value| value == "true")
}

/// Ports of containers that have names, in their order.
fn named_ports(pod: &Pod) -> Vec<(String, Option<String>, i32)> {
    let ports = containers::all(pod).flat_map(|(_, container)| list(&container.ports));
    ports.filter_map(|port| Some((port.name.clone()?, port.protocol.clone(), port.container_port))).collect()
}

/// Returns true if two definitions request the same of the network.
pub fn ask_the_same(one: &Pod, other: &Pod) -> bool {
    let on_host = |pod: &Pod| spec(pod).host_network == Some(true);
    let annotations = |pod: &Pod| {
        let all = pod.metadata.annotations.as_ref();
        NETWORK_ANNOTATIONS.map(|key| all.and_then(|annotations| annotations.get(key)).cloned())
    };
    // NetworkPolicies select pods by labels, and find ports by name.
    let of_policies = |pod: &Pod| (pod.metadata.labels.clone().unwrap_or_default(), named_ports(pod));
    host_ports(one) == host_ports(other)
        && of_policies(one) == of_policies(other)
        && is_isolated(one) == is_isolated(other)
        && on_host(one) == on_host(other)
        && annotations(one) == annotations(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(text: &str) -> Vec<String> {
        let pod: Pod = serde_yaml::from_str(&format!("{{metadata: {{name: a}}, spec: {{{text}}}}}")).unwrap();
        host_ports(&pod).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_host_ports_of_main_containers_and_sidecars_count() {
        assert_eq!(
            ports(
                "initContainers: [{name: i, ports: [{containerPort: 1, hostPort: 1}]},
                                  {name: s, restartPolicy: Always, ports: [{containerPort: 2, hostPort: 2, protocol: UDP}]}],
                 containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080, hostIP: '::1'}, {containerPort: 81}]},
                              {name: b, ports: [{containerPort: 3, hostPort: 3, hostIP: 192.0.2.1, protocol: SCTP}]}]"
            ),
            ["[::1]:8080/TCP", "2/UDP", "192.0.2.1:3/SCTP"]
        );
    }

    #[test]
    fn ports_collide_where_they_have_an_address_in_common() {
        let port = |ip: Option<&str>| HostPort {
            protocol: Protocol::Tcp,
            host_ip: ip.map(|ip| ip.parse().unwrap()),
            host_port: 80,
            container_port: 80,
        };
        for (one, other, collide) in [
            (None, None, true),
            (None, Some("192.0.2.1"), true),
            (Some("0.0.0.0"), Some("192.0.2.1"), true),
            (Some("192.0.2.1"), Some("192.0.2.1"), true),
            (Some("192.0.2.1"), Some("192.0.2.2"), false),
        ] {
            assert_eq!(port(one).collides(&port(other)), collide, "{one:?} {other:?}");
            assert_eq!(port(other).collides(&port(one)), collide, "{other:?} {one:?}");
        }
        assert!(!port(None).collides(&HostPort { protocol: Protocol::Udp, ..port(None) }));
    }
}
