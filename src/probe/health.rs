//! What probes say of containers. **Pure**.

use super::spec::ProbeKind;
use crate::pod::ContainerId;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What a probe says of a container: the last answer that came often enough in a row, or where it begins.
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
    /// When.
    pub at: Timestamp,
}

/// What one probe of a run says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeHealth {
    /// What counts.
    pub result: ProbeResult,
    /// The last check, if that failed; also one that does not count yet.
    pub failure: Option<ProbeFailure>,
}

/// What the probes of a container's run say; a probe that the container does not have is absent.
pub type RunHealth = BTreeMap<ProbeKind, ProbeHealth>;

/// What the probes of a pod say, by run.
pub type PodHealth = BTreeMap<ContainerId, RunHealth>;
