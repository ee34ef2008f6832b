//! Decisions of a turn: the Services that are served, their addresses, and the objects that the API shows. **Pure**.

use super::backends::{Pods, PublishedPod};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service, ServiceStatus};
use podstead_api::services::Shown;
use podstead_pod::SourceId;
use podstead_pod::host_ports::Protocol;
use podstead_pod::objects::{NetworkKind, NetworkObject, Object, Objects, PackedObject};
use podstead_pod::sharing::Sharing;
use podstead_service::allocate::{Allocation, Grant, Grants, HostSocket, Pool, RefusalReason, allocate};
use podstead_service::definition::{Definition, Exposure, Families, FamilyPolicy, LoadBalancer, Port, Role, Target};
use podstead_service::endpoints::{Backend, ServiceEndpoints};
use podstead_service::limit::{self, MOST_SERVICES};
use podstead_service::name::ObjectName;
use podstead_service::range::Family;
use podstead_service::slices::slices;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// Reasons of events.
const ADDRESS_TAKEN: &str = "ServiceAddressTaken";
const NODE_PORT_TAKEN: &str = "NodePortTaken";
const BALANCED_PORT_TAKEN: &str = "LoadBalancerPortTaken";
pub(super) const UNSERVED: &str = "ServiceUnserved";

/// A Service of a source.
#[derive(Debug)]
pub(super) struct SourcedService {
    pub(super) definition: Definition,
    pub(super) source: SourceId,
    /// A Service.
    pub(super) object: Arc<PackedObject>,
}

/// Something that a Service asks for and does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) service: ObjectName,
    /// The reason of the event.
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// It may be had later without a change of objects.
    pub(super) is_retried: bool,
}

/// Services of all sources, the first of two that ask for the same first (S7). Those that are the same as `before` are not read again.
pub(super) fn services(objects: &Objects, before: &[Arc<SourcedService>]) -> Vec<Arc<SourcedService>> {
    let sharing = objects.sharing();
    let known: HashMap<*const PackedObject, &Arc<SourcedService>> =
        before.iter().map(|service| (Arc::as_ptr(&service.object), service)).collect();
    let read = packed(objects, NetworkKind::Service).filter_map(|(object, source)| {
        if let Some(same) = known.get(&Arc::as_ptr(object)).filter(|known| known.source == *source) {
            return Some(Arc::clone(same));
        }
        let NetworkObject::Service(service) = object.unpack() else { return None };
        // The store accepted it, so that it has no problem.
        let definition = Definition::of(&service).ok()?;
        Some(Arc::new(SourcedService { definition, source: source.clone(), object: Arc::clone(object) }))
    });
    let mut services: Vec<Arc<SourcedService>> = read.collect();
    services.sort_by_key(|service| sharing.rank(&service.source));
    services.shrink_to_fit();
    services
}

/// Objects of one kind of the network, in the order of their names, with their sources.
pub(super) fn packed(objects: &Objects, kind: NetworkKind) -> impl Iterator<Item = (&Arc<PackedObject>, &SourceId)> {
    objects.iter().filter_map(move |(_, held)| match &held.object {
        Object::Network(object) => (object.kind() == kind).then_some((object, &held.source)),
        Object::ConfigMap(_) | Object::Secret(_) | Object::PersistentVolumeClaim(_) => None,
    })
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

/// The Services that are served, and what they are given. It does not depend on what is behind them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decision {
    pub(super) grants: Arc<Grants>,
    pub(super) refused: Vec<Refused>,
    /// Services that are not served at all.
    pub(super) hidden: BTreeSet<ObjectName>,
}

