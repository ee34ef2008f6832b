//! Errors of polls of a URL.

use super::serial::SerialError;
use crate::SignersError;
use crate::http_client::HttpError;
use podstead_trust::TrustError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why a poll failed. The same text for the same reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum PollError {
    /// No good answer.
    #[error(transparent)]
    Http(HttpError),
    /// No good answer for the signature.
    #[error("refused: no signature")]
    NoSignature(#[source] HttpError),
    /// The body cannot be what it should be.
    #[error("response from {url} {reason}")]
    Content {
        /// The URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// It is not known who may sign.
    #[error("refused")]
    Signers(#[source] SignersError),
    /// The signature does not vouch for the body.
    #[error("refused: signature of {url}")]
    Signature {
        /// Of what.
        url: String,
        /// The failed check.
        #[source]
        source: TrustError,
    },
    /// The body is older than the accepted one, or their order is unknown.
    #[error("refused: {0}")]
    Serial(SerialError),
    /// The serial cannot be made durable.
    #[error("record the fetched body in {}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
}

impl PollError {
    /// Returns the delay that the server asked for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Http(error) | Self::NoSignature(error) => error.retry_after(),
            Self::Content { .. } | Self::Signers(_) | Self::Signature { .. } | Self::Serial(_) | Self::Memory { .. } => None,
        }
    }
}
