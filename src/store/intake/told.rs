//! Events of a source: each distinct problem is recorded once.

use podstead_manifest::{ObjectKey, Problem};
use podstead_pod::{Severity, SourceId};
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::HashSet;
use std::sync::Arc;

/// Problems that are recorded one by one per revision; the rest is counted, and shown by `podstead validate`.
const MAX_TOLD: usize = 50;

/// Problems that were recorded for one source.
#[derive(Debug)]
pub(super) struct Told {
    subject: Subject,
    source: SourceId,
    events: Arc<dyn EventRecorder>,
    problems: HashSet<Problem>,
}

impl Told {
    pub(super) fn new(source: SourceId, events: Arc<dyn EventRecorder>) -> Self {
        Self { subject: Subject::Source(source.clone()), source, events, problems: HashSet::new() }
    }

    /// Records the new ones of `problems`, and forgets those that are fixed. `stays` is true for objects that stay in an earlier version.
    pub(super) fn problems(&mut self, problems: &[Problem], stays: impl Fn(&ObjectKey) -> bool) {
        let new: Vec<&Problem> = problems.iter().filter(|problem| !self.problems.contains(problem)).collect();
        for problem in new.iter().take(MAX_TOLD) {
            let goes_on = problem.severity == Severity::Error && problem.object.as_ref().is_some_and(&stays);
            let text = if goes_on { format!("{problem}; keeping its last good version") } else { problem.to_string() };
            match problem.severity {
                Severity::Error => tracing::error!(source = %self.source, "{text}"),
                Severity::Warning => tracing::warn!(source = %self.source, "{text}"),
            }
            self.events.record(&self.subject, EventType::Warning, "FailedValidation", &text);
        }
        if new.len() > MAX_TOLD {
            self.trouble("FailedValidation", &format!("{} more problems, see podstead validate", new.len() - MAX_TOLD));
        }
        if problems.is_empty() && !self.problems.is_empty() {
            self.good("Validated", "all problems of its manifests are fixed");
        }
        self.problems = problems.iter().cloned().collect();
    }

    /// Records a warning.
    pub(super) fn trouble(&self, reason: &str, text: &str) {
        tracing::warn!(source = %self.source, reason, "{text}");
        self.events.record(&self.subject, EventType::Warning, reason, text);
    }

    /// Records normal operation.
    pub(super) fn good(&self, reason: &str, text: &str) {
        tracing::info!(source = %self.source, reason, "{text}");
        self.events.record(&self.subject, EventType::Normal, reason, text);
    }
}
