//! Arguments about a pod beside a plugin's configuration: `runtimeConfig`, by the capabilities of the plugin. **Pure**.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Capability of plugins that lead ports of the host to a pod.
pub(crate) const PORT_MAPPINGS: &str = "portMappings";
/// Capability of plugins that limit a pod's traffic.
pub(crate) const BANDWIDTH: &str = "bandwidth";
/// Capability of plugins that give a pod an address of its choice.
pub(crate) const IPS: &str = "ips";
/// Capability of plugins that give a pod a hardware address of its choice.
pub(crate) const MAC: &str = "mac";
/// Capability of plugins that give a pod an InfiniBand GUID of its choice.
pub(crate) const INFINIBAND_GUID: &str = "infinibandGUID";
/// Capability of plugins that want to know a pod's annotations (containerd's and CRI-O's name).
pub(crate) const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// Most bits that may be sent at once: as containerd and CRI-O ask for it.
const BURST: u64 = u32::MAX as u64;

/// A port of the host that leads to a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PortMapping {
    /// The host's port.
    pub(crate) host_port: u16,
    /// The pod's port.
    pub(crate) container_port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub(crate) protocol: String,
    /// The host's address; all of them without.
    #[serde(default, rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub(crate) host_ip: Option<IpAddr>,
}

/// Bits in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bandwidth {
    /// To the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ingress: Option<u64>,
    /// From the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) egress: Option<u64>,
    /// To the pod at once; without, the most that plugins take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ingress_burst: Option<u64>,
    /// From the pod at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) egress_burst: Option<u64>,
}

/// Arguments about an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CapabilityArguments {
    /// Ports of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) port_mappings: Vec<PortMapping>,
    /// Limits of traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bandwidth: Option<Bandwidth>,
    /// Addresses, with or without prefix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ips: Vec<String>,
    /// Hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mac: Option<String>,
    /// GUID of an InfiniBand interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) infiniband_guid: Option<String>,
    /// The pod's annotations. They come to plugins with ADD; a change of them alone is no reason for another ADD.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

impl CapabilityArguments {
    /// By capability; what does not apply is left out.
    fn by_capability(&self) -> Vec<(&'static str, Value)> {
        let Self { port_mappings, bandwidth, ips, mac, infiniband_guid, annotations } = self;
        let mut all = Vec::new();
        if !port_mappings.is_empty() {
            all.push((PORT_MAPPINGS, json!(port_mappings)));
        }
        if let Some(Bandwidth { ingress, egress, ingress_burst, egress_burst }) = bandwidth {
            let mut limits = Map::new();
            for (rate, burst, limit, at_once) in
                [("ingressRate", "ingressBurst", ingress, ingress_burst), ("egressRate", "egressBurst", egress, egress_burst)]
            {
                if let Some(limit) = limit {
                    limits.insert(rate.to_owned(), (*limit).into());
                    limits.insert(burst.to_owned(), at_once.unwrap_or(BURST).into());
                }
            }
            all.push((BANDWIDTH, Value::Object(limits)));
        }
        if !ips.is_empty() {
            all.push((IPS, json!(ips)));
        }
        if let Some(mac) = mac {
            all.push((MAC, json!(mac)));
        }
        if let Some(guid) = infiniband_guid {
            all.push((INFINIBAND_GUID, json!(guid)));
        }
        if !annotations.is_empty() {
            all.push((POD_ANNOTATIONS, json!(annotations)));
        }
        all
    }

    /// Arguments for a plugin with these capabilities; `None` if there are none.
    pub(crate) fn runtime_config(&self, capabilities: &BTreeSet<String>) -> Option<Value> {
        let told: Map<String, Value> = self
            .by_capability()
            .into_iter()
            .filter(|(capability, _)| capabilities.contains(*capability))
            .map(|(capability, value)| (capability.to_owned(), value))
            .collect();
        (!told.is_empty()).then_some(Value::Object(told))
    }

    /// Capabilities whose arguments differ. Annotations do not count.
    pub(crate) fn differences(&self, other: &Self) -> BTreeSet<&'static str> {
        let Self { port_mappings, bandwidth, ips, mac, infiniband_guid, annotations: _ } = self;
        let differences = [
            (PORT_MAPPINGS, *port_mappings != other.port_mappings),
            (BANDWIDTH, *bandwidth != other.bandwidth),
            (IPS, *ips != other.ips),
            (MAC, *mac != other.mac),
            (INFINIBAND_GUID, *infiniband_guid != other.infiniband_guid),
        ];
        differences.into_iter().filter(|(_, differs)| *differs).map(|(capability, _)| capability).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_plugin_is_told_what_it_has_capabilities_for_and_nothing_else() {
        let arguments = CapabilityArguments {
            port_mappings: vec![PortMapping { host_port: 8080, container_port: 80, protocol: "tcp".into(), host_ip: None }],
            bandwidth: Some(Bandwidth { ingress: Some(1_000_000), ..Bandwidth::default() }),
            ips: vec!["10.7.0.9/24".into()],
            mac: Some("02:00:00:00:00:01".into()),
            infiniband_guid: Some("c2:11:22:33:44:55:66:77".into()),
            annotations: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        };
        assert_eq!(arguments.runtime_config(&set(&["unknown"])), None);
        assert_eq!(
            arguments.runtime_config(&set(&["portMappings", "bandwidth"])),
            Some(json!({
                "portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}],
                "bandwidth": {"ingressRate": 1_000_000, "ingressBurst": 4_294_967_295_u64}
            }))
        );
        let all = arguments.runtime_config(&set(&[IPS, MAC, POD_ANNOTATIONS])).unwrap();
        assert_eq!(
            all,
            json!({"ips": ["10.7.0.9/24"], "mac": "02:00:00:00:00:01", "io.kubernetes.cri.pod-annotations": {"a": "b"}})
        );
        let guid = arguments.runtime_config(&set(&[INFINIBAND_GUID]));
        assert_eq!(guid, Some(json!({"infinibandGUID": "c2:11:22:33:44:55:66:77"})));
        assert_eq!(CapabilityArguments::default().runtime_config(&set(&[IPS, PORT_MAPPINGS])), None);
        let other = CapabilityArguments { mac: None, annotations: BTreeMap::new(), ..arguments.clone() };
        assert_eq!(arguments.differences(&other), BTreeSet::from([MAC]));
    }
}
