//! Services and their EndpointSlices as they are served: list, get, watch and tables.

use super::failure::ApiFailure;
use super::key::{PodKey, SOURCE_ANNOTATION};
use super::kinds::ServedKind;
use super::published_objects::{self, ObjectCollection, PublishedObject, Replacement};
use super::route::PodPath;
use super::table::{AGE, Column, age_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use podstead_pod::{DEFAULT_NAMESPACE, SourceId};
use podstead_telemetry::journal::Journal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Label of an EndpointSlice with the name of its Service.
pub(super) const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// Changes of one kind that are remembered for watchers.
const HISTORY: usize = 256;
/// Services shown at once that are enough to leave memory behind.
const MANY: usize = 64;

/// A Service as it is served.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The object, with its addresses and ports.
    pub service: Service,
    /// Its endpoints.
    pub slices: Vec<EndpointSlice>,
    /// The source that it comes from.
    pub source: SourceId,
}

impl Shown {
    /// The Service and its slices as the API has them.
    fn into_json(self) -> (Value, Vec<Value>) {
        let mut service = in_namespace(json!(self.service));
        default_ports(&mut service);
        service["metadata"]["annotations"][SOURCE_ANNOTATION] = json!(self.source.as_str());
        (service, self.slices.into_iter().map(|slice| in_namespace(json!(slice))).collect())
    }
}

/// The Services that are served, their EndpointSlices, and what packet rules count.
#[derive(Debug)]
pub struct ServiceView {
    services: Journal<PodKey, PublishedObject>,
    slices: Journal<PodKey, PublishedObject>,
    /// Changes of packet rules.
    changes: AtomicU64,
    denied: Option<Arc<dyn DeniedPackets>>,
}

/// Packets that NetworkPolicies denied to or of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Namespace of the pod.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// `ingress` or `egress`.
    pub direction: String,
    /// Number of packets.
    pub packets: u64,
}

/// The counters of NetworkPolicies.
pub trait DeniedPackets: Send + Sync + fmt::Debug + 'static {
    /// The present numbers. Blocks for a question to the kernel.
    fn denied(&self) -> Vec<Denied>;
}

/// Figures of Services and NetworkPolicies for monitoring.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Services, each with its number of ready endpoints: namespace, name, number.
    pub(super) services: Vec<(String, String, usize)>,
    /// Changes of the packet rules of Services since the daemon started.
    pub(super) changes: u64,
    /// Packets that NetworkPolicies denied.
    pub(super) denied: Vec<Denied>,
}

impl ServiceView {
    /// Nothing is served yet. Versions start after `start`, as those of pods do.
    pub fn new(start: u64) -> Self {
        let (services, slices) = (Journal::new(start, HISTORY), Journal::new(start, HISTORY));
        Self { services, slices, changes: AtomicU64::new(0), denied: None }
    }

    /// The same, with the counters of NetworkPolicies.
    #[must_use]
    pub fn with_denied(self, denied: Arc<dyn DeniedPackets>) -> Self {
        Self { denied: Some(denied), ..self }
    }

    /// Counts a change of packet rules.
    pub fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// All Services, and all EndpointSlices.
    pub(super) fn objects(&self) -> (Vec<Value>, Vec<Value>) {
        let objects = |journal: &Journal<PodKey, PublishedObject>| journal.list().1.iter().map(|item| item.object()).collect();
        (objects(&self.services), objects(&self.slices))
    }

    /// Figures for monitoring.
    pub(super) fn figures(&self) -> Figures {
        let text = |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut endpoints: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for service in self.services.list().1 {
            let service = service.object();
            endpoints.entry((text(&service, "/metadata/namespace"), text(&service, "/metadata/name"))).or_default();
        }
        for slice in self.slices.list().1 {
            let slice = slice.object();
            let service = slice["metadata"]["labels"][SERVICE_NAME_LABEL].as_str().unwrap_or_default().to_owned();
            let Some(found) = endpoints.get_mut(&(text(&slice, "/metadata/namespace"), service)) else { continue };
            let all = slice["endpoints"].as_array().into_iter().flatten();
            let ready = all.filter(|endpoint| endpoint["conditions"]["ready"] != false);
            // A pod has an address of each family.
            found.extend(ready.map(|endpoint| match endpoint["targetRef"]["uid"].as_str() {
                Some(uid) => uid.to_owned(),
                None => endpoint["addresses"].to_string(),
            }));
        }
        Figures {
            services: endpoints.into_iter().map(|((namespace, name), ready)| (namespace, name, ready.len())).collect(),
            changes: self.changes.load(Ordering::Relaxed),
            denied: self.denied.as_ref().map(|denied| denied.denied()).unwrap_or_default(),
        }
    }

