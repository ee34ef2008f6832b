//! Pods as a collection, and the errors for attempts to change them.

use super::Backend;
use super::access::Attributes;
use super::collection::Collection;
use super::failure::ApiFailure;
use super::key::PodKey;
use super::own::short_revision;
use super::published::{Published, PublishedPod};
use super::route::PodPath;
use super::show::{PodRow, age_since};
use super::table::Column;
use bytes::Bytes;
use jiff::Timestamp;
use podstead_pod::DesiredPod;
use podstead_telemetry::journal::Journal;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
];
const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Ready", "Ready containers of all containers"),
    Column::text("Status", "Status of the pod, or the reason why it does not run"),
    Column::text("Restarts", "Number of container restarts, and time since the last one"),
    Column::text("Age", "Time since the pod was created"),
    Column::text("IP", "IP address of the pod").wide(),
    Column::text("Node", "Name of this host").wide(),
    Column::text("Source", "Source that has the manifest of the pod, or of its workload").wide(),
    Column::text("Images", "Images of the containers").wide(),
];

/// Reports whether a pod is called as the manifest and this host.
fn is_made_from(desired: &DesiredPod, manifest: &PodPath) -> bool {
    let node = desired.pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let name = desired.full_name.name.strip_suffix(node).and_then(|name| name.strip_suffix('-'));
    desired.full_name.namespace == manifest.namespace && name == Some(manifest.name.as_str())
}

/// Pods as published.
#[derive(Debug)]
pub(super) struct Pods(pub(super) Arc<Published>);

impl Pods {
    /// One pod. The error names the pod that the manifest of this name became, if there is one.
    pub(super) fn find(&self, path: &PodPath) -> Result<Arc<PublishedPod>, ApiFailure> {
        let key = PodKey { namespace: (&path.namespace).into(), name: (&path.name).into() };
        self.0.pods().get(&key).ok_or_else(|| {
            let failure = ApiFailure::not_found("pods", &path.name);
            match self.made_from(path) {
                Some(pod) => {
                    let message = format!("{} (this host has {:?})", failure.message, pod.desired.full_name.name);
                    ApiFailure { message, ..failure }
                }
                None => failure,
            }
        })
    }

    /// The pod that is called as the manifest and this host.
    fn made_from(&self, manifest: &PodPath) -> Option<Arc<PublishedPod>> {
        let (_, pods) = self.0.pods().list();
        pods.into_iter().find(|pod| is_made_from(&pod.desired, manifest))
    }

    /// Refuses to make a pod from a manifest of this name if there is one already, which another source has under a longer name.
    pub(super) fn refuse_twin(&self, manifest: &PodPath) -> Result<(), ApiFailure> {
        let Some(twin) = self.made_from(manifest) else { return Ok(()) };
        let (name, twin) = (&manifest.name, &twin.desired);
        let place = format!("source {} (revision {}, {})", twin.source, short_revision(&twin.revision.0), twin.origin);
        let message = format!("pods {name:?} already exists: {place} has it as {:?}", twin.full_name.name);
        Err(ApiFailure::already_exists(message).about("pods", name))
    }

    /// Error for changes of a pod: names the place of its manifest.
    pub(super) fn refuse_change(&self, path: &PodPath) -> ApiFailure {
        match self.find(path) {
            Ok(pod) if pod.desired.pod.metadata.deletion_timestamp.is_some() => {
                let again = format!("kubectl wait --for=delete pod/{}", path.name);
                ApiFailure::conflict(format!("pod {:?} is ending: try again when it has ended ({again})", path.name))
                    .about("pods", &path.name)
            }
            Ok(pod) => {
                let desired = &pod.desired;
                let owners = desired.pod.metadata.owner_references.as_deref().unwrap_or_default();
                let owner = owners.iter().find(|owner| owner.controller == Some(true));
                let (belongs, what) = match owner {
                    Some(owner) => {
                        (format!(" belongs to {} {:?} and", owner.kind.to_lowercase(), owner.name), "change spec.template of")
                    }
                    None => (String::new(), "change or remove"),
                };
                let revision = short_revision(&desired.revision.0);
                ApiFailure::method_not_allowed(format!(
                    "pod {:?}{belongs} is managed by source {} (revision {revision}, {}): {what} its manifest there",
                    path.name, desired.source, desired.origin
                ))
                .about("pods", &path.name)
            }
            Err(not_found) => not_found,
        }
    }
}

