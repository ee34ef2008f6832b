//! Timestamps that go-yaml resolves.

/// The parts of a timestamp as RFC 3339 has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    nanosecond: u32,
    /// Offset from UTC in minutes.
    zone: i32,
}

/// Reads a timestamp in one of go-yaml's formats (`2006-1-2`, `2006-1-2 15:4:5`, `2006-1-2T15:4:5Z07:00`) and returns it as Go's JSON
/// writes it.
pub(super) fn parse(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return None;
    }
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let mut date = text[..end].split('-');
    let year: u32 = number(date.next()?, 4, 4)?;
    let month = number(date.next()?, 1, 2)?;
    let day = number(date.next()?, 1, 2)?;
    if date.next().is_some() || !(1..=12).contains(&month) || !(1..=days(year, month)).contains(&day) {
        return None;
    }
    let clock = match text[end..].chars().next() {
        None => Clock { hour: 0, minute: 0, second: 0, nanosecond: 0, zone: 0 },
        Some(' ') => clock(&text[end + 1..], false)?,
        Some(_) => clock(&text[end + 1..], true)?,
    };
    let Clock { hour, minute, second, nanosecond, zone } = clock;
    let mut written = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if nanosecond > 0 {
        let digits = format!(".{nanosecond:09}");
        written.push_str(digits.trim_end_matches('0'));
    }
    match zone {
        0 => written.push('Z'),
        _ => {
            let sign = if zone < 0 { '-' } else { '+' };
            written.push_str(&format!("{sign}{:02}:{:02}", zone.abs() / 60, zone.abs() % 60));
        }
    }
    Some(written)
}

fn number(text: &str, least: usize, most: usize) -> Option<u32> {
    let fits = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn clock(text: &str, has_zone: bool) -> Option<Clock> {
    let (time, zone) = match has_zone {
        false => (text, 0),
        true => match text.strip_suffix('Z') {
            Some(time) => (time, 0),
            None => {
                let at = text.rfind(['+', '-'])?;
                let (hours, minutes) = text[at + 1..].split_once(':')?;
                let offset = (number(hours, 2, 2)? * 60 + number(minutes, 2, 2)?) as i32;
                (&text[..at], if text[at..].starts_with('-') { -offset } else { offset })
            }
        },
    };
    let mut parts = time.split(':');
    let hour = number(parts.next()?, 1, 2)?;
    let minute = number(parts.next()?, 1, 2)?;
    let seconds = parts.next()?;
    let (second, nanosecond) = match seconds.split_once('.') {
        None => (number(seconds, 1, 2)?, 0),
        Some((second, fraction)) => {
            let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
            number(fraction, 1, usize::MAX >> 1).or(fraction.bytes().all(|byte| byte.is_ascii_digit()).then_some(0))?;
            (number(second, 1, 2)?, number(&digits, 9, 9)?)
        }
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(Clock { hour, minute, second, nanosecond, zone })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn timestamps_become_what_go_writes() {
        for (text, expected) in [
            ("2001-01-01", Some("2001-01-01T00:00:00Z")),
            ("2001-1-2", Some("2001-01-02T00:00:00Z")),
            ("2001-01-01T10:20:30Z", Some("2001-01-01T10:20:30Z")),
            ("2001-01-01t1:2:3.50+01:30", Some("2001-01-01T01:02:03.5+01:30")),
            ("2001-01-01 10:20:30", Some("2001-01-01T10:20:30Z")),
            ("2001-02-29", None),
            ("2001-13-01", None),
            ("01-01-2001", None),
            ("2001-01-01T10:20:30", None),
            ("2001-01-01x", None),
        ] {
            assert_eq!(parse(text).as_deref(), expected, "{text}");
        }
    }
}
