//! Rules for Services, Namespaces and EndpointSlices, as the API server checks them (S2). All problems of an object are listed at once.

mod addresses;
mod endpoint_slice;
mod exposure;
mod ports;
mod service;
mod service_type;
mod without_effect;

#[cfg(test)]
mod tests;

pub use endpoint_slice::endpoint_slice;
pub(crate) use exposure::SOURCE_RANGES;
pub use service::service;
pub use without_effect::{HOST_CLASS, PROXY_NAME_LABEL, without_effect};

use crate::grammar;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_workload::problem::{Problem, Problems};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Lists all problems of a Namespace: only its name and labels have a meaning here.
pub fn namespace(object: &Namespace) -> Vec<Problem> {
    let mut found = Problems::default();
    check_name(&object.metadata, &mut found);
    if object.metadata.namespace.as_deref().is_some_and(|namespace| !namespace.is_empty()) {
        found.forbidden("metadata.namespace", "a Namespace is in no namespace");
        found.hint("remove the field");
    }
    check_labels("metadata.labels", object.metadata.labels.as_ref(), &mut found);
    found.into_vec()
}

/// A name that is a DNS label.
fn check_name(metadata: &ObjectMeta, found: &mut Problems) {
    match metadata.name.as_deref() {
        None | Some("") => found.required("metadata.name", ""),
        Some(name) => check(grammar::dns_label(name), "metadata.name", name, found),
    }
}

fn check_namespace(metadata: &ObjectMeta, found: &mut Problems) {
    if let Some(namespace) = metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        check(grammar::dns_label(namespace), "metadata.namespace", namespace, found);
    }
}

fn check_labels(field: &str, labels: Option<&BTreeMap<String, String>>, found: &mut Problems) {
    for (key, value) in labels.into_iter().flatten() {
        check(grammar::qualified_name(key), field, key, found);
        check(grammar::label_value(value), &format!("{field}[{key}]"), value, found);
    }
}

fn check(result: Result<(), &'static str>, field: &str, value: &str, found: &mut Problems) {
    if let Err(rule) = result {
        found.invalid(field, value, rule);
    }
}

fn check_one_of(field: &str, value: Option<&str>, allowed: &[&str], found: &mut Problems) {
    if let Some(value) = value.filter(|value| !allowed.contains(value)) {
        found.not_one_of(field, value, allowed);
    }
}

/// The address in a text, if it is one.
fn check_address(field: &str, text: &str, found: &mut Problems) -> Option<IpAddr> {
    let address = text.parse().ok();
    if address.is_none() {
        found.invalid(field, text, "must be an IP address such as 10.9.8.7 or 2001:db8::ffff");
    }
    address
}

/// An address of another host: neither unspecified nor this host's own nor one link's.
fn check_common_address(field: &str, text: &str, found: &mut Problems) {
    let Some(address) = check_address(field, text, found) else { return };
    let is_of_link = match address {
        IpAddr::V4(address) => address.is_link_local() || address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.is_unicast_link_local() || address.segments()[0] & 0xff0f == 0xff02,
    };
    if address.is_unspecified() || address.is_loopback() || is_of_link {
        found.invalid(field, text, "may not be an unspecified, loopback or link-local address");
    }
}
