//! Names of the API of NetworkPolicies, and of Ingresses, of which there are none.

use podstead_pod::objects::{NetworkKind, ObjectKind};

/// The API group.
pub(super) const GROUP: &str = "networking.k8s.io";

/// The version of it, as objects have it.
pub(super) const API_VERSION: &str = "networking.k8s.io/v1";

/// The kind.
pub(super) const KIND: &str = "NetworkPolicy";

/// The plural, as in paths.
pub(super) const PLURAL: &str = "networkpolicies";

/// The plural with the group, as messages have it.
pub(super) const QUALIFIED: &str = "networkpolicies.networking.k8s.io";

/// Ingresses, as in paths.
pub(super) const INGRESSES: &str = "ingresses";

/// Ingresses with the group, as messages have it.
pub(super) const INGRESSES_QUALIFIED: &str = "ingresses.networking.k8s.io";

/// The kind among objects of sources.
pub(super) const OBJECT_KIND: ObjectKind = ObjectKind::Network(NetworkKind::NetworkPolicy);
