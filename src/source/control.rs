//! What people may ask of a source.

use super::history::{History, Hold, Resumed, RevisionDiff, RevisionError, RolledBack};
use crate::pod::SourceId;
use async_trait::async_trait;
use std::fmt;

/// Why a source cannot be pruned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PruneError {
    /// No source has this name.
    #[error("there is no source {0}")]
    UnknownSource(SourceId),
    /// It stays at what is in force until it is resumed.
    #[error("source {0} is held; run podstead resume {0} first")]
    Held(SourceId),
    /// Its last good set is what was last read.
    #[error("source {0} has nothing to prune: its pods are those of the revision that was read last")]
    NothingHeld(SourceId),
    /// The emptiness could not be made durable.
    #[error("cannot prune source {id}: {reason}")]
    NotWritten {
        /// The source.
        id: SourceId,
        /// What the disk said.
        reason: String,
    },
    /// The daemon is ending.
    #[error("the daemon is shutting down")]
    Ended,
}

/// How people say what a source cannot. Implemented by the intake's handle.
#[async_trait]
pub trait SourceControl: Send + Sync + fmt::Debug + 'static {
    /// Takes a source that is failing, or whose emptiness is not believed, for empty (promise P2). Returns how many pods that removes.
    async fn prune(&self, source: &SourceId) -> Result<usize, PruneError>;

    /// Keeps a source at what is in force until it is resumed, whatever it delivers. `command` is what was typed. A source that is held
    /// already stays so: the answer is the hold that counts.
    async fn suspend(&self, source: &SourceId, command: &str) -> Result<Hold, RevisionError>;

    /// Ends the hold of a source: accepts what it last fetched.
    async fn resume(&self, source: &SourceId) -> Result<Resumed, RevisionError>;

    /// Puts an earlier revision in force (a number of the history, or the beginning of a revision; `None`: the one before) and holds the
    /// source there until it is resumed.
    async fn roll_back(&self, source: &SourceId, revision: Option<&str>, command: &str) -> Result<RolledBack, RevisionError>;

    /// What was accepted, as far as it is kept.
    async fn history(&self, source: &SourceId) -> Result<History, RevisionError>;

    /// What is different between an earlier revision (as in [`SourceControl::roll_back`]) and what is in force.
    async fn diff(&self, source: &SourceId, revision: Option<&str>) -> Result<RevisionDiff, RevisionError>;
}
