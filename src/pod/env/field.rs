//! `fieldRef`: values of the pod for its containers.

use super::EnvFacts;
use crate::Pod;
use crate::containers::{spec, text};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Reason why a field path has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldRefError {
    /// The path names nothing that can be referred to.
    #[error("field path {0:?} is not supported: use one of {list}", list = FieldRef::SUPPORTED)]
    Unsupported(String),
}

/// A field path that `valueFrom.fieldRef` may name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldRef {
    /// `metadata.name`.
    Name,
    /// `metadata.namespace`.
    Namespace,
    /// `metadata.uid`.
    Uid,
    /// `metadata.labels['key']`.
    Label(String),
    /// `metadata.annotations['key']`.
    Annotation(String),
    /// `spec.nodeName`.
    NodeName,
    /// `spec.serviceAccountName`.
    ServiceAccountName,
    /// `status.hostIP`.
    HostIp,
    /// `status.hostIPs`, comma-separated.
    HostIps,
    /// `status.podIP`.
    PodIp,
    /// `status.podIPs`, comma-separated.
    PodIps,
}

impl FieldRef {
    /// The paths, for messages.
    pub const SUPPORTED: &str = "metadata.name, metadata.namespace, metadata.uid, metadata.labels['<key>'], metadata.annotations['<key>'], \
                                 spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP, status.podIPs";

    /// Reads a field path.
    pub fn parse(path: &str) -> Result<Self, FieldRefError> {
        let subscript = |prefix| path.strip_prefix(prefix).and_then(|key| key.strip_suffix("']")).map(str::to_owned);
        if let Some(key) = subscript("metadata.labels['") {
            return Ok(Self::Label(key));
        }
        if let Some(key) = subscript("metadata.annotations['") {
            return Ok(Self::Annotation(key));
        }
        match path {
            "metadata.name" => Ok(Self::Name),
            "metadata.namespace" => Ok(Self::Namespace),
            "metadata.uid" => Ok(Self::Uid),
            "spec.nodeName" => Ok(Self::NodeName),
            "spec.serviceAccountName" => Ok(Self::ServiceAccountName),
            "status.hostIP" => Ok(Self::HostIp),
            "status.hostIPs" => Ok(Self::HostIps),
            "status.podIP" => Ok(Self::PodIp),
            "status.podIPs" => Ok(Self::PodIps),
            _ => Err(FieldRefError::Unsupported(path.to_owned())),
        }
    }
}

/// The value of a field path; empty for a label or annotation that the pod does not have, and for an address that it does not have.
pub fn field_ref_value(pod: &Pod, path: &str, facts: &EnvFacts) -> Result<String, FieldRefError> {
    let entry = |map: &Option<BTreeMap<String, String>>, key: &str| map.as_ref().and_then(|map| map.get(key)).cloned();
    Ok(match FieldRef::parse(path)? {
        FieldRef::Name => text(&pod.metadata.name).to_owned(),
        FieldRef::Namespace => text(&pod.metadata.namespace).to_owned(),
        FieldRef::Uid => text(&pod.metadata.uid).to_owned(),
        FieldRef::Label(key) => entry(&pod.metadata.labels, &key).unwrap_or_default(),
        FieldRef::Annotation(key) => entry(&pod.metadata.annotations, &key).unwrap_or_default(),
        FieldRef::NodeName => facts.node_name.to_string(),
        FieldRef::ServiceAccountName => text(&spec(pod).service_account_name).to_owned(),
        FieldRef::HostIp => first(&facts.host_ips),
        FieldRef::HostIps => joined(&facts.host_ips),
        FieldRef::PodIp => first(&facts.pod_ips),
        FieldRef::PodIps => joined(&facts.pod_ips),
    })
}

fn first(ips: &[IpAddr]) -> String {
    ips.first().map(IpAddr::to_string).unwrap_or_default()
}

fn joined(ips: &[IpAddr]) -> String {
    ips.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeName;

    #[test]
    fn every_path_has_the_value_of_its_field() {
        let pod: Pod = serde_yaml::from_str(
            "{metadata: {name: web-edge, namespace: shop, uid: u-1, labels: {app.example/x: web}, annotations: {note: hello}},
              spec: {serviceAccountName: default, containers: []}}",
        )
        .unwrap();
        let facts = EnvFacts {
            node_name: NodeName::new("edge"),
            cluster_domain: "cluster.local".into(),
            host_ips: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            pod_ips: vec!["10.0.0.7".parse().unwrap(), "fd00::7".parse().unwrap()],
            service_variables: Vec::new(),
            allocatable_cpu_milli: 1,
            allocatable_memory_bytes: 1,
            allocatable_ephemeral_storage_bytes: 1,
        };
        for (path, expected) in [
            ("metadata.name", "web-edge"),
            ("metadata.namespace", "shop"),
            ("metadata.uid", "u-1"),
            ("metadata.labels['app.example/x']", "web"),
            ("metadata.labels['none']", ""),
            ("metadata.annotations['note']", "hello"),
            ("spec.nodeName", "edge"),
            ("spec.serviceAccountName", "default"),
            ("status.hostIP", "192.0.2.1"),
            ("status.hostIPs", "192.0.2.1,2001:db8::1"),
            ("status.podIP", "10.0.0.7"),
            ("status.podIPs", "10.0.0.7,fd00::7"),
        ] {
            assert_eq!(field_ref_value(&pod, path, &facts).as_deref(), Ok(expected), "{path}");
        }
        let without_ips = EnvFacts { pod_ips: vec![], ..facts };
        assert_eq!(field_ref_value(&pod, "status.podIP", &without_ips).as_deref(), Ok(""));
    }

    #[test]
    fn other_paths_are_refused() {
        for path in [
            "",
            "metadata",
            "metadata.labels",
            "metadata.labels[app]",
            "metadata.labels['app'",
            "spec.hostname",
            "status.phase",
            "metadata.name ",
        ] {
            assert_eq!(FieldRef::parse(path), Err(FieldRefError::Unsupported(path.into())), "{path:?}");
        }
    }
}
