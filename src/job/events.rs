//! Events that tell of jobs which did not do their task.

use podstead_telemetry::events::{EventRecorder, EventType, Subject};

/// Reasons of events.
pub const VIOLATION: &str = "JobViolation";
/// The job used up what a job may use.
pub const LIMIT: &str = "LimitExceeded";
/// The job could not give up its rights, and refused to work.
pub const NOT_CONFINED: &str = "JobNotConfined";

/// Records a warning of the host, in the log as well.
pub fn record(events: &dyn EventRecorder, reason: &str, message: &str) {
    tracing::warn!("{message}");
    events.record(&Subject::Node, EventType::Warning, reason, message);
}
