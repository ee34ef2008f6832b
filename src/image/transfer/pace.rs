//! The pace of a transfer: whether unpacking goes along with it or waits for the last byte. **Pure**.

use std::time::Duration;

/// With the rest of the blob expected in less, unpacking goes along.
const NEAR: Duration = Duration::from_secs(30);
/// An unknown rate counts as near for so long.
const UNKNOWN: Duration = Duration::from_secs(2);
/// After so much silence the transfer is far.
const SILENCE: Duration = Duration::from_secs(5);
/// The rate is that of the last one or two such times.
const WINDOW: Duration = Duration::from_secs(5);

/// Distance of a blob's last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Pace {
    /// Unpacked while it arrives.
    Near,
    /// Unpacked when its last byte is here: an unpacker would wait with its memory. A transfer stays far, so that a tree is begun twice at most.
    Far,
}

/// Measures the rate of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    pace: Pace,
    /// Time and fetched bytes at the beginnings of the last two windows.
    samples: [(Duration, u64); 2],
    /// Fetched bytes when the last one came, and that time.
    last: (u64, Duration),
}

impl Gauge {
    /// A gauge of a transfer that begins.
    pub(super) fn new() -> Self {
        Self { pace: Pace::Near, samples: [(Duration::ZERO, 0); 2], last: (0, Duration::ZERO) }
    }

    /// Bytes per second at `elapsed`, with so many bytes fetched; `None` while it is unknown.
    pub(super) fn rate(&self, elapsed: Duration, fetched: u64) -> Option<u64> {
        let (since, bytes) = self.samples[0];
        let time = elapsed.saturating_sub(since);
        if time < UNKNOWN {
            return None;
        }
        u64::try_from(u128::from(fetched.saturating_sub(bytes)) * 1000 / time.as_millis().max(1)).ok()
    }

    /// The pace at `elapsed`, with so many bytes fetched and `rest` to come.
    pub(super) fn pace(&mut self, elapsed: Duration, fetched: u64, rest: u64) -> Pace {
        if fetched != self.last.0 {
            self.last = (fetched, elapsed);
        }
        if elapsed.saturating_sub(self.samples[1].0) >= WINDOW {
            self.samples = [self.samples[1], (elapsed, fetched)];
        }
        let is_silent = elapsed.saturating_sub(self.last.1) >= SILENCE;
        let is_slow = self.rate(elapsed, fetched).is_some_and(|rate| rest > rate.saturating_mul(NEAR.as_secs()));
        if is_silent || is_slow {
            self.pace = Pace::Far;
        }
        self.pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(gauge: &mut Gauge, seconds: u64, fetched: u64, rest: u64) -> Pace {
        gauge.pace(Duration::from_secs(seconds), fetched, rest)
    }

    #[test]
    fn unknown_rate_is_near_for_two_seconds() {
        let mut gauge = Gauge::new();
        assert_eq!(after(&mut gauge, 1, 0, 1000), Pace::Near);
        assert_eq!(after(&mut gauge, 2, 0, 1000), Pace::Far);
        assert_eq!(after(&mut gauge, 3, 900, 100), Pace::Far, "it stays so");
    }

    #[test]
    fn fast_transfer_stays_near() {
        let mut gauge = Gauge::new();
        for second in 0..20 {
            assert_eq!(after(&mut gauge, second, second * 1000, (20 - second) * 1000), Pace::Near, "{second}");
        }
    }

    #[test]
    fn slipping_projection_makes_a_transfer_far() {
        let mut gauge = Gauge::new();
        assert_eq!(after(&mut gauge, 3, 300_000, 1_000_000), Pace::Near);
        let far = (4..20).find(|second| after(&mut gauge, *second, 300_000 + *second, 1_000_000 - second) == Pace::Far);
        assert!(far.is_some_and(|second| second <= 16), "{far:?}");
    }

    #[test]
    fn silence_makes_a_transfer_far() {
        let mut gauge = Gauge::new();
        assert_eq!(after(&mut gauge, 1, 1_000_000, 10), Pace::Near);
        assert_eq!(after(&mut gauge, 5, 1_000_000, 10), Pace::Near);
        assert!((6..12).any(|second| after(&mut gauge, second, 1_000_000, 10) == Pace::Far));
    }
}
