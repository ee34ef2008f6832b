//! Reasons why a helper's job was not done.

use crate::explain::explain;
use crate::helper_job::Stage;

/// Reason why the job was not done; becomes a [`HelperMessage::Failed`](crate::helper_job::HelperMessage::Failed).
#[derive(Debug)]
pub(in super::super) struct Failure {
    pub(super) stage: Stage,
    pub(super) reason: String,
}

impl Failure {
    /// Before the OCI runtime had its turn.
    pub(super) fn create(reason: impl Into<String>) -> Self {
        Self { stage: Stage::Create, reason: reason.into() }
    }

    /// By making its process or executing the program.
    pub(super) fn execute(reason: impl Into<String>) -> Self {
        Self { stage: Stage::Execute, reason: reason.into() }
    }

    /// Found before the OCI runtime had its turn, which is whose business it is with runc.
    pub(super) fn of_runtime(self) -> Self {
        Self { stage: Stage::Execute, ..self }
    }
}

/// Turns an error into a [`Failure`] that says what was tried.
pub(super) trait Attempt<T> {
    fn attempt(self, what: &str) -> Result<T, Failure>;
}

impl<T, E: std::error::Error> Attempt<T> for Result<T, E> {
    fn attempt(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::create(format!("{what}: {}", explain(&error))))
    }
}
