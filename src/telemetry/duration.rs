//! Durations as Kubernetes' messages have them.

use std::time::Duration;

/// `10s`, `1m20s`, `5m0s`, `1.25s`, `890ms`: as Go writes a duration, to the millisecond.
pub fn kubernetes_duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    if seconds == 0 && millis > 0 {
        return format!("{millis}ms");
    }
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = format!("{millis:03}");
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{point}{fraction}s"),
        (0, minutes) => format!("{minutes}m{seconds}{point}{fraction}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}{point}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (890, "890ms"),
            (1_000, "1s"),
            (1_210, "1.21s"),
            (27_005, "27.005s"),
            (40_000, "40s"),
            (80_000, "1m20s"),
            (160_000, "2m40s"),
            (300_000, "5m0s"),
            (61_500, "1m1.5s"),
            (3_600_000, "1h0m0s"),
            (90_061_000, "25h1m1s"),
        ] {
            assert_eq!(kubernetes_duration(Duration::from_millis(millis)), text);
        }
    }
}
