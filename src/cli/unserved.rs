//! Services that nobody answers, with the reason. **Pure**, but for [`gather`].

use super::client::{Client, ClientError, Target};
use super::endpoints::{ready_endpoints, slices_of};
use super::object_type::ObjectType;
use super::pods::{self, ServedList};
use super::workloads::metadata;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use podstead_service::absence::absence;
use podstead_service::definition::{Definition, Role};
use podstead_service::endpoints::{Backend, SERVICE_NAME_LABEL};
use serde_json::Value;

/// A port of a Service without a ready endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unserved {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The port, such as `80/TCP`; `None` if the Service has no ports.
    pub(super) port: Option<String>,
    pub(super) reason: String,
}

/// Asks the daemon for all Services that nobody answers; none where the daemon is older than Services are.
pub(super) async fn gather(client: &Client, pods: &[k8s_openapi::api::core::v1::Pod]) -> Result<Vec<Unserved>, ClientError> {
    let services = match client.get::<ServedList>(ObjectType::Service.collection(None)).await {
        Ok(list) => list.items,
        Err(ClientError::Refused { code: 404, .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if services.is_empty() {
        return Ok(Vec::new());
    }
    let slices: ServedList = client.get(Target::new("/apis/discovery.k8s.io/v1", &["endpointslices"])).await?;
    let slices: Result<Vec<EndpointSlice>, _> = slices.items.into_iter().map(serde_json::from_value).collect();
    let slices = slices.map_err(|source| ClientError::NotUnderstood { source })?;
    let pods: Vec<Backend> = pods.iter().map(Backend::of).collect();
    Ok(services.iter().flat_map(|service| unserved(service, &slices, &pods)).collect())
}

/// The same for one Service, whose pods are asked for, too.
pub(super) async fn of_service(client: &Client, service: &Value) -> Result<Vec<Unserved>, ClientError> {
    let slices = slices_of(client, service).await?;
    let pods: Vec<Backend> = pods::list(client, Some(metadata(service, "namespace"))).await?.iter().map(Backend::of).collect();
    Ok(unserved(service, &slices, &pods))
}

/// The ports of a Service without a ready endpoint. `slices` and `pods` may be of other Services and namespaces, too.
fn unserved(service: &Value, slices: &[EndpointSlice], pods: &[Backend]) -> Vec<Unserved> {
    let [namespace, name] = ["namespace", "name"].map(|field| metadata(service, field).to_owned());
    let Ok(typed) = serde_json::from_value::<Service>(service.clone()) else { return Vec::new() };
    let Ok(definition) = Definition::of(&typed) else { return Vec::new() };
    if let Role::ExternalName { .. } = definition.role {
        return Vec::new();
    }
    let is_own = |slice: &&EndpointSlice| {
        let of = slice.metadata.labels.as_ref().and_then(|labels| labels.get(SERVICE_NAME_LABEL));
        of == Some(&name) && slice.metadata.namespace.as_deref() == Some(namespace.as_str())
    };
    let own: Vec<EndpointSlice> = slices.iter().filter(is_own).cloned().collect();
    let pods: Vec<Backend> = pods.iter().filter(|pod| pod.name.namespace == namespace).cloned().collect();
    let found = |port: Option<String>, reason: String| Unserved { namespace: namespace.clone(), name: name.clone(), port, reason };
    let written = typed.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    if definition.ports.is_empty() {
        let is_served = own.iter().any(|slice| !slice.endpoints.is_empty());
        return if is_served { Vec::new() } else { vec![found(None, absence(&definition, None, &pods))] };
    }
    let lacking = definition.ports.iter().zip(written).filter(|(_, port)| ready_endpoints(port, &own).is_empty());
    let told = |port: &podstead_service::definition::Port| Some(format!("{}/{}", port.number, port.protocol));
    lacking.map(|(port, _)| found(told(port), absence(&definition, Some(port), &pods))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service(name: &str, spec: Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    fn reasons(service: &Value, slices: &[EndpointSlice]) -> Vec<(Option<String>, String)> {
        unserved(service, slices, &[]).into_iter().map(|found| (found.port, found.reason)).collect()
    }

    #[test]
    fn ports_without_endpoints_are_found() {
        let slice = |namespace: &str| -> EndpointSlice {
            serde_json::from_value(json!({
                "metadata": {"name": "web-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4", "ports": [{"name": "a", "port": 8080}], "endpoints": [{"addresses": ["10.201.0.8"]}],
            }))
            .unwrap()
        };
        let web =
            service("web", json!({"selector": {"app": "web"}, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}));
        let none = "no pod of namespace shop has the labels app=web".to_owned();
        assert_eq!(reasons(&web, &[slice("shop")]), [(Some("81/TCP".to_owned()), none.clone())]);
        assert_eq!(reasons(&web, &[slice("other")]).len(), 2, "slices of another namespace");
        let headless = service("web", json!({"clusterIP": "None", "selector": {"app": "web"}}));
        assert_eq!(reasons(&headless, &[]), [(None, none)]);
        let external = service("web", json!({"type": "ExternalName", "externalName": "example.org"}));
        assert_eq!(reasons(&external, &[]), []);
    }
}
