//! Events of this host as the API server wants them.
//!
//! A pod's events name the mirror's hash as their UID, as the kubelet's do: by it `kubectl describe` finds the events of a mirror.

use super::{NodeRef, seconds};
use podstead_pod::NodeName;
use podstead_telemetry::event_log::LoggedEvent;
use podstead_telemetry::events::{EventType, Subject};
use serde_json::{Value, json};

/// Namespace of events that are about the Node.
const NODE_NAMESPACE: &str = "default";

/// Namespace and name of an event at the API server; names are not used again after a restart.
pub fn event_name(event: &LoggedEvent, node: &NodeName) -> (String, String) {
    let (namespace, subject) = match &event.subject {
        Subject::Pod { full_name, .. } => (full_name.namespace.as_str(), full_name.name.as_str()),
        Subject::Workload { .. } | Subject::Source(_) | Subject::Node => (NODE_NAMESPACE, node.as_str()),
    };
    (namespace.to_owned(), format!("{subject}.{:x}", event.serial))
}

/// The mirror of a pod, as events name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorRef {
    /// Its name.
    pub name: String,
    /// The content hash of the pod, which the cluster takes for its UID.
    pub hash: String,
}

/// The event to create. `mirror` is that of the pod that it is about, while there is one.
pub fn event_object(event: &LoggedEvent, node: &NodeRef, name: &NodeName, mirror: Option<&MirrorRef>) -> Value {
    let (namespace, event_name) = event_name(event, name);
    let (involved, message) = match &event.subject {
        Subject::Pod { uid, full_name, field_path } => {
            let mut involved = json!({
                "apiVersion": "v1", "kind": "Pod", "name": mirror.map_or(&full_name.name, |mirror| &mirror.name),
                "namespace": full_name.namespace, "uid": mirror.map_or(uid.as_str(), |mirror| &mirror.hash),
            });
            if let Some(path) = field_path {
                involved["fieldPath"] = path.clone().into();
            }
            (involved, event.message.clone())
        }
        // The cluster knows neither workloads of this host nor sources.
        Subject::Workload { uid: _, api_version: _, kind, namespace, name } => {
            (involved_node(node), format!("{} {namespace}/{name}: {}", kind.to_lowercase(), event.message))
        }
        Subject::Source(id) => (involved_node(node), format!("source {id}: {}", event.message)),
        Subject::Node => (involved_node(node), event.message.clone()),
    };
    let kind = match event.kind {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event_name, "namespace": namespace},
        "involvedObject": involved,
        "type": kind,
        "reason": event.reason,
        "message": message,
        "count": event.count,
        "firstTimestamp": seconds(event.first_seen),
        "lastTimestamp": seconds(event.last_seen),
        "source": {"component": "podstead", "host": node.name},
        "reportingComponent": "podstead",
        "reportingInstance": node.name,
    })
}

/// A Node's events have its name for its UID, as the kubelet's.
fn involved_node(node: &NodeRef) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.name})
}

/// The patch for one that happened again since it was created.
pub fn event_patch(event: &LoggedEvent) -> Value {
    json!({"count": event.count, "lastTimestamp": seconds(event.last_seen), "message": event.message})
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use podstead_pod::{PodFullName, PodUid, SourceId};

    fn event(subject: Subject) -> LoggedEvent {
        LoggedEvent {
            serial: 255,
            subject,
            kind: EventType::Warning,
            reason: "BackOff".into(),
            message: "back-off".into(),
            is_combined: false,
            count: 2,
            first_seen: Timestamp::UNIX_EPOCH,
            last_seen: Timestamp::from_second(5).unwrap(),
            version: 300,
        }
    }

    #[test]
    fn a_pods_event_names_the_hash_of_its_mirror() {
        let full_name = PodFullName { name: "web-edge".into(), namespace: "shop".into() };
        let subject = Subject::Pod { uid: PodUid::new("local"), full_name, field_path: Some("spec.containers{c}".into()) };
        let node = NodeRef { name: "edge".into(), uid: "n1".into() };
        let mirror = MirrorRef { name: "web-edge".into(), hash: "h1".into() };
        let object = event_object(&event(subject), &node, &NodeName::new("edge"), Some(&mirror));
        assert_eq!(object["metadata"], json!({"name": "web-edge.ff", "namespace": "shop"}));
        assert_eq!((&object["involvedObject"]["uid"], &object["count"]), (&json!("h1"), &json!(2)));
        assert_eq!(object["lastTimestamp"], "1970-01-01T00:00:05Z");
    }

    #[test]
    fn what_is_no_object_of_the_cluster_is_said_of_the_node() {
        let node = NodeRef { name: "edge".into(), uid: "n1".into() };
        let object = event_object(&event(Subject::Source(SourceId::new("fleet"))), &node, &NodeName::new("edge"), None);
        assert_eq!(object["involvedObject"], json!({"apiVersion": "v1", "kind": "Node", "name": "edge", "uid": "edge"}));
        assert_eq!(object["message"], "source fleet: back-off");
        let web = Subject::Workload {
            uid: "1".into(),
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "web".into(),
        };
        let object = event_object(&event(web), &node, &NodeName::new("edge"), None);
        assert_eq!(object["metadata"], json!({"name": "edge.ff", "namespace": "default"}));
        assert_eq!(object["message"], "deployment shop/web: back-off");
    }
}
