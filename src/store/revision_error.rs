//! Errors of commands on revisions.

use crate::last_good::{LastGoodError, Unreadable};
use podstead_pod::{Revision, SourceId};
use tokio::task::JoinError;

/// Errors of commands on revisions.
#[derive(Debug, thiserror::Error)]
pub enum RevisionError {
    /// No source has this name.
    #[error("there is no source {0}")]
    UnknownSource(SourceId),
    /// Nothing was ever accepted from it.
    #[error("source {0} has no accepted revision yet")]
    NothingAccepted(SourceId),
    /// Nothing holds it.
    #[error("source {0} is not held")]
    NotHeld(SourceId),
    /// No kept revision is called so.
    #[error("source {id} has no revision {wanted:?} in its history; podstead history {id} lists them")]
    NoSuchRevision {
        /// The source.
        id: SourceId,
        /// The revision as given.
        wanted: String,
    },
    /// Several are called so.
    #[error("several revisions of source {id} start with {wanted:?}; use the number shown by podstead history {id}")]
    Ambiguous {
        /// The source.
        id: SourceId,
        /// The revision as given.
        wanted: String,
    },
    /// The revision in force is the oldest one that is kept.
    #[error("source {0} has no revision before the one in force")]
    NothingEarlier(SourceId),
    /// Every earlier revision that is kept had refused objects.
    #[error("every earlier revision of source {0} has refused objects; name one (podstead history {0} lists them)")]
    NothingClean(SourceId),
    /// It is what is in force.
    #[error("revision {revision} of source {id} is already in force; to hold the source there, run podstead suspend {id}")]
    InForce {
        /// The source.
        id: SourceId,
        /// The revision.
        revision: Revision,
    },
    /// A kept revision cannot be read.
    #[error("cannot read the revision of source {id} from its history")]
    Unreadable {
        /// The source.
        id: SourceId,
        /// The fault.
        source: RecordFault,
    },
    /// The change could not be made durable, and was not made.
    #[error("source {id} was not changed")]
    NotWritten {
        /// The source.
        id: SourceId,
        /// The fault.
        source: RecordFault,
    },
    /// The daemon is shutting down.
    #[error("the daemon is shutting down")]
    Ended,
}

/// Reason why records of revisions were not read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordFault {
    /// All of them, or the one in force.
    #[error(transparent)]
    LastGood(#[from] LastGoodError),
    /// An earlier one.
    #[error(transparent)]
    Earlier(#[from] Unreadable),
    /// The work was not done to its end.
    #[error(transparent)]
    Interrupted(#[from] JoinError),
}
