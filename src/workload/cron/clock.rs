//! Credibility of the wall clock (W77 to W79).

use crate::moment::Moment;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// The usual limit of the wait for a synchronised clock, after boot (W78).
pub const WAIT_FOR_SYNC: Duration = Duration::from_secs(180);

/// The time at which this podstead was made: no correct clock is before it (W77).
pub const BUILT: Timestamp = Timestamp::constant(1_790_000_000, 0);

/// Distance by which a clock is set back for a correction; beyond it the earlier time was wrong (W79).
const CORRECTION: SignedDuration = SignedDuration::from_hours(3);

/// Both clocks, and the grounds to believe the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The wall clock.
    pub wall: Timestamp,
    /// The clock that never jumps, counted from boot.
    pub moment: Moment,
    /// The id of this boot.
    pub boot_id: String,
    /// The kernel's word on the synchronisation of the wall clock, if it has one.
    pub synchronised: Option<bool>,
    /// The time at which this podstead was built: no correct clock is before it (W77).
    pub built: Timestamp,
    /// Time after boot for which a synchronised clock is waited for (W78).
    pub wait_for_sync: Duration,
}

/// Credibility of the wall clock at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credibility {
    /// It shows a time before podstead was built.
    Impossible,
    /// It may still be corrected, until then.
    Unsettled { until: Moment },
    /// Schedules go by it.
    Trusted,
}

impl Clocks {
    pub(super) fn credibility(&self) -> Credibility {
        let until = Moment::after_boot(self.wait_for_sync);
        if self.wall < self.built {
            Credibility::Impossible
        } else if self.synchronised == Some(true) || self.moment >= until {
            Credibility::Trusted
        } else {
            Credibility::Unsettled { until }
        }
    }

    /// True if `settled` was taken from a clock that was wrong: it lies further in the future than a correction goes (W79).
    pub(super) fn disproves(&self, settled: Timestamp) -> bool {
        settled.duration_since(self.wall) > CORRECTION
    }
}
