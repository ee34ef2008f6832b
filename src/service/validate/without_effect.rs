//! Fields that are accepted and change nothing on one host (S3, S12).

use k8s_openapi::api::core::v1::Service;
use podstead_workload::problem::{Problem, Problems};
use std::net::IpAddr;

/// The class of load balancers that this host serves, beside those without a class.
pub const HOST_CLASS: &str = "podstead.dev/host";
/// Label of Services whose packets another program handles.
pub const PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";
/// Annotations that choose endpoints by place.
const TOPOLOGY: [&str; 2] = ["service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"];

/// Lists the fields that have no effect here, as warnings.
pub fn without_effect(object: &Service) -> Vec<Problem> {
    let mut found = Problems::default();
    for key in object.metadata.annotations.iter().flatten().map(|(key, _)| key).filter(|key| TOPOLOGY.contains(&key.as_str())) {
        found.add(format!("metadata.annotations[{key}]"), "has no effect: all endpoints are on this host");
    }
    if object.metadata.labels.iter().flatten().any(|(key, _)| key == PROXY_NAME_LABEL) {
        found.add(format!("metadata.labels[{PROXY_NAME_LABEL}]"), "podstead makes no packet rules for this Service");
    }
    let Some(spec) = &object.spec else { return found.into_vec() };
    let is_local = |policy: &Option<String>| policy.as_deref() == Some("Local");
    for (field, is_written) in [
        ("spec.internalTrafficPolicy", is_local(&spec.internal_traffic_policy)),
        ("spec.externalTrafficPolicy", is_local(&spec.external_traffic_policy)),
        ("spec.trafficDistribution", spec.traffic_distribution.is_some()),
    ] {
        if is_written {
            found.add(field, "has no effect: all endpoints are on this host");
        }
    }
    let external = spec.external_name.as_deref().filter(|_| spec.type_.as_deref() == Some("ExternalName"));
    if external.is_some_and(|name| name.parse::<IpAddr>().is_ok()) {
        found.add("spec.externalName", "is read as a name and not as an address: it leads nowhere");
        found.hint("write a Service without selector, and an EndpointSlice with the address");
    }
    if spec.health_check_node_port.is_some_and(|port| port != 0) {
        found.add("spec.healthCheckNodePort", "is not served");
    }
    if let Some(class) = spec.load_balancer_class.as_deref().filter(|class| *class != HOST_CLASS) {
        found.add("spec.loadBalancerClass", format!("{class:?} is not served by this host: the Service gets no port of it"));
        found.hint(format!("write {HOST_CLASS:?} or remove the field"));
    }
    found.into_vec()
}
