//! Reasons why a connection cannot be traced, as far as the daemon knows them.

use crate::client::Client;
use crate::object_type::ObjectType;
use crate::workloads::{FindWorkloadError, find_object, one_pod};
use podstead_network::trace::TraceError;
use podstead_pod::Pod;
use podstead_service::name::ObjectName;
use serde_json::Value;

/// The verdict on an end that has no address of podstead's own network; `None` where the error says all, and if the daemon does not answer.
pub(super) async fn reason(client: &Client, error: &TraceError) -> Option<String> {
    match error {
        TraceError::NoPod(name) => pod(client, name).await,
        TraceError::NoServiceNamed(name) => match find_service(client, name).await {
            Ok(found) => Some(of_service(name, &found)),
            Err(error) => error.client().is_none().then(|| error.to_string()),
        },
        TraceError::NoDestination(name) => match service(client, name).await.ok()? {
            Some(found) => Some(of_service(name, &found)),
            None => match one_pod(client, &name.name, Some(&name.namespace)).await {
                Ok(pod) => Some(of_pod(name, &pod)),
                Err(FindWorkloadError::Client(_)) => None,
                Err(_) => Some(format!("neither a Service nor a pod has the name {name}")),
            },
        },
        TraceError::NoEndpoint(..)
        | TraceError::NoService(_)
        | TraceError::NoPodAt(_)
        | TraceError::NoFamily
        | TraceError::Records(_) => None,
    }
}

/// The Service of this name, if there is one.
async fn service(client: &Client, name: &ObjectName) -> Result<Option<Value>, FindWorkloadError> {
    match find_service(client, name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.client().is_some() => Err(error),
        Err(_) => Ok(None),
    }
}

async fn find_service(client: &Client, name: &ObjectName) -> Result<Value, FindWorkloadError> {
    find_object(client, ObjectType::Service, &name.name, Some(&name.namespace)).await
}

async fn pod(client: &Client, name: &ObjectName) -> Option<String> {
    match one_pod(client, &name.name, Some(&name.namespace)).await {
        Ok(pod) => Some(of_pod(name, &pod)),
        Err(FindWorkloadError::Client(_)) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// The verdict on a pod without address of podstead's own network (pure).
fn of_pod(name: &ObjectName, pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let address = status.and_then(|status| status.pod_ip.as_deref());
    if pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true) {
        let at = address.map(|address| format!(", at {address}")).unwrap_or_default();
        return format!(
            "pod {name} is on the host's network{at}: its connections are those of this host, and NetworkPolicies do not apply to it"
        );
    }
    match address {
        Some(address) => format!(
            "CNI plugins connect pod {name} ({address}): NetworkPolicies are not enforced for it, and it reaches addresses of Services where this host is its router; trace a connection to its address instead"
        ),
        None => {
            let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
            format!(
                "pod {name} has no address (phase {phase}): podstead describe pod {} -n {} shows more",
                name.name, name.namespace
            )
        }
    }
}

/// The verdict on a Service without address (pure).
fn of_service(name: &ObjectName, service: &Value) -> String {
    let spec = &service["spec"];
    match (spec["type"].as_str(), spec["clusterIP"].as_str()) {
        (Some("ExternalName"), _) => {
            let target = spec["externalName"].as_str().unwrap_or_default();
            format!("Service {name} has no address: it is another name for {target}; trace a connection to an address of that")
        }
        (_, Some("None")) => {
            format!(
                "Service {name} is headless: its name leads to the addresses of its pods; trace a connection to one of these with pod/NAME"
            )
        }
        _ => format!("Service {name} has no address: podstead describe service {} -n {} shows more", name.name, name.namespace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name() -> ObjectName {
        ObjectName { namespace: "shop".into(), name: "web".into() }
    }

    #[test]
    fn pods_outside_of_the_network_are_told_apart() {
        let said = |spec: Value, status: Value| {
            let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": spec, "status": status})).unwrap();
            of_pod(&name(), &pod)
        };
        let spec = || json!({"containers": []});
        let on_host = said(json!({"containers": [], "hostNetwork": true}), json!({"podIP": "192.0.2.2"}));
        assert!(on_host.contains("is on the host's network, at 192.0.2.2"), "{on_host}");
        assert!(said(spec(), json!({"podIP": "10.88.0.2"})).starts_with("CNI plugins connect pod shop/web (10.88.0.2)"));
        assert!(said(spec(), json!({"phase": "Pending"})).contains("has no address (phase Pending)"));
    }

    #[test]
    fn services_without_address_are_told_apart() {
        let said = |spec: Value| of_service(&name(), &json!({"spec": spec}));
        assert!(said(json!({"type": "ExternalName", "externalName": "example.org"})).contains("another name for example.org"));
        assert!(said(json!({"clusterIP": "None"})).contains("is headless"));
        assert!(said(json!({"type": "ClusterIP"})).contains("podstead describe service web -n shop"));
    }
}
