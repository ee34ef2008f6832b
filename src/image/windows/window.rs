//! Times in which updates are fetched. **Pure**: the clock is an argument.
//!
//! The begin and the end of a window are schedules of CronJobs, so that days on which the clock changes are treated as there (W71): a time that
//! comes twice counts once, and one that is skipped counts at the first instant after it.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use podstead_workload::cron::BUILT;
use podstead_workload::schedule::{Schedule, ScheduleError};
use std::fmt;

/// No window is longer than a day, and each begins at least once a week, give or take a change of the clock.
const FARTHEST: SignedDuration = SignedDuration::from_hours(9 * 24);
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// Windows that follow each other without a gap are taken for one, up to so many.
const JOINED: usize = 16;

/// Day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Day {
    /// All days, with their names in the configuration.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Monday, "Mon"),
        (Self::Tuesday, "Tue"),
        (Self::Wednesday, "Wed"),
        (Self::Thursday, "Thu"),
        (Self::Friday, "Fri"),
        (Self::Saturday, "Sat"),
        (Self::Sunday, "Sun"),
    ];

    /// The name in the configuration, which is also that in schedules.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(day, _)| *day == self).map_or("", |(_, name)| name)
    }
}

/// Time of day: hours and minutes, up to 24:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    hour: u8,
    minute: u8,
}

impl TimeOfDay {
    const MIDNIGHT: Self = Self { hour: 0, minute: 0 };
    const END: Self = Self { hour: 24, minute: 0 };

    /// Parses `01:30`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let number =
            |digits: &str| digits.parse::<u8>().ok().filter(|_| digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()));
        let time = Self { hour: number(hour)?, minute: number(minute)? };
        (time == Self::END || (time.hour < 24 && time.minute < 60)).then_some(time)
    }

    fn schedule(self, days: &str) -> Result<Schedule, ScheduleError> {
        Schedule::parse(&format!("{} {} * * {days}", self.minute, self.hour % 24))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

/// Reason why there is no such window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It would be empty, or a whole day.
    #[error("from and to are the same; write from: \"00:00\" and to: \"24:00\" for the whole day")]
    SameTime,
    /// It cannot begin there.
    #[error("from must be before 24:00")]
    BeginsAtEnd,
    /// It has no begin or no end.
    #[error("it never begins")]
    Never(#[from] ScheduleError),
}

/// A time that comes again each week, in which updates may be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullWindow {
    /// Days on which it begins; all if empty.
    pub days: Vec<Day>,
    /// Its begin.
    pub from: TimeOfDay,
    /// Its end, on the next day where it is not later than the begin.
    pub to: TimeOfDay,
    /// Name of its zone; UTC without.
    pub time_zone: Option<String>,
    begins: Schedule,
    ends: Schedule,
    zone: TimeZone,
}

impl PullWindow {
    /// A window in `zone`, whose name is `time_zone`.
    pub fn new(
        days: Vec<Day>,
        from: TimeOfDay,
        to: TimeOfDay,
        time_zone: Option<String>,
        zone: TimeZone,
    ) -> Result<Self, WindowError> {
        if from == TimeOfDay::END {
            return Err(WindowError::BeginsAtEnd);
        }
        if from == to {
            return Err(WindowError::SameTime);
        }
        let on = days.iter().map(|day| day.name()).collect::<Vec<_>>().join(",");
        let begins = from.schedule(if on.is_empty() { "*" } else { &on })?;
        Ok(Self { begins, ends: to.schedule("*")?, days, from, to, time_zone, zone })
    }

    fn is_whole_day(&self) -> bool {
        (self.from, self.to) == (TimeOfDay::MIDNIGHT, TimeOfDay::END)
    }

    /// The end of the window that is open at `now`.
    fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        let anchor = now.checked_sub(FARTHEST).unwrap_or(Timestamp::MIN);
        let begun = self.begins.latest(anchor, now, &self.zone)?;
        // Where the clock skips both, they are one instant, and the window is empty.
        let after = if self.is_whole_day() { begun } else { begun.checked_sub(SECOND).ok()? };
        self.ends.next(after, after, &self.zone).filter(|end| *end > now)
    }

    fn opens_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.begins.next(now, now, &self.zone)
    }
}

/// State of all windows at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Standing {
    /// Updates may be fetched, until then at least; without a time as long as the clock is not set.
    Open(Option<Timestamp>),
    /// They wait until then.
    Closed(Option<Timestamp>),
}

