//! Names and IDs as types.

pub use super::annotations::KEEPS_NAME as ANNOTATION_KEEPS_NAME;
use super::{Pod, SmolStr};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(SmolStr);

        impl $name {
            /// Wraps a value that is known to be well formed.
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into().into())
            }

            /// The bare string.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl AsRef<std::path::Path> for $name {
            fn as_ref(&self) -> &std::path::Path {
                self.0.as_ref()
            }
        }
    };
}

name_type! {
    /// Identity of one incarnation of a pod. Survives daemon restarts and in-place edits; new when the pod is recreated.
    PodUid
}
name_type! {
    /// Identity of one run of a container: 32 lower-case hexadecimal digits, never reused.
    ContainerId
}
name_type! {
    /// The name of a container inside its pod's spec.
    ContainerName
}
name_type! {
    /// The name of the source (from the configuration) that delivered a pod.
    SourceId
}
name_type! {
    /// The name of this host as Kubernetes knows it: a lower-case RFC 1123 subdomain.
    NodeName
}

impl PodUid {
    /// A new random UID.
    pub fn random() -> Self {
        Self::new(uuid::Uuid::new_v4().to_string())
    }
}

impl ContainerId {
    /// A new random id.
    pub fn random() -> Self {
        Self::new(uuid::Uuid::new_v4().simple().to_string())
    }
}

/// Name and namespace of a pod on this node; written `<name>_<namespace>`. The name carries the node suffix (kubelet rule A19).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodFullName {
    /// `metadata.name` with the suffix `-<node>`.
    pub name: String,
    /// `metadata.namespace`, never empty.
    pub namespace: String,
}

impl PodFullName {
    /// Of a pod as its worker has it: admitted, so that both are there.
    pub fn of(pod: &Pod) -> Self {
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            namespace: pod.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        }
    }
}

impl fmt::Display for PodFullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.name, self.namespace)
    }
}

/// Annotations that are podstead's (the kubelet's) to write; what a manifest says in them is dropped (kubelet rule A19).
pub const STAMPED_ANNOTATIONS: [&str; 6] = [
    ANNOTATION_CONFIG_HASH,
    ANNOTATION_CONFIG_SOURCE,
    ANNOTATION_CONFIG_SEEN,
    ANNOTATION_CONFIG_MIRROR,
    ANNOTATION_NETWORK_STATUS,
    ANNOTATION_KEEPS_NAME,
];
/// Hash of the pod's content.
pub const ANNOTATION_CONFIG_HASH: &str = "kubernetes.io/config.hash";
/// Name of the source that delivered the pod.
pub const ANNOTATION_CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// The time at which the pod was first seen; `None` if it does not say so.
pub fn seen(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.annotations.as_ref()?.get(ANNOTATION_CONFIG_SEEN)?.parse().ok()
}

/// The annotation with the time at which the pod was first seen.
pub const ANNOTATION_CONFIG_SEEN: &str = "kubernetes.io/config.seen";
/// On the copy of a static pod that an API server shows: the static pod's hash.
pub const ANNOTATION_CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
/// All interfaces of a pod, as Multus reports them.
pub const ANNOTATION_NETWORK_STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
