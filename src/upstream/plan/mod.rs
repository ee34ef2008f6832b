//! Plans the requests that report this host's pods to the cluster. **Pure**: `now` and everything observed are arguments.
//!
//! * [`mirror`]: the object that stands for a pod, without what a mirror must not carry.
//! * [`step`]: the next request for one pod, from what is wanted and what the API server has.
//! * [`status_patch`]: the difference of two statuses as a strategic merge patch.
//! * [`node`]: the Node: its object, its status.
//! * [`labels`]: the labels of the Node, and which of them a node may set.
//! * [`lease`]: the Lease, and the detection of another agent that renews it.
//! * [`event`]: events as the API server wants them.
//! * [`weight`]: how much memory an answer takes.

pub mod event;
pub mod labels;
pub mod lease;
pub mod mirror;
pub mod node;
#[cfg(test)]
mod property_test;
pub mod status_patch;
pub mod step;
pub mod weight;

use jiff::Timestamp;

/// The Node of this host as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRef {
    /// Its name.
    pub name: String,
    /// Its UID, which changes when it is deleted and created again.
    pub uid: String,
}

/// A time as `metav1.Time` has it: whole seconds.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A time as `metav1.MicroTime` has it.
fn microseconds(at: Timestamp) -> String {
    format!("{at:.6}")
}
