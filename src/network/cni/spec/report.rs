//! The annotation `k8s.v1.cni.cncf.io/network-status`: the interfaces of a pod, as Multus reports them. **Pure**.

use super::result::{CniResult, ResultDns};
use serde::Serialize;
use std::net::IpAddr;

/// One interface of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct InterfaceReport {
    /// The network, after the namespace for those that the pod asked for.
    pub(crate) name: String,
    /// Name in the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) interface: String,
    /// Its addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ips: Vec<IpAddr>,
    /// Its hardware address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) mac: String,
    /// Its MTU, if that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u32>,
    /// It is the pod's first one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) default: bool,
    /// Name servers of the network.
    pub(crate) dns: ResultDns,
}

impl InterfaceReport {
    /// Of an interface that a chain of plugins made.
    pub(crate) fn of(name: String, interface: &str, default: bool, result: &CniResult) -> Self {
        let made = result.pod_interfaces().find(|made| made.name == interface);
        Self {
            name,
            interface: interface.to_owned(),
            ips: result.pod_ips(),
            mac: made.map(|made| made.mac.clone()).unwrap_or_default(),
            mtu: made.and_then(|made| made.mtu),
            default,
            dns: result.dns.clone(),
        }
    }
}

/// The annotation's text.
pub(crate) fn text(interfaces: &[InterfaceReport]) -> String {
    // Names, numbers and texts: it cannot fail.
    serde_json::to_string_pretty(interfaces).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::result::ResultInterface;
    use super::*;

    #[test]
    fn interfaces_are_reported_as_multus_does() {
        let sandboxed = ResultInterface {
            name: "net1".into(),
            mac: "02:00:00:00:00:09".into(),
            sandbox: "/n".into(),
            ..ResultInterface::default()
        };
        let result = CniResult { interfaces: vec![sandboxed], ..CniResult::default() };
        let first = InterfaceReport {
            ips: vec!["10.201.0.1".parse().unwrap()],
            ..InterfaceReport::of("podstead".into(), "eth0", true, &CniResult::default())
        };
        let reports = [first, InterfaceReport::of("default/plant".into(), "net1", false, &result)];
        let read: serde_json::Value = serde_json::from_str(&text(&reports)).unwrap();
        assert_eq!(
            read,
            serde_json::json!([
                {"name": "podstead", "interface": "eth0", "ips": ["10.201.0.1"], "default": true, "dns": {}},
                {"name": "default/plant", "interface": "net1", "mac": "02:00:00:00:00:09", "dns": {}}
            ])
        );
    }
}
