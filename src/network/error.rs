//! Causes of failures that several networks have.

use std::io;
use std::path::PathBuf;
use tokio::task::JoinError;

/// Reason why an operation on the network of a pod could not be completed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OperationError {
    /// Its thread panicked, or the daemon is stopping.
    #[error("the operation was interrupted")]
    Interrupted(#[source] JoinError),
    /// The addresses of the host cannot be listed.
    #[error("list addresses of the host")]
    HostAddresses(#[source] io::Error),
    /// The loopback interface of a pod cannot be switched on.
    #[error("set lo up in {netns:?}")]
    Loopback {
        /// The network namespace.
        netns: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
}
