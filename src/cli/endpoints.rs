//! EndpointSlices of a Service, as the daemon serves them.

use super::client::{Client, ClientError, Target};
use super::pods::ServedList;
use super::workloads::metadata;
use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use podstead_service::endpoints::SERVICE_NAME_LABEL;
use serde_json::Value;

/// The EndpointSlices of a Service.
pub(super) async fn slices_of(client: &Client, service: &Value) -> Result<Vec<EndpointSlice>, ClientError> {
    let namespaces = "/apis/discovery.k8s.io/v1/namespaces";
    let target = Target::new(namespaces, &[metadata(service, "namespace"), "endpointslices"]);
    let selector = format!("{SERVICE_NAME_LABEL}={}", metadata(service, "name"));
    let list: ServedList = client.get(target.with("labelSelector", &selector)).await?;
    let typed = list.items.into_iter().map(serde_json::from_value);
    typed.collect::<Result<_, _>>().map_err(|source| ClientError::NotUnderstood { source })
}

/// Addresses and ports of the ready endpoints of a port.
pub(super) fn ready_endpoints(port: &ServicePort, slices: &[EndpointSlice]) -> Vec<String> {
    let mut found = Vec::new();
    for slice in slices {
        let is_same = |name: Option<&str>| name.unwrap_or_default() == port.name.as_deref().unwrap_or_default();
        let number = slice.ports.iter().flatten().find(|candidate| is_same(candidate.name.as_deref())).and_then(|port| port.port);
        let Some(number) = number else { continue };
        let is_ready = |ready: Option<bool>| ready != Some(false);
        let ready = slice
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.conditions.as_ref().is_none_or(|conditions| is_ready(conditions.ready)));
        found.extend(ready.flat_map(|endpoint| &endpoint.addresses).map(|address| match address.contains(':') {
            true => format!("[{address}]:{number}"),
            false => format!("{address}:{number}"),
        }));
    }
    found
}
