//! Failures as Kubernetes `Status` objects: a code for programs, a message for people.

use serde_json::{Value, json};

/// Error response of a request.
///
/// One type because every handler fails with it; a handler converts its own errors where they are declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiFailure {
    /// HTTP status code.
    pub(super) code: u16,
    /// Kubernetes' word for it.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
    /// Resource (plural, lower case, with the group after a dot if it has one) and name of the object concerned.
    pub(super) subject: Option<(&'static str, String)>,
    /// Faults by field.
    pub(super) causes: Vec<Cause>,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// Kubernetes' word for it.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
    /// Path of the field.
    pub(super) field: String,
}

impl ApiFailure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), subject: None, causes: Vec::new() }
    }

    /// 404 for an object: `pods "web" not found`, `deployments.apps "web" not found`.
    pub(super) fn not_found(kind: &'static str, name: &str) -> Self {
        let failure = Self::new(404, "NotFound", format!("{kind} {name:?} not found"));
        Self { subject: Some((kind, name.to_owned())), ..failure }
    }

    /// 404 for a path.
    pub(super) fn no_such_path(path: &str) -> Self {
        Self::new(404, "NotFound", format!("the server could not find the requested resource {path}"))
    }

    /// 400.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: no valid credential.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "Unauthorized", message)
    }

    /// 403.
    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// 415.
    pub(super) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 429: later.
    pub(super) fn too_many(message: impl Into<String>) -> Self {
        Self::new(429, "TooManyRequests", message)
    }

    /// 405.
    pub(super) fn method_not_allowed(message: impl Into<String>) -> Self {
        Self::new(405, "MethodNotAllowed", message)
    }

    /// 409: not as things are.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// 409: there is one of that name.
    pub(super) fn already_exists(message: impl Into<String>) -> Self {
        Self::new(409, "AlreadyExists", message)
    }

    /// 410: list again.
    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 504: a list as new as a version that was never given out. Clients that read this text list again without a version.
    pub(super) fn version_too_large(asked: u64, latest: u64) -> Self {
        Self::new(504, "Timeout", format!("Too large resource version: {asked}, current: {latest}"))
    }

    /// 422: an object of this kind is not valid.
    pub(super) fn invalid(kind: &'static str, name: &str, causes: Vec<Cause>) -> Self {
        let told = |cause: &Cause| {
            if cause.field.is_empty() { cause.message.clone() } else { format!("{}: {}", cause.field, cause.message) }
        };
        let all = match causes.as_slice() {
            [cause] => told(cause),
            causes => format!("[{}]", causes.iter().map(told).collect::<Vec<_>>().join(", ")),
        };
        let failure = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {all}")).about(kind, name);
        Self { causes, ..failure }
    }

    /// 504: it may still happen.
    pub(super) fn gateway_timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// 413.
    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 408.
    pub(super) fn timeout(message: impl Into<String>) -> Self {
        Self::new(408, "Timeout", message)
    }

    /// 500.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// 503.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// Names the object concerned.
    pub(super) fn about(mut self, kind: &'static str, name: &str) -> Self {
        self.subject = Some((kind, name.to_owned()));
        self
    }

    /// The `Status` object.
    pub(super) fn status_object(&self) -> Value {
        let mut details = match &self.subject {
            Some((resource, name)) => match resource.split_once('.') {
                Some((kind, group)) => json!({"name": name, "group": group, "kind": kind}),
                None => json!({"kind": resource, "name": name}),
            },
            // kubectl reads details of every failure.
            None => json!({}),
        };
        if !self.causes.is_empty() {
            let causes = self
                .causes
                .iter()
                .map(|Cause { reason, message, field }| json!({"reason": reason, "message": message, "field": field}));
            details["causes"] = causes.collect();
        }
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        })
    }
}
