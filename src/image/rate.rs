//! The least rate of a transfer. **Pure**.

use std::time::Duration;

/// Minimum rate of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MinimumRate {
    /// 0 for no minimum.
    pub(super) bytes_per_second: u64,
    /// The rate is that over such a time.
    pub(super) window: Duration,
}

/// A transfer was below the minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooSlow {
    /// Seen.
    pub(super) bytes: u64,
    /// In this time.
    pub(super) waited: Duration,
}

/// Measures one connection, window after window. Only time spent waiting for the network counts, so that a slow disk is not taken for a slow registry.
#[derive(Debug)]
pub(super) struct RateMeter {
    minimum: MinimumRate,
    waited: Duration,
    bytes: u64,
}

impl RateMeter {
    pub(super) fn new(minimum: MinimumRate) -> Self {
        Self { minimum, waited: Duration::ZERO, bytes: 0 }
    }

    /// Counts bytes that came after a wait. An error means that the window is over and too few came in it.
    pub(super) fn count(&mut self, waited: Duration, bytes: u64) -> Result<(), TooSlow> {
        self.waited += waited;
        self.bytes += bytes;
        let MinimumRate { bytes_per_second, window } = self.minimum;
        if self.waited < window {
            return Ok(());
        }
        let seen = TooSlow { bytes: self.bytes, waited: self.waited };
        let wanted = u128::from(bytes_per_second) * self.waited.as_millis() / 1000;
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        if u128::from(seen.bytes) < wanted { Err(seen) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meter(bytes_per_second: u64) -> RateMeter {
        RateMeter::new(MinimumRate { bytes_per_second, window: Duration::from_secs(60) })
    }

    #[test]
    fn dripping_connection_is_too_slow_after_its_window() {
        let mut meter = meter(1024);
        for _ in 0..59 {
            assert_eq!(meter.count(Duration::from_secs(1), 1), Ok(()));
        }
        assert_eq!(meter.count(Duration::from_secs(1), 1), Err(TooSlow { bytes: 60, waited: Duration::from_secs(60) }));
    }

    #[test]
    fn burst_does_not_count_for_the_next_window() {
        let mut meter = meter(1024);
        assert_eq!(meter.count(Duration::from_secs(60), 1 << 30), Ok(()));
        assert!(meter.count(Duration::from_secs(60), 100).is_err());
    }

    #[test]
    fn time_spent_elsewhere_does_not_count() {
        let mut meter = meter(1024);
        for _ in 0..10_000 {
            assert_eq!(meter.count(Duration::ZERO, 1), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn zero_switches_the_minimum_off(waits in proptest::collection::vec((0_u64..100_000, 0_u64..10), 0..50)) {
            let mut meter = meter(0);
            for (millis, bytes) in waits {
                prop_assert_eq!(meter.count(Duration::from_millis(millis), bytes), Ok(()));
            }
        }

        #[test]
        fn steady_rate_above_the_minimum_is_never_too_slow(rate in 1_u64..100_000, seconds in 1_u64..300) {
            let mut meter = meter(rate);
            for _ in 0..seconds {
                prop_assert_eq!(meter.count(Duration::from_secs(1), rate), Ok(()));
            }
        }
    }
}
