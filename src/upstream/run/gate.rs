//! Limit of concurrent requests, which is zero for a while after a failure. **Pure**.

use super::pace::Pace;
use std::time::Duration;
use tokio::time::Instant;

/// Requests at the same time.
const PARALLEL: usize = 4;
/// Longest time for which nothing is sent after a failure of the server.
const LONGEST_GATE: Duration = Duration::from_secs(30);

/// Closed for a while after each failure of the server as a whole; then one request tries.
#[derive(Debug)]
pub(super) struct Gate {
    closed_until: Option<Instant>,
    pace: Pace,
}

impl Gate {
    /// Nothing failed yet.
    pub(super) const fn open() -> Self {
        Self { closed_until: None, pace: Pace::up_to(LONGEST_GATE) }
    }

    /// Requests that may be under way.
    pub(super) fn limit(&self, now: Instant) -> usize {
        match self.closed_until {
            None => PARALLEL,
            Some(until) if until <= now => 1,
            Some(_) => 0,
        }
    }

    /// Earliest time to send a request that is due at `due`.
    pub(super) fn opens_after(&self, due: Instant) -> Instant {
        self.closed_until.map_or(due, |until| due.max(until))
    }

    /// The server answers.
    pub(super) fn succeeded(&mut self) {
        self.closed_until = None;
        self.pace.succeeded();
    }

    /// It does not, or wants to be left alone for that long.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>, random: u32, now: Instant) {
        self.closed_until = Some(now + self.pace.failed(retry_after, random));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failure_nothing_is_sent_for_a_while_and_then_one_request_tries() {
        let start = Instant::now();
        let mut gate = Gate::open();
        assert_eq!((gate.limit(start), gate.opens_after(start)), (PARALLEL, start));
        gate.failed(None, u32::MAX, start);
        let later = start + Duration::from_secs(1);
        assert_eq!((gate.limit(start), gate.opens_after(start), gate.limit(later)), (0, later, 1));
        gate.succeeded();
        assert_eq!(gate.limit(start), PARALLEL);
    }
}
