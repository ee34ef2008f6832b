//! The end of a log, for `terminationMessagePolicy: FallbackToLogsOnError`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Limits of kubelet rule D19.
const MAX_LINES: usize = 80;
const MAX_BYTES: usize = 2048;

/// More than 80 headers and 2048 bytes of text take, so that a line cut at the start of what is read is not part of the result, or
/// is so long that its header is not.
const WINDOW: u64 = 8 * 1024;

/// The text of the last 80 lines of a CRI log, at most its last 2048 bytes.
pub(crate) fn last_lines(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(WINDOW)))?;
    let mut bytes = Vec::new();
    file.take(WINDOW).read_to_end(&mut bytes)?;
    Ok(text_of(&bytes))
}

fn text_of(bytes: &[u8]) -> String {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut text = Vec::new();
    for line in &lines[lines.len().saturating_sub(MAX_LINES)..] {
        let mut fields = line.splitn(4, |byte| *byte == b' ');
        match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (_, Some(b"stdout" | b"stderr"), Some(b"P"), Some(part)) => {
                text.extend_from_slice(part.strip_suffix(b"\n").unwrap_or(part))
            }
            (_, Some(b"stdout" | b"stderr"), _, Some(part)) => text.extend_from_slice(part),
            _ => text.extend_from_slice(line),
        }
    }
    String::from_utf8_lossy(&text[text.len().saturating_sub(MAX_BYTES)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: &str = "2026-01-02T03:04:05.123456789Z";

    #[test]
    fn headers_are_removed_and_partial_lines_joined() {
        let log = format!("{STAMP} stdout F one\n{STAMP} stderr P tw\n{STAMP} stderr F o\n");
        assert_eq!(text_of(log.as_bytes()), "one\ntwo\n");
    }

    #[test]
    fn eighty_lines_and_2048_bytes_are_the_limits() {
        let many: String = (0..200).map(|number| format!("{STAMP} stdout F {number}\n")).collect();
        assert_eq!(text_of(many.as_bytes()).lines().count(), 80);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        std::fs::write(&path, format!("{STAMP} stdout F {}\n", "x".repeat(16_000))).unwrap();
        assert_eq!(last_lines(&path).unwrap(), format!("{}\n", "x".repeat(2047)));
    }
}
