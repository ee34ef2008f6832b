//! The plan of a turn: addresses, endpoints, frontends, names and what the API shows. **Pure**.

use super::backends::{Pods, PublishedPod};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service, ServiceStatus};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use podstead_api::services::Shown;
use podstead_dns::ServiceNames;
use podstead_pod::SourceId;
use podstead_pod::host_ports::Protocol;
use podstead_pod::objects::{NetworkObject, Object, Objects};
use podstead_pod::sharing::Sharing;
use podstead_service::allocate::{Allocation, Grant, Grants, HostSocket, Pool, RefusalReason, allocate};
use podstead_service::definition::{Definition, Exposure, Families, FamilyPolicy, Port, Role, Target};
use podstead_service::endpoints::{Backend, Backends, ServiceEndpoints};
use podstead_service::frontends::Frontends;
use podstead_service::name::ObjectName;
use podstead_service::range::Family;
use podstead_service::slices::slices;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Reasons of events.
pub(super) const ADDRESS_TAKEN: &str = "ServiceAddressTaken";
const NODE_PORT_TAKEN: &str = "NodePortTaken";
const BALANCED_PORT_TAKEN: &str = "LoadBalancerPortTaken";
const UNSERVED: &str = "ServiceUnserved";

/// A Service of a source.
#[derive(Clone, Debug)]
pub(super) struct SourcedService {
    pub(super) definition: Definition,
    source: SourceId,
    object: Service,
}

/// Something that a Service asks for and does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) service: ObjectName,
    /// The reason of the event.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Services of all sources, the first of two that ask for the same first (S7).
pub(super) fn services(objects: &Objects) -> Vec<SourcedService> {
    let sharing = objects.sharing();
    let read = objects.iter().filter_map(|(_, held)| match &held.object {
        Object::Network(object) => match &**object {
            NetworkObject::Service(service) => {
                // The store accepted it, so that it has no problem.
                let definition = Definition::of(service).ok()?;
                Some(SourcedService { definition, source: held.source.clone(), object: (**service).clone() })
            }
            NetworkObject::EndpointSlice(_) => None,
        },
        Object::ConfigMap(_) | Object::Secret(_) | Object::PersistentVolumeClaim(_) => None,
    });
    let mut services: Vec<SourcedService> = read.collect();
    services.sort_by_key(|service| sharing.rank(&service.source));
    services
}

/// The identity of a Service for events, the same in every life of the daemon.
pub(super) fn uid(service: &ObjectName) -> String {
    format!("service-{}-{}", service.namespace, service.name)
}

/// Ports of the host in grants.
pub(super) fn ports(grants: &Grants) -> impl Iterator<Item = HostSocket> {
    grants.values().flat_map(|grant| {
        let node_ports = grant.node_ports.iter().map(|port| HostSocket { protocol: port.protocol, port: port.node_port });
        node_ports.chain(grant.load_balancer_ports.iter().copied())
    })
}

/// Everything that follows from the present state.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) grants: Grants,
    pub(super) names: Vec<ServiceNames>,
    pub(super) refused: Vec<Refused>,
    served: Vec<(SourcedService, ServiceEndpoints)>,
}

