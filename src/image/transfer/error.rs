//! Reasons why a blob did not come.

use super::super::explain::explain;
use super::super::limits::shown_bytes;
use super::super::registry::RegistryError;
use super::super::space::SpaceError;
use std::io;
use std::sync::Arc;

/// Reason why a transfer failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(in super::super) enum TransferError {
    /// The registries.
    #[error("fetch")]
    Registry(#[from] RegistryError),
    /// Another number of bytes than the manifest says.
    #[error("{host} has {actual} bytes instead of {expected}: its content was altered or damaged in transit")]
    Size {
        /// The host.
        host: String,
        /// In the manifest.
        expected: u64,
        /// Seen.
        actual: u64,
    },
    /// A host that always begins at byte 0, over a link that always breaks.
    #[error("{host} cannot resume a download: longest unbroken stretch {} of {}", shown_bytes(*longest), shown_bytes(*size))]
    CannotResume {
        /// The host.
        host: String,
        /// Bytes that came in one connection.
        longest: u64,
        /// Of the blob.
        size: u64,
        /// The last interruption.
        #[source]
        source: RegistryError,
    },
    /// The disk is short.
    #[error("no space for the layer as it arrives")]
    Space(#[from] SpaceError),
    /// The spool.
    #[error("{operation} the layer as it arrives")]
    Disk {
        /// The operation.
        operation: &'static str,
        /// The error of the disk.
        #[source]
        source: Arc<io::Error>,
    },
    /// Several hosts, each with its failure.
    #[error("{}", listed(.0))]
    Several(Vec<TransferError>),
    /// Nobody wants it any more.
    #[error("stopped")]
    Stopped,
}

fn listed(failures: &[TransferError]) -> String {
    // The word of `Registry` says nothing in a list.
    let told = |failure: &TransferError| match failure {
        TransferError::Registry(error) => explain(error),
        other => explain(other),
    };
    failures.iter().map(told).collect::<Vec<_>>().join("; ")
}

impl TransferError {
    /// The failure of hosts that were asked one after the other.
    pub(super) fn of_all(mut failures: Vec<Self>) -> Option<Self> {
        if failures.len() > 1 { Some(Self::Several(failures)) } else { failures.pop() }
    }

    /// Other credentials may help.
    pub(in super::super) fn is_about_access(&self) -> bool {
        match self {
            Self::Registry(error) => error.is_about_access(),
            Self::Several(failures) => !self.is_unreachable() && failures.iter().any(Self::is_about_access),
            Self::CannotResume { .. } | Self::Size { .. } | Self::Space(_) | Self::Disk { .. } | Self::Stopped => false,
        }
    }

    /// No registry could be asked.
    pub(in super::super) fn is_unreachable(&self) -> bool {
        match self {
            Self::Registry(error) => error.is_unreachable(),
            Self::CannotResume { .. } => true,
            // One that can be asked again later is the better news.
            Self::Several(failures) => failures.iter().any(Self::is_unreachable),
            Self::Size { .. } | Self::Space(_) | Self::Disk { .. } | Self::Stopped => false,
        }
    }
}
