//! Activations of the five fields in a zone (W71).
//!
//! Time in a zone is a row of stretches, each with one offset. Hours that repeat (stars, steps) match in every stretch by itself, and so follow
//! elapsed time. A fixed hour and minute comes once a day: calendar time that the stretch before has passed already does not count again, and
//! calendar time that is skipped at a border counts at the first instant after it.

use super::fields::CronFields;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Upper limit of the distance between two activations: 29 February, and its absence in 2100, are eight years apart.
const FARTHEST: SignedDuration = SignedDuration::from_hours(9 * 366 * 24);
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// A stretch of time in which a zone keeps one offset.
struct Stretch {
    offset: Offset,
    /// Its first instant, and the offset before it; none at the beginning of time.
    start: Option<(Timestamp, Offset)>,
    /// The first instant of the next stretch; none at the end of time.
    end: Option<Timestamp>,
}

impl Stretch {
    /// The stretch that holds `instant`.
    fn at(instant: Timestamp, zone: &TimeZone) -> Self {
        // Changes come at whole seconds, so that none lies between the instant and the next second.
        let next_second = instant.checked_add(SECOND).unwrap_or(Timestamp::MAX);
        let start = zone.preceding(next_second).map(|change| change.timestamp()).find(|start| *start <= instant);
        Self {
            offset: zone.to_offset(instant),
            start: start.and_then(|start| Some((start, zone.to_offset(start.checked_sub(SECOND).ok()?)))),
            end: zone.following(instant).map(|change| change.timestamp()).next(),
        }
    }

    /// Calendar time of the border at its start: as the stretch before ends, and as this one begins.
    fn border(&self) -> Option<(Timestamp, DateTime, DateTime)> {
        self.start.map(|(start, before)| (start, before.to_datetime(start), self.offset.to_datetime(start)))
    }

    /// First calendar time that counts in this stretch.
    fn floor(&self, fields: &CronFields) -> DateTime {
        match self.border() {
            None => DateTime::MIN,
            Some((_, _, begins)) if fields.follows_elapsed_time => begins,
            Some((_, passed, begins)) => begins.max(passed),
        }
    }

    /// Last calendar time of this stretch.
    fn ceiling(&self) -> DateTime {
        self.end.map_or(DateTime::MAX, |end| self.offset.to_datetime(end.checked_sub(SECOND).unwrap_or(end)))
    }

    /// The start, if fixed times that match were skipped there.
    fn made_up(&self, fields: &CronFields) -> Option<Timestamp> {
        let (start, passed, begins) = self.border()?;
        if fields.follows_elapsed_time || passed >= begins {
            return None;
        }
        fields.first(passed, begins.checked_sub(SECOND).ok()?).map(|_| start)
    }

    fn first(&self, fields: &CronFields, after: Timestamp) -> Option<Timestamp> {
        if let Some(start) = self.made_up(fields).filter(|start| *start > after) {
            return Some(start);
        }
        let is_inside = self.start.is_none_or(|(start, _)| start <= after);
        let from = if is_inside { self.offset.to_datetime(after.checked_add(NANOSECOND).ok()?) } else { DateTime::MIN };
        let found = fields.first(from.max(self.floor(fields)), self.ceiling())?;
        self.offset.to_timestamp(found).ok()
    }

    fn last(&self, fields: &CronFields, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let to = self.offset.to_datetime(until).min(self.ceiling());
        let from = self.floor(fields).max(self.offset.to_datetime(after));
        let found = fields.last(from, to).and_then(|found| self.offset.to_timestamp(found).ok());
        found.or_else(|| self.made_up(fields)).filter(|found| *found > after)
    }
}

const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

/// First activation after `after`.
pub(super) fn next(fields: &CronFields, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let farthest = after.checked_add(FARTHEST).unwrap_or(Timestamp::MAX);
    let mut instant = after;
    loop {
        let stretch = Stretch::at(instant, zone);
        if let Some(found) = stretch.first(fields, after) {
            return Some(found);
        }
        instant = stretch.end.filter(|end| *end <= farthest)?;
    }
}

/// Last activation after `after` and not after `until`, found from its end.
pub(super) fn latest(fields: &CronFields, after: Timestamp, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let mut instant = until;
    while instant > after {
        let stretch = Stretch::at(instant, zone);
        if let Some(found) = stretch.last(fields, after, until) {
            return Some(found);
        }
        instant = stretch.start?.0.checked_sub(SECOND).ok()?;
    }
    None
}
