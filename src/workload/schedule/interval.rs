//! `@every`: a fixed distance between runs, counted from the last one (W69).

use jiff::Timestamp;

/// A distance in whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    seconds: i64,
}

impl Interval {
    /// Parses a duration as Go writes it. As upstream, a fraction of a second is dropped, and less than a second is one. A duration of zero or
    /// less is an error here: upstream takes it for one second, which nobody means.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let nanoseconds = go_duration(text)?;
        if nanoseconds <= 0 {
            return Err("duration is not positive".to_owned());
        }
        Ok(Self { seconds: (nanoseconds / NANOSECONDS_PER_SECOND).max(1) })
    }

    pub(super) fn next(self, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        self.at(anchor, self.passed(anchor, after) + 1)
    }

    pub(super) fn latest(self, anchor: Timestamp, until: Timestamp) -> Option<Timestamp> {
        match self.passed(anchor, until) {
            0 => None,
            passed => self.at(anchor, passed),
        }
    }

    pub(super) fn count(self, anchor: Timestamp, until: Timestamp, at_most: u32) -> u32 {
        u32::try_from(self.passed(anchor, until)).map_or(at_most, |passed| passed.min(at_most))
    }

    /// Number of intervals that have passed since `anchor`, whose fraction of a second does not count.
    fn passed(self, anchor: Timestamp, until: Timestamp) -> i64 {
        (whole_second(until) - whole_second(anchor)).max(0) / self.seconds
    }

    fn at(self, anchor: Timestamp, number: i64) -> Option<Timestamp> {
        let second = self.seconds.checked_mul(number)?.checked_add(whole_second(anchor))?;
        Timestamp::from_second(second).ok()
    }
}

/// The second that a point in time lies in; `as_second` rounds towards 1970.
fn whole_second(time: Timestamp) -> i64 {
    time.as_second() - i64::from(time.subsec_nanosecond() < 0)
}

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Reads a duration of Go, such as `1h30m` or `1.5h`, into nanoseconds.
fn go_duration(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_i64;
    while !rest.is_empty() {
        let number_ends = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_ends);
        let unit_ends = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let scale = scale(unit).ok_or_else(|| format!("time: unknown unit {unit:?} in duration {text:?}"))?;
        let amount = amount(whole, fraction, scale).ok_or_else(invalid)?;
        total = total.checked_add(amount).ok_or_else(invalid)?;
        rest = tail;
    }
    Ok(if is_negative { -total } else { total })
}

/// Nanoseconds in a unit.
fn scale(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        // The two signs for micro that Unicode has.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOSECONDS_PER_SECOND,
        "m" => 60 * NANOSECONDS_PER_SECOND,
        "h" => 3600 * NANOSECONDS_PER_SECOND,
        _ => return None,
    })
}

fn amount(whole: &str, fraction: &str, scale: i64) -> Option<i64> {
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(scale)?;
    // Fifteen digits of an hour are less than a nanosecond.
    let digits = &fraction[..fraction.len().min(15)];
    let numerator: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let part = i128::from(scale) * numerator / 10_i128.pow(u32::try_from(digits.len()).ok()?);
    nanoseconds.checked_add(i64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    fn seconds(text: &str) -> i64 {
        Interval::parse(text).unwrap().seconds
    }

    #[test]
    fn durations_are_read_as_go_does() {
        assert_eq!(seconds("1h30m"), 5400);
        assert_eq!(seconds("1.5h"), 5400);
        assert_eq!(seconds(".5m"), 30);
        assert_eq!(seconds("+90s"), 90);
        assert_eq!(seconds("1m500ms"), 60);
        assert_eq!(seconds("1ms"), 1);
    }

    #[test]
    fn durations_that_mean_nothing_are_refused() {
        assert_eq!(Interval::parse("5").unwrap_err(), "time: missing unit in duration \"5\"");
        assert_eq!(Interval::parse("1d").unwrap_err(), "time: unknown unit \"d\" in duration \"1d\"");
        for text in ["", "-", "h", ".h", "1.2.3h", "9999999999h", " 1h"] {
            assert_eq!(Interval::parse(text).unwrap_err(), format!("time: invalid duration {text:?}"));
        }
        for text in ["0", "0s", "-1h"] {
            assert_eq!(Interval::parse(text).unwrap_err(), "duration is not positive");
        }
    }

    // TC12
    #[test]
    fn interval_counts_from_its_anchor() {
        let hourly = Interval::parse("1h").unwrap();
        let anchor: Timestamp = "2026-03-05T10:01:00Z".parse().unwrap();
        let now: Timestamp = "2026-03-06T09:01:00Z".parse().unwrap();
        assert_eq!(hourly.latest(anchor, now), Some(now));
        assert_eq!(hourly.latest(anchor, now - SignedDuration::from_nanos(1)), Some("2026-03-06T08:01:00Z".parse().unwrap()));
        assert_eq!(hourly.next(anchor, now), Some("2026-03-06T10:01:00Z".parse().unwrap()));
        assert_eq!(hourly.latest(anchor, anchor + SignedDuration::from_mins(59)), None);
        assert_eq!(hourly.count(anchor, now, 100), 23);
        assert_eq!(hourly.count(anchor, now, 10), 10);
    }
}
