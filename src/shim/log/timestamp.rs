//! `2026-01-02T03:04:05.123456789Z`: always nine digits, so that a column of log lines stays aligned.

use jiff::Timestamp;

/// Bytes of a formatted timestamp.
pub(super) const LENGTH: usize = 30;

/// Formats timestamps; the calendar is consulted once a second at most.
#[derive(Debug)]
pub(super) struct TimestampFormat {
    second: i64,
    text: [u8; LENGTH],
}

impl Default for TimestampFormat {
    fn default() -> Self {
        Self { second: i64::MIN, text: [b'0'; LENGTH] }
    }
}

impl TimestampFormat {
    /// `now` as text. Years before 0 and after 9999 are not expected.
    pub(super) fn format(&mut self, now: Timestamp) -> [u8; LENGTH] {
        if self.second != now.as_second() {
            self.second = now.as_second();
            let text = now.to_string();
            let length = text.len().min(19);
            self.text[..length].copy_from_slice(&text.as_bytes()[..length]);
            self.text[19] = b'.';
            self.text[29] = b'Z';
        }
        let mut rest = now.subsec_nanosecond().unsigned_abs();
        for digit in self.text[20..29].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_have_nine_digits_and_seconds_follow_the_clock() {
        let mut format = TimestampFormat::default();
        for (text, expected) in [
            ("2026-01-02T03:04:05.000000001Z", "2026-01-02T03:04:05.000000001Z"),
            ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500000000Z"),
            ("2026-12-31T23:59:59Z", "2026-12-31T23:59:59.000000000Z"),
        ] {
            let now: Timestamp = text.parse().unwrap();
            assert_eq!(std::str::from_utf8(&format.format(now)).unwrap(), expected);
        }
    }
}
