//! Reason why a [`Runtime`](super::Runtime) could not do something.

use podstead_pod::PodUid;
use std::error::Error;

/// Reason why the runtime could not do something.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// No sandbox or container of that name.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The shim does not answer, or went away in between.
    #[error("the shim of pod {uid} is gone")]
    ShimGone {
        /// The pod.
        uid: PodUid,
        /// The observation.
        #[source]
        source: Cause,
    },
    /// The shim or the kernel refused.
    #[error("{operation}")]
    Failed {
        /// The operation, with its subject.
        operation: String,
        /// Reason why it failed.
        #[source]
        source: Cause,
    },
}

/// Cause of a failure, for [`error_chain`](podstead_telemetry::error_chain).
pub type Cause = Box<dyn Error + Send + Sync>;

impl RuntimeError {
    /// A failed operation with its cause.
    pub fn failed(operation: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self::Failed { operation: operation.into(), source: cause.into() }
    }

    /// A shim that does not answer.
    pub fn shim_gone(uid: &PodUid, cause: impl Into<Cause>) -> Self {
        Self::ShimGone { uid: uid.clone(), source: cause.into() }
    }
}

/// Reason why a container could not be started; each becomes a waiting reason (kubelet rule D8).
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `CreateContainerError`: the container was not made, and there is no run of it.
    #[error("create container: {0}")]
    Create(String),
    /// `RunContainerError` (a run with exit code 128): its process could not be made or its program not be executed, e.g. not found.
    #[error("{0}")]
    Execute(String),
    /// The sandbox is not there.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}
