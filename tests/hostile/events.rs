//! Events that a test looks at.

use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use std::sync::Mutex;

/// Reasons of all events.
#[derive(Debug, Default)]
pub(crate) struct Recorded(pub(crate) Mutex<Vec<String>>);

impl EventRecorder for Recorded {
    fn record(&self, _: &Subject, _: EventType, reason: &str, _: &str) {
        self.0.lock().unwrap().push(reason.to_owned());
    }
}
