//! The pods behind Services (S13 to S16).

use crate::definition::{Definition, Port, Target, protocol};
use crate::name::ObjectName;
use crate::range::Family;
use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};
use k8s_openapi::api::discovery::v1::{Endpoint as ListedEndpoint, EndpointPort, EndpointSlice};
use podstead_pod::host_ports::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Label of an EndpointSlice: the Service that it is for.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// The properties of a pod that Services depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Its name.
    pub name: ObjectName,
    /// Its UID.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its addresses; those of the host with `hostNetwork`.
    pub addresses: Vec<IpAddr>,
    /// Its containers have ended for good.
    pub has_ended: bool,
    /// Its condition Ready is True.
    pub is_ready: bool,
    /// It is being stopped.
    pub is_terminating: bool,
    /// Its host name and the Service that gives it a name of its own, if it has both.
    pub hostname: Option<(String, String)>,
    /// Ports of its containers that have names; the first of two that are the same.
    pub ports: BTreeMap<(String, Protocol), u16>,
}

impl Backend {
    /// From a pod with its status.
    pub fn of(pod: &Pod) -> Self {
        Self::with_status(pod, pod.status.as_ref())
    }

    /// From a pod, and a status in the place of its own.
    pub fn with_status(pod: &Pod, status: Option<&PodStatus>) -> Self {
        let spec = pod.spec.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let several = status.and_then(|status| status.pod_ips.as_deref()).unwrap_or_default().iter().map(|ip| ip.ip.as_str());
        let addresses: Vec<IpAddr> = several.filter_map(|address| address.parse().ok()).collect();
        let one = status.and_then(|status| status.pod_ip.as_deref()).and_then(|address| address.parse().ok());
        let subdomain = spec.and_then(|spec| spec.subdomain.clone()).filter(|subdomain| !subdomain.is_empty());
        let written = spec.and_then(|spec| spec.hostname.clone()).filter(|hostname| !hostname.is_empty());
        Self {
            name: ObjectName::of(&pod.metadata),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            addresses: if addresses.is_empty() { one.into_iter().collect() } else { addresses },
            has_ended: matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed")),
            is_ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            hostname: written.zip(subdomain),
            ports: named_ports(pod),
        }
    }

    /// Returns true if a Service of its namespace has a selector that its labels match.
    pub fn is_selected_by(&self, service: &Definition) -> bool {
        let matches = |(key, value): (&String, &String)| self.labels.get(key) == Some(value);
        service.selects_pods() && self.name.namespace == service.name.namespace && service.selector.iter().all(matches)
    }

    fn port(&self, port: &Port) -> Option<u16> {
        match &port.target {
            Target::Number(number) => Some(*number),
            Target::Name(name) => self.ports.get(&(name.to_string(), port.protocol)).copied(),
        }
    }
}

/// Ports with names: of containers, then of sidecars (S15).
fn named_ports(pod: &Pod) -> BTreeMap<(String, Protocol), u16> {
    let Some(spec) = &pod.spec else { return BTreeMap::new() };
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(is_sidecar));
    let mut ports = BTreeMap::new();
    for port in containers.flat_map(|container| container.ports.iter().flatten()) {
        let number = u16::try_from(port.container_port).ok();
        if let (Some(name), Some(protocol), Some(number)) = (&port.name, protocol(port.protocol.as_deref()), number) {
            ports.entry((name.clone(), protocol)).or_insert(number);
        }
    }
    ports
}

/// The properties of an EndpointSlice of a source that Services depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its Service.
    pub service: ObjectName,
    endpoints: Vec<Listed>,
    /// Name, protocol and number of each port.
    ports: Vec<(String, Option<Protocol>, u16)>,
}

/// An endpoint of a [`Slice`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    address: IpAddr,
    is_ready: bool,
    is_serving: bool,
    is_terminating: bool,
    hostname: Option<String>,
}