impl Plan {
    /// Decides. `recorded` are the grants on disk.
    pub(super) fn new(services: &[SourcedService], objects: &Objects, pods: &Pods, recorded: &Grants, pool: &Pool) -> Self {
        let sharing = objects.sharing();
        let pods: Vec<&PublishedPod> = pods.values().map(|pod| &**pod).collect();
        let mut refused = Vec::new();
        let mut served = Vec::new();
        let slices = of_sources(objects);
        let everything = (!sharing.restricts_any())
            .then(|| Backends::new(pods.iter().map(|pod| &pod.backend), slices.iter().map(|(slice, _)| *slice)));
        for service in services {
            if let Some(owner) = name_is_of_another(service, &pods, sharing) {
                let message = format!("its name belongs to a pod of source {owner}: the Service has no name, address or port");
                refused.push(Refused { service: service.definition.name.clone(), reason: UNSERVED, message });
                continue;
            }
            let endpoints = match &everything {
                Some(backends) => backends.endpoints(&service.definition),
                None => reachable(service, &pods, &slices, sharing).endpoints(&service.definition),
            };
            served.push((service.clone(), endpoints));
        }
        let absent: Vec<Definition> = recorded
            .iter()
            .filter(|(name, _)| !objects.is_complete() && !services.iter().any(|service| service.definition.name == **name))
            .map(|(name, grant)| placeholder(name, grant))
            .collect();
        let definitions: Vec<&Definition> = served.iter().map(|(service, _)| &service.definition).chain(&absent).collect();
        let Allocation { grants, refusals } =
            if pool.ipv4.is_none() && pool.ipv6.is_none() { Allocation::default() } else { allocate(&definitions, recorded, pool) };
        refused.extend(refusals.into_iter().map(|refusal| Refused {
            reason: reason(refusal.reason),
            message: format!("{}: {}", refusal.field, refusal.message),
            service: refusal.service,
        }));
        let names = served.iter().filter_map(|(service, endpoints)| ServiceNames::of(&service.definition, &grants, endpoints));
        Self { names: names.collect(), grants, refused, served }
    }

    /// The frontends that take the place of those that are there, and Services with too many endpoints.
    pub(super) fn frontends(&self, before: &Frontends) -> (Frontends, BTreeSet<ObjectName>) {
        before.next(self.served.iter().map(|(service, endpoints)| (&service.definition, endpoints)), &self.grants)
    }

    /// The Services that are served.
    pub(super) fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.served.iter().map(|(service, _)| &service.definition)
    }

    /// Services and their EndpointSlices as the API has them.
    pub(super) fn shown(&self, node: &str, host: &[IpAddr]) -> Vec<Shown> {
        let show = |(service, endpoints): &(SourcedService, ServiceEndpoints)| Shown {
            service: completed(service, self.grants.get(&service.definition.name), host),
            slices: slices(&service.definition, endpoints, node),
            source: service.source.clone(),
        };
        self.served.iter().map(show).collect()
    }
}

fn reason(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::AddressTaken | RefusalReason::AddressNotInRange | RefusalReason::NoFamily => ADDRESS_TAKEN,
        RefusalReason::NodePortTaken | RefusalReason::NodePortNotInRange => NODE_PORT_TAKEN,
        RefusalReason::LoadBalancerPortTaken => BALANCED_PORT_TAKEN,
    }
}

/// EndpointSlices of sources.
fn of_sources(objects: &Objects) -> Vec<(&EndpointSlice, &SourceId)> {
    let slices = objects.iter().filter_map(|(_, held)| match &held.object {
        Object::Network(object) => match &**object {
            NetworkObject::EndpointSlice(slice) => Some((&**slice, &held.source)),
            NetworkObject::Service(_) => None,
        },
        Object::ConfigMap(_) | Object::Secret(_) | Object::PersistentVolumeClaim(_) => None,
    });
    slices.collect()
}

/// The pods and slices that may be behind a Service: those of its own realm. Pods of others may join a Service of an unrestricted source that
/// is shared with them as a subdomain.
fn reachable<'a>(
    service: &SourcedService,
    pods: &[&'a PublishedPod],
    slices: &[(&'a EndpointSlice, &SourceId)],
    sharing: &Sharing,
) -> Backends<'a> {
    let SourcedService { definition, source, .. } = service;
    let may_join = |pod: &PublishedPod| {
        !sharing.are_apart(&pod.source, source)
            || (!sharing.is_restricted(source) && sharing.may_join(&pod.source, source, &definition.name.name))
    };
    let pods =
        pods.iter().filter(|pod| pod.backend.name.namespace == definition.name.namespace && may_join(pod)).map(|pod| &pod.backend);
    let slices = slices.iter().filter(|(_, of)| !sharing.are_apart(of, source)).map(|(slice, _)| *slice);
    Backends::new(pods, slices)
}

/// The source of a pod that has the name of a restricted source's Service, or has it as its subdomain.
fn name_is_of_another<'a>(service: &SourcedService, pods: &[&'a PublishedPod], sharing: &Sharing) -> Option<&'a SourceId> {
    if !sharing.is_restricted(&service.source) {
        return None;
    }
    let ObjectName { namespace, name } = &service.definition.name;
    let has_name = |backend: &Backend| {
        let of_pod = &backend.name.name;
        let is_suffixed = of_pod.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('-'));
        let is_subdomain = backend.hostname.as_ref().is_some_and(|(_, subdomain)| subdomain == name);
        of_pod == name || is_suffixed || is_subdomain
    };
    let is_of_another = |pod: &&&PublishedPod| {
        pod.backend.name.namespace == *namespace && sharing.are_apart(&pod.source, &service.source) && has_name(&pod.backend)
    };
    pods.iter().find(is_of_another).map(|pod| &pod.source)
}

