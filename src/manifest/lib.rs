//! Bytes to strict, typed objects. **Pure**: no files, no clock, no tokio.
//!
//! In: the bytes of one file (YAML, multi-document YAML or JSON) and its name. Out: [`Decoded`]: the objects that are good and
//! the problems of those that are not, each with file, line, column and field path; patches are applied to the trees of the objects
//! that they are for. One bad object never hides another.
//! YAML is read as sigs.k8s.io/yaml reads it, under a size, node and depth budget.
//!
//! The way of a file: [`decode`] looks at its encoding, cuts it at `---` lines, and for each document loads a tree of nodes
//! that know their place, holds the tree against the schema table of its kind ([`schema`]), and only when nothing is wrong
//! makes the typed object of it.

pub mod change;
mod decode;
mod documents;
mod encoding;
mod fault;
mod foreign;
mod kind;
pub mod kustomize;
mod label_selector;
mod lines;
mod locate;
mod node;
mod object;
mod patch;
mod places;
pub mod positions;
pub mod problem;
pub mod protobuf;
pub mod schema;
mod sealed;
pub mod sops;
mod substitute;
mod yaml;

pub use decode::{decode, decode_in, decode_patched, decode_sealed};
pub use fault::code::SOPS;
pub use foreign::Ignored;
pub use label_selector::{LabelSelector, LabelSelectorError};
pub use locate::locate;
pub use patch::{Patch, Target};
pub use positions::PositionMap;
pub use problem::Problem;
pub use substitute::{Substitution, is_variable_name, substitute, variable_name_problem};
pub use yaml::{to_manifest, to_yaml};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use podstead_pod::objects::NetworkObject;
use podstead_pod::{DEFAULT_NAMESPACE, Origin};
use podstead_workload::object::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    fn place_in(&mut self, namespace: &str) {
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
    pub kind: String,
    /// The namespace, `default` where the manifest has none.
    pub namespace: String,
    /// The name as written (without the node suffix).
    pub name: String,
}

/// Content of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The good objects, in file order.
    pub objects: Vec<DecodedObject>,
    /// Problems, in file order.
    pub problems: Vec<Problem>,
    /// Refused objects, which must not be taken for removed. `None` stands for an object whose identity
    /// cannot be told, or for a part of the file that cannot be read: then every object that this file gave before may be meant.
    /// A key that is in `objects` is never here.
    pub broken: Vec<Option<ObjectKey>>,
    /// The good patches, in file order.
    pub patches: Vec<Arc<Patch>>,
    /// Targets of refused patches.
    pub broken_patches: Vec<Target>,
    /// Objects that a patch takes away.
    pub removed: Vec<ObjectKey>,
    /// Pairs of patches and objects of the file that they are for, applied or not.
    pub touched: Vec<Touch>,
    /// Objects of kinds that do no harm when they are left out, one entry for each kind.
    pub ignored: Vec<Ignored>,
}

/// A patch and an object that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Position of the patch.
    pub patch: Origin,
    /// The object.
    pub object: ObjectKey,
}

/// The patches that may be for an object, in the order of their application.
pub type PatchesByObject = BTreeMap<ObjectKey, Vec<Arc<Patch>>>;

/// One good object.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedObject {
    /// Its identity.
    pub key: ObjectKey,
    /// The object as written.
    pub object: Object,
    /// File and position where it begins.
    pub origin: Origin,
    /// Positions of its fields.
    pub positions: PositionMap,
    /// Positions of the patches that were applied to it, in order.
    pub patched_by: Vec<Origin>,
}

/// Limits for one file. The defaults fit any file that a person or a template engine writes for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file (kubelet rule A4).
    pub max_bytes: usize,
    /// Values and keys of one document after its aliases are expanded. A document may also not expand to many times its own size.
    pub max_nodes: u32,
    /// Mappings and lists inside each other; at most 120, where the parsers themselves stop.
    pub max_depth: u32,
    /// Documents of a file.
    pub max_documents: usize,
    /// Limit for the reported problems of one file; the rest is only counted.
    pub max_problems: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 10 << 20, max_nodes: 500_000, max_depth: 64, max_documents: 20_000, max_problems: 1000 }
    }
}