impl Slice {
    /// From an EndpointSlice; `None` if it is for no Service.
    pub fn of(slice: &EndpointSlice) -> Option<Self> {
        let name = slice.metadata.labels.as_ref()?.get(SERVICE_NAME_LABEL)?.into();
        let ObjectName { namespace, .. } = ObjectName::of(&slice.metadata);
        let port = |port: &EndpointPort| {
            let number = u16::try_from(port.port?).ok()?;
            Some((port.name.clone().unwrap_or_default(), protocol(port.protocol.as_deref()), number))
        };
        Some(Self {
            service: ObjectName { namespace, name },
            endpoints: slice.endpoints.iter().filter_map(Listed::of).collect(),
            ports: slice.ports.iter().flatten().filter_map(port).collect(),
        })
    }

    /// The addresses of its endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.endpoints.iter().map(|listed| listed.address)
    }

    /// The number of a port of the Service.
    fn port(&self, port: &Port) -> Option<u16> {
        let is_same =
            |(name, protocol, _): &&(String, Option<Protocol>, u16)| **name == *port.name && *protocol == Some(port.protocol);
        self.ports.iter().find(is_same).map(|(_, _, number)| *number)
    }
}

impl Listed {
    fn of(listed: &ListedEndpoint) -> Option<Self> {
        let address = listed.addresses.first()?.parse().ok()?;
        let conditions = listed.conditions.clone().unwrap_or_default();
        let is_ready = conditions.ready.unwrap_or(true);
        Some(Self {
            address,
            is_ready,
            is_serving: conditions.serving.unwrap_or(is_ready),
            is_terminating: conditions.terminating.unwrap_or(false),
            hostname: listed.hostname.clone(),
        })
    }
}

/// An address and port behind a port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The destination of connections.
    pub socket: SocketAddr,
    /// It is used (S14): serving and not terminating, or published before that.
    pub is_ready: bool,
    /// It answers.
    pub is_serving: bool,
    /// It is being stopped.
    pub is_terminating: bool,
    /// It is not on this host.
    pub is_elsewhere: bool,
    /// Its host name below the Service's name, if it has one (S23).
    pub hostname: Option<String>,
    /// The pod and its UID; `None` for an endpoint of a source.
    pub pod: Option<(ObjectName, String)>,
}

/// The endpoints of all ports of one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceEndpoints {
    /// By the index of the port in [`Definition::ports`], in the order of namespaces and names of pods; of both families.
    pub ports: Vec<Vec<Endpoint>>,
    /// Every address, for Services without ports.
    pub addresses: Vec<Endpoint>,
}

/// The endpoints to use, of one family: the ready ones; if there is none, those that still answer while they are stopped (S14).
pub fn used(endpoints: &[Endpoint], family: Family) -> impl Iterator<Item = &Endpoint> {
    let of_family = move |endpoint: &&Endpoint| Family::of(endpoint.socket.ip()) == family;
    let has_ready = endpoints.iter().filter(of_family).any(|endpoint| endpoint.is_ready);
    endpoints
        .iter()
        .filter(of_family)
        .filter(move |endpoint| if has_ready { endpoint.is_ready } else { endpoint.is_serving && endpoint.is_terminating })
}

/// Pods and slices by namespace and Service, so that a Service is asked about its own ones only.
#[derive(Debug, Default)]
pub struct Backends<'a> {
    pods: BTreeMap<&'a str, Vec<&'a Backend>>,
    slices: BTreeMap<&'a ObjectName, Vec<&'a Slice>>,
}

impl<'a> Backends<'a> {
    /// Sorts pods, and EndpointSlices of sources. Those of one Service count in the order in which they come.
    pub fn new(pods: impl IntoIterator<Item = &'a Backend>, slices: impl IntoIterator<Item = &'a Slice>) -> Self {
        let mut backends = Self::default();
        for pod in pods {
            backends.pods.entry(&pod.name.namespace).or_default().push(pod);
        }
        for list in backends.pods.values_mut() {
            list.sort_by_key(|pod| (&pod.name, &pod.uid));
        }
        for slice in slices {
            backends.slices.entry(&slice.service).or_default().push(slice);
        }
        backends
    }

