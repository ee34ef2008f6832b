//! From what was observed to what the API shows: phase, conditions, container statuses (kubelet rules D14, D16). **Pure**.
//!
//! The sinks are how the stages that know publish it; [`crate::api`] implements them.

mod condition;
mod container;
mod input;
mod message;
mod phase;
mod pod;
pub mod reason;
#[cfg(test)]
mod tests;
mod upstream;

pub use container::UNKNOWN_EXIT_CODE;
pub use input::{PodResult, Resize, StatusInput, Unready, Waiting};
pub use phase::PodPhase;
pub use pod::pod_status;
pub use upstream::{NodeStanding, UpstreamStatus};

use crate::manifest::Problem;
use crate::mux::DesiredPod;
use crate::pod::{PodUid, SourceId};
use crate::source::Revision;
use crate::source::history::Hold;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use std::fmt;
use std::sync::Arc;

/// Receiver of pods with their status.
pub trait PodStatusSink: Send + Sync + fmt::Debug + 'static {
    /// Replaces what is shown of the pod. Called once per sync, also when nothing changed. A pod that terminates carries
    /// `metadata.deletionTimestamp` and `deletionGracePeriodSeconds` in `desired.pod`, so that it is shown as `Terminating`.
    fn publish(&self, desired: &Arc<DesiredPod>, status: PodStatus);

    /// The pod is gone.
    fn withdraw(&self, uid: &PodUid);
}

/// State of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatus {
    /// Its configured name.
    pub id: SourceId,
    /// `directory`, `http` or `git`.
    pub kind: String,
    /// Path or URL, without credentials.
    pub location: String,
    /// The revision last read from the place.
    pub fetched: Option<Revision>,
    /// When content was last read that differed from the content before.
    pub fetched_at: Option<Timestamp>,
    /// The revision that was last recorded and applied.
    pub accepted: Option<Revision>,
    /// When it was made durable.
    pub accepted_at: Option<Timestamp>,
    /// The revision whose set was last given to the workers of its pods.
    pub applied: Option<Revision>,
    /// When it was given to them.
    pub applied_at: Option<Timestamp>,
    /// That it stays so, whatever the place says.
    pub hold: Option<Hold>,
    /// Number of pods in that set.
    pub pods: usize,
    /// Reason why the place cannot be read at present.
    pub last_error: Option<String>,
    /// Problems of the fetched revision.
    pub problems: Vec<Problem>,
}

/// Receiver of the state of sources.
pub trait SourceStatusSink: Send + Sync + fmt::Debug + 'static {
    /// Replaces what is shown of the source.
    fn publish_source(&self, status: SourceStatus);

    /// The source is not configured any more.
    fn withdraw_source(&self, _id: &SourceId) {}
}
