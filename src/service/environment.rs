//! Variables with the addresses of Services, as containers linked by Docker had them (S26).

use crate::allocate::Grants;
use crate::definition::{Definition, Role};
use crate::name::DEFAULT_NAMESPACE;
use std::net::{IpAddr, SocketAddr};

/// The Service of the API server, which pods know even without links.
const API_SERVER: &str = "kubernetes";

/// The variables of a pod of `namespace`: Services in the order of their names. The pod's own variables win over them.
pub fn variables<'a>(
    services: impl IntoIterator<Item = &'a Definition>,
    grants: &Grants,
    namespace: &str,
    has_links: bool,
) -> Vec<(String, String)> {
    let is_linked = |service: &&Definition| {
        let is_api_server = service.name.namespace == DEFAULT_NAMESPACE && service.name.name == API_SERVER;
        is_api_server || (has_links && service.name.namespace == namespace)
    };
    let mut linked: Vec<&Definition> = services.into_iter().filter(is_linked).collect();
    // One of the pod's own namespace wins over that of the namespace default.
    linked.sort_by_key(|service| (&service.name.name, service.name.namespace != namespace));
    linked.dedup_by_key(|service| &service.name.name);
    linked.iter().flat_map(|service| of_service(service, grants)).collect()
}

fn of_service(service: &Definition, grants: &Grants) -> Vec<(String, String)> {
    let address = grants.get(&service.name).and_then(|grant| grant.cluster_ips.first());
    let (Role::Cluster { .. }, Some(address), Some(first)) = (&service.role, address, service.ports.first()) else {
        return Vec::new();
    };
    let prefix = variable_part(&service.name.name);
    let mut variables =
        vec![(format!("{prefix}_SERVICE_HOST"), address.to_string()), (format!("{prefix}_SERVICE_PORT"), first.number.to_string())];
    for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
        variables.push((format!("{prefix}_SERVICE_PORT_{}", variable_part(&port.name)), port.number.to_string()));
    }
    for (index, port) in service.ports.iter().enumerate() {
        let protocol = port.protocol.to_string();
        let url = url(&protocol, *address, port.number);
        if index == 0 {
            variables.push((format!("{prefix}_PORT"), url.clone()));
        }
        let prefix = format!("{prefix}_PORT_{}_{protocol}", port.number);
        variables.push((prefix.clone(), url));
        variables.push((format!("{prefix}_PROTO"), protocol.to_lowercase()));
        variables.push((format!("{prefix}_PORT"), port.number.to_string()));
        variables.push((format!("{prefix}_ADDR"), address.to_string()));
    }
    variables
}

/// An IPv6 address stands in brackets.
fn url(protocol: &str, address: IpAddr, port: u16) -> String {
    format!("{}://{}", protocol.to_lowercase(), SocketAddr::new(address, port))
}

fn variable_part(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocate::Grant;
    use crate::testing::definition;

    fn grants(services: &[Definition], address: &str) -> Grants {
        let grant = Grant { cluster_ips: vec![address.parse().unwrap()], ..Grant::default() };
        services.iter().map(|service| (service.name.clone(), grant.clone())).collect()
    }

    #[test]
    fn service_has_the_variables_of_kubernetes() {
        let ports = "ports: [{name: http-web, port: 80}, {name: d, port: 53, protocol: UDP}]";
        let services = [definition("web-a", ports)];
        let variables = variables(&services, &grants(&services, "fd00::7"), "shop", true);
        let lines: Vec<String> = variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            lines,
            [
                "WEB_A_SERVICE_HOST=fd00::7",
                "WEB_A_SERVICE_PORT=80",
                "WEB_A_SERVICE_PORT_HTTP_WEB=80",
                "WEB_A_SERVICE_PORT_D=53",
                "WEB_A_PORT=tcp://[fd00::7]:80",
                "WEB_A_PORT_80_TCP=tcp://[fd00::7]:80",
                "WEB_A_PORT_80_TCP_PROTO=tcp",
                "WEB_A_PORT_80_TCP_PORT=80",
                "WEB_A_PORT_80_TCP_ADDR=fd00::7",
                "WEB_A_PORT_53_UDP=udp://[fd00::7]:53",
                "WEB_A_PORT_53_UDP_PROTO=udp",
                "WEB_A_PORT_53_UDP_PORT=53",
                "WEB_A_PORT_53_UDP_ADDR=fd00::7",
            ]
        );
    }

    #[test]
    fn only_linked_services_with_address_have_variables() {
        let mut api = definition("kubernetes", "ports: [{port: 443}]");
        api.name.namespace = DEFAULT_NAMESPACE.into();
        let services = [definition("b", "ports: [{port: 1}]"), definition("h", "clusterIP: None, ports: [{port: 1}]"), api];
        let grants = grants(&services, "10.202.0.9");
        let hosts = |namespace: &str, has_links: bool| -> Vec<String> {
            let found = variables(&services, &grants, namespace, has_links);
            found.into_iter().map(|(name, _)| name).filter(|name| name.ends_with("_HOST")).collect()
        };
        assert_eq!(hosts("shop", true), ["B_SERVICE_HOST", "KUBERNETES_SERVICE_HOST"]);
        assert_eq!(hosts("shop", false), ["KUBERNETES_SERVICE_HOST"]);
        assert_eq!(hosts("other", true), ["KUBERNETES_SERVICE_HOST"]);
        assert_eq!(variables(&services, &Grants::new(), "shop", true), []);
    }
}
