//! Errors of requests to the daemon.

use http_body_util::{BodyExt, Limited};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Largest failure that is read; messages are a line or two.
const MAX_FAILURE_BYTES: usize = 256 << 10;

/// The daemon's socket does not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the daemon at {}: {error}; {}", socket.display(), hint(.error))]
pub(crate) struct DaemonUnreachable {
    /// The socket.
    pub(crate) socket: PathBuf,
    /// Error of the system; part of the message, because the hint follows it.
    pub(crate) error: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "only root and the group configured as apiSocketGroup may use it",
        _ => "is podstead running? (systemctl status podstead)",
    }
}

/// Errors of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens.
    #[error(transparent)]
    Unreachable(#[from] DaemonUnreachable),
    /// The connection broke: the daemon went down in the middle of it.
    #[error("the connection to the daemon was lost")]
    Broken {
        /// Error of the connection.
        #[source]
        source: hyper::Error,
    },
    /// The daemon refused; the message is its own.
    #[error("{message}")]
    Refused {
        /// HTTP status code.
        code: u16,
        /// For people.
        message: String,
    },
    /// The answer is not what this version expects.
    #[error("cannot parse the daemon's response; compare the versions with podstead version")]
    NotUnderstood {
        /// Parse error.
        #[source]
        source: serde_json::Error,
    },
    /// The request cannot be expressed.
    #[error("build the request")]
    BadRequest(#[source] hyper::http::Error),
    /// The streams of exec or attach could not be opened, or broke.
    #[error("the session with the container was lost")]
    Session {
        /// Error of the connection.
        #[source]
        source: Box<tokio_tungstenite::tungstenite::Error>,
    },
}

/// The message of a `Status` object, or the text that came instead of one.
pub(super) fn message_of(body: &[u8], code: u16) -> String {
    let status: Option<Value> = serde_json::from_slice(body).ok();
    match status.as_ref().and_then(|status| status["message"].as_str()) {
        Some(message) => message.to_owned(),
        None if body.is_empty() => format!("the daemon returned status {code}"),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

pub(super) async fn refusal(response: Response<Incoming>) -> ClientError {
    let code = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_FAILURE_BYTES).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    ClientError::Refused { code, message: message_of(&body, code) }
}
