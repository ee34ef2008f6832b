//! Converts lines of the file to lines of the program: joins partial lines, filters, adds timestamps. **Pure**.

use super::LogOptions;
use super::cri::{CriLine, Stream};
use jiff::Timestamp;

/// Bytes of a joined line that are held back; of a longer one the beginning is given out before its end is known.
const MAX_HELD: usize = 256 << 10;

/// A line of the program of which the end is not known yet.
#[derive(Debug, Default)]
struct Pending {
    text: Vec<u8>,
    /// There is one.
    open: bool,
    /// It is not wanted.
    dropped: bool,
}

/// Joins and formats.
#[derive(Debug)]
pub(super) struct Joiner {
    timestamps: bool,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// Lines to drop before the first wanted one.
    skip: u64,
    /// Bytes that may still be given out.
    remaining: u64,
    stdout: Pending,
    stderr: Pending,
}

impl Joiner {
    /// Drops the first `skip` lines of the program.
    pub(super) fn new(options: &LogOptions, skip: u64) -> Self {
        Self {
            timestamps: options.timestamps,
            since: options.since,
            until: options.until,
            skip,
            remaining: options.limit.unwrap_or(u64::MAX),
            stdout: Pending::default(),
            stderr: Pending::default(),
        }
    }

    /// True if the limit is reached, after which nothing is returned.
    pub(super) fn is_full(&self) -> bool {
        self.remaining == 0
    }

    /// Adds a line of the file and returns complete output.
    pub(super) fn push(&mut self, line: &CriLine<'_>, out: &mut Vec<u8>) {
        let pending = match line.stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if !pending.open {
            let is_outside = line
                .timestamp()
                .is_some_and(|time| self.since.is_some_and(|since| time < since) || self.until.is_some_and(|until| time > until));
            *pending = Pending { open: true, dropped: is_outside, ..Pending::default() };
            if !pending.dropped && self.timestamps {
                pending.text.extend_from_slice(line.time.as_bytes());
                pending.text.push(b' ');
            }
        }
        if !pending.dropped {
            pending.text.extend_from_slice(line.text);
        }
        if line.partial {
            if pending.text.len() > MAX_HELD && self.skip > 0 {
                // It is among the next to end, or so many bytes of it would not have come: it is one to skip.
                pending.dropped = true;
                pending.text.clear();
            } else if pending.text.len() > MAX_HELD {
                give(&mut pending.text, &mut self.remaining, out);
            }
            return;
        }
        pending.open = false;
        if self.skip > 0 {
            self.skip -= 1;
            pending.text.clear();
        } else if !pending.dropped {
            pending.text.push(b'\n');
            give(&mut pending.text, &mut self.remaining, out);
        }
    }

    /// Gives out what has no end: the log is over.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        for pending in [&mut self.stdout, &mut self.stderr] {
            if pending.open && self.skip > 0 {
                self.skip -= 1;
            } else if pending.open && !pending.dropped {
                give(&mut pending.text, &mut self.remaining, out);
            }
            pending.open = false;
        }
    }
}

fn give(text: &mut Vec<u8>, remaining: &mut u64, out: &mut Vec<u8>) {
    let allowed = usize::try_from(*remaining).unwrap_or(usize::MAX).min(text.len());
    out.extend_from_slice(&text[..allowed]);
    *remaining -= allowed as u64;
    text.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(options: LogOptions, skip: u64, lines: &[&str]) -> String {
        let mut joiner = Joiner::new(&options, skip);
        let mut out = Vec::new();
        for line in lines {
            joiner.push(&CriLine::parse(line.as_bytes()).unwrap(), &mut out);
        }
        joiner.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    const LINES: [&str; 6] = [
        "2026-01-01T00:00:01Z stdout P one ",
        "2026-01-01T00:00:02Z stderr F error",
        "2026-01-01T00:00:03Z stdout P two ",
        "2026-01-01T00:00:04Z stdout F three",
        "2026-01-01T00:00:05Z stdout F four",
        "2026-01-01T00:00:06Z stdout P no end",
    ];

    #[test]
    fn parts_of_a_line_are_joined_per_stream() {
        assert_eq!(joined(LogOptions::default(), 0, &LINES), "error\none two three\nfour\nno end");
    }

    #[test]
    fn a_joined_line_has_the_time_of_its_beginning() {
        let options = LogOptions { timestamps: true, ..LogOptions::default() };
        let expected = "2026-01-01T00:00:02Z error\n2026-01-01T00:00:01Z one two three\n2026-01-01T00:00:05Z four\n2026-01-01T00:00:06Z no end";
        assert_eq!(joined(options, 0, &LINES), expected);
    }

    #[test]
    fn lines_before_a_time_are_dropped_whole() {
        let since = Some("2026-01-01T00:00:02.5Z".parse().unwrap());
        assert_eq!(joined(LogOptions { since, ..LogOptions::default() }, 0, &LINES), "four\nno end");
    }

    #[test]
    fn lines_after_a_time_are_dropped_whole() {
        let until = Some("2026-01-01T00:00:02.5Z".parse().unwrap());
        let all = joined(LogOptions::default(), 0, &LINES);
        assert_eq!(joined(LogOptions { until, ..LogOptions::default() }, 0, &LINES), all.strip_suffix("four\nno end").unwrap());
    }

    #[test]
    fn lines_to_skip_are_counted_by_their_ends() {
        assert_eq!(joined(LogOptions::default(), 1, &LINES), "one two three\nfour\nno end");
        assert_eq!(joined(LogOptions::default(), 3, &LINES), "no end");
        assert_eq!(joined(LogOptions::default(), 4, &LINES), "");
    }

    #[test]
    fn output_ends_at_the_limit() {
        assert_eq!(joined(LogOptions { limit: Some(8), ..LogOptions::default() }, 0, &LINES), "error\non");
    }

    #[test]
    fn a_line_without_end_is_not_held_for_ever() {
        let mut joiner = Joiner::new(&LogOptions { timestamps: true, ..LogOptions::default() }, 0);
        let mut out = Vec::new();
        let text = "x".repeat(16 << 10);
        for _ in 0..1000 {
            joiner.push(&CriLine::parse(format!("T stdout P {text}").as_bytes()).unwrap(), &mut out);
            assert!(joiner.stdout.text.len() <= MAX_HELD + text.len());
        }
        joiner.push(&CriLine::parse(b"T stdout F end").unwrap(), &mut out);
        assert_eq!(out.len(), "T ".len() + 1000 * text.len() + "end\n".len(), "the time is given once");
    }
}
