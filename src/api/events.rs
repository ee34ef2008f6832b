//! Events as a collection of Kubernetes `Event` objects: of `v1`, and of `events.k8s.io/v1`, which newer clients ask for.

use super::Backend;
use super::collection::Collection;
use super::event_api::{API_VERSION, EventApi};
use super::failure::ApiFailure;
use super::kinds::{OWN_GROUP, OWN_VERSION};
use super::route::PodPath;
use super::show::{age_since, human_duration};
use super::table::Column;
use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::api::events::v1 as events;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use podstead_pod::NodeName;
use podstead_telemetry::EventLog;
use podstead_telemetry::event_log::{EventKey, LoggedEvent};
use podstead_telemetry::events::{EventType, Subject};
use podstead_telemetry::journal::Journal;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the component that all events come from.
const COMPONENT: &str = "podstead";
/// Namespace of events about an object without a namespace, as in a cluster.
const DEFAULT_NAMESPACE: &str = "default";

const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
/// The same in `events.k8s.io/v1`.
const NEW_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "regarding.apiVersion",
    "regarding.fieldPath",
    "regarding.kind",
    "regarding.name",
    "regarding.namespace",
    "regarding.uid",
    "reason",
    "reportingController",
    "type",
];
const COLUMNS: &[Column] = &[
    Column::text("Last Seen", "Time since the last occurrence"),
    Column::text("Type", "Normal or Warning"),
    Column::text("Reason", "Machine-readable reason"),
    Column::text("Object", "Object that the event is about"),
    Column::text("Subobject", "Part of the object").wide(),
    Column::text("Source", "Component that reported the event").wide(),
    Column::text("Message", "Description of the event"),
    Column::text("First Seen", "Time since the first occurrence").wide(),
    Column::text("Count", "Number of occurrences").wide(),
    Column::name().wide(),
];

/// The event log of this host.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) log: Arc<EventLog>,
    pub(super) node: NodeName,
    pub(super) api: EventApi,
}

impl Events {
    /// The events of this host, in this API.
    pub(super) fn new(backend: &Backend, api: EventApi) -> Self {
        Self { log: Arc::clone(&backend.events), node: backend.node.clone(), api }
    }

    /// One event.
    pub(super) fn find(&self, path: &PodPath) -> Result<Arc<LoggedEvent>, ApiFailure> {
        let is_meant = |event: &&Arc<LoggedEvent>| {
            self.namespace(event) == path.namespace && self.object_metadata(event).name.as_deref() == Some(path.name.as_str())
        };
        let (_, events) = self.journal().list();
        events.iter().find(is_meant).cloned().ok_or_else(|| ApiFailure::not_found(self.api.qualified(), &path.name))
    }

    fn involved_object(&self, subject: &Subject) -> ObjectReference {
        match subject {
            Subject::Pod { uid, full_name, field_path } => ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Pod".into()),
                name: Some(full_name.name.clone()),
                namespace: Some(full_name.namespace.clone()),
                uid: Some(uid.to_string()),
                field_path: field_path.clone(),
                ..ObjectReference::default()
            },
            Subject::Workload { uid, api_version, kind, namespace, name } => ObjectReference {
                api_version: Some(api_version.to_string()),
                kind: Some(kind.to_string()),
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                uid: Some(uid.clone()),
                ..ObjectReference::default()
            },
            Subject::Source(id) => ObjectReference {
                api_version: Some(format!("{OWN_GROUP}/{OWN_VERSION}")),
                kind: Some("Source".into()),
                name: Some(id.to_string()),
                ..ObjectReference::default()
            },
            Subject::Node => ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Node".into()),
                name: Some(self.node.to_string()),
                // As a kubelet writes it, and kubectl asks for it.
                uid: Some(self.node.to_string()),
                ..ObjectReference::default()
            },
        }
    }

    fn object_metadata(&self, event: &LoggedEvent) -> ObjectMeta {
        let name = match &event.subject {
            Subject::Pod { full_name, .. } => full_name.name.as_str(),
            Subject::Workload { name, .. } => name.as_str(),
            Subject::Source(id) => id.as_str(),
            Subject::Node => self.node.as_str(),
        };
        ObjectMeta {
            name: Some(format!("{name}.{:x}", event.serial)),
            namespace: Some(self.namespace(event).to_owned()),
            resource_version: Some(event.version.to_string()),
            creation_timestamp: Some(Time(event.first_seen)),
            ..ObjectMeta::default()
        }
    }

    /// In `events.k8s.io/v1`, as an API server shows an event that was written in `v1`. Clients need `eventTime`, which such an event has not: the
    /// Python client refuses events without it.
    fn new_object(&self, event: &LoggedEvent) -> events::Event {
        let count = i32::try_from(event.count).unwrap_or(i32::MAX);
        events::Event {
            metadata: self.object_metadata(event),
            event_time: Some(MicroTime(event.first_seen)),
            regarding: Some(self.involved_object(&event.subject)),
            type_: Some(type_name(event.kind).into()),
            reason: Some(event.reason.clone()),
            note: Some(event.message.clone()),
            series: (count > 1).then_some(events::EventSeries { count, last_observed_time: MicroTime(event.last_seen) }),
            reporting_controller: Some(COMPONENT.into()),
            reporting_instance: Some(self.node.to_string()),
            deprecated_count: Some(count),
            deprecated_first_timestamp: Some(Time(event.first_seen)),
            deprecated_last_timestamp: Some(Time(event.last_seen)),
            deprecated_source: Some(EventSource { component: Some(COMPONENT.into()), host: Some(self.node.to_string()) }),
            ..events::Event::default()
        }
    }

    fn object(&self, event: &LoggedEvent) -> Event {
        Event {
            metadata: self.object_metadata(event),
            involved_object: self.involved_object(&event.subject),
            type_: Some(type_name(event.kind).into()),
            reason: Some(event.reason.clone()),
            message: Some(event.message.clone()),
            count: Some(i32::try_from(event.count).unwrap_or(i32::MAX)),
            first_timestamp: Some(Time(event.first_seen)),
            last_timestamp: Some(Time(event.last_seen)),
            source: Some(EventSource { component: Some(COMPONENT.into()), host: Some(self.node.to_string()) }),
            reporting_component: Some(COMPONENT.into()),
            reporting_instance: Some(self.node.to_string()),
            ..Event::default()
        }
    }
}