/// Looks whether a window is open. Always, if there is none; and while the clock shows a time before this podstead was made: such a clock may never
/// come to a window (F24).
pub(in super::super) fn standing(windows: &[PullWindow], now: Timestamp) -> Standing {
    if windows.is_empty() || now < BUILT {
        return Standing::Open(None);
    }
    let open_until = |at| windows.iter().filter_map(|window| window.open_until(at)).max();
    let Some(first) = open_until(now) else {
        return Standing::Closed(windows.iter().filter_map(|window| window.opens_after(now)).min());
    };
    let ends = std::iter::successors(Some(first), |end| open_until(*end));
    Standing::Open(ends.take(JOINED).last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;
    use proptest::prelude::*;

    fn window(days: &[Day], from: &str, to: &str, zone: &str) -> PullWindow {
        let time = |text| TimeOfDay::parse(text).unwrap();
        let found = TimeZoneDatabase::bundled().get(zone).unwrap();
        PullWindow::new(days.to_vec(), time(from), time(to), Some(zone.to_owned()), found).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn open(until: &str) -> Standing {
        Standing::Open(Some(at(until)))
    }

    fn closed(until: &str) -> Standing {
        Standing::Closed(Some(at(until)))
    }

    #[test]
    fn window_over_midnight_belongs_to_its_first_day() {
        // 30 November 2026 is a Monday.
        let windows = [window(&[Day::Monday], "22:00", "06:00", "UTC")];
        assert_eq!(standing(&windows, at("2026-11-30T21:59:59Z")), closed("2026-11-30T22:00:00Z"));
        assert_eq!(standing(&windows, at("2026-11-30T22:00:00Z")), open("2026-12-01T06:00:00Z"));
        assert_eq!(standing(&windows, at("2026-12-01T05:59:59Z")), open("2026-12-01T06:00:00Z"));
        assert_eq!(standing(&windows, at("2026-12-01T06:00:00Z")), closed("2026-12-07T22:00:00Z"));
    }

    #[test]
    fn windows_without_a_gap_are_one() {
        let windows = [window(&[Day::Saturday, Day::Sunday], "00:00", "24:00", "UTC"), window(&[], "00:00", "02:30", "UTC")];
        assert_eq!(standing(&windows, at("2026-11-28T12:00:00Z")), open("2026-11-30T02:30:00Z"));
        assert_eq!(standing(&windows, at("2026-11-30T02:30:00Z")), closed("2026-12-01T00:00:00Z"));
    }

    #[test]
    fn skipped_time_counts_at_the_next_instant() {
        // On 28 March 2027, 02:00 to 03:00 does not exist in Berlin.
        let berlin = |from, to| [window(&[], from, to, "Europe/Berlin")];
        assert_eq!(standing(&berlin("02:30", "04:00"), at("2027-03-28T01:00:00Z")), open("2027-03-28T02:00:00Z"));
        assert_eq!(standing(&berlin("01:00", "02:30"), at("2027-03-28T00:59:59Z")), open("2027-03-28T01:00:00Z"));
        let empty = berlin("02:10", "02:50");
        assert_eq!(standing(&empty, at("2027-03-28T01:00:00Z")), closed("2027-03-29T00:10:00Z"));
    }

    #[test]
    fn repeated_time_counts_once() {
        // On 25 October 2026, 02:00 to 03:00 comes twice in Berlin, from 00:00 and from 01:00 UTC.
        let windows = [window(&[], "01:00", "02:30", "Europe/Berlin")];
        assert_eq!(standing(&windows, at("2026-10-25T00:29:59Z")), open("2026-10-25T00:30:00Z"));
        assert_eq!(standing(&windows, at("2026-10-25T01:10:00Z")), closed("2026-10-26T00:00:00Z"));
    }

    #[test]
    fn impossible_clock_and_no_window_hold_nothing() {
        let windows = [window(&[Day::Monday], "01:00", "02:00", "UTC")];
        assert_eq!(standing(&windows, at("1970-01-01T12:00:00Z")), Standing::Open(None));
        assert_eq!(standing(&[], at("2026-11-30T12:00:00Z")), Standing::Open(None));
    }

    #[test]
    fn times_of_day_are_strict() {
        for (text, shown) in [("00:00", Some("00:00")), ("24:00", Some("24:00")), ("09:05", Some("09:05"))] {
            assert_eq!(TimeOfDay::parse(text).map(|time| time.to_string()).as_deref(), shown);
        }
        for text in ["24:01", "9:05", "09:5", "09:60", "+9:00", "09", "", "09:05:00"] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
        let time = |text| TimeOfDay::parse(text).unwrap();
        let of = |from, to| PullWindow::new(Vec::new(), time(from), time(to), None, TimeZone::UTC).map(drop);
        assert_eq!((of("01:00", "01:00"), of("24:00", "01:00")), (Err(WindowError::SameTime), Err(WindowError::BeginsAtEnd)));
    }

    fn windows() -> impl Strategy<Value = Vec<PullWindow>> {
        let time = || (0_u8..24, 0_u8..60).prop_map(|(hour, minute)| TimeOfDay { hour, minute });
        let zones = prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu"]);
        let days = prop::collection::vec(0_usize..7, 0..4);
        let window = (days, time(), time(), zones).prop_filter_map("from and to are the same", |(days, from, to, zone)| {
            let days = days.into_iter().map(|day| Day::ALL[day].0).collect();
            PullWindow::new(days, from, to, Some(zone.to_owned()), TimeZoneDatabase::bundled().get(zone).unwrap()).ok()
        });
        prop::collection::vec(window, 1..4)
    }

    proptest! {
        /// The clock of any year: updates wait for a week at most, and what is told of the end of a wait and of a window holds.
        #[test]
        fn wait_ends_within_a_week(windows in windows(), seconds in 1_790_000_000_i64..1_900_000_000) {
            let now = Timestamp::from_second(seconds).unwrap();
            match standing(&windows, now) {
                Standing::Closed(until) => {
                    let until = until.unwrap();
                    prop_assert!(until > now && until.duration_since(now) <= SignedDuration::from_hours(2 * 7 * 24));
                    let before = until.checked_sub(SECOND).unwrap().max(now);
                    prop_assert_eq!(standing(&windows, before), Standing::Closed(Some(until)));
                }
                Standing::Open(until) => {
                    let until = until.unwrap();
                    prop_assert!(until > now);
                    prop_assert!(matches!(standing(&windows, until.checked_sub(SECOND).unwrap().max(now)), Standing::Open(_)));
                }
            }
        }
    }
}
