//! Templates that only one pod at a time can have (W82).

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};

/// A resource that only one pod of a host can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusive {
    /// A port of the host.
    HostPort(i32),
    /// A claim with the access mode ReadWriteOncePod.
    Claim(String),
}

/// The first thing in the template that only one pod can have.
pub fn of(template: &PodTemplateSpec, is_exclusive_claim: &dyn Fn(&str) -> bool) -> Option<Exclusive> {
    let spec = template.spec.as_ref()?;
    let mut containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let port = containers.find_map(|container| host_port(container, spec));
    let claims = spec.volumes.iter().flatten().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let claim = || claims.map(|claim| &claim.claim_name).find(|name| is_exclusive_claim(name));
    port.map(Exclusive::HostPort).or_else(|| claim().cloned().map(Exclusive::Claim))
}

/// With the host's network, each port of a container is a port of the host.
fn host_port(container: &Container, spec: &PodSpec) -> Option<i32> {
    let on_host = spec.host_network.unwrap_or_default();
    let ports = container.ports.iter().flatten();
    ports.filter_map(|port| port.host_port.or(on_host.then_some(port.container_port))).find(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(spec: serde_json::Value) -> PodTemplateSpec {
        serde_json::from_value(serde_json::json!({ "spec": spec })).unwrap()
    }

    #[test]
    fn ports_and_claims_of_one_pod_are_found() {
        let of = |spec| of(&template(spec), &|name| name == "single");
        let container = |ports: serde_json::Value| serde_json::json!([{"name": "c", "ports": ports}]);
        assert_eq!(of(serde_json::json!({"containers": container(serde_json::json!([{"containerPort": 80}]))})), None);
        assert_eq!(
            of(serde_json::json!({"containers": container(serde_json::json!([{"containerPort": 80, "hostPort": 8080}]))})),
            Some(Exclusive::HostPort(8080))
        );
        assert_eq!(
            of(serde_json::json!({"hostNetwork": true, "containers": container(serde_json::json!([{"containerPort": 80}]))})),
            Some(Exclusive::HostPort(80))
        );
        let volumes = |claim: &str| serde_json::json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
        assert_eq!(of(serde_json::json!({"containers": [], "volumes": volumes("shared")})), None);
        assert_eq!(
            of(serde_json::json!({"containers": [], "volumes": volumes("single")})),
            Some(Exclusive::Claim("single".to_owned()))
        );
    }
}
