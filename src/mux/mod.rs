//! The config mux: SETs of all sources in, ordered operations on pods out (kubelet rules B1 to B5).
//!
//! Pure merge, one task. It assigns UIDs: a full name that is known keeps its UID through an edit (UPDATE), a full name that went
//! away and came back gets a new one (REMOVE, ADD). REMOVE precedes ADD, and nothing is removed before every configured source has
//! delivered once (its last good set from disk counts).

use crate::manifest::Origin;
use crate::pod::{Pod, PodFullName, PodUid, SourceId};
use crate::source::Revision;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A pod that this host shall run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesiredPod {
    /// Identity of this incarnation.
    pub uid: PodUid,
    /// Name and namespace.
    pub full_name: PodFullName,
    /// The source that it comes from.
    pub source: SourceId,
    /// The revision of the source that its present content was read from.
    pub revision: Revision,
    /// Where it is written.
    pub origin: Origin,
    /// The defaulted and validated object; metadata carries the UID and the `kubernetes.io/config.*` annotations.
    pub pod: Arc<Pod>,
}

/// What happened to pods of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodOp {
    /// No longer in the source.
    Remove,
    /// New in the source.
    Add,
    /// Content changed, same UID.
    Update,
    /// Content is the same, status as last published differs.
    Reconcile,
}

/// One operation on one or more pods of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct PodUpdate {
    /// The source.
    pub source: SourceId,
    /// The operation.
    pub op: PodOp,
    /// The pods concerned, in manifest order. May be empty for ADD: the first SET of a source that holds nothing (rule B1).
    pub pods: Vec<Arc<DesiredPod>>,
}
