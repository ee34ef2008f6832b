//! Errors of the runtime: refusals and misunderstood answers of a shim. **Pure**.

use crate::RuntimeError;
use podstead_container::protocol::Refusal;

pub(super) fn refused(operation: &str, refusal: Refusal) -> RuntimeError {
    match refusal {
        Refusal::NotFound(id) => RuntimeError::NotFound(format!("container {id}")),
        other => RuntimeError::failed(operation, other),
    }
}

pub(super) fn misunderstood(operation: &str) -> RuntimeError {
    RuntimeError::failed(operation, "unexpected response from the shim")
}
