//! Turns that look at what has changed, against turns that look at everything.

use super::backends::{Pods, PublishedPod};
use super::state::State;
use podstead_api::services::Shown;
use podstead_dns::NamesOfServices;
use podstead_pod::objects::{NetworkKind, NetworkObject, Object, ObjectKind, ObjectName as Name, Objects, PackedObject};
use podstead_pod::sharing::{Share, SharedNames, Sharing, SharingSource};
use podstead_pod::{PodUid, SourceId};
use podstead_service::allocate::{Grants, Pool};
use podstead_service::endpoints::Backend;
use podstead_service::frontends::{Backing, Endpoints, Frontend, Frontends};
use podstead_service::range::PortRange;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// Objects of sources, and pods.
#[derive(Debug)]
struct World {
    sharing: Arc<Sharing>,
    is_complete: bool,
    packed: BTreeMap<Name, (SourceId, Arc<PackedObject>)>,
    pods: Pods,
}

/// The results of turns.
#[derive(Debug, Default)]
struct Served {
    state: State,
    frontends: Frontends,
    names: NamesOfServices,
    shown: BTreeMap<(String, String), String>,
    recorded: Arc<Grants>,
}

fn pool() -> Pool {
    let (ipv4, ipv6) = ("10.202.0.0/24".parse().ok(), "fd00::/112".parse().ok());
    let host = ["192.0.2.2".parse().unwrap()].into();
    Pool { ipv4, ipv6, node_ports: PortRange::NODE_PORTS, host, taken: BTreeMap::new() }
}

impl World {
    fn new(is_restricted: bool) -> Self {
        let source = |name: &str, is_restricted: bool| SharingSource {
            id: SourceId::new(name),
            is_restricted,
            uses_registry_credentials: true,
            own_namespace: None,
            shares: vec![Share {
                with: [SourceId::new("b")].into(),
                subdomains: SharedNames::new(["s0".to_owned()]),
                ..Share::default()
            }],
        };
        let sharing = Arc::new(Sharing::new(vec![source("a", false), source("b", is_restricted)]));
        Self { sharing, is_complete: true, packed: BTreeMap::new(), pods: Pods::default() }
    }

    fn put(&mut self, kind: NetworkKind, name: &str, source: &str, object: Option<NetworkObject>) {
        let name = Name { kind: ObjectKind::Network(kind), namespace: "shop".into(), name: name.into() };
        match object {
            Some(object) => drop(self.packed.insert(name, (SourceId::new(source), Arc::new(PackedObject::new(object))))),
            None => drop(self.packed.remove(&name)),
        }
    }

    fn put_service(&mut self, name: &str, source: &str, spec: Option<Value>) {
        let object = spec.map(|spec| {
            let object = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
            NetworkObject::Service(serde_json::from_value(object).unwrap())
        });
        self.put(NetworkKind::Service, name, source, object);
    }

    fn put_slice(&mut self, name: &str, service: &str, addresses: Option<Vec<String>>) {
        let object = addresses.map(|addresses| {
            let endpoints: Vec<Value> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
            let labels = json!({"kubernetes.io/service-name": service});
            let metadata = json!({"name": name, "namespace": "shop", "labels": labels});
            let ports = json!([{"name": "", "port": 99}, {"name": "p", "port": 99}]);
            let object = json!({"metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": endpoints});
            NetworkObject::EndpointSlice(serde_json::from_value(object).unwrap())
        });
        self.put(NetworkKind::EndpointSlice, name, "a", object);
    }

    fn put_pod(&mut self, number: u8, source: &str, pod: Option<(&str, u8, bool)>) {
        let uid = PodUid::new(format!("uid-{number}"));
        let Some((app, address, is_ready)) = pod else { return drop(self.pods.remove(&uid)) };
        let pod = json!({
            "metadata": {"name": format!("s{number}-x"), "namespace": "shop", "uid": uid.as_str(), "labels": {"app": app, "tier": "web"}},
            "spec": {"containers": [], "hostname": format!("h{number}"), "subdomain": "s1"},
            "status": {
                "podIP": format!("10.201.0.{address}"),
                "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
            },
        });
        let backend = Backend::of(&serde_json::from_value(pod).unwrap());
        self.pods.insert(uid, Arc::new(PublishedPod { backend, source: SourceId::new(source) }));
    }

