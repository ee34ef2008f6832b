//! Operator commands on a source.

use super::history::{History, Hold, Resumed, RevisionDiff, RevisionError, RolledBack};
use async_trait::async_trait;
use podstead_pod::SourceId;
use std::fmt;

/// Reason why a source cannot be pruned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PruneError {
    /// No source has this name.
    #[error("there is no source {0}")]
    UnknownSource(SourceId),
    /// The source is held until it is resumed.
    #[error("source {0} is held; run podstead resume {0} first")]
    Held(SourceId),
    /// Its last good set is the one that was read last.
    #[error("source {0} has nothing to prune: its pods are those of the revision that was read last")]
    NothingHeld(SourceId),
    /// The empty set could not be written to disk.
    #[error("cannot prune source {id}: {reason}")]
    NotWritten {
        /// The source.
        id: SourceId,
        /// The I/O error.
        reason: String,
    },
    /// The daemon is shutting down.
    #[error("the daemon is shutting down")]
    Ended,
}

/// Operator commands on a source. Implemented by the intake's handle.
#[async_trait]
pub trait SourceControl: Send + Sync + fmt::Debug + 'static {
    /// Treats a source that fails, or that is empty without proof, as empty (promise P2). Returns the number of pods that this removes.
    async fn prune(&self, source: &SourceId) -> Result<usize, PruneError>;

    /// Holds a source at the revision in force until it is resumed. `command` is the operator's command line. A source that is held
    /// already stays so, and its present hold is returned.
    async fn suspend(&self, source: &SourceId, command: &str) -> Result<Hold, RevisionError>;

    /// Ends the hold of a source: accepts what it last fetched.
    async fn resume(&self, source: &SourceId) -> Result<Resumed, RevisionError>;

    /// Puts an earlier revision in force (a number in the history, or the beginning of a revision; `None`: the previous one) and holds the
    /// source there until it is resumed.
    async fn roll_back(&self, source: &SourceId, revision: Option<&str>, command: &str) -> Result<RolledBack, RevisionError>;

    /// Returns the accepted revisions that are kept.
    async fn history(&self, source: &SourceId) -> Result<History, RevisionError>;

    /// Compares an earlier revision (as in [`SourceControl::roll_back`]) with the one in force.
    async fn diff(&self, source: &SourceId, revision: Option<&str>) -> Result<RevisionDiff, RevisionError>;
}
