//! Bytes to strict, typed objects. **Pure**: no files, no clock, no tokio.
//!
//! In: the bytes of one file (YAML, multi-document YAML or JSON) and its name. Out: [`Decoded`]: the objects that are good and
//! the problems of those that are not, each with file, line, column and field path. One bad object never hides another.
//! YAML is read as sigs.k8s.io/yaml reads it, under a size, node and depth budget.

pub mod problem;

pub use problem::{Origin, Position, Problem, Severity};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};

/// What a manifest may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A v1 Pod as written: neither defaulted nor validated.
    Pod(Box<Pod>),
    /// A v1 ConfigMap, for pods to refer to.
    ConfigMap(Box<ConfigMap>),
    /// A v1 Secret, for pods to refer to.
    Secret(Box<Secret>),
}

/// Kind, namespace (`default` where empty) and name: what identifies an object inside one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ObjectKey {
    /// `Pod`, `ConfigMap` or `Secret`.
    pub kind: String,
    /// The namespace, `default` where the manifest has none.
    pub namespace: String,
    /// The name as written (without the node suffix).
    pub name: String,
}
