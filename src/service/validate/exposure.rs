//! Rules for fields that say who outside reaches a Service.

use super::service_type::type_of;
use super::{check, check_address, check_one_of};
use crate::grammar;
use crate::range::Subnet;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use podstead_workload::problem::Problems;

/// The older spelling of `loadBalancerSourceRanges`.
pub(crate) const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
/// Ranges of one Service.
const MOST_RANGES: usize = 1000;

/// Checks fields that belong to some types only.
pub(super) fn check_spec(spec: &ServiceSpec, found: &mut Problems) {
    let is_load_balancer = type_of(spec) == "LoadBalancer";
    let is_external = is_load_balancer || type_of(spec) == "NodePort" || spec.external_ips.iter().flatten().next().is_some();
    let only = "may only be used when `type` is 'LoadBalancer'";
    for (field, is_written) in [
        ("spec.allocateLoadBalancerNodePorts", spec.allocate_load_balancer_node_ports.is_some()),
        ("spec.loadBalancerClass", spec.load_balancer_class.is_some()),
    ] {
        if is_written && !is_load_balancer {
            found.forbidden(field, only);
        }
    }
    if let Some(class) = &spec.load_balancer_class {
        check(grammar::qualified_name(class), "spec.loadBalancerClass", class, found);
    }
    if let Some(address) = spec.load_balancer_ip.as_deref().filter(|address| is_load_balancer && !address.is_empty()) {
        check_address("spec.loadBalancerIP", address, found);
    }
    let policy = spec.external_traffic_policy.as_deref().filter(|policy| !policy.is_empty());
    check_one_of("spec.externalTrafficPolicy", policy, &["Cluster", "Local"], found);
    if policy.is_some() && !is_external {
        found.invalid(
            "spec.externalTrafficPolicy",
            policy.unwrap_or_default(),
            "may only be set for externally-accessible services",
        );
        found.hint("remove the field");
    }
    let health = spec.health_check_node_port.filter(|port| *port != 0);
    found.not_negative("spec.healthCheckNodePort", health.map(i64::from));
    if let Some(port) = health.filter(|_| !(is_load_balancer && policy == Some("Local"))) {
        let rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        found.invalid("spec.healthCheckNodePort", port, rule);
    }
}

/// Checks the ranges that a load balancer answers, in either spelling.
pub(super) fn check_ranges(object: &Service, spec: &ServiceSpec, found: &mut Problems) {
    let only = "may only be used when `type` is 'LoadBalancer'";
    let written = spec.load_balancer_source_ranges.as_deref().unwrap_or_default();
    let annotation = object.metadata.annotations.iter().flatten().find(|(key, _)| *key == SOURCE_RANGES).map(|(_, value)| value);
    let (field, ranges): (_, Vec<&str>) = match annotation {
        _ if !written.is_empty() => ("spec.loadBalancerSourceRanges".to_owned(), written.iter().map(String::as_str).collect()),
        Some(text) if !text.trim().is_empty() => (format!("metadata.annotations[{SOURCE_RANGES}]"), text.split(',').collect()),
        _ => return,
    };
    if type_of(spec) != "LoadBalancer" {
        return found.forbidden(field, only);
    }
    found.at_most(field.clone(), ranges.len(), MOST_RANGES);
    for (index, range) in ranges.iter().enumerate() {
        if range.trim().parse::<Subnet>().is_err() {
            found.invalid(format!("{field}[{index}]"), range.trim(), "must be a CIDR such as 10.9.8.0/24");
        }
    }
}
