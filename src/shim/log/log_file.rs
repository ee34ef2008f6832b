//! The log file of one container's run: appends, rotates, and drops when the disk is full.

use super::line::{LineSplitter, StreamName, Tag};
use super::timestamp::TimestampFormat;
use jiff::Timestamp;
use podstead_container::protocol::LogLimits;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Lines are gathered up to about this size and written at once.
const BATCH_BYTES: usize = 48 * 1024;

/// Writes lines to a file. Nothing here returns an error: the workload cannot help it, so loss is counted and told in the log.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    limits: LogLimits,
    file: Option<File>,
    size: u64,
    /// Names of rotated files have a resolution of a second and must neither collide nor go backwards.
    last_rotation: i64,
    dropped: Dropped,
    format: TimestampFormat,
    /// Rotated files to be compressed: all but the newest, which a reader may still be following.
    uncompressed: Vec<PathBuf>,
}

/// Output that could not be written since the last line that could.
#[derive(Debug, Default)]
struct Dropped {
    lines: u64,
    bytes: u64,
    reason: String,
}

impl LogFile {
    /// The file is created by [`LogFile::begin`] or the first line. An existing one is continued.
    pub(crate) fn new(path: PathBuf, limits: LogLimits) -> Self {
        Self {
            path,
            limits,
            file: None,
            size: 0,
            last_rotation: i64::MIN,
            dropped: Dropped::default(),
            format: TimestampFormat::default(),
            uncompressed: Vec::new(),
        }
    }

    /// Creates the file, so that a reader finds the log of a container that has written nothing. If that fails, the first line tries again.
    pub(crate) fn begin(&mut self) {
        if self.file.is_none()
            && let Ok((file, size)) = open(&self.path)
        {
            (self.file, self.size) = (Some(file), size);
        }
    }

