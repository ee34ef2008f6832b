//! Probe results of containers. **Pure**.

use super::spec::ProbeKind;
use jiff::Timestamp;
use podstead_pod::ContainerId;
use std::collections::BTreeMap;

/// Result of a probe for a container: the last answer that came often enough in a row, or the initial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeResult {
    /// Not asked yet.
    Unknown,
    /// All is well.
    Success,
    /// It is not.
    Failure,
}

impl ProbeResult {
    /// Before the first answer counts (kubelet rule D15).
    pub const fn initial(kind: ProbeKind) -> Self {
        match kind {
            ProbeKind::Startup => ProbeResult::Unknown,
            ProbeKind::Readiness => ProbeResult::Failure,
            ProbeKind::Liveness => ProbeResult::Success,
        }
    }
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFailure {
    /// As the event says it: `Readiness probe failed: ...`.
    pub message: String,
    /// The time of the result.
    pub at: Timestamp,
}

/// Result of one probe for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeHealth {
    /// The effective result.
    pub result: ProbeResult,
    /// The last check, if that failed; also one that does not count yet.
    pub failure: Option<ProbeFailure>,
}

/// Results of the probes for a container's run; without a probe that the container does not have.
pub type RunHealth = BTreeMap<ProbeKind, ProbeHealth>;

/// Results of the probes for a pod, by run.
pub type PodHealth = BTreeMap<ContainerId, RunHealth>;
