//! Outcomes of a Job and their reasons. **Pure**.

use serde::{Deserialize, Serialize};

/// The way in which a Job ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It failed.
    Failed {
        /// The class of the failure.
        reason: FailureReason,
        /// Its description.
        message: String,
    },
    /// It is complete.
    Complete {
        /// The criterion that is met.
        reason: SuccessReason,
        /// Its description.
        message: String,
    },
}

/// The reason of a failed Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureReason {
    /// A rule of the podFailurePolicy says so (W63).
    PodFailurePolicy,
    /// More failures, or restarts, than `backoffLimit` (W52).
    BackoffLimitExceeded,
    /// Active for longer than `activeDeadlineSeconds` (W56).
    DeadlineExceeded,
    /// More failed indexes than `maxFailedIndexes` (W62).
    MaxFailedIndexesExceeded,
    /// All indexes are done, some of them failed (W62).
    FailedIndexes,
    /// The file of the memory was lost (W97).
    MemoryLost,
}

/// The reason of a complete Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuccessReason {
    /// A rule of the successPolicy is met (W64).
    SuccessPolicy,
    /// Enough attempts succeeded (W51).
    CompletionsReached,
}

impl FailureReason {
    /// The word in conditions and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PodFailurePolicy => "PodFailurePolicy",
            Self::BackoffLimitExceeded => "BackoffLimitExceeded",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::MaxFailedIndexesExceeded => "MaxFailedIndexesExceeded",
            Self::FailedIndexes => "FailedIndexes",
            Self::MemoryLost => "MemoryLost",
        }
    }
}

impl SuccessReason {
    /// The word in conditions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuccessPolicy => "SuccessPolicy",
            Self::CompletionsReached => "CompletionsReached",
        }
    }
}

impl Verdict {
    /// A failure.
    pub(super) fn failed(reason: FailureReason, message: impl Into<String>) -> Self {
        Self::Failed { reason, message: message.into() }
    }

    /// The verdict of a Job that has enough successes.
    pub(super) fn completions_reached() -> Self {
        let message = "Reached expected number of succeeded pods".to_owned();
        Self::Complete { reason: SuccessReason::CompletionsReached, message }
    }
}
