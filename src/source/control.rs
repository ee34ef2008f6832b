//! What people may ask of a source.

use crate::pod::SourceId;
use async_trait::async_trait;
use std::fmt;

/// Why a source cannot be pruned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PruneError {
    /// No source has this name.
    #[error("there is no source {0}")]
    UnknownSource(SourceId),
    /// Its last good set is what was last read.
    #[error("source {0} holds nothing back: its pods are those that it has now")]
    NothingHeld(SourceId),
    /// The emptiness could not be made durable.
    #[error("source {id} is not pruned: {reason}")]
    NotWritten {
        /// The source.
        id: SourceId,
        /// What the disk said.
        reason: String,
    },
    /// The daemon is ending.
    #[error("the daemon is ending")]
    Ended,
}

/// How people say what a source cannot. Implemented by the intake's handle.
#[async_trait]
pub trait SourceControl: Send + Sync + fmt::Debug + 'static {
    /// Takes a source that is failing, or whose emptiness is not believed, for empty (promise P2). Returns how many pods that removes.
    async fn prune(&self, source: &SourceId) -> Result<usize, PruneError>;
}
