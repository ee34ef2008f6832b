//! Time for decisions, and time for people.
//!
//! Hosts without a battery-backed clock boot in the past and jump forward when the network comes. So what is *decided* (back-off, grace,
//! deadlines) is counted on a clock that never jumps, and wall-clock time is only *shown* and recorded (promise P1).

use jiff::Timestamp;
use podstead_sys::boot::BootTime;
use std::ops::{Add, Sub};
use std::time::Duration;
use tokio::time::Instant;

/// A point on the clock that never jumps: time since some moment before the daemon's start. Means nothing to another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// A moment that long after the clock's beginning.
    pub const fn from_beginning(after: Duration) -> Self {
        Self(after)
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_sub(duration))
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For decisions.
    pub moment: Moment,
    /// For records and readers.
    pub wall: Timestamp,
}

impl Now {
    /// The moment at which something happened that was recorded in wall-clock time. A record from the future (the clock was set back)
    /// counts as just now; one from before the clock's beginning counts as that beginning.
    pub fn moment_of(&self, recorded: Timestamp) -> Moment {
        let ago = Duration::try_from(self.wall.duration_since(recorded)).unwrap_or(Duration::ZERO);
        self.moment - ago
    }
}

/// Reads the clocks. Runs on tokio's clock, so that tests with paused time control it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    beginning: Instant,
    wall: WallClock,
}

#[derive(Clone, Copy, Debug)]
enum WallClock {
    System,
    /// Goes with the other clock from this time on.
    Fixed(Timestamp),
}

/// Moments begin this long before the daemon, so that what happened before its start can be told apart.
const BEFORE_START: Duration = Duration::from_secs(365 * 24 * 3600);

impl Clock {
    /// The host's clocks.
    pub fn system() -> Self {
        Self { beginning: Instant::now(), wall: WallClock::System }
    }

    /// A wall clock that starts at `start` and follows tokio's clock: for tests.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { beginning: Instant::now(), wall: WallClock::Fixed(start) }
    }

    /// Reads both clocks.
    pub fn now(&self) -> Now {
        let elapsed = self.beginning.elapsed();
        let wall = match self.wall {
            WallClock::System => Timestamp::now(),
            WallClock::Fixed(start) => start.saturating_add(elapsed).unwrap_or(Timestamp::MAX),
        };
        Now { moment: Moment(BEFORE_START + elapsed), wall }
    }

    /// The point in the life of the host: for what has to be counted across daemons.
    pub fn boot_time(&self) -> BootTime {
        match self.wall {
            WallClock::System => BootTime::now(),
            WallClock::Fixed(_) => BootTime { boot_id: "test".to_owned(), since_boot: self.beginning.elapsed() },
        }
    }

    /// The instant of a moment, for timers.
    pub fn instant(&self, moment: Moment) -> Instant {
        self.beginning + moment.0.saturating_sub(BEFORE_START)
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::*;

    fn now(wall: &str) -> Now {
        Now { moment: Moment::from_beginning(Duration::from_secs(1000)), wall: wall.parse().unwrap() }
    }

    #[test]
    fn a_record_from_the_past_is_that_long_ago() {
        let now = now("2025-01-01T00:00:10Z");
        assert_eq!(now.moment_of("2025-01-01T00:00:04Z".parse().unwrap()), now.moment - Duration::from_secs(6));
    }

    #[test]
    fn a_record_from_the_future_counts_as_now() {
        let now = now("1970-01-01T00:00:10Z");
        assert_eq!(now.moment_of("2025-01-01T00:00:00Z".parse().unwrap()), now.moment);
    }

    #[test]
    fn a_record_from_long_ago_counts_as_the_clocks_beginning() {
        let now = now("2025-01-01T00:00:10Z");
        assert_eq!(now.moment_of("1970-01-01T00:00:00Z".parse().unwrap()), Moment::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_and_its_instant_are_the_same_time() {
        let clock = Clock::starting_at("2025-01-01T00:00:00Z".parse().unwrap());
        let later = clock.now().moment + Duration::from_secs(5);
        tokio::time::sleep_until(clock.instant(later)).await;
        assert_eq!(clock.now().moment, later);
        assert_eq!(clock.now().wall, "2025-01-01T00:00:05Z".parse().unwrap());
    }
}
