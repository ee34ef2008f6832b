//! Errors of HTTP requests.

use super::shown;
use crate::credentials::CredentialsError;
use podstead_outbound::{Failure, ForbiddenAddress, TlsFileError};
use reqwest::Url;
use std::time::Duration;

/// Reason why there is no usable response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// A file with credentials cannot be used.
    #[error(transparent)]
    Credentials(CredentialsError),
    /// A file of TLS cannot be used.
    #[error("set up TLS")]
    Tls(#[source] TlsFileError),
    /// No client can be made with this configuration.
    #[error("set up the HTTP client: {0}")]
    Setup(String),
    /// No whole answer came.
    #[error("{}", failure.with_host(host))]
    OnTheWay {
        /// Host and port.
        host: String,
        /// The failure.
        failure: Failure,
    },
    /// A redirect that is not followed.
    #[error("{url}: {reason}")]
    Redirect {
        /// The URL.
        url: String,
        /// Reason why it is not followed.
        reason: String,
    },
    /// Another status than was asked for.
    #[error("{url} returned {status}{hint}")]
    Status {
        /// The URL.
        url: String,
        /// Code and its usual words.
        status: reqwest::StatusCode,
        /// Advice in parentheses, with a leading space.
        hint: &'static str,
        /// Delay that the server asked for, if it did.
        retry_after: Option<Duration>,
    },
    /// A body that is larger than it may be.
    #[error("response from {url} is larger than {limit} bytes")]
    TooLarge {
        /// The URL.
        url: String,
        /// In bytes.
        limit: u64,
    },
    /// Body with a content encoding that was not requested, or that cannot be decoded.
    #[error("response from {url} {reason}")]
    Encoding {
        /// The URL.
        url: String,
        /// The reason.
        reason: String,
    },
}

impl HttpError {
    pub(super) fn on_the_way(url: &Url, failure: Failure) -> Self {
        match failure {
            Failure::Setup(text) => {
                Self::Setup(format!("{text} (if the host has no certificate authorities, install ca-certificates or set caFile)"))
            }
            Failure::TooLarge(limit) => Self::TooLarge { url: shown(url), limit },
            Failure::Encoding(reason) => Self::Encoding { url: shown(url), reason },
            failure => Self::OnTheWay { host: authority(url), failure },
        }
    }

    pub(super) fn forbidden(url: &Url, error: ForbiddenAddress) -> Self {
        Self::OnTheWay { host: authority(url), failure: Failure::Forbidden(error) }
    }

    /// Returns the delay that the server asked for, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Credentials(_) | Self::Tls(_) | Self::Setup(_) | Self::OnTheWay { .. } => None,
            Self::Redirect { .. } | Self::TooLarge { .. } | Self::Encoding { .. } => None,
        }
    }

    pub(super) fn status(url: &Url, status: reqwest::StatusCode, retry_after: Option<Duration>) -> Self {
        let hint = match status.as_u16() {
            401 => " (the credentials are missing, wrong or expired)",
            403 => " (the credentials lack the permission)",
            407 => " (the proxy requires credentials)",
            _ => "",
        };
        Self::Status { url: shown(url), status, hint, retry_after }
    }
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