    /// Rotated files to compress; read after a write. Those of which nothing comes are named again after the next rotation.
    pub(crate) fn take_uncompressed(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.uncompressed)
    }

    /// Logs what was read from `stream`; text after the last newline stays in `splitter`. `batch` is scratch space.
    pub(crate) fn write(
        &mut self,
        stream: StreamName,
        splitter: &mut LineSplitter,
        bytes: &[u8],
        now: Timestamp,
        batch: &mut Vec<u8>,
    ) {
        let stamp = self.format.format(now);
        batch.clear();
        splitter.split(bytes, |tag, text| {
            push_line(batch, &stamp, stream, tag, text);
            if batch.len() >= BATCH_BYTES {
                self.append(batch, now);
                batch.clear();
            }
        });
        self.append(batch, now);
        batch.clear();
    }

    /// Logs what `splitter` holds: the stream has ended.
    pub(crate) fn finish(&mut self, stream: StreamName, splitter: &mut LineSplitter, now: Timestamp) {
        let stamp = self.format.format(now);
        let mut batch = Vec::new();
        splitter.finish(|tag, text| push_line(&mut batch, &stamp, stream, tag, text));
        self.append(&batch, now);
    }

    /// Tells of dropped lines if there is room now, and closes the file.
    pub(crate) fn close(&mut self, now: Timestamp) {
        self.report_dropped(now);
        self.file = None;
    }

    fn append(&mut self, batch: &[u8], now: Timestamp) {
        if batch.is_empty() || !self.report_dropped(now) {
            self.dropped.count(batch);
            return;
        }
        if let Err((error, written)) = self.write_whole_lines(batch, now) {
            self.dropped.count(&batch[written..]);
            self.dropped.reason = error.to_string();
        }
    }

    /// Writes a line about dropped output; returns true if nothing is left to report.
    fn report_dropped(&mut self, now: Timestamp) -> bool {
        if self.dropped.lines == 0 {
            return true;
        }
        let text =
            format!("podstead: dropped {} log lines ({} bytes): {}", self.dropped.lines, self.dropped.bytes, self.dropped.reason);
        let mut notice = Vec::new();
        push_line(&mut notice, &self.format.format(now), StreamName::Stderr, Tag::Full, text.as_bytes());
        match self.write_whole_lines(&notice, now) {
            Ok(()) => {
                self.dropped = Dropped::default();
                true
            }
            Err((error, _)) => {
                self.dropped.reason = error.to_string();
                false
            }
        }
    }

    /// Writes all of `lines`, or returns the bytes of whole lines that were written; a line cut by a full disk is removed.
    fn write_whole_lines(&mut self, lines: &[u8], now: Timestamp) -> Result<(), (io::Error, usize)> {
        if self.size >= self.limits.max_bytes && self.file.is_some() {
            self.rotate(now).map_err(|error| (error, 0))?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            closed @ None => {
                let (file, size) = open(&self.path).map_err(|error| (error, 0))?;
                self.size = size;
                closed.insert(file)
            }
        };
        let mut written = 0;
        let error = loop {
            match file.write(&lines[written..]) {
                Ok(0) => break io::Error::from(io::ErrorKind::WriteZero),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
            if written == lines.len() {
                self.size += written as u64;
                return Ok(());
            }
        };
        let whole = memchr::memrchr(b'\n', &lines[..written]).map_or(0, |at| at + 1);
        self.size += whole as u64;
        if whole < written {
            let cut = file.metadata().and_then(|metadata| file.set_len(metadata.len().saturating_sub((written - whole) as u64)));
            if cut.is_err() {
                // Opening it again ends the broken line.
                self.file = None;
            }
        }
        Err((error, whole))
    }

    /// Renames the file; the next line makes a new one. When the new one cannot be made, the old one is continued.
    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        self.last_rotation = now.as_second().max(self.last_rotation.saturating_add(1));
        let rotated = loop {
            let stamp = Timestamp::from_second(self.last_rotation).unwrap_or(now).strftime("%Y%m%d-%H%M%S");
            let candidate = with_suffix(&self.path, &stamp.to_string());
            match fs::symlink_metadata(&candidate) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break candidate,
                Ok(_) => self.last_rotation += 1,
                Err(error) => return Err(error),
            }
        };
        fs::rename(&self.path, &rotated)?;
        match open(&self.path) {
            Ok((file, size)) => {
                self.file = Some(file);
                self.size = size;
            }
            Err(error) => {
                fs::rename(&rotated, &self.path)?;
                return Err(error);
            }
        }
        self.uncompressed = prune(&self.path, self.limits.max_files)?;
        Ok(())
    }
}

impl Dropped {
    fn count(&mut self, lines: &[u8]) {
        self.lines += memchr::memchr_iter(b'\n', lines).count() as u64;
        self.bytes += lines.len() as u64;
    }
}

fn push_line(batch: &mut Vec<u8>, stamp: &[u8], stream: StreamName, tag: Tag, text: &[u8]) {
    batch.extend_from_slice(stamp);
    batch.push(b' ');
    batch.extend_from_slice(stream.as_bytes());
    batch.extend_from_slice(match tag {
        Tag::Full => b" F ",
        Tag::Partial => b" P ",
    });
    batch.extend_from_slice(text);
    batch.push(b'\n');
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Opens for appending. A line that a power cut left without its end gets one, so that the next line stays readable.
fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o640).open(path)?;
    let mut size = file.metadata()?.len();
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

