//! Durations as kubectl writes them: at most two units, coarser with size.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// `5s`, `3m12s`, `47m`, `5h10m`, `2d3h`, `400d`, `3y40d`. Slightly negative durations (clocks that differ) are `0s`.
pub fn human_duration(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two_units(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two_units(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two_units(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two_units(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two_units(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}

/// The age of `since` at `now`; `<unknown>` without a time.
pub fn age_since(since: Option<Timestamp>, now: Timestamp) -> String {
    match since {
        Some(since) => human_duration(now.duration_since(since).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_kubectl_writes_them() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (7 * DAY + 5 * HOUR, "7d5h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (9 * YEAR, "9y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected, "{seconds} s");
        }
    }

    #[test]
    fn an_age_without_a_beginning_is_unknown() {
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(age_since(None, now), "<unknown>");
        assert_eq!(age_since(Some(Timestamp::from_second(40).unwrap()), now), "60s");
    }
}
