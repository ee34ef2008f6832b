//! Reasons for which a schedule is refused, with the fix.

use std::fmt;

/// One of the five fields of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first.
    Minute,
    /// The second.
    Hour,
    /// The third.
    DayOfMonth,
    /// The fourth.
    Month,
    /// The fifth.
    DayOfWeek,
}

impl Part {
    /// Values that the field takes, in words.
    fn allowed(self) -> &'static str {
        match self {
            Part::Minute => "0 to 59",
            Part::Hour => "0 to 23",
            Part::DayOfMonth => "1 to 31",
            Part::Month => "1 to 12, or JAN to DEC",
            Part::DayOfWeek => "0 to 6 (0 is Sunday), or SUN to SAT",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Minute => "minute",
            Part::Hour => "hour",
            Part::DayOfMonth => "day of month",
            Part::Month => "month",
            Part::DayOfWeek => "day of week",
        })
    }
}

/// A schedule that is refused. The messages use upstream's words where upstream refuses it, too.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Nothing is written.
    #[error("empty spec string")]
    Empty,
    /// A zone inside the text.
    #[error("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    ZoneInside,
    /// Another number of fields than five.
    #[error("expected exactly 5 fields, found {found}: [{fields}]")]
    FieldCount {
        /// Their number.
        found: usize,
        /// The fields as written.
        fields: String,
    },
    /// A word after `@` that means nothing.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// The duration of `@every` cannot be read.
    #[error("failed to parse duration {descriptor}: {problem}")]
    Interval {
        /// The text as written.
        descriptor: String,
        /// The defect of the duration.
        problem: String,
    },
    /// An item of one of the fields.
    #[error("{part}: {problem}: {item}")]
    Item {
        /// The field.
        part: Part,
        /// The item of its list, as written.
        item: String,
        /// The defect.
        problem: ItemProblem,
    },
    /// The days do not exist in the months.
    #[error("day of month: no month of the schedule has the day {first_day}, so the time never comes")]
    NeverComes {
        /// The first day that the schedule names.
        first_day: u32,
        /// The longest month that the schedule names.
        longest_month: u32,
    },
}

/// A defect of one item of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemProblem {
    /// The field holds commas alone.
    #[error("no value")]
    Nothing,
    /// More than one hyphen.
    #[error("too many hyphens")]
    Hyphens,
    /// More than one slash.
    #[error("too many slashes")]
    Slashes,
    /// A star or question mark as the start of a range.
    #[error("range that starts with a star")]
    StarRange,
    /// Neither a number nor a name of this field.
    #[error("failed to parse int from {0:?}")]
    NotANumber(String),
    /// A range that starts too low.
    #[error("beginning of range ({start}) below minimum ({minimum})")]
    BelowMinimum {
        /// Its start.
        start: u32,
        /// The lowest value of the field.
        minimum: u32,
    },
    /// A range that ends too high.
    #[error("end of range ({end}) above maximum ({maximum})")]
    AboveMaximum {
        /// Its end.
        end: u32,
        /// The highest value of the field.
        maximum: u32,
    },
    /// A range that ends before it starts.
    #[error("beginning of range ({start}) beyond end of range ({end})")]
    Backwards {
        /// Its start.
        start: u32,
        /// Its end.
        end: u32,
        /// The same as two ranges.
        instead: String,
    },
    /// A step of 0.
    #[error("step of range should be a positive number")]
    ZeroStep,
}

impl ScheduleError {
    /// The fix.
    pub fn hint(&self) -> String {
        match self {
            ScheduleError::Empty => "write five fields (minute, hour, day of month, month, day of week) or @daily".to_owned(),
            ScheduleError::ZoneInside => "move the zone to spec.timeZone".to_owned(),
            ScheduleError::FieldCount { found: 6, .. } => {
                "write minute, hour, day of month, month and day of week; there is no field for seconds".to_owned()
            }
            ScheduleError::FieldCount { .. } => "write minute, hour, day of month, month and day of week".to_owned(),
            ScheduleError::Descriptor(_) => {
                "write @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every 1h30m".to_owned()
            }
            ScheduleError::Interval { .. } => "write a positive duration in h, m and s, such as @every 1h30m".to_owned(),
            ScheduleError::Item { part, problem, .. } => problem.hint(*part),
            ScheduleError::NeverComes { longest_month, .. } => {
                format!("name a day up to {longest_month}, or another month")
            }
        }
    }
}

impl ItemProblem {
    fn hint(&self, part: Part) -> String {
        let allowed = part.allowed();
        match self {
            ItemProblem::NotANumber(text) if part.takes_extensions() && is_extension(text) => {
                format!("Kubernetes has no L, W or #; write {allowed}")
            }
            ItemProblem::AboveMaximum { end: 7, .. } if part == Part::DayOfWeek => "Sunday is 0, not 7".to_owned(),
            ItemProblem::Backwards { instead, .. } => format!("write {instead}"),
            ItemProblem::ZeroStep => "write a step of at least 1, such as */5".to_owned(),
            ItemProblem::StarRange => format!("write * alone, or a range such as 1-5 of {allowed}"),
            ItemProblem::Hyphens => format!("write a range as first-last of {allowed}"),
            ItemProblem::Slashes => "write one step, such as */5".to_owned(),
            ItemProblem::Nothing
            | ItemProblem::NotANumber(_)
            | ItemProblem::BelowMinimum { .. }
            | ItemProblem::AboveMaximum { .. } => format!("write {allowed}, or *"),
        }
    }
}

impl Part {
    /// True for the fields in which other dialects take L, W and #.
    fn takes_extensions(self) -> bool {
        matches!(self, Part::DayOfMonth | Part::DayOfWeek)
    }
}

/// True for values such as `L`, `15W` and `FRI#2` of other dialects.
fn is_extension(text: &str) -> bool {
    text.contains('#') || (text.contains(['L', 'W']) && text.chars().all(|c| c.is_ascii_digit() || matches!(c, 'L' | 'W')))
}
