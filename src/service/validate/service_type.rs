//! Type of a Service, with its default. **Pure**.

use k8s_openapi::api::core::v1::ServiceSpec;

/// `type`, with its default.
pub(super) fn type_of(spec: &ServiceSpec) -> &str {
    spec.type_.as_deref().filter(|text| !text.is_empty()).unwrap_or("ClusterIP")
}

/// Returns true if `clusterIP` is `None`.
pub(super) fn is_headless(spec: &ServiceSpec) -> bool {
    let first = spec.cluster_ips.iter().flatten().next().map(String::as_str);
    [spec.cluster_ip.as_deref(), first].contains(&Some("None"))
}
