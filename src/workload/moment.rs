//! A point on the clock that never jumps.

use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

/// Time since the host's boot. It means nothing after the next boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Moment(Duration);

impl Moment {
    /// The moment that long after the boot.
    pub const fn after_boot(after: Duration) -> Self {
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
