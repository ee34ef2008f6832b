//! Errors of polls of a registry.

use super::manifest::ManifestError;
use super::order::OrderError;
use crate::tree_job::ReadError;
use podstead_image::{RepositoryError, policy::Refusal};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why a poll failed. The same text for the same reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum OciError {
    /// The registry.
    #[error(transparent)]
    Registry(RepositoryError),
    /// No answer in time.
    #[error("{url} did not send the artifact within {} s (timeoutSeconds)", timeout.as_secs())]
    Late {
        /// The repository.
        url: String,
        /// The time limit.
        timeout: Duration,
    },
    /// The configured tag cannot be one.
    #[error("{0:?} is not a tag")]
    BadTag(String),
    /// No tag has a version in the range.
    #[error("{url} has no tag with {range}")]
    NoVersion {
        /// The repository.
        url: String,
        /// The range, in words.
        range: String,
    },
    /// Not an artifact with manifests.
    #[error("{name}: {source}")]
    Manifest {
        /// The artifact.
        name: String,
        /// The reason.
        source: ManifestError,
    },
    /// A layer beyond the limit.
    #[error("{name} has {size} bytes to download, more than {}", super::options::MAX_LAYER)]
    TooLarge {
        /// The artifact.
        name: String,
        /// As its manifest states.
        size: u64,
    },
    /// The archive.
    #[error("{name}")]
    Tree {
        /// The artifact.
        name: String,
        /// The reason.
        #[source]
        source: ReadError,
    },
    /// The same artifact was refused before.
    #[error("{0}")]
    Again(String),
    /// It is older than the accepted one.
    #[error("refused: {0}")]
    Order(#[from] OrderError),
    /// It is not signed by one of the keys.
    #[error("refused: {name}: {refusal}")]
    Unsigned {
        /// The artifact.
        name: String,
        /// The failed check.
        refusal: Refusal,
    },
    /// The record cannot be made durable.
    #[error("record the fetched artifact in {}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
}

impl OciError {
    /// Returns the delay that the registry asked for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Registry(RepositoryError::Registry { retry_after, .. }) => *retry_after,
            _ => None,
        }
    }

    /// Reports whether the content of the artifact is to blame, which never changes under its digest.
    pub(super) fn is_of_the_content(&self) -> bool {
        match self {
            Self::Manifest { .. } | Self::TooLarge { .. } => true,
            Self::Tree { source, .. } => source.is_of_the_content(),
            _ => false,
        }
    }
}

impl From<RepositoryError> for OciError {
    fn from(error: RepositoryError) -> Self {
        Self::Registry(error)
    }
}
