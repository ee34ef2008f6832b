//! Rules for the ports of a Service.

use super::service_type::{is_headless, type_of};
use super::{check as check_rule, check_one_of};
use crate::grammar;
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_workload::problem::Problems;
use std::collections::BTreeSet;

/// Ports of one Service. **Stricter than Kubernetes**, which has no limit: one object must not use up a host's memory.
const MOST_PORTS: usize = 100;
/// The kubelet's port, which the API server does not let a load balancer expose.
const KUBELET_PORT: i32 = 10_250;

/// Checks the list and each of its items.
pub(super) fn check(spec: &ServiceSpec, found: &mut Problems) {
    let ports = spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !is_headless(spec) && type_of(spec) != "ExternalName" {
        found.required("spec.ports", "");
        found.hint("list the ports, or write clusterIP: None for names only");
    }
    found.at_most("spec.ports", ports.len(), MOST_PORTS);
    let (mut names, mut numbers, mut node_ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        check_name(port, ports.len() > 1, &field("name"), &mut names, found);
        check_numbers(port, &field, found);
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        check_one_of(&field("protocol"), Some(protocol), &["SCTP", "TCP", "UDP"], found);
        if !numbers.insert((protocol, port.port)) {
            found.add(field("port"), format!("duplicate value \"{}/{protocol}\"", port.port));
            found.hint("a protocol and a port lead to one target");
        }
        if let Some(protocol) = port.app_protocol.as_deref() {
            check_rule(grammar::qualified_name(protocol), &field("appProtocol"), protocol, found);
        }
        let Some(node_port) = port.node_port.filter(|node_port| *node_port != 0) else { continue };
        if matches!(type_of(spec), "ClusterIP" | "ExternalName") {
            found.forbidden(field("nodePort"), format_args!("may not be used when `type` is '{}'", type_of(spec)));
            found.hint("write spec.type: NodePort");
        } else if !(1..=65_535).contains(&node_port) {
            found.invalid(field("nodePort"), node_port, "must be between 1 and 65535, inclusive");
        } else if !node_ports.insert((protocol, node_port)) {
            found.add(field("nodePort"), format!("duplicate value {node_port}"));
        }
        if type_of(spec) == "LoadBalancer" && port.port == KUBELET_PORT {
            found.invalid(field("port"), port.port, "may not expose port 10250 externally since it is used by kubelet");
        }
    }
}

fn check_name<'a>(port: &'a ServicePort, has_others: bool, field: &str, names: &mut BTreeSet<&'a str>, found: &mut Problems) {
    match port.name.as_deref().unwrap_or_default() {
        "" if has_others => {
            found.required(field, "");
            found.hint("several ports need names");
        }
        "" => {}
        name => {
            check_rule(grammar::dns_label(name), field, name, found);
            if !names.insert(name) {
                found.add(field, format!("duplicate value {name:?}"));
            }
        }
    }
}

fn check_numbers(port: &ServicePort, field: &dyn Fn(&str) -> String, found: &mut Problems) {
    let is_port = |number: i32| (1..=65_535).contains(&number);
    if !is_port(port.port) {
        found.invalid(field("port"), port.port, "must be between 1 and 65535, inclusive");
    }
    match &port.target_port {
        // The API server's default for both is the port.
        None | Some(IntOrString::Int(0)) => {}
        Some(IntOrString::String(name)) if name.is_empty() => {}
        Some(IntOrString::Int(number)) if is_port(*number) => {}
        Some(IntOrString::Int(number)) => found.invalid(field("targetPort"), number, "must be between 1 and 65535, inclusive"),
        Some(IntOrString::String(name)) => check_rule(grammar::port_name(name), &field("targetPort"), name, found),
    }
}