/// A Service whose source was not heard yet, as its record has it: it keeps what was given to it.
fn placeholder(name: &ObjectName, grant: &Grant) -> Definition {
    let port = |protocol: Protocol, number: u16, node_port: Option<u16>| Port {
        name: String::new(),
        protocol,
        number,
        target: Target::Number(number),
        node_port,
        app_protocol: None,
    };
    let mut ports: Vec<Port> =
        grant.node_ports.iter().map(|given| port(given.protocol, given.port, Some(given.node_port))).collect();
    for socket in &grant.load_balancer_ports {
        if !ports.iter().any(|known| (known.protocol, known.number) == (socket.protocol, socket.port)) {
            ports.push(port(socket.protocol, socket.port, None));
        }
    }
    let exposure = match (grant.load_balancer_ports.is_empty(), grant.node_ports.is_empty()) {
        (true, true) => Exposure::Internal,
        (true, false) => Exposure::NodePort,
        (false, _) => {
            Exposure::LoadBalancer { is_served: true, allocates_node_ports: false, address: None, source_ranges: BTreeSet::new() }
        }
    };
    let written = grant.cluster_ips.iter().map(|address| Family::of(*address)).collect();
    Definition {
        name: name.clone(),
        selector: BTreeMap::new(),
        ports,
        role: Role::Cluster {
            families: Families { policy: FamilyPolicy::PreferDual, written },
            asked: Vec::new(),
            external_ips: BTreeSet::new(),
            exposure,
        },
        publishes_unready: false,
        affinity: None,
        has_packet_rules: false,
    }
}

/// The object with its addresses and ports.
fn completed(service: &SourcedService, grant: Option<&Grant>, host: &[IpAddr]) -> Service {
    let mut object = service.object.clone();
    let spec = object.spec.get_or_insert_default();
    spec.type_.get_or_insert_with(|| "ClusterIP".to_owned());
    spec.session_affinity.get_or_insert_with(|| "None".to_owned());
    if let Role::Headless(_) = service.definition.role {
        spec.cluster_ip = Some("None".to_owned());
        spec.cluster_ips = Some(vec!["None".to_owned()]);
    }
    let Some(grant) = grant else { return object };
    spec.cluster_ip = grant.cluster_ips.first().map(ToString::to_string);
    spec.cluster_ips = Some(grant.cluster_ips.iter().map(ToString::to_string).collect());
    spec.ip_families = Some(grant.cluster_ips.iter().map(|address| Family::of(*address).to_string()).collect());
    for (port, defined) in spec.ports.iter_mut().flatten().zip(&service.definition.ports) {
        port.protocol.get_or_insert_with(|| defined.protocol.to_string());
        let given = grant.node_ports.iter().find(|given| (given.protocol, given.port) == (defined.protocol, defined.number));
        port.node_port = given.map(|given| given.node_port.into());
    }
    if !grant.load_balancer_ports.is_empty() {
        let has_family = |address: &&IpAddr| grant.cluster_ips.iter().any(|own| Family::of(*own) == Family::of(**address));
        let entry = |address: &IpAddr| LoadBalancerIngress { ip: Some(address.to_string()), ..LoadBalancerIngress::default() };
        let ingress = host.iter().filter(has_family).map(entry).collect();
        let load_balancer = Some(LoadBalancerStatus { ingress: Some(ingress) });
        object.status = Some(ServiceStatus { load_balancer, ..ServiceStatus::default() });
    }
    object
}
