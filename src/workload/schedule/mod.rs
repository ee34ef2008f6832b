//! Cron schedules in the dialect of Kubernetes, which is that of robfig/cron (W69 to W71).
//!
//! **Pure**: the zone and the points in time are arguments. [`Schedule::parse`] reads the text, [`Schedule::next`] and [`Schedule::latest`] find
//! activations forwards and backwards. A search steps over the stretches of time in which a zone keeps one offset, so that a change of the clock
//! is a border between two stretches and needs no correction afterwards.

mod error;
mod fields;
mod interval;
mod parse;
#[cfg(test)]
mod properties;
mod search;
mod zone;

pub use error::{ItemProblem, Part, ScheduleError};
pub use zone::{ZoneError, zone};

use fields::CronFields;
use interval::Interval;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A schedule that was parsed and that has activations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Five fields, or a descriptor that stands for them.
    Fields(CronFields),
    /// `@every 1h30m`.
    Every(Interval),
}

impl Schedule {
    /// Parses a schedule (W69). A schedule without any activation, such as `0 0 31 2 *`, is an error.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        parse::schedule(text)
    }

    /// First activation after both `anchor` and `after`. Activations of `@every` are counted from `anchor`, the last run; the five fields do not
    /// depend on it. None at the end of the range of time.
    pub fn next(&self, anchor: Timestamp, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.0 {
            Kind::Fields(fields) => search::next(fields, anchor.max(after), zone),
            Kind::Every(interval) => interval.next(anchor, after),
        }
    }

    /// Last activation after `anchor` and not after `until`, found backwards from `until` (W72).
    pub fn latest(&self, anchor: Timestamp, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.0 {
            Kind::Fields(fields) => search::latest(fields, anchor, until, zone),
            Kind::Every(interval) => interval.latest(anchor, until),
        }
    }

    /// Number of activations after `anchor` and not after `until`; counting stops at `at_most`.
    pub fn count(&self, anchor: Timestamp, until: Timestamp, zone: &TimeZone, at_most: u32) -> u32 {
        match &self.0 {
            Kind::Fields(fields) => {
                let mut next = anchor;
                let activations = std::iter::from_fn(|| {
                    next = search::next(fields, next, zone).filter(|activation| *activation <= until)?;
                    Some(next)
                });
                u32::try_from(activations.take(at_most as usize).count()).unwrap_or(at_most)
            }
            Kind::Every(interval) => interval.count(anchor, until, at_most),
        }
    }
}
