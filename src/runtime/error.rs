//! Why a [`Runtime`](super::Runtime) could not do something.

use crate::pod::PodUid;

/// Why the runtime could not do something.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// No sandbox or container of that name.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The shim does not answer, or went away in between.
    #[error("the shim of pod {uid} is gone: {reason}")]
    ShimGone {
        /// The pod.
        uid: PodUid,
        /// What was seen.
        reason: String,
    },
    /// The shim or the kernel refused.
    #[error("{operation}: {reason}")]
    Failed {
        /// What was tried, with its subject.
        operation: String,
        /// Why it failed.
        reason: String,
    },
}

/// Why a container could not be started; each becomes a waiting reason (kubelet rule D8).
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `CreateContainerError`: before the program was executed.
    #[error("create container: {0}")]
    Create(String),
    /// `RunContainerError` (exit code 128): the program could not be executed, e.g. not found or no permission.
    #[error("{0}")]
    Execute(String),
    /// The sandbox is not there.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}