impl Decision {
    /// Decides. `recorded` are the grants on disk.
    pub(super) fn new(services: &[Arc<SourcedService>], objects: &Objects, pods: &Pods, recorded: &Grants, pool: &Pool) -> Self {
        let (mut refused, mut hidden) = (Vec::new(), BTreeSet::new());
        for service in services {
            if let Some(owner) = name_is_of_another(service, pods, objects.sharing()) {
                let message = format!("its name belongs to a pod of source {owner}: the Service has no name, address or port");
                let service = service.definition.name.clone();
                hidden.insert(service.clone());
                refused.push(Refused { service, reason: UNSERVED, message, is_retried: false });
            }
        }
        let absent = absent(services, objects, recorded);
        let served = |hidden: &BTreeSet<ObjectName>| -> Vec<&Definition> {
            let definitions = services.iter().map(|service| &service.definition);
            definitions.filter(|definition| !hidden.contains(&definition.name)).collect()
        };
        let beyond = limit::beyond(absent.iter().chain(served(&hidden)), recorded);
        hidden.extend(beyond.iter().cloned());
        refused.extend(beyond.into_iter().map(too_many));
        let mut definitions = served(&hidden);
        let has_addresses = pool.ipv4.is_some() || pool.ipv6.is_some();
        if !has_addresses {
            let wants_address = |definition: &&&Definition| matches!(definition.role, Role::Cluster { .. });
            refused.extend(definitions.iter().filter(wants_address).map(|definition| Refused {
                service: definition.name.clone(),
                reason: UNSERVED,
                message: "it has no address: only podstead's own network (network.type: builtin) serves Services".to_owned(),
                is_retried: false,
            }));
        }
        definitions.extend(&absent);
        let Allocation { grants, refusals } =
            if has_addresses { allocate(&definitions, recorded, pool) } else { Allocation::default() };
        refused.extend(refusals.into_iter().map(|refusal| Refused {
            reason: reason(refusal.reason),
            message: format!("{}: {}", refusal.field, refusal.message),
            service: refusal.service,
            is_retried: is_retried(refusal.reason),
        }));
        Self { grants: Arc::new(grants), refused, hidden }
    }
}

/// Services whose sources were not heard yet.
fn absent(services: &[Arc<SourcedService>], objects: &Objects, recorded: &Grants) -> Vec<Definition> {
    if objects.is_complete() {
        return Vec::new();
    }
    let there: BTreeSet<&ObjectName> = services.iter().map(|service| &service.definition.name).collect();
    recorded.iter().filter(|(name, _)| !there.contains(name)).map(|(name, grant)| placeholder(name, grant)).collect()
}

/// A Service and its EndpointSlices as the API has them.
pub(super) fn shown(
    service: &SourcedService,
    endpoints: &ServiceEndpoints,
    grant: Option<&Grant>,
    node: &str,
    host: &[IpAddr],
) -> Shown {
    let object = completed(service, grant, host);
    let mut slices = slices(&service.definition, endpoints, node);
    for slice in &mut slices {
        slice.metadata.creation_timestamp.clone_from(&object.metadata.creation_timestamp);
    }
    Shown { service: object, slices, source: service.source.clone() }
}

/// The refusal of a Service that is too many.
fn too_many(service: ObjectName) -> Refused {
    let message = format!(
        "this host serves at most {MOST_SERVICES} Services with addresses, and has them: the Service has no name, address or port until another one is removed"
    );
    Refused { service, reason: UNSERVED, message, is_retried: false }
}

fn reason(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::AddressTaken | RefusalReason::AddressNotInRange | RefusalReason::NoFamily => ADDRESS_TAKEN,
        RefusalReason::NodePortTaken | RefusalReason::NodePortNotInRange => NODE_PORT_TAKEN,
        RefusalReason::LoadBalancerPortTaken => BALANCED_PORT_TAKEN,
        RefusalReason::NotOfHost | RefusalReason::Unserved => UNSERVED,
    }
}

/// Ports of the host become free, and the host gets other addresses.
fn is_retried(reason: RefusalReason) -> bool {
    match reason {
        RefusalReason::NodePortTaken
        | RefusalReason::NodePortNotInRange
        | RefusalReason::LoadBalancerPortTaken
        | RefusalReason::NotOfHost => true,
        RefusalReason::AddressTaken | RefusalReason::AddressNotInRange | RefusalReason::NoFamily | RefusalReason::Unserved => false,
    }
}

/// Returns true if a pod may be behind a Service. Pods of others may join a Service of an unrestricted source that is shared with them as a
/// subdomain.
pub(super) fn may_join(pod: &PublishedPod, service: &SourcedService, sharing: &Sharing) -> bool {
    let SourcedService { definition, source, .. } = service;
    !sharing.are_apart(&pod.source, source)
        || (!sharing.is_restricted(source) && sharing.may_join(&pod.source, source, &definition.name.name))
}