impl Published {
    /// Error for creating objects of a kind: names the sources.
    pub(super) fn refuse_creation(&self, plural: &str) -> ApiFailure {
        let sources = self.sources();
        let places: Vec<_> = sources.iter().map(|source| format!("{} ({})", source.id, source.location)).collect();
        let places = if places.is_empty() { "no source is configured".to_owned() } else { places.join(", ") };
        ApiFailure::method_not_allowed(format!("{plural} cannot be created through the API; add a manifest to a source: {places}"))
    }
}

impl Collection for Pods {
    type Key = PodKey;
    type Item = PublishedPod;

    fn api_version(&self) -> &'static str {
        "v1"
    }

    fn kind(&self) -> &'static str {
        "Pod"
    }

    fn fields(&self) -> &'static [&'static str] {
        FIELDS
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn journal(&self) -> &Journal<PodKey, PublishedPod> {
        self.0.pods()
    }

    fn namespace<'a>(&self, item: &'a PublishedPod) -> &'a str {
        &item.desired.full_name.namespace
    }

    fn labels<'a>(&self, item: &'a PublishedPod) -> Option<Cow<'a, BTreeMap<String, String>>> {
        item.desired.pod.metadata.labels.as_ref().map(Cow::Borrowed)
    }

    fn field(&self, item: &PublishedPod, name: &str) -> String {
        let spec = item.desired.pod.spec.as_ref();
        let value = match name {
            "metadata.name" => Some(item.desired.full_name.name.clone()),
            "metadata.namespace" => Some(item.desired.full_name.namespace.clone()),
            "metadata.uid" => Some(item.desired.uid.to_string()),
            "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
            "spec.hostNetwork" => Some(spec.and_then(|spec| spec.host_network).unwrap_or_default().to_string()),
            "spec.schedulerName" => spec.and_then(|spec| spec.scheduler_name.clone()),
            "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
            "spec.restartPolicy" => spec.and_then(|spec| spec.restart_policy.clone()),
            "status.phase" => item.status.phase.clone(),
            "status.podIP" => item.status.pod_ip.clone(),
            _ => None,
        };
        value.unwrap_or_default()
    }

    fn metadata(&self, item: &PublishedPod) -> Value {
        json!(item.metadata())
    }

    fn json(&self, item: &PublishedPod) -> Bytes {
        item.json()
    }

    fn cells(&self, item: &PublishedPod, now: Timestamp) -> Vec<Value> {
        let row = PodRow::of(&item.object());
        let or_none = |value: Option<&str>| json!(value.filter(|value| !value.is_empty()).unwrap_or("<none>"));
        let spec = item.desired.pod.spec.as_ref();
        let containers = spec.into_iter().flat_map(|spec| &spec.containers);
        let images: Vec<&str> = containers.filter_map(|container| container.image.as_deref()).collect();
        vec![
            json!(item.desired.full_name.name),
            json!(row.ready_column()),
            json!(row.status),
            json!(row.restarts_column(now)),
            json!(age_since(Some(item.created_at), now)),
            or_none(item.status.pod_ip.as_deref()),
            or_none(spec.and_then(|spec| spec.node_name.as_deref())),
            json!(item.desired.source.as_str()),
            json!(images.join(",")),
        ]
    }
}

/// Reports whether a request is about a pod with access to the host; a pod that does not exist has none.
pub(super) fn has_host_access(backend: &Backend, attributes: &Attributes<'_>) -> bool {
    let (Some(namespace), Some(name)) = (attributes.namespace, attributes.name) else { return false };
    if attributes.resource != "pods" {
        return false;
    }
    let key = PodKey { namespace: namespace.into(), name: name.into() };
    let pod = backend.published.pods().get(&key);
    pod.is_some_and(|pod| podstead_store::needs_host_access(&pod.desired.pod, namespace))
}