fn type_name(kind: EventType) -> &'static str {
    match kind {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    }
}

impl Collection for Events {
    type Key = EventKey;
    type Item = LoggedEvent;

    fn api_version(&self) -> &'static str {
        match self.api {
            EventApi::Core => "v1",
            EventApi::Events => API_VERSION,
        }
    }

    fn kind(&self) -> &'static str {
        "Event"
    }

    fn fields(&self) -> &'static [&'static str] {
        match self.api {
            EventApi::Core => FIELDS,
            EventApi::Events => NEW_FIELDS,
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn journal(&self) -> &Journal<EventKey, LoggedEvent> {
        self.log.journal()
    }

    fn namespace<'a>(&self, item: &'a LoggedEvent) -> &'a str {
        match &item.subject {
            Subject::Pod { full_name, .. } => &full_name.namespace,
            Subject::Workload { namespace, .. } => namespace,
            Subject::Source(_) | Subject::Node => DEFAULT_NAMESPACE,
        }
    }

    fn labels<'a>(&self, _item: &'a LoggedEvent) -> Option<Cow<'a, BTreeMap<String, String>>> {
        None
    }

    fn field(&self, item: &LoggedEvent, name: &str) -> String {
        let object = self.involved_object(&item.subject);
        let value = match &*self.api.core_field(name) {
            "metadata.name" => self.object_metadata(item).name,
            "metadata.namespace" => Some(self.namespace(item).to_owned()),
            "involvedObject.apiVersion" => object.api_version,
            "involvedObject.fieldPath" => object.field_path,
            "involvedObject.kind" => object.kind,
            "involvedObject.name" => object.name,
            "involvedObject.namespace" => object.namespace,
            "involvedObject.uid" => object.uid,
            "reason" => Some(item.reason.clone()),
            "reportingComponent" | "source" => Some(COMPONENT.into()),
            "type" => Some(type_name(item.kind).into()),
            _ => None,
        };
        value.unwrap_or_default()
    }

    fn metadata(&self, item: &LoggedEvent) -> Value {
        json!(self.object_metadata(item))
    }

    fn json(&self, item: &LoggedEvent) -> Bytes {
        // Writing to memory cannot fail, and an event has string keys only.
        let text = match self.api {
            EventApi::Core => serde_json::to_vec(&self.object(item)),
            EventApi::Events => serde_json::to_vec(&self.new_object(item)),
        };
        Bytes::from(text.unwrap_or_default())
    }

    fn cells(&self, item: &LoggedEvent, now: Timestamp) -> Vec<Value> {
        let object = self.involved_object(&item.subject);
        let kind = object.kind.unwrap_or_default().to_lowercase();
        let last = age_since(Some(item.last_seen), now);
        let first = age_since(Some(item.first_seen), now);
        let seen = if item.count > 1 { format!("{last} (x{} over {})", item.count, spread(item)) } else { last };
        vec![
            json!(seen),
            json!(type_name(item.kind)),
            json!(item.reason),
            json!(format!("{kind}/{}", object.name.unwrap_or_default())),
            json!(object.field_path.unwrap_or_default()),
            json!(format!("{COMPONENT}, {}", self.node)),
            json!(item.message),
            json!(first),
            json!(item.count.to_string()),
            json!(self.object_metadata(item).name),
        ]
    }
}

/// Time between the first and the last time.
fn spread(event: &LoggedEvent) -> String {
    human_duration(event.last_seen.duration_since(event.first_seen).as_secs())
}
