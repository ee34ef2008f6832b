//! Errors of the runtime: failures of its own, refusals and misunderstood answers of a shim. **Pure**.

use crate::RuntimeError;
use podstead_container::protocol::Refusal;

/// An error with its causes.
pub(super) fn failed(operation: &str, error: &dyn std::error::Error) -> RuntimeError {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(": ");
        reason.push_str(&cause.to_string());
        source = cause.source();
    }
    RuntimeError::Failed { operation: operation.to_owned(), reason }
}

pub(super) fn refused(operation: &str, refusal: Refusal) -> RuntimeError {
    match refusal {
        Refusal::NotFound(id) => RuntimeError::NotFound(format!("container {id}")),
        other => RuntimeError::Failed { operation: operation.to_owned(), reason: other.to_string() },
    }
}

pub(super) fn misunderstood(operation: &str) -> RuntimeError {
    RuntimeError::Failed { operation: operation.to_owned(), reason: "unexpected response from the shim".to_owned() }
}
