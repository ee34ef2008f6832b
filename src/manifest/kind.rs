//! The kinds that podstead reads, and how each becomes a typed object.

use super::Object;
use super::node::Node;
use super::schema::{self, Struct, table};
use podstead_pod::objects::NetworkObject;
use podstead_workload::object::Workload;

/// A kind of object that a manifest may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The API version as a manifest has it.
    pub(super) version: &'static str,
    pub(super) structure: &'static Struct,
    /// The kind of a list of such objects. Its version is that of its items.
    pub(super) list: &'static str,
    /// Content of the spec, for the hint where it is missing; `None` for kinds without a spec, or whose spec the schema requires.
    pub(super) spec: Option<&'static str>,
    read: fn(serde_json::Value) -> Result<Object, serde_json::Error>,
}

/// The kind of a list of any objects, and its version.
pub(super) const LIST: &str = "List";
pub(super) const LIST_VERSION: &str = "v1";

/// The kind of documents that change other objects, and their version.
pub(super) const PATCH: &str = "Patch";
pub(super) const PATCH_VERSION: &str = "podstead.dev/v1alpha1";

/// The spec of a kind that keeps pods running.
const TEMPLATE: Option<&str> = Some("it has at least selector and template");

/// All of them.
const KINDS: [Kind; 15] = [
    Kind {
        name: "Pod",
        version: "v1",
        structure: &table::POD,
        list: "PodList",
        spec: Some("a Pod has at least spec.containers"),
        read: |json| serde_json::from_value(json).map(|object| Object::Pod(Box::new(object))),
    },
    Kind {
        name: "ConfigMap",
        version: "v1",
        structure: &table::CONFIG_MAP,
        list: "ConfigMapList",
        spec: None,
        read: |json| serde_json::from_value(json).map(|object| Object::ConfigMap(Box::new(object))),
    },
    Kind {
        name: "Secret",
        version: "v1",
        structure: &table::SECRET,
        list: "SecretList",
        spec: None,
        read: |json| serde_json::from_value(json).map(|object| Object::Secret(Box::new(object))),
    },
    Kind {
        name: "PersistentVolumeClaim",
        version: "v1",
        structure: &table::PERSISTENT_VOLUME_CLAIM,
        list: "PersistentVolumeClaimList",
        spec: None,
        read: |json| serde_json::from_value(json).map(|object| Object::PersistentVolumeClaim(Box::new(object))),
    },
    Kind {
        name: "Deployment",
        version: "apps/v1",
        structure: &table::DEPLOYMENT,
        list: "DeploymentList",
        spec: TEMPLATE,
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::Deployment(Box::new(object)))),
    },
    Kind {
        name: "ReplicaSet",
        version: "apps/v1",
        structure: &table::REPLICA_SET,
        list: "ReplicaSetList",
        spec: TEMPLATE,
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::ReplicaSet(Box::new(object)))),
    },
    Kind {
        name: "ReplicationController",
        version: "v1",
        structure: &table::REPLICATION_CONTROLLER,
        list: "ReplicationControllerList",
        spec: Some("it has at least template"),
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::ReplicationController(Box::new(object)))),
    },
    Kind {
        name: "StatefulSet",
        version: "apps/v1",
        structure: &table::STATEFUL_SET,
        list: "StatefulSetList",
        spec: TEMPLATE,
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::StatefulSet(Box::new(object)))),
    },
    Kind {
        name: "DaemonSet",
        version: "apps/v1",
        structure: &table::DAEMON_SET,
        list: "DaemonSetList",
        spec: TEMPLATE,
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::DaemonSet(Box::new(object)))),
    },
    Kind {
        name: "Job",
        version: "batch/v1",
        structure: &table::JOB,
        list: "JobList",
        spec: Some("it has at least template"),
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::Job(Box::new(object)))),
    },
    Kind {
        name: "CronJob",
        version: "batch/v1",
        structure: &table::CRON_JOB,
        list: "CronJobList",
        spec: Some("it has schedule and jobTemplate"),
        read: |json| serde_json::from_value(json).map(|object| Object::Workload(Workload::CronJob(Box::new(object)))),
    },
    Kind {
        name: "Service",
        version: "v1",
        structure: &table::SERVICE,
        list: "ServiceList",
        spec: Some("a Service has at least spec.ports"),
        read: |json| serde_json::from_value(json).map(|object| Object::Network(NetworkObject::Service(Box::new(object)))),
    },
    Kind {
        name: "EndpointSlice",
        version: "discovery.k8s.io/v1",
        structure: &table::ENDPOINT_SLICE,
        list: "EndpointSliceList",
        spec: None,
        read: |json| serde_json::from_value(json).map(|object| Object::Network(NetworkObject::EndpointSlice(Box::new(object)))),
    },
    Kind {
        name: "Namespace",
        version: "v1",
        structure: &table::NAMESPACE,
        list: "NamespaceList",
        spec: None,
        read: |json| serde_json::from_value(json).map(|object| Object::Network(NetworkObject::Namespace(Box::new(object)))),
    },
    Kind {
        name: "NetworkPolicy",
        version: "networking.k8s.io/v1",
        structure: &table::NETWORK_POLICY,
        list: "NetworkPolicyList",
        spec: Some("a NetworkPolicy has at least spec.podSelector; `{}` selects all pods of its namespace"),
        read: |json| serde_json::from_value(json).map(|object| Object::Network(NetworkObject::NetworkPolicy(Box::new(object)))),
    },
];

impl Kind {
    /// The typed object of a document without faults.
    pub(super) fn typed(self, node: Node) -> Result<Object, serde_json::Error> {
        (self.read)(schema::into_json(node, self.structure))
    }
}

/// The kind of that name.
pub(super) fn kind_named(name: &str) -> Option<Kind> {
    KINDS.into_iter().find(|kind| kind.name == name)
}

/// The kind whose lists have that name.
pub(super) fn kind_of_list(name: &str) -> Option<Kind> {
    KINDS.into_iter().find(|kind| kind.list == name)
}

/// Reports whether podstead reads a kind of that name, in whatever version.
pub(super) fn is_own(name: &str) -> bool {
    name == LIST || name == PATCH || kind_named(name).is_some() || kind_of_list(name).is_some()
}

/// The names of all kinds and lists.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().flat_map(|kind| [kind.name, kind.list]).chain([LIST])
}

/// Reports whether an object has this kind and its version.
pub(super) fn says_its_kind(node: &Node, kind: Kind) -> bool {
    let says = |name: &str, value: &str| node.entry(name).is_none_or(|entry| entry.value.as_str() == Some(value));
    says("kind", kind.name) && says("apiVersion", kind.version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_workload::object::WorkloadKind;

    #[test]
    fn every_kind_of_workload_has_its_version() {
        for kind in WorkloadKind::ALL {
            let row = kind_named(kind.as_str()).unwrap();
            assert_eq!((row.version, row.list), (kind.api_version(), format!("{kind}List").as_str()));
            assert_eq!(row.structure.name, kind.as_str());
            assert!(row.spec.is_some());
        }
    }
}
