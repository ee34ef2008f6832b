//! The config mux: SETs of all sources in, ordered operations on pods out (kubelet rules B1 to B5).
//!
//! [`Merge`] is pure and decides; [`run`] is the task around it; [`MuxHandle`] is how the sync loop asks for another incarnation of a
//! pod. [`Set`](podstead_store::Set)s come in from [`podstead_store::intake`], [`PodUpdate`]s go out to the sync loop.
//!
//! Guarantees of the merge:
//! * A full name that is known keeps its UID through an edit (UPDATE); one that went away and came back gets a new one (REMOVE, ADD).
//!   Known are also the pods whose records were found at start: their first operation is an ADD with the UID that they had.
//! * Within one SET, REMOVE precedes ADD precedes UPDATE.
//! * Nothing is removed before every configured source has delivered once (its last good set from disk counts).
//! * The first SET of a source yields exactly one ADD of that source with all its new pods, empty if there are none: [`SourcesReady`].
//! * The same full name from two sources: the source that is configured first wins and the other is reported. When the winner's goes,
//!   the loser's takes over as an UPDATE of the same UID: to the host it is an edit, and only containers that differ restart.
//! * A restricted source (one with `allow`) gives way to an unrestricted one in names, UIDs and ports of the host, whatever the order of
//!   configuration. Between sources that are apart nothing is taken over: the pod is another one, for its volumes are not the new source's.
//! * ConfigMaps and Secrets follow the same precedence. They are in the [`ObjectView`] before any operation of their SET is handed on, and
//!   the last operation names those that changed.

pub mod merge;
pub mod ready;
pub mod task;
mod view;

pub use merge::{Applied, Claimant, Conflict, ConflictKind, Merge, ObjectConflict};
pub use ready::SourcesReady;
pub use task::{MuxHandle, MuxTask, run};
pub use view::ObjectView;

use podstead_pod::objects::ObjectName;
use podstead_pod::{DesiredPod, SourceId};
use std::sync::Arc;

/// Kind of change of pods of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodOp {
    /// No longer in the source.
    Remove,
    /// New in the source.
    Add,
    /// Content changed, same UID.
    Update,
    /// Content is the same, status as last published differs. Not emitted for manifests, which hold no status.
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
    /// ConfigMaps and Secrets that changed with the SET that this is the last operation of: pods that refer to them look again.
    pub objects: Vec<ObjectName>,
}