    /// Replaces everything; what is the same keeps its version.
    pub fn replace(&self, shown: impl IntoIterator<Item = Shown>) {
        let (mut services, mut slices) = (Replacement::new(&self.services), Replacement::new(&self.slices));
        for shown in shown {
            let (service, of_service) = shown.into_json();
            services.put(&service);
            of_service.iter().for_each(|slice| slices.put(slice));
        }
        services.finish();
        slices.finish();
    }

    /// Puts one Service in the place of what is shown of it.
    fn show(&self, shown: Shown) {
        let (service, slices) = shown.into_json();
        let key = published_objects::put(&self.services, &service);
        for slice in &slices {
            published_objects::put(&self.slices, slice);
        }
        self.remove_slices(&key, slices.len());
    }

    /// Puts each of these Services in the place of what is shown of it.
    pub fn show_all(&self, shown: impl IntoIterator<Item = Shown>) {
        let count = shown.into_iter().map(|shown| self.show(shown)).count();
        if count >= MANY {
            self.services.shrink();
            self.slices.shrink();
        }
    }

    /// Shows a Service no longer.
    pub fn hide(&self, namespace: &str, name: &str) {
        let key = PodKey { namespace: namespace.into(), name: name.into() };
        published_objects::remove(&self.services, &key);
        self.remove_slices(&key, 0);
    }

    /// Removes the slices of a Service from this number on. Their numbers, at the end of their names, have no gaps.
    fn remove_slices(&self, service: &PodKey, from: usize) {
        let slice = |number: usize| PodKey { name: format!("{}-{number}", service.name).into(), ..service.clone() };
        for key in (from..).map(slice) {
            if !published_objects::remove(&self.slices, &key) {
                return;
            }
        }
    }

    const fn journal(&self, kind: ServedKind) -> &Journal<PodKey, PublishedObject> {
        match kind {
            ServedKind::Service => &self.services,
            ServedKind::EndpointSlice => &self.slices,
        }
    }
}

/// Fills in what the API defaults for ports.
fn default_ports(service: &mut Value) {
    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if port["protocol"].is_null() {
            port["protocol"] = json!("TCP");
        }
        if port["targetPort"].is_null() {
            port["targetPort"] = port["port"].clone();
        }
    }
}

/// An object without a namespace is in the default one.
fn in_namespace(mut object: Value) -> Value {
    let namespace = &mut object["metadata"]["namespace"];
    if namespace.as_str().is_none_or(str::is_empty) {
        *namespace = json!(DEFAULT_NAMESPACE);
    }
    object
}

/// Objects of one kind.
#[derive(Debug)]
pub(super) struct Served {
    view: Arc<ServiceView>,
    kind: ServedKind,
}

impl Served {
    pub(super) fn new(view: Arc<ServiceView>, kind: ServedKind) -> Self {
        Self { view, kind }
    }

    /// One object.
    pub(super) fn find(&self, path: &PodPath) -> Result<Arc<PublishedObject>, ApiFailure> {
        let key = PodKey { namespace: (&path.namespace).into(), name: (&path.name).into() };
        let plural = match self.kind {
            ServedKind::Service => "services",
            ServedKind::EndpointSlice => "endpointslices.discovery.k8s.io",
        };
        self.view.journal(self.kind).get(&key).ok_or_else(|| ApiFailure::not_found(plural, &path.name))
    }
}

const SERVICE_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Type", "Type of the Service"),
    Column::text("Cluster-IP", "Its address"),
    Column::text("External-IP", "Addresses for clients outside of the host, or the name that it stands for"),
    Column::text("Port(s)", "Its ports, and those of the host that lead to them"),
    AGE,
    Column::text("Selector", "Labels of its pods").wide(),
];
const SLICE_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("AddressType", "Family of the addresses"),
    Column::text("Ports", "Ports of the pods"),
    Column::text("Endpoints", "Addresses"),
    AGE,
];