/// Removes the oldest rotated files, compressed ones too, until `max_files` are left with the current one. Returns those that are left
/// uncompressed, but for the newest.
fn prune(path: &Path, max_files: u32) -> io::Result<Vec<PathBuf>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{name}.");
    let (mut unfinished, mut rotated) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        match entry?.file_name().into_string() {
            Ok(name) if name.starts_with(&prefix) => match name.strip_suffix(".tmp") {
                Some(plain) => unfinished.push(plain.to_owned()),
                None => rotated.push(name),
            },
            Ok(_) | Err(_) => {}
        }
    }
    rotated.sort_unstable();
    let keep = max_files.saturating_sub(1).max(1) as usize;
    let excess = rotated.len().saturating_sub(keep);
    let mut obsolete: Vec<String> = rotated.drain(..excess).collect();
    // Copies that a crash cut short, of files that have gone since.
    obsolete.extend(unfinished.into_iter().filter(|plain| !rotated.contains(plain)).map(|plain| plain + ".tmp"));
    for name in obsolete {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    rotated.pop();
    Ok(rotated.into_iter().filter(|name| !name.ends_with(".gz")).map(|name| directory.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05.123456789Z".parse().unwrap()
    }

    fn texts(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap().lines().map(|line| line.splitn(4, ' ').nth(3).unwrap().to_owned()).collect()
    }

    #[test]
    fn a_line_has_time_stream_tag_and_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web/0.log");
        let (mut log, mut splitter) = (LogFile::new(path.clone(), LogLimits::default()), LineSplitter::default());
        log.write(StreamName::Stderr, &mut splitter, b"hello\nrest", now(), &mut Vec::new());
        assert_eq!(fs::read_to_string(&path).unwrap(), "2026-01-02T03:04:05.123456789Z stderr F hello\n");
        log.finish(StreamName::Stderr, &mut splitter, now());
        assert!(fs::read_to_string(&path).unwrap().ends_with(" stderr P rest\n"));
    }

    #[test]
    fn an_existing_log_is_continued_and_a_cut_line_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        fs::write(&path, "2026-01-01T00:00:00.000000000Z stdout F before\n2026-01-01T00:00:00.000000000Z stdout F cu").unwrap();
        let mut log = LogFile::new(path.clone(), LogLimits::default());
        log.write(StreamName::Stdout, &mut LineSplitter::default(), b"after\n", now(), &mut Vec::new());
        assert_eq!(texts(&path), ["before", "cu", "after"]);
    }

    #[test]
    fn rotation_loses_no_line_and_keeps_the_newest_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log");
        let limits = LogLimits { max_bytes: 1000, max_files: 100 };
        let (mut log, mut splitter, mut batch) = (LogFile::new(path.clone(), limits), LineSplitter::default(), Vec::new());
        for number in 0..500 {
            log.write(StreamName::Stdout, &mut splitter, format!("line {number}\n").as_bytes(), now(), &mut batch);
        }
        let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert!(names.len() > 20, "{names:?}");
        // The current file sorts first by name and is the newest.
        names.rotate_left(1);
        let all: Vec<String> = names.iter().flat_map(|name| texts(name)).collect();
        assert_eq!(all, (0..500).map(|number| format!("line {number}")).collect::<Vec<_>>());

        let limits = LogLimits { max_bytes: 1000, max_files: 5 };
        fs::write(directory.path().join("0.log.20260102-030405.tmp"), "of a file that goes").unwrap();
        let mut log = LogFile::new(path.clone(), limits);
        for number in 500..600 {
            log.write(StreamName::Stdout, &mut splitter, format!("line {number}\n").as_bytes(), now(), &mut batch);
        }
        let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert_eq!(names.len(), 5, "{names:?}");
        names.rotate_left(1);
        let last: Vec<String> = names.iter().flat_map(|name| texts(name)).collect();
        assert_eq!(last.last().unwrap(), "line 599");
        let first: usize = last[0].strip_prefix("line ").unwrap().parse().unwrap();
        assert_eq!(last, (first..600).map(|number| format!("line {number}")).collect::<Vec<_>>(), "no hole");
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_told_when_it_can_again() {
        let directory = tempfile::tempdir().unwrap();
        let logs = directory.path().join("logs");
        fs::write(&logs, "in the way of the directory").unwrap();
        let path = logs.join("0.log");
        let (mut log, mut splitter, mut batch) =
            (LogFile::new(path.clone(), LogLimits::default()), LineSplitter::default(), Vec::new());
        log.write(StreamName::Stdout, &mut splitter, b"one\ntwo\n", now(), &mut batch);
        log.write(StreamName::Stdout, &mut splitter, b"three\n", now(), &mut batch);
        fs::remove_file(&logs).unwrap();
        log.write(StreamName::Stdout, &mut splitter, b"four\n", now(), &mut batch);
        let lines = texts(&path);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("podstead: dropped 3 log lines (134 bytes): "), "{}", lines[0]);
        assert_eq!(lines[1], "four");
    }
}
