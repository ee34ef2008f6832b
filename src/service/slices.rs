//! EndpointSlices as the API shows them (S17).

use crate::definition::Definition;
use crate::endpoints::{Endpoint, SERVICE_NAME_LABEL, ServiceEndpoints};
use crate::range::Family;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint as Shown, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Endpoints in one slice.
const MOST: usize = 100;
/// Label of who made a slice, and its value here.
const MANAGED_BY: (&str, &str) = ("endpointslice.kubernetes.io/managed-by", "podstead.dev");

/// An endpoint with the ports that it has, by their index in the Service.
type WithPorts<'a> = BTreeMap<(IpAddr, Option<String>), (&'a Endpoint, PortNumbers)>;

/// Ports of a Service by their index, with their numbers in pods.
type PortNumbers = Vec<(usize, u16)>;

/// The slices of a Service on the node: by family, and by the ports that pods have, since a port's name may lead to different numbers.
pub fn slices(service: &Definition, endpoints: &ServiceEndpoints, node: &str) -> Vec<EndpointSlice> {
    let mut all = WithPorts::new();
    let uid = |endpoint: &Endpoint| endpoint.pod.as_ref().map(|(_, uid)| uid.clone());
    for endpoint in &endpoints.addresses {
        all.entry((endpoint.socket.ip(), uid(endpoint))).or_insert((endpoint, Vec::new()));
    }
    for (index, list) in endpoints.ports.iter().enumerate() {
        for endpoint in list {
            let entry = all.entry((endpoint.socket.ip(), uid(endpoint))).or_insert((endpoint, Vec::new()));
            entry.1.push((index, endpoint.socket.port()));
        }
    }
    let mut groups: BTreeMap<(Family, PortNumbers), Vec<&Endpoint>> = BTreeMap::new();
    for ((address, _), (endpoint, ports)) in all {
        groups.entry((Family::of(address), ports)).or_default().push(endpoint);
    }
    let chunks = groups.iter().flat_map(|((family, ports), list)| list.chunks(MOST).map(move |chunk| (*family, ports, chunk)));
    chunks.enumerate().map(|(number, (family, ports, chunk))| slice(service, number, family, ports, chunk, node)).collect()
}

fn slice(
    service: &Definition,
    number: usize,
    family: Family,
    ports: &[(usize, u16)],
    endpoints: &[&Endpoint],
    node: &str,
) -> EndpointSlice {
    let label = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let ports = ports.iter().filter_map(|(index, target)| {
        let port = service.ports.get(*index)?;
        Some(EndpointPort {
            app_protocol: port.app_protocol.as_deref().map(str::to_owned),
            name: Some(port.name.to_string()),
            port: Some((*target).into()),
            protocol: Some(port.protocol.to_string()),
        })
    });
    EndpointSlice {
        address_type: family.to_string(),
        endpoints: endpoints.iter().map(|endpoint| shown(endpoint, node)).collect(),
        metadata: ObjectMeta {
            name: Some(format!("{}-{number}", service.name.name)),
            namespace: Some(service.name.namespace.to_string()),
            labels: Some(BTreeMap::from([label((SERVICE_NAME_LABEL, &service.name.name)), label(MANAGED_BY)])),
            ..ObjectMeta::default()
        },
        ports: Some(ports.collect()),
    }
}

fn shown(endpoint: &Endpoint, node: &str) -> Shown {
    Shown {
        addresses: vec![endpoint.socket.ip().to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(endpoint.is_ready),
            serving: Some(endpoint.is_serving),
            terminating: Some(endpoint.is_terminating),
        }),
        hostname: endpoint.hostname.clone(),
        node_name: (!endpoint.is_elsewhere).then(|| node.to_owned()),
        target_ref: endpoint.pod.as_ref().map(|(pod, uid)| ObjectReference {
            kind: Some("Pod".to_owned()),
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            uid: Some(uid.clone()),
            ..ObjectReference::default()
        }),
        ..Shown::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::{Backend, Backends};
    use crate::testing::{definition, pod};
    use podstead_pod::host_ports::Protocol;

    #[test]
    fn slices_have_a_hundred_endpoints() {
        let pods: Vec<Backend> = (1..=250).map(|last| pod(&format!("p{last}"), last)).collect();
        let service = definition("web", "selector: {app: web}, ports: [{port: 80}]");
        let made = slices(&service, &Backends::new(&pods, []).endpoints(&service), "box");
        assert_eq!(made.iter().map(|slice| slice.endpoints.len()).collect::<Vec<_>>(), [100, 100, 50]);
        let names: Vec<_> = made.iter().filter_map(|slice| slice.metadata.name.as_deref()).collect();
        assert_eq!(names, ["web-0", "web-1", "web-2"]);
        let first = &made[0].endpoints[0];
        assert_eq!((first.addresses[0].as_str(), first.node_name.as_deref()), ("10.201.0.1", Some("box")));
    }

    #[test]
    fn pods_with_other_numbers_have_other_slices() {
        let with = |name: &str, last: u8, number: u16| Backend {
            ports: BTreeMap::from([(("http".to_owned(), Protocol::Tcp), number)]),
            ..pod(name, last)
        };
        let pods = [with("a", 1, 80), with("b", 2, 8080), pod("c", 3)];
        let service = definition("web", "selector: {app: web}, ports: [{port: 80, targetPort: http}]");
        let made = slices(&service, &Backends::new(&pods, []).endpoints(&service), "box");
        let ports: Vec<Vec<Option<i32>>> =
            made.iter().map(|slice| slice.ports.iter().flatten().map(|port| port.port).collect()).collect();
        assert_eq!(ports, [vec![], vec![Some(80)], vec![Some(8080)]]);
    }
}
