//! `podstead describe service`. The text is **pure**.

use super::writer::Description;
use crate::endpoints::ready_endpoints;
use crate::unserved::Unserved;
use crate::workloads::{annotation, metadata};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_api::published::SOURCE_ANNOTATION;
use podstead_api::show::labels_text;
use serde_json::Value;
use std::collections::BTreeMap;

/// Endpoints that are listed for a port.
const MOST_ENDPOINTS: usize = 10;

/// Name, source, labels and annotations of an object that has no revision and no place of its own. Annotations in `hidden` are not shown.
pub(super) fn identity(text: &mut Description, object: &Value, hidden: &[&str]) {
    for (name, field) in [("Name", "name"), ("Namespace", "namespace"), ("UID", "uid")] {
        text.field(name, Some(metadata(object, field)).filter(|value| !value.is_empty()).unwrap_or("<none>"));
    }
    text.field("Source", annotation(object, SOURCE_ANNOTATION).unwrap_or("<none>"));
    let texts =
        |field: &str| -> BTreeMap<String, String> { serde_json::from_value(object["metadata"][field].clone()).unwrap_or_default() };
    text.entries("Labels", Some(&texts("labels")));
    let mut annotations = texts("annotations");
    annotations.retain(|name, _| !hidden.contains(&name.as_str()));
    text.entries("Annotations", Some(&annotations));
}

/// Everything but the events, in the words of kubectl. `unserved` are its ports without endpoints.
pub(super) fn describe(service: &Value, slices: &[EndpointSlice], unserved: &[Unserved], hidden: &[&str]) -> String {
    let mut text = Description::default();
    identity(&mut text, service, hidden);
    let Ok(typed) = serde_json::from_value::<Service>(service.clone()) else { return text.finish() };
    let spec = typed.spec.unwrap_or_default();
    let ingress = typed.status.and_then(|status| status.load_balancer).and_then(|balancer| balancer.ingress).unwrap_or_default();
    text.field("Selector", &labels_text(&service["spec"]["selector"]));
    text.field("Type", spec.type_.as_deref().unwrap_or("ClusterIP"));
    addresses(&mut text, &spec);
    let ingress: Vec<String> = ingress.into_iter().filter_map(|ingress| ingress.ip.or(ingress.hostname)).collect();
    if !ingress.is_empty() {
        text.field("LoadBalancer Ingress", &ingress.join(", "));
    }
    for port in spec.ports.iter().flatten() {
        write_port(&mut text, port, slices, unserved);
    }
    text.field("Session Affinity", spec.session_affinity.as_deref().unwrap_or("None"));
    let ranges = spec.load_balancer_source_ranges.unwrap_or_default();
    if !ranges.is_empty() {
        text.field("LoadBalancer Source Ranges", &ranges.join(", "));
    }
    text.finish()
}

fn addresses(text: &mut Description, spec: &ServiceSpec) {
    if let Some(policy) = &spec.ip_family_policy {
        text.field("IP Family Policy", policy);
    }
    let list = |texts: Option<&Vec<String>>| {
        let joined = texts.map(|texts| texts.join(", ")).unwrap_or_default();
        if joined.is_empty() { "<none>".to_owned() } else { joined }
    };
    text.field("IP Families", &list(spec.ip_families.as_ref()));
    text.field("IP", spec.cluster_ip.as_deref().filter(|ip| !ip.is_empty()).unwrap_or("<none>"));
    text.field("IPs", &list(spec.cluster_ips.as_ref()));
    if let Some(external) = spec.external_ips.as_ref().filter(|external| !external.is_empty()) {
        text.field("External IPs", &external.join(", "));
    }
    if let Some(name) = spec.external_name.as_ref().filter(|name| !name.is_empty()) {
        text.field("External Name", name);
    }
}

fn write_port(text: &mut Description, port: &ServicePort, slices: &[EndpointSlice], unserved: &[Unserved]) {
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let name = port.name.as_deref().unwrap_or("<unset>");
    text.field("Port", &format!("{name}  {}/{protocol}", port.port));
    let target = match &port.target_port {
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(name)) => name.clone(),
        None => port.port.to_string(),
    };
    text.field("TargetPort", &format!("{target}/{protocol}"));
    if let Some(node_port) = port.node_port {
        text.field("NodePort", &format!("{name}  {node_port}/{protocol}"));
    }
    let found = ready_endpoints(port, slices);
    let more = found.len().saturating_sub(MOST_ENDPOINTS);
    let mut told = found.into_iter().take(MOST_ENDPOINTS).collect::<Vec<_>>().join(",");
    if more > 0 {
        told = format!("{told} + {more} more...");
    }
    if told.is_empty() {
        let this = Some(format!("{}/{protocol}", port.port));
        let reason = unserved.iter().find(|unserved| unserved.port == this).map(|unserved| format!(" ({})", unserved.reason));
        told = format!("<none>{}", reason.unwrap_or_default());
    }
    text.field("Endpoints", &told);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn service_is_described() {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u-1", "labels": {"app": "web"}, "annotations": {"podstead.dev/source": "site", "a": "b"},
            },
            "spec": {
                "type": "LoadBalancer", "clusterIP": "10.202.0.7", "clusterIPs": ["10.202.0.7", "fd70::7"], "ipFamilies": ["IPv4", "IPv6"],
                "ipFamilyPolicy": "PreferDualStack", "selector": {"app": "web", "tier": "front"},
                "ports": [{"name": "http", "port": 80, "targetPort": "web", "nodePort": 30080}, {"name": "dns", "port": 53, "protocol": "UDP"}],
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        });
        let slice = |family: &str, address: &str, ready: bool| -> EndpointSlice {
            serde_json::from_value(json!({
                "addressType": family, "ports": [{"name": "http", "port": 8080}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
            }))
            .unwrap()
        };
        let slices = [slice("IPv4", "10.201.0.5", true), slice("IPv4", "10.201.0.6", false), slice("IPv6", "fd70::5", true)];
        let dns = Unserved {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            port: Some("53/UDP".to_owned()),
            reason: "no pod is ready: a".to_owned(),
        };
        insta::assert_snapshot!(describe(&service, &slices, &[dns], &["podstead.dev/source"]));
    }
}
