//! Rules for an EndpointSlice of a source (S16).

use super::{check, check_common_address, check_labels, check_namespace, check_one_of};
use crate::grammar;
use crate::range::Family;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use podstead_workload::problem::{Problem, Problems};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The limits of the API server, but for ports, of which a Service has at most 100 here.
const MOST_ENDPOINTS: usize = 1000;
const MOST_ADDRESSES: usize = 100;
const MOST_PORTS: usize = 100;

/// Lists all problems of an EndpointSlice.
pub fn endpoint_slice(object: &EndpointSlice) -> Vec<Problem> {
    let mut found = Problems::default();
    match object.metadata.name.as_deref() {
        None | Some("") => found.required("metadata.name", ""),
        Some(name) => check(grammar::dns_subdomain(name), "metadata.name", name, &mut found),
    }
    check_namespace(&object.metadata, &mut found);
    check_labels("metadata.labels", object.metadata.labels.as_ref(), &mut found);
    let family: Option<Family> = object.address_type.parse().ok();
    match object.address_type.as_str() {
        "" => found.required("addressType", ""),
        "FQDN" => {
            found.invalid("addressType", "FQDN", "names are not served");
            found.hint("use a Service of type ExternalName");
        }
        other => check_one_of("addressType", Some(other), &["IPv4", "IPv6"], &mut found),
    }
    found.at_most("endpoints", object.endpoints.len(), MOST_ENDPOINTS);
    for (index, endpoint) in object.endpoints.iter().take(MOST_ENDPOINTS).enumerate() {
        check_endpoint(&format!("endpoints[{index}]"), endpoint, family, &mut found);
    }
    check_ports(object, &mut found);
    found.into_vec()
}

fn check_endpoint(path: &str, endpoint: &Endpoint, family: Option<Family>, found: &mut Problems) {
    if endpoint.addresses.is_empty() {
        found.required(format!("{path}.addresses"), "must contain at least 1 address");
    }
    found.at_most(format!("{path}.addresses"), endpoint.addresses.len(), MOST_ADDRESSES);
    for (index, text) in endpoint.addresses.iter().take(MOST_ADDRESSES).enumerate() {
        let field = format!("{path}.addresses[{index}]");
        check_common_address(&field, text, found);
        let is_other = text.parse::<IpAddr>().is_ok_and(|address| family.is_some_and(|family| family != Family::of(address)));
        if is_other {
            found.add(field, "is not of the family in addressType");
        }
    }
    if let Some(name) = &endpoint.hostname {
        check(grammar::dns_label(name), &format!("{path}.hostname"), name, found);
    }
}

fn check_ports(object: &EndpointSlice, found: &mut Problems) {
    let ports = object.ports.as_deref().unwrap_or_default();
    found.at_most("ports", ports.len(), MOST_PORTS);
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().take(MOST_PORTS).enumerate() {
        let field = |name: &str| format!("ports[{index}].{name}");
        let name = port.name.as_deref().unwrap_or_default();
        if !name.is_empty() {
            check(grammar::dns_label(name), &field("name"), name, found);
        }
        if !names.insert(name) {
            found.add(field("name"), format!("duplicate value {name:?}"));
        }
        check_one_of(&field("protocol"), port.protocol.as_deref(), &["SCTP", "TCP", "UDP"], found);
        if let Some(number) = port.port.filter(|number| !(1..=65_535).contains(number)) {
            found.invalid(field("port"), number, "must be between 1 and 65535, inclusive");
        }
    }
}
