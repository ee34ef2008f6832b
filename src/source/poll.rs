//! Schedule of polls. **Pure**.

use std::time::Duration;

/// Largest deviation of a delay from the configured one, so that a thousand hosts that started together do not poll together for long.
const JITTER: f64 = 0.1;

/// The delay after a first failure, unless the interval is shorter.
const FIRST_RETRY: Duration = Duration::from_secs(2);

/// No server can ask for a longer silence than this.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Time to the next poll.
///
/// * `interval`: as configured.
/// * `failures`: polls in a row that failed, up to now; 0 after a success.
/// * `retry_after`: what the server asked for with its last answer; counted up to [`MAX_RETRY_AFTER`].
/// * `random`: drawn evenly from all values.
///
/// After a success the interval, within a tenth. After a failure 2 s, doubled with each further one up to the interval: a failing place is
/// never asked less often than a working one, unless it wants that.
pub fn next_delay(interval: Duration, failures: u32, retry_after: Option<Duration>, random: u32) -> Duration {
    let planned = match failures {
        0 => interval,
        failures => FIRST_RETRY.saturating_mul(1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX)).min(interval),
    };
    let fraction = f64::from(random) / f64::from(u32::MAX);
    let delay = planned.mul_f64(1.0 - JITTER + 2.0 * JITTER * fraction);
    match retry_after {
        // Never before the time that the server named.
        Some(wanted) => delay.max(wanted.min(MAX_RETRY_AFTER).mul_f64(1.0 + JITTER * fraction)),
        None => delay,
    }
}

/// The value of a `Retry-After` header: seconds, or a date, which is taken relative to the `Date` of the same answer, for this host's
/// clock may be wrong (RFC 9110, 10.2.3).
pub fn retry_after(value: &str, answer_date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that does not fit is a long time, too.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let (until, from) = (date(value)?, date(answer_date?)?);
    Some(Duration::try_from(until.duration_since(from)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn failures_are_tried_again_soon_and_then_at_the_interval() {
        let middle = u32::MAX / 2;
        let seconds = |failures| next_delay(60 * SECOND, failures, None, middle).as_secs_f64().round();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 50].map(seconds), [60.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (value, date, wanted) in [
            ("120", None, Some(120)),
            (" 0 ", None, Some(0)),
            ("99999999999999999999999", None, Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", date, Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("-1", None, None),
            ("soon", date, None),
            ("", date, None),
        ] {
            assert_eq!(retry_after(value, date), wanted.map(Duration::from_secs), "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_delay_is_never_far_from_what_is_configured(
            seconds in 1_u64..=86_400, failures: u32, random: u32
        ) {
            let interval = Duration::from_secs(seconds);
            let delay = next_delay(interval, failures, None, random);
            prop_assert!(delay >= interval.min(FIRST_RETRY).mul_f64(0.899));
            prop_assert!(delay <= interval.mul_f64(1.101));
            if failures == 0 {
                prop_assert!(delay >= interval.mul_f64(0.899));
            }
        }

        #[test]
        fn more_failures_never_shorten_the_delay(seconds in 1_u64..=86_400, failures in 1_u32..40, random: u32) {
            let delay = |failures| next_delay(Duration::from_secs(seconds), failures, None, random);
            prop_assert!(delay(failures) <= delay(failures + 1));
        }

        #[test]
        fn the_server_is_left_alone_for_as_long_as_it_asks_within_bounds(
            seconds in 1_u64..=86_400, failures: u32, wanted: u64, random: u32
        ) {
            let wanted = Duration::from_secs(wanted);
            let delay = next_delay(Duration::from_secs(seconds), failures, Some(wanted), random);
            prop_assert!(delay >= wanted.min(MAX_RETRY_AFTER));
            prop_assert!(delay <= Duration::from_secs(seconds).max(MAX_RETRY_AFTER).mul_f64(1.101));
        }

        #[test]
        fn no_header_makes_it_panic(value in "\\PC{0,40}", date in "\\PC{0,40}") {
            retry_after(&value, Some(&date));
        }
    }
}
