//! Rules for a NetworkPolicy, as the API server checks them (N1). All problems of an object are listed at once.

use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_service::grammar;
use podstead_service::range::Subnet;
use podstead_workload::problem::{Problem, Problems};

/// Rules, peers, ports and excepted blocks of one policy: one of a hostile repository must not use up a host's memory.
const MOST_ITEMS: usize = 1000;

/// Lists all problems of a NetworkPolicy.
pub fn network_policy(object: &NetworkPolicy) -> Vec<Problem> {
    let mut found = Problems::default();
    check_metadata(&object.metadata, &mut found);
    match &object.spec {
        None => found.required("spec", ""),
        Some(spec) => check_spec(spec, &mut found),
    }
    found.into_vec()
}

fn check_metadata(metadata: &ObjectMeta, found: &mut Problems) {
    match metadata.name.as_deref() {
        None | Some("") => found.required("metadata.name", ""),
        Some(name) => check(grammar::dns_subdomain(name), "metadata.name", name, found),
    }
    if let Some(namespace) = metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        check(grammar::dns_label(namespace), "metadata.namespace", namespace, found);
    }
    for (key, value) in metadata.labels.iter().flatten() {
        check(grammar::qualified_name(key), "metadata.labels", key, found);
        check(grammar::label_value(value), &format!("metadata.labels[{key}]"), value, found);
    }
}

fn check(result: grammar::Rule, field: &str, value: &str, found: &mut Problems) {
    if let Err(rule) = result {
        found.invalid(field, value, rule);
    }
}

fn check_spec(spec: &NetworkPolicySpec, found: &mut Problems) {
    if let Some(selector) = &spec.pod_selector {
        check_selector(selector, "spec.podSelector", found);
    }
    let items = items(spec);
    if items > MOST_ITEMS {
        found.at_most("spec", items, MOST_ITEMS);
        found.hint("split the policy: several policies that select the same pods allow what any of them allows");
        return;
    }
    for (index, kind) in spec.policy_types.iter().flatten().enumerate() {
        let field = format!("spec.policyTypes[{index}]");
        if index == 2 {
            found.add("spec.policyTypes", "may not specify more than two policyTypes");
        } else if !["Ingress", "Egress"].contains(&kind.as_str()) {
            found.not_one_of(field, kind, &["Egress", "Ingress"]);
        }
    }
    for (index, rule) in spec.ingress.iter().flatten().enumerate() {
        check_rule(&format!("spec.ingress[{index}]"), "from", rule.from.as_deref(), rule.ports.as_deref(), found);
    }
    for (index, rule) in spec.egress.iter().flatten().enumerate() {
        check_rule(&format!("spec.egress[{index}]"), "to", rule.to.as_deref(), rule.ports.as_deref(), found);
    }
}

/// Number of rules and of what they list.
fn items(spec: &NetworkPolicySpec) -> usize {
    let of = |peers: Option<&Vec<NetworkPolicyPeer>>, ports: Option<&Vec<NetworkPolicyPort>>| {
        let except = |peer: &NetworkPolicyPeer| peer.ip_block.as_ref().and_then(|block| block.except.as_ref()).map_or(0, Vec::len);
        let peers = peers.iter().flat_map(|list| list.iter()).map(|peer| 1 + except(peer)).sum::<usize>();
        1 + peers + ports.map_or(0, Vec::len)
    };
    let ingress = spec.ingress.iter().flatten().map(|rule| of(rule.from.as_ref(), rule.ports.as_ref())).sum::<usize>();
    let egress = spec.egress.iter().flatten().map(|rule| of(rule.to.as_ref(), rule.ports.as_ref())).sum::<usize>();
    ingress + egress
}

fn check_rule(
    field: &str,
    list: &str,
    peers: Option<&[NetworkPolicyPeer]>,
    ports: Option<&[NetworkPolicyPort]>,
    found: &mut Problems,
) {
    for (index, port) in ports.unwrap_or_default().iter().enumerate() {
        check_port(&format!("{field}.ports[{index}]"), port, found);
    }
    for (index, peer) in peers.unwrap_or_default().iter().enumerate() {
        check_peer(&format!("{field}.{list}[{index}]"), peer, found);
    }
}

