//! Back-off after failures. **Pure**.

use std::time::Duration;

/// First pause.
const FIRST: Duration = Duration::from_secs(1);
/// No server can ask for a longer silence.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Failures in a row, and the pauses that follow them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    failures: u32,
    longest: Duration,
}

impl Pace {
    /// Pauses grow up to `longest`.
    pub(super) const fn up_to(longest: Duration) -> Self {
        Self { failures: 0, longest }
    }

    /// It went well.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// It failed: the pause that follows, between half of 1 s, 2 s, 4 s and so on and the whole, so that hosts that lost the server together
    /// do not come back together. Never shorter than what the server asked for, within reason.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>, random: u32) -> Duration {
        let whole = FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(self.longest);
        self.failures = self.failures.saturating_add(1).min(16);
        let fraction = f64::from(random) / f64::from(u32::MAX);
        let pause = whole.mul_f64(0.5 + fraction / 2.0);
        match retry_after {
            Some(wanted) => pause.max(wanted.min(MAX_RETRY_AFTER).mul_f64(1.0 + fraction / 4.0)),
            None => pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let mut pace = Pace::up_to(Duration::from_secs(10));
        let pauses: Vec<_> = (0..6).map(|_| pace.failed(None, u32::MAX).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
        assert_eq!(pace.failed(None, 0), Duration::from_secs(5));
        for _ in 0..100 {
            assert!(pace.failed(None, 0) <= Duration::from_secs(10));
        }
        pace.succeeded();
        assert_eq!(pace.failed(None, 0), Duration::from_millis(500));
    }

    #[test]
    fn a_server_is_left_alone_as_long_as_it_wants_within_reason() {
        let mut pace = Pace::up_to(Duration::from_secs(10));
        assert_eq!(pace.failed(Some(Duration::from_secs(30)), 0), Duration::from_secs(30));
        assert_eq!(pace.failed(Some(Duration::from_secs(1 << 40)), u32::MAX), Duration::from_secs(150));
    }
}
