//! The status of a source, and where the intake publishes it.

use super::history::Hold;
use jiff::Timestamp;
use podstead_manifest::Problem;
use podstead_pod::{Revision, SourceId};
use std::fmt;

/// State of a source.
///
/// One type because it is plain data that mirrors the status of a source in the API.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatus {
    /// Its configured name.
    pub id: SourceId,
    /// `directory`, `http` or `git`.
    pub kind: String,
    /// Path or URL, without credentials.
    pub location: String,
    /// The revision last read from the place.
    pub fetched: Option<Revision>,
    /// The last time at which content was read that differed from the content before.
    pub fetched_at: Option<Timestamp>,
    /// The revision that was last recorded and applied.
    pub accepted: Option<Revision>,
    /// The time at which it was made durable.
    pub accepted_at: Option<Timestamp>,
    /// The revision whose set was last given to the workers of its pods.
    pub applied: Option<Revision>,
    /// The time at which it was given to them.
    pub applied_at: Option<Timestamp>,
    /// That it stays so, whatever the place says.
    pub hold: Option<Hold>,
    /// Number of pods in that set.
    pub pods: usize,
    /// Reason why the place cannot be read at present.
    pub last_error: Option<String>,
    /// Problems of the fetched revision.
    pub problems: Vec<Problem>,
}

/// Receiver of the state of sources.
pub trait SourceStatusSink: Send + Sync + fmt::Debug + 'static {
    /// Replaces what is shown of the source.
    fn publish_source(&self, status: SourceStatus);

    /// The source is not configured any more.
    fn withdraw_source(&self, _id: &SourceId) {}
}