/// The source of a pod that has the name of a restricted source's Service, or has it as its subdomain.
fn name_is_of_another<'a>(service: &SourcedService, pods: &'a Pods, sharing: &Sharing) -> Option<&'a SourceId> {
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
    let is_of_another = |pod: &&Arc<PublishedPod>| {
        pod.backend.name.namespace == *namespace && sharing.are_apart(&pod.source, &service.source) && has_name(&pod.backend)
    };
    pods.values().find(is_of_another).map(|pod| &pod.source)
}

/// A Service whose source was not heard yet, as its record has it: it keeps what was given to it.
fn placeholder(name: &ObjectName, grant: &Grant) -> Definition {
    let port = |protocol: Protocol, number: u16, node_port: Option<u16>| Port {
        name: Box::default(),
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
            let address = grant.host_addresses.first().copied();
            let source_ranges = BTreeSet::new();
            Exposure::LoadBalancer(Box::new(LoadBalancer { is_served: true, allocates_node_ports: false, address, source_ranges }))
        }
    };
    let written = grant.cluster_ips.iter().map(|address| Family::of(*address)).collect();
    Definition {
        name: name.clone(),
        selector: BTreeMap::new(),
        ports: ports.into(),
        role: Role::Cluster {
            families: Families { policy: FamilyPolicy::PreferDual, written },
            asked: Box::default(),
            external_ips: grant.host_addresses.iter().copied().collect(),
            exposure,
        },
        publishes_unready: false,
        affinity: None,
        has_packet_rules: false,
    }
}

/// The object with its addresses and ports.
fn completed(service: &SourcedService, grant: Option<&Grant>, host: &[IpAddr]) -> Service {
    // No other object is read as a Service.
    let NetworkObject::Service(mut object) = service.object.unpack() else { return Service::default() };
    let spec = object.spec.get_or_insert_default();
    spec.type_.get_or_insert_with(|| "ClusterIP".to_owned());
    spec.session_affinity.get_or_insert_with(|| "None".to_owned());
    if let Role::Headless(_) = service.definition.role {
        spec.cluster_ip = Some("None".to_owned());
        spec.cluster_ips = Some(vec!["None".to_owned()]);
    }
    let Some(grant) = grant else {
        if let Role::Cluster { .. } = service.definition.role {
            // It was not given what it asks for: nothing answers there.
            (spec.cluster_ip, spec.cluster_ips) = (None, None);
            spec.ports.iter_mut().flatten().for_each(|port| port.node_port = None);
        }
        return *object;
    };
    spec.cluster_ip = grant.cluster_ips.first().map(ToString::to_string);
    spec.cluster_ips = Some(grant.cluster_ips.iter().map(ToString::to_string).collect());
    spec.ip_families = Some(grant.cluster_ips.iter().map(|address| Family::of(*address).to_string()).collect());
    for (port, defined) in spec.ports.iter_mut().flatten().zip(&service.definition.ports) {
        port.protocol.get_or_insert_with(|| defined.protocol.to_string());
        let given = grant.node_ports.iter().find(|given| (given.protocol, given.port) == (defined.protocol, defined.number));
        port.node_port = given.map(|given| given.node_port.into());
    }
    if !grant.load_balancer_ports.is_empty() && spec.type_.as_deref() == Some("LoadBalancer") {
        let asked = spec.load_balancer_ip.as_deref().and_then(|address| address.parse().ok());
        let one: Vec<IpAddr> = asked.filter(|address| grant.host_addresses.contains(address)).into_iter().collect();
        let host = if one.is_empty() { host } else { &one };
        let has_family = |address: &&IpAddr| grant.cluster_ips.iter().any(|own| Family::of(*own) == Family::of(**address));
        let entry = |address: &IpAddr| LoadBalancerIngress { ip: Some(address.to_string()), ..LoadBalancerIngress::default() };
        let ingress = host.iter().filter(has_family).map(entry).collect();
        let load_balancer = Some(LoadBalancerStatus { ingress: Some(ingress) });
        object.status = Some(ServiceStatus { load_balancer, ..ServiceStatus::default() });
    }
    *object
}

#[cfg(test)]
mod tests {
    use super::super::state::State;
    use super::super::variables::Allocated;
    use super::*;
    use podstead_pod::PodUid;
    use podstead_pod::objects::{NetworkKind, ObjectKind, ObjectName as Name};
    use podstead_pod::sharing::{Share, SharedNames, SharingSource};
    use podstead_service::range::PortRange;
    use serde_json::json;

