//! A place in the log of one run of a container, across its files.

use super::LogOptions;
use super::backwards;
use super::cri::CriLine;
use super::files::{self, LogFile};
use super::joiner::Joiner;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of output that one read makes, about.
const PIECE: usize = 32 << 10;
/// Longest line of a file; the shim's are of some 16 KiB. A longer one is not a log.
const MAX_LINE: u64 = 1 << 20;

/// Position of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is more to read now.
    More,
    /// All that is there was read.
    CaughtUp,
    /// Nothing more will come.
    Finished,
}

/// Reads on from where it stopped.
#[derive(Debug)]
pub(super) struct LogCursor {
    path: PathBuf,
    /// Open files, oldest first; the first is being read. Never empty.
    files: VecDeque<LogFile>,
    /// The newest rotated file when the live one was opened: what has a later name was the live one after that.
    newest_rotated: Option<String>,
    /// The beginning of a line of the first file whose newline is not there yet.
    torn: Vec<u8>,
    joiner: Joiner,
}

impl LogCursor {
    /// Opens the log whose live file is `path` at the place that `options` ask for.
    pub(super) fn open(path: &Path, options: &LogOptions) -> io::Result<Self> {
        let mut files: VecDeque<LogFile> = files::open_all(path)?.into();
        let newest_rotated = newest_rotated(files.make_contiguous());
        let skip = match options.tail {
            Some(lines) => backwards::seek_to_tail(&mut files, lines)?,
            None => 0,
        };
        // What was written last before the wanted time holds nothing that is wanted.
        while files.len() > 1 && files.front().is_some_and(|file| is_older(file, options)) && skip == 0 {
            files.pop_front();
        }
        Ok(Self { path: path.to_owned(), files, newest_rotated, torn: Vec::new(), joiner: Joiner::new(options, skip) })
    }

    /// Reads about one piece. `ended` means that no process writes to the log any more.
    pub(super) fn read(&mut self, ended: bool) -> io::Result<(Step, Bytes)> {
        let mut out = Vec::new();
        let step = loop {
            if self.joiner.is_full() {
                break Step::Finished;
            }
            if out.len() >= PIECE {
                break Step::More;
            }
            if self.read_line(&mut out)? || self.next_file()? {
                continue;
            }
            if ended {
                self.joiner.finish(&mut out);
                break Step::Finished;
            }
            break Step::CaughtUp;
        };
        Ok((step, Bytes::from(out)))
    }

    /// Takes one line of the first file; false at its end.
    fn read_line(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some(file) = self.files.front_mut() else { return Ok(false) };
        let limit = MAX_LINE.saturating_sub(self.torn.len() as u64);
        file.reader.read_line(&mut self.torn, limit)?;
        let (line, whole) = match self.torn.split_last() {
            Some((b'\n', line)) => (line, true),
            _ => (self.torn.as_slice(), self.torn.len() as u64 >= MAX_LINE),
        };
        if whole {
            if let Some(line) = CriLine::parse(line) {
                self.joiner.push(&line, out);
            }
            self.torn.clear();
        }
        Ok(whole)
    }

    /// Goes to the next file, at the end of the first; false when the first is the live one.
    fn next_file(&mut self) -> io::Result<bool> {
        if self.files.len() > 1 {
            self.files.pop_front();
            self.torn.clear();
            return Ok(true);
        }
        let Some(current) = self.files.front().map(|file| file.id) else { return Ok(false) };
        match files::live_id(&self.path) {
            Ok(live) if live != current => {}
            Ok(_) => return Ok(false),
            // Between the two renames of a rotation, or the pod's logs were removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        let files = match files::open_all(&self.path) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let newest_rotated = newest_rotated(&files);
        let mut later = files.into_iter().filter(|file| file.rotated.is_none() || file.rotated > self.newest_rotated).peekable();
        // The first of them is the current one, as it is or compressed; another file in its place means that it was removed.
        if later.peek().is_some_and(|file| file.id == current || (file.is_compressed() && file.rotated.is_some())) {
            later.next();
        }
        self.files.extend(later);
        self.newest_rotated = newest_rotated;
        // The current file stays first: it is read to its end once more, since it was written until it was renamed.
        Ok(self.files.len() > 1)
    }
}

fn newest_rotated(files: &[LogFile]) -> Option<String> {
    files.iter().rev().find_map(|file| file.rotated.clone())
}

fn is_older(file: &LogFile, options: &LogOptions) -> bool {
    match (options.since, file.modified) {
        (Some(since), Some(modified)) => modified < since,
        _ => false,
    }
}
