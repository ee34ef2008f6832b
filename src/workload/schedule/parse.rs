//! The text of a schedule, read as robfig/cron reads it (W69).

use super::error::{ItemProblem, Part, ScheduleError};
use super::fields::CronFields;
use super::interval::Interval;
use super::{Kind, Schedule};

/// Values of one field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Values {
    /// A bit for each value.
    bits: u64,
    /// An item is `*` or `?`. With a step above 1 it is not one.
    has_star: bool,
    /// An item is a star or has a step above 1.
    is_repeated: bool,
}

struct Bounds {
    part: Part,
    minimum: u32,
    maximum: u32,
    /// Names of the values from `minimum` on.
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds { part: Part::Minute, minimum: 0, maximum: 59, names: &[] };
const HOUR: Bounds = Bounds { part: Part::Hour, minimum: 0, maximum: 23, names: &[] };
const DAY_OF_MONTH: Bounds = Bounds { part: Part::DayOfMonth, minimum: 1, maximum: 31, names: &[] };
const MONTH: Bounds = Bounds {
    part: Part::Month,
    minimum: 1,
    maximum: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAY_OF_WEEK: Bounds =
    Bounds { part: Part::DayOfWeek, minimum: 0, maximum: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Parses a schedule.
pub(super) fn schedule(text: &str) -> Result<Schedule, ScheduleError> {
    if text.is_empty() {
        return Err(ScheduleError::Empty);
    }
    if text.contains("TZ") {
        return Err(ScheduleError::ZoneInside);
    }
    if let Some(duration) = text.strip_prefix("@every ") {
        let interval =
            Interval::parse(duration).map_err(|problem| ScheduleError::Interval { descriptor: text.to_owned(), problem })?;
        return Ok(Schedule(Kind::Every(interval)));
    }
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        other if other.starts_with('@') => return Err(ScheduleError::Descriptor(other.to_owned())),
        fields => fields,
    };
    five_fields(fields).map(|fields| Schedule(Kind::Fields(fields)))
}

fn five_fields(text: &str) -> Result<CronFields, ScheduleError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(ScheduleError::FieldCount { found: fields.len(), fields: fields.join(" ") });
    };
    let minutes = values(minute, &MINUTE)?;
    let hours = values(hour, &HOUR)?;
    let days = values(day, &DAY_OF_MONTH)?;
    let months = values(month, &MONTH)?;
    let weekdays = values(weekday, &DAY_OF_WEEK)?;
    let fields = CronFields {
        minutes: minutes.bits,
        hours: hours.bits,
        days: days.bits,
        months: months.bits,
        weekdays: weekdays.bits,
        needs_both_days: days.has_star || weekdays.has_star,
        follows_elapsed_time: follows_elapsed_time(hours),
    };
    // With a restricted day of week either of the two days is enough, and every weekday comes.
    if fields.needs_both_days && weekdays.has_star {
        fields.check_days()?;
    }
    Ok(fields)
}

/// Tells hours that repeat within a day from hours of the day (W71). A repetition that leaves one hour, such as `2/24`, is an hour of the day.
fn follows_elapsed_time(hours: Values) -> bool {
    const EVERY_HOUR: u64 = (1 << 24) - 1;
    (hours.is_repeated && hours.bits.count_ones() > 1) || hours.bits == EVERY_HOUR
}

fn values(field: &str, bounds: &Bounds) -> Result<Values, ScheduleError> {
    let mut values = Values::default();
    for item in field.split(',').filter(|item| !item.is_empty()) {
        let item =
            one_item(item, bounds).map_err(|problem| ScheduleError::Item { part: bounds.part, item: item.to_owned(), problem })?;
        values.bits |= item.bits;
        values.has_star |= item.has_star;
        values.is_repeated |= item.is_repeated;
    }
    if values.bits == 0 {
        return Err(ScheduleError::Item { part: bounds.part, item: field.to_owned(), problem: ItemProblem::Nothing });
    }
    Ok(values)
}

/// Reads a value, a range or a star, each with or without a step.
fn one_item(item: &str, bounds: &Bounds) -> Result<Values, ItemProblem> {
    let (range, step) = match item.split('/').collect::<Vec<_>>().as_slice() {
        [range] => (*range, None),
        [range, step] => (*range, Some(number(step)?)),
        _ => return Err(ItemProblem::Slashes),
    };
    let (start, end, is_star) = match range.split('-').collect::<Vec<_>>().as_slice() {
        ["*" | "?"] => (bounds.minimum, bounds.maximum, true),
        // Upstream reads `*-5` as `*`: half of what is written would mean nothing.
        ["*" | "?", ..] => return Err(ItemProblem::StarRange),
        [value] => {
            let value = bounds.value(value)?;
            // `N/step` goes to the end of the field.
            (value, if step.is_some() { bounds.maximum } else { value }, false)
        }
        [start, end] => (bounds.value(start)?, bounds.value(end)?, false),
        _ => return Err(ItemProblem::Hyphens),
    };
    bounds.check(start, end)?;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(ItemProblem::ZeroStep);
    }
    let bits = (start..=end).step_by(step as usize).fold(0, |bits, value| bits | 1 << value);
    Ok(Values { bits, has_star: is_star && step == 1, is_repeated: is_star || step > 1 })
}

