//! Objects that say how pods are reached. Pods do not refer to them.

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// Kind of a [`NetworkObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkKind {
    /// `v1` Service.
    Service,
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice,
    /// `v1` Namespace, for its labels.
    Namespace,
    /// `networking.k8s.io/v1` NetworkPolicy.
    NetworkPolicy,
}

impl NetworkKind {
    /// As `kind` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Namespace => "Namespace",
            Self::NetworkPolicy => "NetworkPolicy",
        }
    }

    /// As messages of the kubelet have it.
    pub(super) const fn in_a_sentence(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::EndpointSlice => "endpointslice",
            Self::Namespace => "namespace",
            Self::NetworkPolicy => "networkpolicy",
        }
    }
}

/// An object that says how pods are reached, without status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NetworkObject {
    /// `v1` Service.
    Service(Box<Service>),
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice(Box<EndpointSlice>),
    /// `v1` Namespace.
    Namespace(Box<Namespace>),
    /// `networking.k8s.io/v1` NetworkPolicy.
    NetworkPolicy(Box<NetworkPolicy>),
}

impl NetworkObject {
    /// Its kind.
    pub const fn kind(&self) -> NetworkKind {
        match self {
            Self::Service(_) => NetworkKind::Service,
            Self::EndpointSlice(_) => NetworkKind::EndpointSlice,
            Self::Namespace(_) => NetworkKind::Namespace,
            Self::NetworkPolicy(_) => NetworkKind::NetworkPolicy,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Service(object) => &object.metadata,
            Self::EndpointSlice(object) => &object.metadata,
            Self::Namespace(object) => &object.metadata,
            Self::NetworkPolicy(object) => &object.metadata,
        }
    }

    /// The same, to be changed.
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Service(object) => &mut object.metadata,
            Self::EndpointSlice(object) => &mut object.metadata,
            Self::Namespace(object) => &mut object.metadata,
            Self::NetworkPolicy(object) => &mut object.metadata,
        }
    }

    /// The object as the API has it, with `apiVersion` and `kind`.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        match self {
            Self::Service(object) => serde_json::to_value(object),
            Self::EndpointSlice(object) => serde_json::to_value(object),
            Self::Namespace(object) => serde_json::to_value(object),
            Self::NetworkPolicy(object) => serde_json::to_value(object),
        }
    }
}