    fn objects(&self) -> Arc<Objects> {
        let mut objects = Objects::new(Arc::clone(&self.sharing), |_| self.is_complete);
        for source in ["a", "b"] {
            for (name, (of, object)) in self.packed.iter().filter(|(_, (of, _))| of.as_str() == source) {
                objects.add(of, name.clone(), Object::Network(Arc::clone(object)));
            }
        }
        Arc::new(objects)
    }
}

impl Served {
    /// A turn; returns the names of the Services that it looked at, `None` for all.
    fn turn(&mut self, objects: &Arc<Objects>, pods: &Pods) -> Option<Vec<String>> {
        self.state.see(objects, pods);
        if !self.state.is_decided(&pool()) {
            self.state.decide(&self.recorded, &pool());
        }
        let grants = Arc::clone(&self.state.decision().grants);
        if objects.is_complete() {
            self.recorded = grants;
        } else {
            Arc::make_mut(&mut self.recorded).extend(grants.iter().map(|(name, grant)| (name.clone(), grant.clone())));
        }
        self.names = self.state.next_names(&self.names);
        self.frontends = self.state.frontends(&self.frontends);
        let key = |shown: &Shown| {
            let metadata = &shown.service.metadata;
            (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
        };
        let (shown, gone) = self.state.shown("box", &[]);
        match &gone {
            None => self.shown.clear(),
            Some(gone) => {
                gone.iter().for_each(|name| drop(self.shown.remove(&(name.namespace.to_string(), name.name.to_string()))))
            }
        }
        self.shown.extend(shown.map(|shown| (key(&shown), format!("{shown:?}"))));
        self.state.settle().names()
    }

    /// The endpoints of each frontend, in no order.
    fn behind(&self) -> BTreeMap<Frontend, (BTreeSet<SocketAddr>, Backing)> {
        let unordered = |(frontend, backing): (&Frontend, &Backing)| {
            let endpoints = backing.endpoints.iter().collect();
            (*frontend, (endpoints, Backing { endpoints: Endpoints::default(), ..backing.clone() }))
        };
        self.frontends.iter().map(unordered).collect()
    }

    /// Fails unless a turn that looks at everything gives the same.
    fn assert_as_whole(&self, recorded: &Arc<Grants>, objects: &Arc<Objects>, pods: &Pods) {
        let mut whole = Self { recorded: Arc::clone(recorded), ..Self::default() };
        whole.state.forget();
        whole.turn(objects, pods);
        assert_eq!(self.state.decision(), whole.state.decision());
        assert_eq!(self.behind(), whole.behind());
        let elsewhere = |served: &Self| -> Vec<_> {
            let elements = served.frontends.elements().into_keys();
            elements.filter(|key| matches!(key, podstead_service::frontends::Key::Elsewhere(_))).collect()
        };
        assert_eq!(elsewhere(self), elsewhere(&whole));
        assert_eq!(self.names, whole.names);
        assert_eq!(self.shown, whole.shown);
        assert_eq!(self.state.excess(), whole.state.excess());
    }
}

/// A change of what sources or pods say.
#[derive(Clone, Debug)]
enum Edit {
    Service { number: u8, source: bool, kind: Option<u8>, app: u8 },
    Slice { number: u8, service: u8, addresses: Option<Vec<u8>> },
    Pod { number: u8, source: bool, pod: Option<(u8, u8, bool)> },
    Complete(bool),
}

fn edit() -> impl Strategy<Value = Edit> {
    let service = (0..6_u8, any::<bool>(), proptest::option::weighted(0.8, 0..7_u8), 0..3_u8)
        .prop_map(|(number, source, kind, app)| Edit::Service { number, source, kind, app });
    let addresses = proptest::option::weighted(0.8, proptest::collection::vec(1..12_u8, 0..4));
    let slice = (0..3_u8, 0..6_u8, addresses).prop_map(|(number, service, addresses)| Edit::Slice { number, service, addresses });
    let pod = proptest::option::weighted(0.8, (0..3_u8, 1..9_u8, any::<bool>()));
    let pod = (0..6_u8, any::<bool>(), pod).prop_map(|(number, source, pod)| Edit::Pod { number, source, pod });
    prop_oneof![3 => service, 2 => slice, 6 => pod, 1 => any::<bool>().prop_map(Edit::Complete)]
}

fn apply(world: &mut World, edit: &Edit) {
    let source = |is_second: bool| if is_second { "b" } else { "a" };
    match edit {
        Edit::Service { number, source: of, kind, app } => {
            let named = json!([{"name": "p", "port": 80, "targetPort": 8080}]);
            let app = json!({"app": format!("a{app}")});
            let spec = kind.map(|kind| match kind {
                0 => json!({"selector": app, "ports": named}),
                1 => json!({"selector": app, "ports": named, "type": "NodePort", "sessionAffinity": "ClientIP"}),
                2 => json!({"selector": app, "ports": named, "clusterIP": "None"}),
                3 => json!({"ports": named, "type": "LoadBalancer"}),
                4 => json!({"ports": named, "clusterIP": "10.202.0.9"}),
                5 => json!({"type": "ExternalName", "externalName": "example.org"}),
                _ => json!({"selector": {"tier": "web"}, "ports": named, "publishNotReadyAddresses": true}),
            });
            world.put_service(&format!("s{number}"), source(*of), spec);
        }
        Edit::Slice { number, service, addresses } => {
            let address = |last: &u8| format!("10.201.0.{last}");
            let addresses = addresses.as_ref().map(|addresses| addresses.iter().map(address).collect());
            world.put_slice(&format!("x{number}"), &format!("s{service}"), addresses);
        }
        Edit::Pod { number, source: of, pod } => {
            let app = pod.map(|(app, ..)| format!("a{app}")).unwrap_or_default();
            world.put_pod(*number, source(*of), pod.map(|(_, address, is_ready)| (app.as_str(), address, is_ready)));
        }
        Edit::Complete(is_complete) => world.is_complete = *is_complete,
    }
}

proptest! {
    #[test]
    fn turn_gives_what_a_look_at_everything_gives(
        is_restricted in any::<bool>(),
        turns in proptest::collection::vec(proptest::collection::vec(edit(), 0..4), 1..24),
    ) {
        let (mut world, mut served) = (World::new(is_restricted), Served::default());
        for edits in turns {
            edits.iter().for_each(|edit| apply(&mut world, edit));
            let (objects, recorded) = (world.objects(), Arc::clone(&served.recorded));
            served.turn(&objects, &world.pods);
            served.assert_as_whole(&recorded, &objects, &world.pods);
        }
    }
}

#[test]
fn turn_of_a_pod_with_another_source_looks_at_services_that_list_its_address() {
    let (mut world, mut served) = (World::new(true), Served::default());
    world.put_service("listed", "a", Some(json!({"ports": [{"port": 80}]})));
    world.put_slice("listed", "listed", Some(vec!["10.201.0.40".to_owned()]));
    for source in ["a", "b", "a"] {
        world.put_pod(1, source, Some(("none", 40, true)));
        let (objects, recorded) = (world.objects(), Arc::clone(&served.recorded));
        served.turn(&objects, &world.pods);
        served.assert_as_whole(&recorded, &objects, &world.pods);
    }
}

#[test]
fn turn_of_a_pod_looks_at_its_own_services() {
    let (mut world, mut served) = (World::new(false), Served::default());
    for number in 0..20 {
        world.put_service(
            &format!("s{number}"),
            "a",
            Some(json!({"selector": {"app": format!("a{number}")}, "ports": [{"port": 80}]})),
        );
        world.put_pod(number, "a", Some((&format!("a{number}"), number + 1, true)));
    }
    world.put_service("listed", "a", Some(json!({"ports": [{"port": 80}]})));
    world.put_slice("listed", "listed", Some(vec!["10.201.0.40".to_owned()]));
    let objects = world.objects();
    assert_eq!(served.turn(&objects, &world.pods), None, "sources are known for the first time");
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(served.turn(&objects, &world.pods), names(&[]));
    world.put_pod(7, "a", Some(("a7", 8, false)));
    assert_eq!(served.turn(&objects, &world.pods), names(&["s7"]), "it is not ready any more");
    world.put_pod(7, "a", Some(("a9", 8, true)));
    assert_eq!(served.turn(&objects, &world.pods), names(&["s7", "s9"]), "it has another label");
    world.put_pod(30, "a", Some(("none", 40, true)));
    assert_eq!(served.turn(&objects, &world.pods), names(&["listed"]), "a listed address is that of a pod");
    world.put_slice("listed", "listed", Some(vec!["10.201.0.41".to_owned()]));
    assert_eq!(served.turn(&world.objects(), &world.pods), names(&["listed"]));
    world.put_service("s3", "a", Some(json!({"selector": {"app": "a3"}, "ports": [{"port": 81}]})));
    assert_eq!(served.turn(&world.objects(), &world.pods), names(&["s3"]));
    world.put_service("s4", "a", None);
    assert_eq!(served.turn(&world.objects(), &world.pods), names(&["s4"]));
}