    /// The endpoints of a Service.
    pub fn endpoints(&self, service: &Definition) -> ServiceEndpoints {
        if service.selects_pods() {
            let pods = self.pods.get(service.name.namespace.as_str()).into_iter().flatten();
            return of_pods(service, pods.copied());
        }
        let own: BTreeSet<IpAddr> = self.pods.values().flatten().flat_map(|pod| pod.addresses.iter().copied()).collect();
        of_sources(service, self.slices.get(&service.name).into_iter().flatten().copied(), |address| own.contains(&address))
    }
}

impl ServiceEndpoints {
    fn none(service: &Definition) -> Self {
        Self { ports: vec![Vec::new(); service.ports.len()], addresses: Vec::new() }
    }
}

/// The endpoints of a Service among pods, in their order (S13). Other pods than those that it selects do not count.
pub fn of_pods<'a>(service: &Definition, pods: impl IntoIterator<Item = &'a Backend>) -> ServiceEndpoints {
    let mut found = ServiceEndpoints::none(service);
    for pod in pods.into_iter().filter(|pod| pod.is_selected_by(service) && !pod.has_ended) {
        let mut families = BTreeSet::new();
        for address in pod.addresses.iter().filter(|address| families.insert(Family::of(**address))) {
            let endpoint = |port: u16| Endpoint {
                socket: SocketAddr::new(*address, port),
                is_ready: service.publishes_unready || (pod.is_ready && !pod.is_terminating),
                is_serving: pod.is_ready,
                is_terminating: pod.is_terminating,
                is_elsewhere: false,
                hostname: pod.hostname.as_ref().filter(|(_, of)| *of == service.name.name).map(|(hostname, _)| hostname.clone()),
                pod: Some((pod.name.clone(), pod.uid.clone())),
            };
            found.addresses.push(endpoint(0));
            for (port, list) in service.ports.iter().zip(&mut found.ports) {
                list.extend(pod.port(port).map(endpoint));
            }
        }
    }
    found
}

