//! Typed objects of manifests, and what identifies them. **Pure**.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use podstead_pod::objects::NetworkObject;
use podstead_pod::{DEFAULT_NAMESPACE, SmolStr};
use podstead_workload::object::Workload;

/// An object of a manifest.
#[derive(Clone, PartialEq)]
pub enum Object {
    /// A v1 Pod as written: neither defaulted nor validated.
    Pod(Box<Pod>),
    /// A v1 ConfigMap, for pods to refer to.
    ConfigMap(Box<ConfigMap>),
    /// A v1 Secret, for pods to refer to.
    Secret(Box<Secret>),
    /// A v1 PersistentVolumeClaim, for pods to refer to.
    PersistentVolumeClaim(Box<PersistentVolumeClaim>),
    /// An object that asks for pods, as written: neither defaulted nor validated.
    Workload(Workload),
    /// An object that says how pods are reached, as written: neither defaulted nor validated.
    Network(NetworkObject),
}

impl Object {
    /// Puts an object that is written without a namespace into this one. `default` is left out, as it is written.
    pub(super) fn place_in(&mut self, namespace: &str) {
        let metadata = match self {
            Object::Pod(pod) => &mut pod.metadata,
            Object::ConfigMap(config_map) => &mut config_map.metadata,
            Object::Secret(secret) => &mut secret.metadata,
            Object::PersistentVolumeClaim(claim) => &mut claim.metadata,
            Object::Workload(workload) => workload.metadata_mut(),
            // It is in none.
            Object::Network(NetworkObject::Namespace(_)) => return,
            Object::Network(object) => object.metadata_mut(),
        };
        if namespace != DEFAULT_NAMESPACE && metadata.namespace.as_ref().is_none_or(String::is_empty) {
            metadata.namespace = Some(namespace.to_owned());
        }
    }
}

impl std::fmt::Debug for Object {
    /// Without the content of a Secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Object::Pod(pod) => pod.fmt(f),
            Object::ConfigMap(config_map) => config_map.fmt(f),
            Object::PersistentVolumeClaim(claim) => claim.fmt(f),
            Object::Workload(workload) => workload.fmt(f),
            Object::Network(object) => object.fmt(f),
            Object::Secret(secret) => write!(f, "Secret {:?}", secret.metadata),
        }
    }
}

/// Kind, namespace (`default` where empty) and name: what identifies an object inside one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ObjectKey {
    /// Such as `Pod`.
    pub kind: SmolStr,
    /// The namespace, `default` where the manifest has none.
    pub namespace: SmolStr,
    /// The name as written (without the node suffix).
    pub name: SmolStr,
}
