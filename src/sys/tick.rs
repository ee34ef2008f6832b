//! Points on the clock that all processes of this boot share, for measuring.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Nanoseconds on the kernel's monotonic clock. Processes of one boot can compare them. For measuring only: decisions go by the clock of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let (seconds, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// A tick that many nanoseconds after the clock's beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The nanoseconds, for another process.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The tick of an instant of this process.
    pub fn of(instant: Instant) -> Self {
        Self::now().before(instant.elapsed())
    }

    /// The tick that long before this one; at most the clock's beginning.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Time from `earlier` to this tick; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_forward() {
        let first = Tick::now();
        let second = Tick::now();
        assert!(second >= first && second.since(first) < Duration::from_secs(60));
        assert_eq!(first.since(second.before(Duration::ZERO)), Duration::ZERO);
        assert_eq!(Tick::from_nanos(5_000).before(Duration::from_micros(2)), Tick::from_nanos(3_000));
        assert_eq!(Tick::from_nanos(5).before(Duration::from_secs(1)), Tick::from_nanos(0));
    }
}
