//! Policies and pods as tests write them.

use crate::compile::PolicedPod;
use crate::definition::{Policy, PortName};
use crate::selector::Labels;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use podstead_service::name::ObjectName;
use std::net::IpAddr;

/// A NetworkPolicy of a manifest in YAML flow.
pub(crate) fn object(namespace: &str, name: &str, spec: &str) -> NetworkPolicy {
    serde_yaml::from_str(&format!("{{metadata: {{name: {name}, namespace: {namespace}}}, spec: {{{spec}}}}}")).unwrap()
}

/// The policy of that manifest.
pub(crate) fn policy(namespace: &str, name: &str, spec: &str) -> Policy {
    Policy::of(&object(namespace, name, spec)).unwrap()
}

pub(crate) fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 201, 0, last])
}

/// A pod with one label and two addresses, both with this last number.
pub(crate) fn pod(namespace: &str, app: &str, last: u8, ports: &[(PortName, u16)]) -> PolicedPod {
    PolicedPod {
        name: ObjectName { namespace: namespace.into(), name: format!("p{last}").into() },
        source: None,
        labels: Labels::from([("app".to_owned(), app.to_owned())]),
        addresses: vec![address(last), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)])],
        ports: ports.iter().cloned().collect(),
    }
}

/// The host as pods see it.
pub(crate) fn resolver() -> PolicedPod {
    PolicedPod::resolver(&[IpAddr::from([169, 254, 0, 1])])
}
