//! One probe of one run of a container: a state machine of answers. **Pure**.
//!
//! ```text
//!              as many equal answers in a row as their threshold says
//!   result ---------------------------------------------------------> result'
//!                                  startup: any result, liveness: Failure
//!   asked ---------------------------------------------------------> on hold: the next run has a state of its own
//! ```

use crate::health::{ProbeFailure, ProbeHealth, ProbeResult};
use crate::spec::{ProbeKind, Timing};
use jiff::Timestamp;

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All is well.
    Success,
    /// It is not, and this is why.
    Failure(String),
    /// The check could not be made, also when tried again. It says nothing about the container.
    Error(String),
}

/// The state of one probe of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeState {
    kind: ProbeKind,
    health: ProbeHealth,
    /// The last answer, and how often it came in a row.
    in_a_row: Option<(ProbeResult, u32)>,
    is_on_hold: bool,
}

impl ProbeState {
    /// Before the first check. `result` is what is known from before; `None` for a new run.
    pub fn new(kind: ProbeKind, result: Option<ProbeResult>) -> Self {
        let health = ProbeHealth { result: result.unwrap_or(ProbeResult::initial(kind)), failure: None };
        let is_on_hold = kind == ProbeKind::Startup && health.result == ProbeResult::Success;
        Self { kind, health, in_a_row: None, is_on_hold }
    }

    /// The health.
    pub const fn health(&self) -> &ProbeHealth {
        &self.health
    }

    /// The effective result.
    pub const fn result(&self) -> ProbeResult {
        self.health.result
    }

    /// Returns true if the probe is active. `is_started`: the startup probe of the run, if it has one, succeeded. `is_ending`: it is being
    /// stopped.
    pub fn is_asked(&self, is_started: bool, is_ending: bool) -> bool {
        let is_its_time = match self.kind {
            ProbeKind::Startup => !is_started && !is_ending,
            ProbeKind::Liveness => is_started && !is_ending,
            // A container that ends is asked whether it may still be used until it is gone.
            ProbeKind::Readiness => is_started,
        };
        is_its_time && !self.is_on_hold
    }

    /// The probe was edited: answers to the old one do not count towards the thresholds of the new one. Its result stays until then.
    pub fn redefined(&mut self) {
        self.in_a_row = None;
    }

    /// Takes in an answer. Whether something changed that others should look at: what counts, or whether there is a failure to show.
    pub fn take_in(&mut self, answer: &Answer, timing: &Timing, now: Timestamp) -> bool {
        let (result, threshold, failure) = match answer {
            Answer::Error(_) => return false,
            Answer::Success => (ProbeResult::Success, timing.success_threshold, None),
            Answer::Failure(why) => {
                let message = format!("{} probe failed: {why}", self.kind);
                (ProbeResult::Failure, timing.failure_threshold, Some(ProbeFailure { message, at: now }))
            }
        };
        let had_failure = self.health.failure.is_some();
        self.health.failure = failure;
        let count = match self.in_a_row {
            Some((last, count)) if last == result => count.saturating_add(1),
            Some(_) | None => 1,
        };
        self.in_a_row = Some((result, count));
        // A first failure is shown where it explains why the container is not used yet.
        let explains = self.health.result != ProbeResult::Success && had_failure != self.health.failure.is_some();
        if count < threshold {
            return explains;
        }
        let before = std::mem::replace(&mut self.health.result, result);
        self.is_on_hold = match self.kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => result == ProbeResult::Failure,
            ProbeKind::Readiness => false,
        };
        before != result || explains
    }
}
