//! Rules for a Service.

use super::service_type::type_of;
use super::{addresses, check, check_common_address, check_labels, check_name, check_namespace, check_one_of, exposure, ports};
use crate::grammar;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use podstead_workload::problem::{Problem, Problems};

/// Seconds of a day: the longest bond of a client to an endpoint.
const LONGEST_TIMEOUT: i32 = 86_400;
/// Letters of one part of a name in DNS.
const LONGEST_LABEL: usize = 63;
/// Items of one list: a Service of a hostile repository must not use up a host's memory.
const MOST_ITEMS: usize = 1000;

/// Lists all problems of a Service. `status` is ignored.
pub fn service(object: &Service) -> Vec<Problem> {
    let mut found = Problems::default();
    check_name(&object.metadata, &mut found);
    check_namespace(&object.metadata, &mut found);
    check_labels("metadata.labels", object.metadata.labels.as_ref(), &mut found);
    match &object.spec {
        None => found.required("spec", ""),
        Some(spec) => {
            check_spec(spec, &mut found);
            exposure::check_ranges(object, spec, &mut found);
        }
    }
    found.into_vec()
}

fn check_spec(spec: &ServiceSpec, found: &mut Problems) {
    check_one_of("spec.type", Some(type_of(spec)), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], found);
    check_labels("spec.selector", spec.selector.as_ref(), found);
    check_external_name(spec, found);
    addresses::check(spec, found);
    ports::check(spec, found);
    exposure::check_spec(spec, found);
    check_affinity(spec, found);
    let external = spec.external_ips.iter().flatten();
    found.at_most("spec.externalIPs", external.clone().count(), MOST_ITEMS);
    for (index, address) in external.enumerate() {
        check_common_address(&format!("spec.externalIPs[{index}]"), address, found);
    }
    check_one_of("spec.internalTrafficPolicy", spec.internal_traffic_policy.as_deref(), &["Cluster", "Local"], found);
    let distributions = ["PreferClose", "PreferSameNode", "PreferSameZone"];
    check_one_of("spec.trafficDistribution", spec.traffic_distribution.as_deref(), &distributions, found);
}

fn check_external_name(spec: &ServiceSpec, found: &mut Problems) {
    if type_of(spec) != "ExternalName" {
        return;
    }
    match spec.external_name.as_deref().map(|name| name.strip_suffix('.').unwrap_or(name)) {
        None | Some("") => {
            found.required("spec.externalName", "");
            found.hint("write the name that clients shall reach instead");
        }
        Some(name) => {
            check(grammar::dns_subdomain(name), "spec.externalName", name, found);
            // Kubernetes accepts it, and nobody can resolve it.
            if name.split('.').any(|label| label.len() > LONGEST_LABEL) {
                found.invalid(
                    "spec.externalName",
                    name,
                    format_args!("each part between dots must have at most {LONGEST_LABEL} letters"),
                );
            }
        }
    }
}

fn check_affinity(spec: &ServiceSpec, found: &mut Problems) {
    let affinity = spec.session_affinity.as_deref();
    check_one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"], found);
    let timeout = spec.session_affinity_config.as_ref().map(|config| config.client_ip.as_ref().and_then(|ip| ip.timeout_seconds));
    if affinity == Some("ClientIP") {
        if let Some(seconds) = timeout.flatten().filter(|seconds| !(1..=LONGEST_TIMEOUT).contains(seconds)) {
            let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            found.invalid(field, seconds, format_args!("must be greater than 0 and less than {LONGEST_TIMEOUT}"));
        }
    } else if timeout.is_some() {
        found.forbidden("spec.sessionAffinityConfig", "must not be set when session affinity is None");
        found.hint("write spec.sessionAffinity: ClientIP");
    }
}
