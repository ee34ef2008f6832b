//! Interface to an API server for the rest of this module; [`super::client`] implements it for a real one.

use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET.
    Get,
    /// POST.
    Create,
    /// PUT.
    Replace,
    /// PATCH, a strategic merge patch.
    Patch,
    /// DELETE.
    Delete,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiRequest {
    /// Its verb.
    pub verb: Verb,
    /// Absolute path, e.g. `/api/v1/nodes/edge`.
    pub path: String,
    /// Query parameters.
    pub query: Vec<(&'static str, String)>,
    /// Body.
    pub body: Option<Value>,
}

impl ApiRequest {
    /// A request without query and body.
    pub fn new(verb: Verb, path: impl Into<String>) -> Self {
        Self { verb, path: path.into(), query: Vec::new(), body: None }
    }

    /// The same with a query parameter.
    pub fn with_query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// The same with a body.
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

/// Kind of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// It was added or modified.
    Present,
    /// It was deleted.
    Deleted,
    /// Nothing happened up to the version that the object has.
    Bookmark,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent {
    /// Its kind.
    pub kind: WatchKind,
    /// The object.
    pub object: Value,
}

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// No response, or an invalid one.
    #[error("{0}")]
    Unreachable(String),
    /// This host has no credentials.
    #[error("{0}")]
    Credentials(String),
    /// The server returned an error.
    #[error("the API server returned {code}: {message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// `reason` of its `Status`.
        reason: String,
        /// `details.kind` of its `Status`: what the answer is about.
        kind: String,
        /// `message` of its `Status`.
        message: String,
        /// Delay that the server asked for, if it did.
        retry_after: Option<Duration>,
    },
}

impl ApiError {
    fn code(&self) -> u16 {
        match self {
            Self::Unreachable(_) | Self::Credentials(_) => 0,
            Self::Refused { code, .. } => *code,
        }
    }

    /// The object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// An object of that name exists, or its version or UID is another one.
    pub fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// The requested version has expired.
    pub fn is_expired(&self) -> bool {
        self.code() == 410
    }

    /// The resulting object is not valid.
    pub fn is_invalid(&self) -> bool {
        self.code() == 422
    }

    /// The permission is missing.
    pub fn is_forbidden(&self) -> bool {
        self.code() == 403
    }

    /// Every other request would fail as well: no connection, not known to the server, too many requests, a failure of the server.
    pub fn is_about_the_server(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Credentials(_) => true,
            Self::Refused { code, .. } => matches!(code, 401 | 429 | 500..),
        }
    }

    /// Returns the delay that the server asked for, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable(_) | Self::Credentials(_) => None,
            Self::Refused { retry_after, .. } => *retry_after,
        }
    }

    /// From the body of an error response, or from the object of an `ERROR` event.
    pub fn of_status(code: u16, status: &Value, retry_after: Option<Duration>) -> Self {
        let text = |value: &Value, otherwise: &str| cut(value.as_str().unwrap_or(otherwise));
        Self::Refused {
            code: status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(code),
            reason: text(&status["reason"], ""),
            kind: text(&status["details"]["kind"], ""),
            message: text(&status["message"], "no message"),
            retry_after: retry_after.or_else(|| status["details"]["retryAfterSeconds"].as_u64().map(Duration::from_secs)),
        }
    }
}

/// A server's message, of bounded length.
fn cut(text: &str) -> String {
    text.chars().take(400).collect()
}

/// An API server.
#[async_trait]
pub trait Cluster: Send + Sync + fmt::Debug {
    /// Sends a request and waits for the whole response; bounded in time and size.
    async fn send(&self, request: ApiRequest) -> Result<Value, ApiError>;
    /// Starts a watch. The request names the version to begin after.
    async fn watch(&self, request: ApiRequest) -> Result<Box<dyn Watch>, ApiError>;
    /// Returns the server's address for messages; `None` while it is not known.
    async fn address(&self) -> Option<String>;
}

/// A watch that was started.
#[async_trait]
pub trait Watch: Send {
    /// The next event; `None` when the server ended the watch in its usual way. Cancel-safe.
    async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>>;
}
