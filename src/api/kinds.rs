//! Kinds and commands that paths name. **Pure**.

use super::{leases, networking, storage};
use podstead_manifest::schema::{Struct, table};
use podstead_pod::objects::ObjectKind;
use std::time::Duration;

/// Our API group.
pub const OWN_GROUP: &str = "podstead.dev";
/// The version of it.
pub const OWN_VERSION: &str = "v1alpha1";
/// Both, as objects have them.
pub(super) const OWN_API_VERSION: &str = "podstead.dev/v1alpha1";

/// The plural of ControllerRevision, as in paths.
pub(super) const CONTROLLER_REVISIONS: &str = "controllerrevisions";

/// A kind that is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookedUpKind {
    /// `v1` ConfigMap.
    ConfigMap,
    /// `v1` Secret, without its data.
    Secret,
    /// `v1` PersistentVolumeClaim.
    Claim,
    /// `networking.k8s.io/v1` NetworkPolicy.
    NetworkPolicy,
    /// `v1` Endpoints of a Service.
    Endpoints,
    /// A source.
    Source,
    /// An image.
    Image,
    /// A pull under way.
    Pull,
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node: this host.
    Node,
    /// `coordination.k8s.io/v1` Lease of the node.
    Lease,
    /// `apps/v1` ControllerRevision.
    ControllerRevision,
    /// `v1` PersistentVolume, of which there is never one: `kubectl apply --prune` asks for them.
    PersistentVolume,
    /// `networking.k8s.io/v1` Ingress, of which there is never one, for the same reason.
    Ingress,
    /// `storage.k8s.io/v1` StorageClass, of which there is never one.
    StorageClass,
}

impl LookedUpKind {
    pub(super) const ALL: [Self; 15] = [
        Self::ConfigMap,
        Self::Secret,
        Self::Claim,
        Self::NetworkPolicy,
        Self::Endpoints,
        Self::Source,
        Self::Image,
        Self::Pull,
        Self::Namespace,
        Self::Node,
        Self::Lease,
        Self::ControllerRevision,
        Self::PersistentVolume,
        Self::Ingress,
        Self::StorageClass,
    ];

    /// The API group.
    pub(super) const fn group(self) -> &'static str {
        match self {
            Self::ConfigMap
            | Self::Secret
            | Self::Claim
            | Self::Endpoints
            | Self::Namespace
            | Self::Node
            | Self::PersistentVolume => "",
            Self::Lease => leases::GROUP,
            Self::ControllerRevision => "apps",
            Self::NetworkPolicy | Self::Ingress => networking::GROUP,
            Self::StorageClass => storage::GROUP,
            Self::Source | Self::Image | Self::Pull => OWN_GROUP,
        }
    }

    /// The plural with the group, as messages have it.
    pub(super) const fn qualified(self) -> &'static str {
        match self {
            Self::NetworkPolicy => networking::QUALIFIED,
            Self::Lease => leases::QUALIFIED,
            Self::ControllerRevision => "controllerrevisions.apps",
            Self::Ingress => networking::INGRESSES_QUALIFIED,
            Self::StorageClass => storage::QUALIFIED,
            Self::ConfigMap
            | Self::Secret
            | Self::Claim
            | Self::Endpoints
            | Self::Source
            | Self::Image
            | Self::Pull
            | Self::Namespace
            | Self::Node
            | Self::PersistentVolume => self.plural(),
        }
    }

    /// The plural, as in paths.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::Claim => "persistentvolumeclaims",
            Self::NetworkPolicy => networking::PLURAL,
            Self::Endpoints => "endpoints",
            Self::Source => "sources",
            Self::Image => "images",
            Self::Pull => "pulls",
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::Lease => leases::PLURAL,
            Self::ControllerRevision => CONTROLLER_REVISIONS,
            Self::PersistentVolume => "persistentvolumes",
            Self::Ingress => networking::INGRESSES,
            Self::StorageClass => storage::PLURAL,
        }
    }

    /// The kind of object of a source; `None` for what is not in a source.
    pub(super) const fn object_kind(self) -> Option<ObjectKind> {
        match self {
            Self::ConfigMap => Some(ObjectKind::ConfigMap),
            Self::Secret => Some(ObjectKind::Secret),
            Self::Claim => Some(ObjectKind::PersistentVolumeClaim),
            Self::NetworkPolicy => Some(networking::OBJECT_KIND),
            Self::Endpoints | Self::Source | Self::Image | Self::Pull | Self::Namespace | Self::Node | Self::Lease => None,
            Self::PersistentVolume | Self::StorageClass | Self::Ingress | Self::ControllerRevision => None,
        }
    }

    /// The time after which a watch looks again; `None` where changes are announced.
    pub(super) const fn interval(self) -> Option<Duration> {
        match self {
            Self::ConfigMap | Self::Secret | Self::NetworkPolicy => None,
            Self::PersistentVolume | Self::Ingress | Self::StorageClass => None,
            // Their data on disk, and pods that use them.
            Self::Claim | Self::Image | Self::Namespace | Self::ControllerRevision => Some(Duration::from_secs(2)),
            Self::Endpoints | Self::Source | Self::Pull => Some(Duration::from_secs(1)),
            Self::Node => Some(Duration::from_secs(10)),
            Self::Lease => Some(leases::RENEWED_EVERY),
        }
    }
}

