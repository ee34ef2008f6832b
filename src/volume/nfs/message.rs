//! Messages between the daemon and the process: one request, and lines of replies.

use podstead_pod::nfs::{NfsVersion, NfsVolume};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Name of the task on the command line.
pub const TASK: &str = "nfs";

/// Work of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) work: Work,
    /// The process ends itself then, also when nobody hears it any more; `None` for one that may have data to write.
    pub(super) seconds: Option<u64>,
}

/// Kinds of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// Mount a volume, unless it is.
    Mount { volume: NfsVolume, place: PathBuf },
    /// Hold a path below a mounted volume at `pin`.
    Pin { volume: PathBuf, path: PathBuf, pin: PathBuf, is_made: bool },
    /// Take mounts away.
    Detach { points: Vec<PathBuf> },
}

/// One line that it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// An attempt failed.
    Failed(Failure),
    /// It could not try, or not go on.
    Problem {
        reason: String,
        /// Trying again does not help.
        is_lasting: bool,
    },
    /// All of it is done.
    Done,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) address: String,
    pub(super) version: NfsVersion,
    pub(super) errno: i32,
}
