//! Five fields as sets, and the search for a minute of the calendar that matches them.

use super::error::ScheduleError;
use jiff::civil::{Date, DateTime};

/// The five fields, a bit for each value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronFields {
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    pub(super) weekdays: u64,
    /// One of the two days is a star, so that both must match; otherwise either is enough (W69).
    pub(super) needs_both_days: bool,
    /// Hours repeat within the day and follow elapsed time; otherwise each hour and minute comes once a day (W71).
    pub(super) follows_elapsed_time: bool,
}

const MINUTES_OF_DAY: u32 = 24 * 60;

impl CronFields {
    /// Refuses days that none of the months has.
    pub(super) fn check_days(&self) -> Result<(), ScheduleError> {
        let longest_month = (1..=12).filter(|month| has(self.months, *month)).map(longest).max().unwrap_or(31);
        let first_day = self.days.trailing_zeros();
        if first_day > longest_month { Err(ScheduleError::NeverComes { first_day, longest_month }) } else { Ok(()) }
    }

    /// First matching minute from `from` to `to`, both included.
    pub(super) fn first(&self, from: DateTime, to: DateTime) -> Option<DateTime> {
        let from = round_up(from)?;
        let mut date = from.date();
        while date <= to.date() {
            if !has(self.months, number(date.month())) {
                date = date.last_of_month().tomorrow().ok()?;
                continue;
            }
            if self.matches_day(date) {
                let earliest = if date == from.date() { minute_of_day(from) } else { 0 };
                if let Some(minute) = (earliest..MINUTES_OF_DAY).find(|minute| self.matches_minute(*minute)) {
                    return at(date, minute).filter(|found| *found <= to);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// Last matching minute from `from` to `to`, both included.
    pub(super) fn last(&self, from: DateTime, to: DateTime) -> Option<DateTime> {
        let mut date = to.date();
        while date >= from.date() {
            if !has(self.months, number(date.month())) {
                date = date.first_of_month().yesterday().ok()?;
                continue;
            }
            if self.matches_day(date) {
                let latest = if date == to.date() { minute_of_day(to) } else { MINUTES_OF_DAY - 1 };
                if let Some(minute) = (0..=latest).rev().find(|minute| self.matches_minute(*minute)) {
                    return at(date, minute).filter(|found| *found >= from);
                }
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    /// True if the minute matches.
    #[cfg(test)]
    pub(super) fn matches(&self, minute: DateTime) -> bool {
        has(self.months, number(minute.month())) && self.matches_day(minute.date()) && self.matches_minute(minute_of_day(minute))
    }

    fn matches_day(&self, date: Date) -> bool {
        let day = has(self.days, number(date.day()));
        let weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        if self.needs_both_days { day && weekday } else { day || weekday }
    }

    fn matches_minute(&self, minute_of_day: u32) -> bool {
        has(self.hours, minute_of_day / 60) && has(self.minutes, minute_of_day % 60)
    }
}

/// Days of the month in its longest year.
fn longest(month: u32) -> u32 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn has(bits: u64, value: u32) -> bool {
    bits & 1 << value != 0
}

fn number(value: i8) -> u32 {
    value.unsigned_abs().into()
}

fn minute_of_day(time: DateTime) -> u32 {
    number(time.hour()) * 60 + number(time.minute())
}

fn at(date: Date, minute_of_day: u32) -> Option<DateTime> {
    let hour = i8::try_from(minute_of_day / 60).ok()?;
    let minute = i8::try_from(minute_of_day % 60).ok()?;
    DateTime::new(date.year(), date.month(), date.day(), hour, minute, 0, 0).ok()
}

/// The minute itself, or the next one if seconds have passed of it.
fn round_up(time: DateTime) -> Option<DateTime> {
    let minute = at(time.date(), minute_of_day(time))?;
    if minute == time { Some(minute) } else { minute.checked_add(jiff::SignedDuration::from_mins(1)).ok() }
}
