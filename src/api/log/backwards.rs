//! Finding the last lines of a log without reading all of it.

use super::cri::{CriLine, Stream};
use super::files::{LogFile, Reader};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Bytes read at once, going backwards.
const BLOCK: u64 = 64 << 10;
/// Whole lines read before the first wanted one, so that of a line which began before it, interleaved with the other stream, the
/// beginning is not lost.
const MARGIN: u64 = 16;

/// Counts lines of the program from the end of the log.
#[derive(Debug, Default)]
struct Count {
    /// Lines with an end.
    whole: u64,
    /// Lines without an end so far, at most one per stream.
    open: u64,
    seen_stdout: bool,
    seen_stderr: bool,
}

impl Count {
    /// Counts a line of the file, going backwards. Returns false, and does not count it, when there are enough.
    fn add(&mut self, line: &[u8], enough: u64) -> bool {
        let Some(line) = CriLine::parse(line) else { return true };
        if !line.partial && self.whole >= enough {
            return false;
        }
        let seen = match line.stream {
            Stream::Stdout => &mut self.seen_stdout,
            Stream::Stderr => &mut self.seen_stderr,
        };
        if !line.partial {
            self.whole += 1;
        } else if !*seen {
            self.open += 1;
        }
        *seen = true;
        true
    }
}

/// Drops and positions `files` so that reading begins shortly before the last `wanted` lines; returns how many lines are to be skipped
/// then.
pub(super) fn seek_to_tail(files: &mut VecDeque<LogFile>, wanted: u64) -> io::Result<u64> {
    let enough = wanted.saturating_add(MARGIN);
    let mut count = Count::default();
    let mut kept = VecDeque::new();
    while let Some(mut file) = files.pop_back() {
        let enough_here = match &mut file.reader {
            Reader::Plain(reader) => seek_plain(reader.get_mut(), &mut count, enough)?,
            Reader::Gzip(_) => {
                let (rewound, lines) = read_all(file)?;
                file = rewound;
                // A compressed file is read from its beginning in any case.
                lines.iter().rev().for_each(|line| {
                    count.add(line, u64::MAX);
                });
                count.whole >= enough
            }
        };
        kept.push_front(file);
        if enough_here {
            break;
        }
    }
    *files = kept;
    Ok((count.whole + count.open).saturating_sub(wanted))
}

/// Positions a plain file; true when the position is not its beginning, so that no older file is needed.
fn seek_plain(file: &mut File, count: &mut Count, enough: u64) -> io::Result<bool> {
    let mut start = file.metadata()?.len();
    // Lines whose beginning is before `start`.
    let mut rest: Vec<u8> = Vec::new();
    while start > 0 {
        let size = BLOCK.min(start);
        start -= size;
        let mut block = vec![0; usize::try_from(size).unwrap_or_default()];
        file.read_exact_at(&mut block, start)?;
        block.append(&mut rest);
        let mut end = block.len();
        while end > 0 {
            // The newline at the end of the line before; the one that ends this line is not looked at.
            let newline = block[..end - 1].iter().rposition(|byte| *byte == b'\n');
            let begin = match newline {
                Some(newline) => newline + 1,
                None if start == 0 => 0,
                None => break,
            };
            let line = &block[begin..end];
            if !count.add(line.strip_suffix(b"\n").unwrap_or(line), enough) {
                file.seek(SeekFrom::Start(start + end as u64))?;
                return Ok(true);
            }
            end = begin;
        }
        block.truncate(end);
        rest = block;
    }
    file.rewind()?;
    Ok(false)
}

/// The beginnings of all lines of a file: enough to count them.
fn read_all(mut file: LogFile) -> io::Result<(LogFile, Vec<Vec<u8>>)> {
    const HEAD: usize = 64;
    let mut lines = Vec::new();
    let mut line = Vec::new();
    while file.reader.read_line(&mut line, u64::MAX)? > 0 {
        line.truncate(HEAD);
        lines.push(std::mem::take(&mut line));
    }
    Ok((file.rewind()?, lines))
}
