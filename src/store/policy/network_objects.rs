//! Rules of `allow` for Services, EndpointSlices, NetworkPolicies and Namespaces: they say who reaches pods, and may take addresses and ports of the host.

use super::{CODE, of_namespace, violation};
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use podstead_pod::objects::NetworkObject;
use podstead_pod::{FieldProblem, Severity};
use podstead_settings::Allow;

/// Returns the violations of an object.
pub(crate) fn of_network_object(object: &NetworkObject, namespace: &str, allow: &Allow) -> Vec<FieldProblem> {
    let mut found = of_namespace(namespace, allow);
    match object {
        NetworkObject::Service(service) => found.extend(of_service(service, allow)),
        // The host would connect its clients to any address, as a pod on its network can.
        NetworkObject::EndpointSlice(_) if !allow.host_network() => {
            found.push(violation("kind", "an EndpointSlice".to_owned(), "hostNetwork"));
        }
        NetworkObject::EndpointSlice(_) => {}
        // It selects pods of this source only.
        NetworkObject::NetworkPolicy(_) => {}
        // Policies of other sources tell namespaces by their labels.
        NetworkObject::Namespace(_) => return vec![labels_of_namespace()],
    }
    found
}

fn of_service(service: &Service, allow: &Allow) -> Vec<FieldProblem> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let mut found = Vec::new();
    let written = spec.cluster_ip.iter().map(|address| ("spec.clusterIP".to_owned(), address));
    let several = spec.cluster_ips.iter().flatten().enumerate();
    let several = several.map(|(index, address)| (format!("spec.clusterIPs[{index}]"), address));
    for (field, address) in written.chain(several).filter(|(_, address)| !["", "None"].contains(&address.as_str())) {
        // It could be the one that a Service of another source asks for later.
        found.push(chosen(field, format!("the address {address:?}"), "remove the field: podstead chooses an address"));
    }
    let is_load_balancer = spec.type_.as_deref() == Some("LoadBalancer");
    let has_node_ports =
        spec.type_.as_deref() == Some("NodePort") || (is_load_balancer && spec.allocate_load_balancer_node_ports != Some(false));
    let has_own_ports = is_load_balancer || spec.external_ips.iter().flatten().next().is_some();
    found.extend(of_ports(spec, is_load_balancer, has_own_ports, has_node_ports, allow));
    found
}

fn of_ports(
    spec: &ServiceSpec,
    is_load_balancer: bool,
    has_own_ports: bool,
    has_node_ports: bool,
    allow: &Allow,
) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    let is_allowed = |port: i32| u16::try_from(port).is_ok_and(|port| allow.channels().host_port(port));
    for (index, port) in spec.ports.iter().flatten().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        if has_own_ports && !is_allowed(port.port) {
            found.push(violation(&field("port"), format!("host port {}", port.port), "hostPorts"));
        }
        match port.node_port.filter(|node_port| *node_port != 0) {
            Some(node_port) if !is_allowed(node_port) => {
                found.push(violation(&field("nodePort"), format!("host port {node_port}"), "hostPorts"));
            }
            None if has_node_ports => {
                let hint = if is_load_balancer {
                    "write a port of allow.hostPorts, or allocateLoadBalancerNodePorts: false"
                } else {
                    "write a port of allow.hostPorts"
                };
                found.push(chosen(field("nodePort"), "a host port that podstead chooses".to_owned(), hint));
            }
            Some(_) | None => {}
        }
    }
    found
}

fn labels_of_namespace() -> FieldProblem {
    let message = "this source may not label namespaces: NetworkPolicies of others tell them by their labels".to_owned();
    let hint = "write the Namespace in a source without allow, or select it by the label kubernetes.io/metadata.name, which every namespace has";
    FieldProblem {
        severity: Severity::Error,
        code: CODE.to_owned(),
        field: "kind".to_owned(),
        message,
        hint: Some(hint.to_owned()),
    }
}

fn chosen(field: String, what: String, hint: &str) -> FieldProblem {
    let message = format!("this source may not use {what}");
    FieldProblem { severity: Severity::Error, code: CODE.to_owned(), field, message, hint: Some(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::violations;

    fn service(spec: &str) -> String {
        format!("apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec:\n  selector: {{app: web}}\n{spec}")
    }

    #[test]
    fn restricted_source_asks_for_no_address() {
        assert_eq!(violations("{}", &service("  ports: [{port: 80}]\n")), [""; 0]);
        assert_eq!(violations("{}", &service("  clusterIP: None\n")), [""; 0]);
        assert_eq!(violations("{}", &service("  clusterIP: 10.202.0.10\n  ports: [{port: 80}]\n")), ["6 spec.clusterIP"]);
    }

    #[test]
    fn ports_of_the_host_have_to_be_allowed() {
        let node_port = service("  type: NodePort\n  ports: [{port: 80, nodePort: 30080}]\n");
        assert_eq!(violations("{}", &node_port), ["7 spec.ports[0].nodePort"]);
        assert_eq!(violations("{hostPorts: [30080]}", &node_port), [""; 0]);
        let any = service("  type: NodePort\n  ports:\n  - port: 80\n");
        assert_eq!(violations("{hostPorts: [30000-32767]}", &any).len(), 1);
        let balanced = service("  type: LoadBalancer\n  allocateLoadBalancerNodePorts: false\n  ports: [{port: 80}]\n");
        assert_eq!(violations("{}", &balanced), ["8 spec.ports[0].port"]);
        assert_eq!(violations("{hostPorts: [80]}", &balanced), [""; 0]);
        let external = service("  externalIPs: [192.0.2.2]\n  ports: [{port: 80}]\n");
        assert_eq!(violations("{}", &external), ["7 spec.ports[0].port"]);
        assert_eq!(violations("{hostPorts: [80]}", &external), [""; 0]);
    }

    #[test]
    fn namespaces_are_labelled_by_unrestricted_sources() {
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {purpose: production}}\n";
        assert_eq!(violations("{hostNetwork: true}", namespace), ["2 kind"]);
        let policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: deny}\nspec: {podSelector: {}}\n";
        assert_eq!(violations("{}", policy), [""; 0]);
    }

    #[test]
    fn endpoint_slice_needs_the_network_of_the_host() {
        let slice =
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web}\naddressType: IPv4\nendpoints: []\n";
        assert_eq!(violations("{}", slice), ["2 kind"]);
        assert_eq!(violations("{hostNetwork: true}", slice), [""; 0]);
    }
}