/// One of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServedKind {
    /// `v1` Service.
    Service,
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice,
}

impl ServedKind {
    /// The API group.
    pub(super) const fn group(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::EndpointSlice => "discovery.k8s.io",
        }
    }

    /// The plural, as in paths.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Service => "services",
            Self::EndpointSlice => "endpointslices",
        }
    }
}

/// A kind of review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// May I do this?
    Access,
    /// Review of the rights in a namespace.
    Rules,
    /// Review of the identity.
    Oneself,
    /// Review of a token: for clients that have one and ask whose it is.
    Token,
}

impl Review {
    /// Its plural.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Access => "selfsubjectaccessreviews",
            Self::Rules => "selfsubjectrulesreviews",
            Self::Oneself => "selfsubjectreviews",
            Self::Token => "tokenreviews",
        }
    }

    /// Its group.
    pub(super) const fn group(self) -> &'static str {
        match self {
            Self::Access | Self::Rules => "authorization.k8s.io",
            Self::Oneself | Self::Token => "authentication.k8s.io",
        }
    }

    /// The review of that plural in a group.
    pub(super) fn named(group: &str, plural: &str) -> Option<Self> {
        let all = [Self::Access, Self::Rules, Self::Oneself, Self::Token];
        all.into_iter().find(|review| review.group() == group && review.plural() == plural)
    }

    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Access => "SelfSubjectAccessReview",
            Self::Rules => "SelfSubjectRulesReview",
            Self::Oneself => "SelfSubjectReview",
            Self::Token => "TokenReview",
        }
    }

    /// Its fields; `None` for one that no client sends as protobuf.
    pub(super) const fn structure(self) -> Option<&'static Struct> {
        match self {
            Self::Access => Some(&table::SELF_SUBJECT_ACCESS_REVIEW),
            Self::Rules => Some(&table::SELF_SUBJECT_RULES_REVIEW),
            Self::Oneself => Some(&table::SELF_SUBJECT_REVIEW),
            Self::Token => None,
        }
    }
}

/// An order in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodOrder {
    Stop,
    Start,
    Restart,
}

impl PodOrder {
    /// The order of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "stop" => Some(Self::Stop),
            "start" => Some(Self::Start),
            "restart" => Some(Self::Restart),
            _ => None,
        }
    }

    /// Its name, as in paths.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Restart => "restart",
        }
    }
}

/// A page of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// `/metrics`.
    Own,
    /// `/metrics/resource`.
    Resource,
    /// `/metrics/cadvisor`.
    Cadvisor,
    /// `/stats/summary`.
    Summary,
}
