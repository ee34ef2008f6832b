//! Attempts of a transfer: after how long the next one begins, and when it is given up. **Pure**.

use std::time::Duration;

/// Attempts of a transfer that never brought a byte.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A transfer that brought bytes goes on for so long after the last one.
const PATIENCE: Duration = Duration::from_secs(300);
/// Longest pause wanted by a registry (`Retry-After`) that is waited for within a pull.
pub(in super::super) const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Next step of a transfer whose hosts all failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Next {
    /// Ask again after a pause.
    After(Duration),
    /// Report the error.
    GiveUp,
}

/// Memory of a transfer's failures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    failures: u32,
    /// Time of the last new byte, since the transfer began.
    last_byte: Option<Duration>,
}

impl Attempts {
    /// Takes note of a new byte.
    pub(super) fn advanced(&mut self, elapsed: Duration) {
        *self = Self { failures: 0, last_byte: Some(elapsed) };
    }

    /// Decides after a failure. `wanted` is the pause that the registry asks for; `chance` is in 0..1000.
    pub(super) fn failed(&mut self, elapsed: Duration, wanted: Duration, chance: u32) -> Next {
        self.failures += 1;
        if wanted > LONGEST_WAIT {
            return Next::GiveUp;
        }
        let is_over = match self.last_byte {
            None => self.failures >= ATTEMPTS,
            Some(last) => elapsed.saturating_sub(last) > PATIENCE,
        };
        if is_over { Next::GiveUp } else { Next::After(pause(self.failures, wanted, chance)) }
    }
}

/// The pause after so many failures in a row, spread by a fifth so that hosts which lost the same link do not return together. Never shorter than the
/// registry wants.
pub(in super::super) fn pause(failures: u32, wanted: Duration, chance: u32) -> Duration {
    let pause = (FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1).min(10))).min(LONGEST_PAUSE);
    let spread = pause * (800 + chance.min(1000) * 2 / 5) / 1000;
    spread.max(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn transfer_without_a_byte_has_few_attempts() {
        let mut attempts = Attempts::default();
        for _ in 1..ATTEMPTS {
            assert!(matches!(attempts.failed(NONE, NONE, 500), Next::After(_)));
        }
        assert_eq!(attempts.failed(NONE, NONE, 500), Next::GiveUp);
    }

    #[test]
    fn transfer_that_advanced_is_tried_for_minutes() {
        let mut attempts = Attempts::default();
        attempts.advanced(seconds(100));
        for _ in 0..50 {
            assert!(matches!(attempts.failed(seconds(399), NONE, 0), Next::After(_)));
        }
        assert_eq!(attempts.failed(seconds(401), NONE, 0), Next::GiveUp);
    }

    #[test]
    fn pauses_grow_and_are_spread() {
        assert_eq!(pause(1, NONE, 500), FIRST_PAUSE);
        assert_eq!((pause(3, NONE, 0), pause(3, NONE, 1000)), (Duration::from_millis(800), Duration::from_millis(1200)));
        assert_eq!(pause(60, NONE, 500), LONGEST_PAUSE);
        assert_eq!(pause(1, seconds(90), 0), seconds(90));
    }

    #[test]
    fn long_pause_of_the_registry_ends_the_pull() {
        let mut attempts = Attempts::default();
        attempts.advanced(NONE);
        assert_eq!(attempts.failed(NONE, LONGEST_WAIT, 0), Next::After(LONGEST_WAIT));
        assert_eq!(attempts.failed(NONE, LONGEST_WAIT + seconds(1), 0), Next::GiveUp);
    }
}
