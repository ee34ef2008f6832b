//! Services and pods as tests write them.

use crate::definition::Definition;
use crate::endpoints::Backend;
use crate::name::ObjectName;
use k8s_openapi::api::core::v1::Service;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A Service of a manifest in YAML flow: metadata and spec.
pub(crate) fn service(name: &str, spec: &str) -> Service {
    serde_yaml::from_str(&format!("{{metadata: {{name: {name}, namespace: shop}}, spec: {{{spec}}}}}")).unwrap()
}

/// The definition of that Service.
pub(crate) fn definition(name: &str, spec: &str) -> Definition {
    Definition::of(&service(name, spec)).unwrap()
}

/// A name of the namespace `shop`.
pub(crate) fn named(name: &str) -> ObjectName {
    ObjectName { namespace: "shop".into(), name: name.into() }
}

/// A ready pod of the namespace `shop` with the label `app: web`.
pub(crate) fn pod(name: &str, last: u8) -> Backend {
    Backend {
        name: named(name),
        uid: format!("uid-{name}"),
        labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        addresses: vec![IpAddr::from([10, 201, 0, last])],
        has_ended: false,
        is_ready: true,
        is_terminating: false,
        hostname: None,
        ports: BTreeMap::new(),
    }
}