impl Bounds {
    fn value(&self, text: &str) -> Result<u32, ItemProblem> {
        let named = self.names.iter().zip(self.minimum..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        named.map_or_else(|| number(text), |(_, value)| Ok(value))
    }

    fn check(&self, start: u32, end: u32) -> Result<(), ItemProblem> {
        if start < self.minimum {
            return Err(ItemProblem::BelowMinimum { start, minimum: self.minimum });
        }
        if end > self.maximum {
            return Err(ItemProblem::AboveMaximum { end, maximum: self.maximum });
        }
        if start > end {
            // A start above the maximum has no range to the end of the field.
            let rest = if start > self.maximum { String::new() } else { format!("{start}-{},", self.maximum) };
            return Err(ItemProblem::Backwards { start, end, instead: format!("{rest}{}-{end}", self.minimum) });
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<u32, ItemProblem> {
    text.parse().map_err(|_| ItemProblem::NotANumber(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (String, String) {
        let error = schedule(text).unwrap_err();
        (error.to_string(), error.hint())
    }

    fn fields(text: &str) -> CronFields {
        match schedule(text).unwrap().0 {
            Kind::Fields(fields) => fields,
            Kind::Every(interval) => panic!("{interval:?}"),
        }
    }

    // TC10
    #[test]
    fn schedules_are_refused_as_upstream_does() {
        for text in ["59 23 31 2 *", "* * * * 7", "TZ=UTC 0 * * * *", "CRON_TZ=UTC 0 * * * *"] {
            assert!(schedule(text).is_err(), "{text}");
        }
        for text in ["@every 1h30m", "0 0 ? * MON-FRI", "? ? ? ? ?", "0 0 29 2 *", "0 0 31 2 1", "1,,2 0 * * *"] {
            assert!(schedule(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn refusal_names_part_value_and_fix() {
        let told = |text: &str| {
            let (message, hint) = problem(text);
            format!("{message}; {hint}")
        };
        assert_eq!(told("61 * * * *"), "minute: end of range (61) above maximum (59): 61; write 0 to 59, or *");
        assert_eq!(told("* * * * 7"), "day of week: end of range (7) above maximum (6): 7; Sunday is 0, not 7");
        assert_eq!(told("0 22-2 * * *"), "hour: beginning of range (22) beyond end of range (2): 22-2; write 22-23,0-2");
        assert_eq!(
            told("0 0 L * *"),
            "day of month: failed to parse int from \"L\": L; Kubernetes has no L, W or #; write 1 to 31"
        );
        assert_eq!(
            told("*/0 * * * *"),
            "minute: step of range should be a positive number: */0; write a step of at least 1, such as */5"
        );
        assert_eq!(
            told("59 23 30,31 2 *"),
            "day of month: no month of the schedule has the day 30, so the time never comes; name a day up to 29, or another month"
        );
        assert_eq!(told("0 0 0 1 *"), "day of month: beginning of range (0) below minimum (1): 0; write 1 to 31, or *");
        assert_eq!(
            told("*-5 * * * *"),
            "minute: range that starts with a star: *-5; write * alone, or a range such as 1-5 of 0 to 59"
        );
        assert_eq!(told(", * * * *"), "minute: no value: ,; write 0 to 59, or *");
    }

    #[test]
    fn wrong_shapes_are_refused_with_fix() {
        assert_eq!(problem("").0, "empty spec string");
        assert_eq!(problem("0 0 * * * *").0, "expected exactly 5 fields, found 6: [0 0 * * * *]");
        assert!(problem("0 0 * * * *").1.contains("seconds"));
        assert_eq!(problem("@dayly").0, "unrecognized descriptor: @dayly");
        assert_eq!(problem("@every 1d").0, "failed to parse duration @every 1d: time: unknown unit \"d\" in duration \"1d\"");
        assert_eq!(problem("1-2-3 * * * *").0, "minute: too many hyphens: 1-2-3");
        assert_eq!(problem("1/2/3 * * * *").0, "minute: too many slashes: 1/2/3");
        assert!(problem("0 9 * jan-foo *").0.starts_with("month: failed to parse int from \"foo\""));
    }

    #[test]
    fn items_are_read_as_upstream_does() {
        assert_eq!(fields("5/20 * * * *").minutes, 1 << 5 | 1 << 25 | 1 << 45);
        assert_eq!(fields("10-20/5,3 * * * *").minutes, 1 << 3 | 1 << 10 | 1 << 15 | 1 << 20);
        assert_eq!(fields("0 0 * Mar,nov sun-TUE").months, 1 << 3 | 1 << 11);
        assert_eq!(fields("0 0 * Mar,nov sun-TUE").weekdays, 0b111);
        assert_eq!(fields("*/100 * * * *").minutes, 1);
        assert_eq!(fields("@weekly"), fields("0 0 * * 0"));
    }

    #[test]
    fn stepped_star_counts_as_restriction() {
        assert!(fields("0 0 * * 1").needs_both_days);
        assert!(fields("0 0 */1 * 1").needs_both_days);
        assert!(!fields("0 0 */2 * 1").needs_both_days);
        assert!(!fields("0 0 1 * */2").needs_both_days);
    }

    #[test]
    fn stars_and_steps_follow_elapsed_time() {
        for text in ["0 * * * *", "0 */2 * * *", "0 1-9/2 * * *", "0 0-23 * * *"] {
            assert!(fields(text).follows_elapsed_time, "{text}");
        }
        for text in ["0 2 * * *", "*/15 2 * * *", "0 1-9 * * *", "0 2/24 * * *", "@daily"] {
            assert!(!fields(text).follows_elapsed_time, "{text}");
        }
    }
}