impl ObjectCollection for Served {
    fn api_version(&self) -> &'static str {
        match self.kind {
            ServedKind::Service => "v1",
            ServedKind::EndpointSlice => "discovery.k8s.io/v1",
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            ServedKind::Service => "Service",
            ServedKind::EndpointSlice => "EndpointSlice",
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        match self.kind {
            ServedKind::Service => &["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"],
            ServedKind::EndpointSlice => &["metadata.name", "metadata.namespace"],
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self.kind {
            ServedKind::Service => SERVICE_COLUMNS,
            ServedKind::EndpointSlice => SLICE_COLUMNS,
        }
    }

    fn journal(&self) -> &Journal<PodKey, PublishedObject> {
        self.view.journal(self.kind)
    }

    fn cells(&self, object: Value, now: Timestamp) -> Vec<Value> {
        match self.kind {
            ServedKind::Service => service_cells(&object, age_of(&object, now)),
            ServedKind::EndpointSlice => slice_cells(&object, age_of(&object, now)),
        }
    }
}

/// The cells of `kubectl get services`.
fn service_cells(object: &Value, age: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let text = |value: &Value, none: &str| value.as_str().filter(|text| !text.is_empty()).unwrap_or(none).to_owned();
    let ingress = object["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    let further = spec["externalIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let addresses: Vec<&str> = ingress.filter_map(|entry| entry["ip"].as_str()).chain(further).collect();
    let external = match spec["type"].as_str() {
        Some("ExternalName") => text(&spec["externalName"], "<none>"),
        Some("LoadBalancer") if addresses.is_empty() => "<pending>".to_owned(),
        _ if addresses.is_empty() => "<none>".to_owned(),
        _ => addresses.join(","),
    };
    let ports: Vec<ServicePort> = serde_json::from_value(spec["ports"].clone()).unwrap_or_default();
    let port = |port: &ServicePort| {
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let node = port.node_port.map(|number| format!(":{number}")).unwrap_or_default();
        format!("{}{node}/{protocol}", port.port)
    };
    let selector = spec["selector"].as_object().into_iter().flatten();
    let selector: Vec<String> = selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    vec![
        object["metadata"]["name"].clone(),
        text(&spec["type"], "ClusterIP").into(),
        text(&spec["clusterIP"], "<none>").into(),
        external.into(),
        joined(ports.iter().map(port).collect(), "<none>").into(),
        age,
        joined(selector, "<none>").into(),
    ]
}

/// The cells of `kubectl get endpointslices`.
fn slice_cells(object: &Value, age: Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let ports = list(&object["ports"]).iter().filter_map(|port| port["port"].as_u64()).map(|port| port.to_string()).collect();
    let endpoints = list(&object["endpoints"]);
    let addresses = endpoints.iter().flat_map(|endpoint| list(&endpoint["addresses"]));
    let addresses = addresses.filter_map(|address| address.as_str().map(str::to_owned)).collect();
    vec![
        object["metadata"]["name"].clone(),
        object["addressType"].clone(),
        joined(ports, "<unset>").into(),
        joined(addresses, "<unset>").into(),
        age,
    ]
}

fn joined(parts: Vec<String>, none: &str) -> String {
    if parts.is_empty() { none.to_owned() } else { parts.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(address: &str) -> Vec<Shown> {
        let ports = json!([{"port": 80, "nodePort": 30080}]);
        let spec = json!({"type": "NodePort", "clusterIP": address, "selector": {"app": "web"}, "ports": ports});
        let service =
            serde_json::from_value(json!({"metadata": {"name": "web", "creationTimestamp": "1969-12-31T23:55:00Z"}, "spec": spec}))
                .unwrap();
        vec![Shown { service, slices: Vec::new(), source: SourceId::new("site") }]
    }

    #[test]
    fn service_is_shown_as_kubectl_does() {
        let view = Arc::new(ServiceView::new(5));
        view.replace(shown("10.202.0.7"));
        let served = Served::new(view, ServedKind::Service);
        let (_, items) = served.journal().list();
        let cells = served.cells(items[0].object(), Timestamp::UNIX_EPOCH);
        assert_eq!(cells, ["web", "NodePort", "10.202.0.7", "<none>", "80:30080/TCP", "5m", "app=web"]);
        assert_eq!(
            items[0].object()["spec"]["ports"],
            json!([{"port": 80, "nodePort": 30080, "protocol": "TCP", "targetPort": 80}])
        );
        assert_eq!(items[0].metadata()["annotations"][SOURCE_ANNOTATION], "site");
    }

    #[test]
    fn one_service_is_shown_beside_others() {
        let view = ServiceView::new(5);
        let slice =
            |name: &str| serde_json::from_value(json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": []}));
        let with = |slices: &[&str]| Shown {
            slices: slices.iter().map(|name| slice(name).unwrap()).collect(),
            ..shown("10.202.0.7").remove(0)
        };
        let names = || -> Vec<String> { view.slices.list().1.iter().map(|slice| slice.key.name.to_string()).collect() };
        view.replace([with(&["web-0", "web-1", "web-2", "other-0"])]);
        view.show(with(&["web-0"]));
        assert_eq!((names(), view.services.len()), (vec!["other-0".to_owned(), "web-0".to_owned()], 1));
        view.hide(DEFAULT_NAMESPACE, "web");
        assert_eq!((names(), view.services.len()), (vec!["other-0".to_owned()], 0));
    }

    #[test]
    fn unchanged_service_keeps_its_version() {
        let view = ServiceView::new(5);
        view.replace(shown("10.202.0.7"));
        view.replace(shown("10.202.0.7"));
        assert_eq!(view.services.version(), 6);
        view.replace(shown("10.202.0.8"));
        view.replace(Vec::new());
        assert_eq!((view.services.version(), view.services.len()), (8, 0));
    }
}