    /// Sources that have delivered; `!` marks restricted ones. Names of Services may end with `@` and an address that they ask for.
    fn objects(sources: &[&str], shares: Vec<Share>, services: &[(&str, &str)]) -> Objects {
        let source = |name: &&str| SharingSource {
            id: SourceId::new(name.trim_end_matches('!')),
            is_restricted: name.ends_with('!'),
            uses_registry_credentials: !name.ends_with('!'),
            own_namespace: None,
            shares: if name.ends_with('!') { Vec::new() } else { shares.clone() },
        };
        let sharing = Sharing::new(sources.iter().map(source).collect());
        let order: Vec<SourceId> = sharing.order().cloned().collect();
        let mut objects = Objects::new(Arc::new(sharing), |_| true);
        for of in order {
            for (source, name) in services.iter().filter(|(source, _)| *source == of.as_str()) {
                let (name, asked) = name.split_once('@').map_or((*name, None), |(name, asked)| (name, Some(asked)));
                let service: Service = serde_json::from_value(json!({
                    "metadata": {"name": name, "annotations": {"of": source}},
                    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], "clusterIP": asked},
                }))
                .unwrap();
                let kind = ObjectKind::Network(NetworkKind::Service);
                let name = Name { kind, namespace: "default".into(), name: name.into() };
                objects.add(&of, name, Object::Network(Arc::new(PackedObject::new(NetworkObject::Service(Box::new(service))))));
            }
        }
        objects
    }

    /// Ready pods with the label of [`objects`], by source and name.
    fn pods(all: &[(&str, &str)]) -> Pods {
        let pod = |(index, (source, name)): (usize, &(&str, &str))| {
            let pod = serde_json::from_value(json!({
                "metadata": {"name": name, "uid": name, "labels": {"app": "web"}},
                "status": {"podIP": format!("10.201.0.{}", index + 1), "conditions": [{"type": "Ready", "status": "True"}]},
            }));
            let published = PublishedPod { backend: Backend::of(&pod.unwrap()), source: SourceId::new(*source) };
            (PodUid::new(*name), Arc::new(published))
        };
        all.iter().enumerate().map(pod).collect()
    }

    fn pool() -> Pool {
        let (ipv4, ipv6) = ("10.202.0.0/20".parse().ok(), None);
        Pool { ipv4, ipv6, node_ports: PortRange::NODE_PORTS, host: BTreeSet::new(), taken: BTreeMap::new() }
    }

    fn state(objects: &Objects, pods: &Pods) -> State {
        let mut state = State::default();
        state.see(&Arc::new(objects.clone()), pods);
        state.decide(&Grants::new(), &pool());
        state
    }

    /// Names of the pods behind each Service.
    fn behind(state: &State) -> Vec<(String, Vec<String>)> {
        let of = |service: &Arc<SourcedService>| {
            let endpoints = state.endpoints(service);
            let pods = endpoints.ports[0].iter().filter_map(|endpoint| Some(endpoint.pod.as_ref()?.0.name.to_string()));
            (service.definition.name.name.to_string(), pods.collect())
        };
        state.served().map(of).collect()
    }

    fn expected(service: &str, pods: &[&str]) -> (String, Vec<String>) {
        (service.to_owned(), pods.iter().map(|pod| (*pod).to_owned()).collect())
    }

    #[test]
    fn restricted_service_captures_no_pods_of_others() {
        let objects = objects(&["site", "other", "guest!"], Vec::new(), &[("site", "web"), ("guest", "trap")]);
        let pods = pods(&[("site", "a"), ("other", "b"), ("guest", "c")]);
        assert_eq!(behind(&state(&objects, &pods)), [expected("web", &["a", "b"]), expected("trap", &["c"])]);
    }

    #[test]
    fn shared_name_is_joined_by_restricted_pods() {
        let shares = |name: &str| {
            vec![Share {
                with: [SourceId::new("guest")].into(),
                subdomains: SharedNames::new([name.to_owned()]),
                ..Share::default()
            }]
        };
        let pods = pods(&[("site", "a"), ("guest", "c")]);
        for (shared, expected_pods) in [("web", &["a", "c"][..]), ("other", &["a"])] {
            let objects = objects(&["site", "guest!"], shares(shared), &[("site", "web")]);
            assert_eq!(behind(&state(&objects, &pods)), [expected("web", expected_pods)]);
        }
    }

    #[test]
    fn name_of_another_source_is_not_taken() {
        // Of a Service: also if the restricted source is configured first.
        let both = objects(&["guest!", "site"], Vec::new(), &[("guest", "web"), ("site", "web")]);
        let found = state(&both, &pods(&[("site", "a"), ("guest", "c")]));
        assert_eq!(behind(&found), [expected("web", &["a"])]);
        // Of a pod, with the suffix of its node or without.
        for pod in ["redis", "redis-edge"] {
            let objects = objects(&["site", "guest!"], Vec::new(), &[("guest", "redis")]);
            let found = state(&objects, &pods(&[("site", pod)]));
            assert_eq!((behind(&found), found.decision().grants.len()), (Vec::new(), 0));
            let refused = &found.decision().refused;
            assert_eq!(refused[0].reason, UNSERVED);
            assert!(refused[0].message.contains("a pod of source site"), "{refused:?}");
        }
        // Its own pod may have it.
        let own = objects(&["site", "guest!"], Vec::new(), &[("guest", "redis")]);
        assert_eq!(behind(&state(&own, &pods(&[("guest", "redis")]))), [expected("redis", &["redis"])]);
    }

    #[test]
    fn variables_of_restricted_service_reach_no_others() {
        let objects = objects(&["site", "guest!"], Vec::new(), &[("site", "web"), ("guest", "trap")]);
        let state = state(&objects, &pods(&[]));
        let services = state.to_allocate();
        let allocated = Allocated { of: Some(Arc::new(objects)), services, grants: Arc::clone(&state.decision().grants) };
        let hosts = |source: &str| {
            let variables = allocated.variables("default", &SourceId::new(source), true);
            variables.into_iter().map(|(name, _)| name).filter(|name| name.ends_with("_SERVICE_HOST")).collect::<Vec<_>>()
        };
        assert_eq!(hosts("site"), ["WEB_SERVICE_HOST"]);
        assert_eq!(hosts("guest"), ["TRAP_SERVICE_HOST"]);
    }

    #[test]
    fn service_without_range_is_reported() {
        let objects = objects(&["site"], Vec::new(), &[("site", "web")]);
        let pool = Pool { ipv4: None, ..pool() };
        let decision = Decision::new(&services(&objects, &[]), &objects, &Pods::default(), &Grants::new(), &pool);
        assert_eq!((decision.grants.len(), decision.refused[0].reason), (0, UNSERVED));
    }

    #[test]
    fn address_that_is_not_given_is_not_shown() {
        let objects = objects(&["site"], Vec::new(), &[("site", "far@192.0.2.9"), ("site", "near@10.202.0.9")]);
        let plan = Decision::new(&services(&objects, &[]), &objects, &Pods::default(), &Grants::new(), &pool());
        assert_eq!(plan.refused[0].reason, ADDRESS_TAKEN);
        let shown = services(&objects, &[]).into_iter().map(|service| {
            let object = completed(&service, plan.grants.get(&service.definition.name), &[]);
            (service.definition.name.name.to_string(), object.spec.unwrap().cluster_ip)
        });
        let shown: BTreeMap<String, Option<String>> = shown.collect();
        assert_eq!(shown, BTreeMap::from([("far".to_owned(), None), ("near".to_owned(), Some("10.202.0.9".to_owned()))]));
    }

    #[test]
    fn unheard_service_keeps_its_address() {
        let none = objects(&["site"], Vec::new(), &[]);
        let web = ObjectName { namespace: "default".into(), name: "web".into() };
        let grants = |objects: &Objects, recorded: &Grants| {
            Decision::new(&services(objects, &[]), objects, &Pods::default(), recorded, &pool()).grants
        };
        let first = grants(&objects(&["site"], Vec::new(), &[("site", "web")]), &Grants::new());
        assert!(first.contains_key(&web));
        let unheard = Objects::new(Arc::clone(none.sharing()), |_| false);
        assert_eq!(grants(&unheard, &first), first, "its source was not heard");
        assert_eq!(*grants(&none, &first), Grants::new(), "its source has it no more");
    }
}