fn check_port(field: &str, port: &NetworkPolicyPort, found: &mut Problems) {
    if let Some(protocol) = port.protocol.as_deref().filter(|protocol| !["TCP", "UDP", "SCTP"].contains(protocol)) {
        found.not_one_of(format!("{field}.protocol"), protocol, &["SCTP", "TCP", "UDP"]);
    }
    let is_port = |number: i32| (1..=65_535).contains(&number);
    match (&port.port, port.end_port) {
        (None, None) => {}
        (None, Some(_)) => {
            found.required(format!("{field}.port"), "must be specified when `endPort` is");
            found.hint("write the first port of the range");
        }
        (Some(IntOrString::String(name)), end) => {
            check(grammar::port_name(name), &format!("{field}.port"), name, found);
            if let Some(end) = end {
                found.invalid(format!("{field}.endPort"), end, "may not be specified when `port` is a name");
                found.hint("write the number of the first port");
            }
        }
        (Some(IntOrString::Int(number)), end) => {
            if !is_port(*number) {
                found.invalid(format!("{field}.port"), number, "must be between 1 and 65535, inclusive");
            }
            match end {
                Some(end) if !is_port(end) => {
                    found.invalid(format!("{field}.endPort"), end, "must be between 1 and 65535, inclusive");
                }
                Some(end) if end < *number => {
                    found.invalid(format!("{field}.endPort"), end, "must be greater than or equal to `port`");
                }
                Some(_) | None => {}
            }
        }
    }
}

fn check_peer(field: &str, peer: &NetworkPolicyPeer, found: &mut Problems) {
    let selectors = [("podSelector", &peer.pod_selector), ("namespaceSelector", &peer.namespace_selector)];
    for (name, selector) in selectors {
        if let Some(selector) = selector {
            check_selector(selector, &format!("{field}.{name}"), found);
        }
    }
    let has_selector = selectors.iter().any(|(_, selector)| selector.is_some());
    match &peer.ip_block {
        None if !has_selector => {
            found.required(field, "must specify a peer");
            found.hint("write podSelector, namespaceSelector or ipBlock; `podSelector: {}` is all pods of the namespace");
        }
        None => {}
        Some(block) => {
            if has_selector {
                found.forbidden(field, "may not specify both ipBlock and another peer");
                found.hint("write two peers: either of them is allowed then");
            }
            check_block(&format!("{field}.ipBlock"), block, found);
        }
    }
}

fn check_block(field: &str, block: &IPBlock, found: &mut Problems) {
    let field_of_cidr = format!("{field}.cidr");
    let parse = |field: &str, text: &str, found: &mut Problems| -> Option<Subnet> {
        let subnet = text.parse().ok();
        if subnet.is_none() {
            found.invalid(field, text, "must be a CIDR such as 10.9.8.0/24 or 2001:db8::/64");
        }
        subnet
    };
    if block.cidr.is_empty() {
        found.required(field_of_cidr, "");
        return;
    }
    let Some(all) = parse(&field_of_cidr, &block.cidr, found) else { return };
    for (index, text) in block.except.iter().flatten().enumerate() {
        let field = format!("{field}.except[{index}]");
        let Some(except) = parse(&field, text, found) else { continue };
        if !(all.contains(except.first()) && except.prefix() > all.prefix()) {
            found.invalid(field, text, format_args!("must be a strict subset of `cidr` {all}"));
        }
    }
}

fn check_selector(selector: &LabelSelector, field: &str, found: &mut Problems) {
    for (key, value) in selector.match_labels.iter().flatten() {
        check(grammar::qualified_name(key), &format!("{field}.matchLabels"), key, found);
        check(grammar::label_value(value), &format!("{field}.matchLabels[{key}]"), value, found);
    }
    for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        check(grammar::qualified_name(&expression.key), &format!("{field}.key"), &expression.key, found);
        let values = expression.values.as_deref().unwrap_or_default();
        match expression.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                found.required(format!("{field}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                found.forbidden(format!("{field}.values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => found.not_one_of(format!("{field}.operator"), other, &["DoesNotExist", "Exists", "In", "NotIn"]),
        }
        for (number, value) in values.iter().enumerate() {
            check(grammar::label_value(value), &format!("{field}.values[{number}]"), value, found);
        }
    }
}
