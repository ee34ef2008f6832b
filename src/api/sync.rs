//! Letting a source look now.

use super::Backend;
use super::failure::ApiFailure;
use super::request::Query;
use super::respond::{self, Answer};
use podstead_artifact::wake::Verdict;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Nobody waits longer for a source: every source has time limits of its own, and the longest is an hour.
const LONGEST: Duration = Duration::from_secs(3700);

/// Result of a sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncAnswer {
    /// True if the response waited for the source; otherwise the other fields are empty.
    pub waited: bool,
    /// Revision whose set is in force.
    pub revision: Option<String>,
    /// Pods in it.
    pub pods: usize,
    /// Reason why the current content of the source is not in force.
    pub error: Option<String>,
    /// Objects that are refused; their last good versions stay.
    pub refused: usize,
}

/// `POST .../sources/NAME/sync`, with `wait=true` answered when the source looked and what it found is in force or refused.
pub(super) async fn sync(backend: &Backend, name: &str, query: &Query) -> Answer {
    let waker = backend.wakers.get(name).ok_or_else(|| ApiFailure::not_found("sources", name))?;
    if !query.flag("wait")? {
        waker.wake();
        return respond::json(&SyncAnswer { waited: false, revision: None, pods: 0, error: None, refused: 0 });
    }
    let verdict = match tokio::time::timeout(LONGEST, waker.sync()).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(ended)) => return Err(ApiFailure::unavailable(format!("source {name}: {ended}"))),
        Err(_) => return Err(ApiFailure::unavailable(format!("sync of source {name} timed out"))),
    };
    let Verdict { in_force, pods, error, refused } = verdict;
    let revision = in_force.map(|revision| revision.to_string());
    respond::json(&SyncAnswer { waited: true, revision, pods, error, refused })
}
