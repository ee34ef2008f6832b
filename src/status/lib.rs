//! From what was observed to what the API shows: phase, conditions, container statuses (kubelet rules D14, D16). **Pure**.
//!
//! The sinks are how the stages that know publish it; `podstead-api` implements them.

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
pub use input::{PluggedDevices, PodResult, Resize, StatusInput, Unready, Waiting};
pub use phase::PodPhase;
pub use pod::pod_status;
pub use upstream::{NodeStanding, UpstreamStatus};

use k8s_openapi::api::core::v1::PodStatus;
use podstead_pod::{DesiredPod, PodUid};
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
