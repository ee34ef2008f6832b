//! One line of a CRI log file: `<RFC 3339 time> <stdout|stderr> <F|P> <text>` (kubelet rule D18). **Pure**.

use jiff::Timestamp;

/// Stream of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// A line, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CriLine<'a> {
    /// As written.
    pub(super) time: &'a str,
    pub(super) stream: Stream,
    /// More of the same line of the program follows in the next line of this stream.
    pub(super) partial: bool,
    pub(super) text: &'a [u8],
}

impl<'a> CriLine<'a> {
    /// Parses a line; `None` if it is invalid, such as a partial line after a power cut.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(4, |byte| *byte == b' ');
        let time = std::str::from_utf8(fields.next()?).ok()?;
        let stream = match fields.next()? {
            b"stdout" => Stream::Stdout,
            b"stderr" => Stream::Stderr,
            _ => return None,
        };
        // Tags are separated by colons; the first one says whether the line is whole.
        let partial = match fields.next()?.split(|byte| *byte == b':').next()? {
            b"P" => true,
            b"F" => false,
            _ => return None,
        };
        Some(Self { time, stream, partial, text: fields.next().unwrap_or_default() })
    }

    /// The time as a value; `None` when it is none.
    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        self.time.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = CriLine::parse(b"2026-01-02T03:04:05.678901234Z stderr P  two  spaces ").unwrap();
        assert_eq!(line.time, "2026-01-02T03:04:05.678901234Z");
        assert_eq!((line.stream, line.partial, line.text), (Stream::Stderr, true, &b" two  spaces "[..]));
        assert_eq!(line.timestamp().unwrap().subsec_nanosecond(), 678_901_234);
        assert_eq!(CriLine::parse(b"t stdout F ").unwrap().text, b"");
        assert_eq!(CriLine::parse(b"t stdout F:x \xff\x00").unwrap().text, b"\xff\x00");
    }

    #[test]
    fn what_is_no_line_is_none() {
        for line in [&b""[..], b"2026 stdout", b"2026 stdin F x", b"2026 stdout X x", b"\0\0\0\0"] {
            assert_eq!(CriLine::parse(line), None);
        }
    }
}
