//! Accepted revisions of a source: history, comparison, going back, standing still.

use super::Backend;
use super::failure::ApiFailure;
use super::respond::{self, Answer};
use podstead_pod::SourceId;
use podstead_store::history::RevisionError;
use podstead_telemetry::error_chain;
use serde::{Deserialize, Serialize};

/// Body of `rollback` and `suspend`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HoldRequest {
    /// For `rollback`: a number of the history, or the beginning of a revision. `None`: the revision before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The command line, to show later why the source is held.
    #[serde(default)]
    pub command: String,
}

/// Longest command that is kept.
const MAX_COMMAND: usize = 200;

impl HoldRequest {
    /// The command, of one line and not endless.
    fn command(&self, verb: &str, name: &str) -> String {
        let given = if self.command.is_empty() { format!("POST {verb} {name}") } else { self.command.clone() };
        given.chars().filter(|c| !c.is_control()).take(MAX_COMMAND).collect()
    }
}

/// `GET .../sources/NAME/history`.
pub(super) async fn history(backend: &Backend, name: &str) -> Answer {
    let history = backend.source_control.history(&SourceId::new(name)).await;
    respond::json(&history.map_err(|error| failure(&error, name))?)
}

/// `GET .../sources/NAME/diff?revision=`.
pub(super) async fn diff(backend: &Backend, name: &str, revision: Option<&str>) -> Answer {
    let diff = backend.source_control.diff(&SourceId::new(name), revision).await;
    respond::json(&diff.map_err(|error| failure(&error, name))?)
}

/// `POST .../sources/NAME/rollback`.
pub(super) async fn roll_back(backend: &Backend, name: &str, request: HoldRequest) -> Answer {
    let command = request.command("rollback", name);
    let done = backend.source_control.roll_back(&SourceId::new(name), request.revision.as_deref(), &command).await;
    respond::json(&done.map_err(|error| failure(&error, name))?)
}

/// `POST .../sources/NAME/suspend`.
pub(super) async fn suspend(backend: &Backend, name: &str, request: HoldRequest) -> Answer {
    if request.revision.is_some() {
        return Err(ApiFailure::bad_request("suspend holds the revision in force and does not accept a revision"));
    }
    let hold = backend.source_control.suspend(&SourceId::new(name), &request.command("suspend", name)).await;
    respond::json(&hold.map_err(|error| failure(&error, name))?)
}

/// `POST .../sources/NAME/resume`.
pub(super) async fn resume(backend: &Backend, name: &str) -> Answer {
    let hold = backend.source_control.resume(&SourceId::new(name)).await;
    respond::json(&hold.map_err(|error| failure(&error, name))?)
}

fn failure(error: &RevisionError, name: &str) -> ApiFailure {
    match error {
        RevisionError::UnknownSource(_) => ApiFailure::not_found("sources", name),
        RevisionError::NoSuchRevision { .. } | RevisionError::Ambiguous { .. } => {
            ApiFailure::bad_request(error.to_string()).about("sources", name)
        }
        RevisionError::NothingAccepted(_)
        | RevisionError::NotHeld(_)
        | RevisionError::NothingEarlier(_)
        | RevisionError::NothingClean(_)
        | RevisionError::InForce { .. } => ApiFailure::conflict(error.to_string()).about("sources", name),
        RevisionError::Unreadable { .. } | RevisionError::NotWritten { .. } => {
            ApiFailure::internal(error_chain(error).to_string()).about("sources", name)
        }
        RevisionError::Ended => ApiFailure::unavailable(error.to_string()),
    }
}
