//! The last content of each source, object by object: the undelta store in memory and the last good set on disk.
//!
//! In: [`podstead_artifact::SourceReport`]s. Out: [`Set`]s (the whole content of a source, exactly as client-go's undelta store pushes it),
//! durable before they are handed on (promise P3), and the problems of the objects that keep an earlier version.

pub mod check;
mod control;
pub mod history;
pub mod intake;
mod kept_images;
pub mod kustomize;
pub mod last_good;
mod network_objects;
mod policy;
mod relocate;
mod revision_error;
mod revisions;
mod seal;
mod status;
pub mod undelta;
pub mod whole;
mod workloads;

pub use check::{Accepted, AcceptedObject, CheckContext, Checked, check};
pub use control::{PruneError, SourceControl};
pub use kept_images::{KeptImage, images_of, images_of_object, kept_images};
pub use kustomize::{Prepared, prepare};
pub use policy::needs_host_access;
pub use relocate::relocate;
pub use status::{SourceStatus, SourceStatusSink};
pub use undelta::UndeltaStore;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use podstead_manifest::{ObjectKey, Problem};
use podstead_pod::objects::PackedObject;
use podstead_pod::{Origin, Pod, Revision, SourceId};
use podstead_workload::object::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod of a set: defaulted, validated, named for this node (kubelet rule A19), without a UID yet.
#[derive(Clone, Debug, PartialEq)]
pub struct SetPod {
    /// The object.
    pub pod: Arc<Pod>,
    /// File and position of its manifest.
    pub origin: Origin,
}

/// A workload of a set, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct SetWorkload {
    /// The object.
    pub workload: Arc<Workload>,
    /// File and position of its manifest.
    pub origin: Origin,
}

/// The whole content of one source: what the kubelet calls a SET.
#[derive(Clone, PartialEq)]
pub struct Set {
    /// The source that it belongs to.
    pub source: SourceId,
    /// The revision that it was read from.
    pub revision: Revision,
    /// The pods, by key.
    pub pods: BTreeMap<ObjectKey, SetPod>,
    /// The config maps, by key.
    pub config_maps: BTreeMap<ObjectKey, Arc<ConfigMap>>,
    /// The secrets, by key.
    pub secrets: BTreeMap<ObjectKey, Arc<Secret>>,
    /// The claims of persistent volumes, by key.
    pub claims: BTreeMap<ObjectKey, Arc<PersistentVolumeClaim>>,
    /// Deployments, StatefulSets, Jobs and the like, by key. Their pods are not in `pods` before the set was expanded.
    pub workloads: BTreeMap<ObjectKey, SetWorkload>,
    /// Services and other objects that say how pods are reached, by key.
    pub network: BTreeMap<Arc<ObjectKey>, Arc<PackedObject>>,
    /// Problems of this revision; the objects concerned are present in their last good version, if there was one.
    pub problems: Vec<Problem>,
}

impl std::fmt::Debug for Set {
    /// Names of objects, not what they hold: some of it is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Set")
            .field("source", &self.source)
            .field("revision", &self.revision)
            .field("pods", &self.pods)
            .field("config_maps", &self.config_maps.keys())
            .field("secrets", &self.secrets.keys())
            .field("claims", &self.claims.keys())
            .field("workloads", &self.workloads.keys())
            .field("network", &self.network.keys())
            .field("problems", &self.problems)
            .finish()
    }
}