/// The endpoints that sources list for a Service without selector (S16). An address of a pod of this host is not elsewhere.
pub fn of_sources<'a>(
    service: &Definition,
    slices: impl IntoIterator<Item = &'a Slice>,
    is_of_pod: impl Fn(IpAddr) -> bool,
) -> ServiceEndpoints {
    let mut found = ServiceEndpoints::none(service);
    for slice in slices.into_iter().filter(|slice| service.takes_slices() && slice.service == service.name) {
        for Listed { address, is_ready, is_serving, is_terminating, hostname } in &slice.endpoints {
            let endpoint = |port: u16| Endpoint {
                socket: SocketAddr::new(*address, port),
                is_ready: *is_ready,
                is_serving: *is_serving,
                is_terminating: *is_terminating,
                is_elsewhere: !is_of_pod(*address),
                hostname: hostname.clone(),
                pod: None,
            };
            found.addresses.push(endpoint(0));
            for (port, list) in service.ports.iter().zip(&mut found.ports) {
                list.extend(slice.port(port).map(endpoint));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{definition, pod};

    fn sockets(endpoints: &[Endpoint]) -> Vec<String> {
        used(endpoints, Family::V4).map(|endpoint| endpoint.socket.to_string()).collect()
    }

    fn of(spec: &str, pods: &[Backend]) -> Vec<Vec<String>> {
        let found = Backends::new(pods, []).endpoints(&definition("web", spec));
        found.ports.iter().map(|list| sockets(list)).collect()
    }

    const WEB: &str = "selector: {app: web}, ports: [{port: 80, targetPort: 8080}]";

    #[test]
    fn ready_pods_with_the_labels_are_used() {
        let other = Backend { labels: BTreeMap::from([("app".into(), "db".into())]), ..pod("d", 4) };
        let foreign = Backend { name: ObjectName { namespace: "other".into(), name: "e".into() }, ..pod("e", 5) };
        let pods = [
            pod("b", 2),
            pod("a", 1),
            Backend { is_ready: false, ..pod("c", 3) },
            other,
            foreign,
            Backend { has_ended: true, ..pod("f", 6) },
            Backend { addresses: Vec::new(), ..pod("g", 7) },
        ];
        assert_eq!(of(WEB, &pods), [["10.201.0.1:8080", "10.201.0.2:8080"]]);
        assert_eq!(of("ports: [{port: 80}]", &pods), [[""; 0]], "no selector finds none");
        let unready = format!("{WEB}, publishNotReadyAddresses: true");
        assert_eq!(of(&unready, &pods)[0].len(), 3);
    }

    #[test]
    fn last_pods_are_used_while_they_stop() {
        let stopping = Backend { is_terminating: true, ..pod("a", 1) };
        assert_eq!(of(WEB, &[stopping.clone(), pod("b", 2)]), [["10.201.0.2:8080"]]);
        assert_eq!(of(WEB, std::slice::from_ref(&stopping)), [["10.201.0.1:8080"]]);
        assert_eq!(of(WEB, &[Backend { is_ready: false, ..stopping }]), [[""; 0]]);
    }

    #[test]
    fn port_names_are_those_of_each_pod() {
        let read = |name: &str, last: u8, containers: &str| -> Backend {
            let text = format!(
                "{{metadata: {{name: {name}, namespace: shop, labels: {{app: web}}}}, spec: {{{containers}}}, status: {{podIP: 10.201.0.{last}, conditions: [{{type: Ready, status: 'True'}}]}}}}"
            );
            Backend::of(&serde_yaml::from_str(&text).unwrap())
        };
        let port = |number: u16| format!("ports: [{{name: http, containerPort: {number}}}]");
        let pods = [
            read("a", 1, &format!("containers: [{{name: c, {}}}]", port(80))),
            read("b", 2, &format!("containers: [{{name: c, {}}}]", port(8080))),
            read("c", 3, "containers: [{name: c, ports: [{name: http, containerPort: 1, protocol: UDP}]}]"),
            read("d", 4, &format!("containers: [{{name: c}}], initContainers: [{{name: s, restartPolicy: Always, {}}}]", port(81))),
            read("e", 5, &format!("containers: [{{name: c}}], initContainers: [{{name: s, {}}}]", port(82))),
        ];
        let named = "selector: {app: web}, ports: [{port: 80, targetPort: http}]";
        assert_eq!(of(named, &pods), [["10.201.0.1:80", "10.201.0.2:8080", "10.201.0.4:81"]]);
    }

    #[test]
    fn endpoints_of_sources_may_be_elsewhere() {
        let text = "{metadata: {name: x, namespace: shop, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{port: 99}], \
                    endpoints: [{addresses: [192.0.2.1]}, {addresses: [10.201.0.1]}, {addresses: [192.0.2.2], conditions: {ready: false}}]}";
        let slice: EndpointSlice = serde_yaml::from_str(text).unwrap();
        let pods = [pod("a", 1)];
        let found = Backends::new(&pods, [&Slice::of(&slice).unwrap()]).endpoints(&definition("web", "ports: [{port: 80}]"));
        assert_eq!(sockets(&found.ports[0]), ["192.0.2.1:99", "10.201.0.1:99"]);
        assert_eq!(found.ports[0].iter().map(|endpoint| endpoint.is_elsewhere).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn hostname_counts_below_its_own_service() {
        let member = Backend { hostname: Some(("db-0".into(), "web".into())), ..pod("a", 1) };
        let found = |name: &str| Backends::new([&member], []).endpoints(&definition(name, WEB)).ports[0][0].hostname.clone();
        assert_eq!((found("web").as_deref(), found("other")), (Some("db-0"), None));
    }
}
