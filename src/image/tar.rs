//! Reads tar archives entry by entry from a stream: ustar, GNU and PAX, long names, sparse files, binary extended attributes.
//!
//! The parser is `tar-core`, which does no IO; here are its window on the stream and an entry that owns what it says. Nothing is
//! trusted: the result still has to be applied below a root with care (see [`super::unpack`]).

use std::io::{self, Read, Seek, SeekFrom};
use tar_core::parse::{Limits, ParseError, ParseEvent, ParsedEntry, Parser};
use tar_core::{EntryType, PaxExtensions};

/// First size of the window; also the largest piece of content handed out at once.
const WINDOW: usize = 256 << 10;
/// Maximum size of the headers of one entry (PAX records, long names, a sparse map).
const WINDOW_MAX: usize = 8 << 20;
const BLOCK: u64 = 512;
/// Bytes behind the end of an archive. GNU tar fills its last record up, by default to 10 KiB, and nobody makes records larger than this.
const TRAILING_MAX: u64 = 1 << 20;
/// `PATH_MAX`.
pub const PATH_MAX: u32 = 4096;

/// Reason why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// The stream itself.
    #[error("read archive")]
    Read(#[source] io::Error),
    /// A header makes no sense.
    #[error("archive header")]
    Header(#[source] ParseError),
    /// A header is larger than any sensible one.
    #[error("archive header is larger than {WINDOW_MAX} bytes")]
    HeaderTooLarge,
    /// It ends in the middle of an entry.
    #[error("archive ends in the middle of an entry")]
    Truncated,
    /// Content that no reader shows.
    #[error("archive has more than {TRAILING_MAX} bytes after its end")]
    Trailing,
    /// A number of a PAX record.
    #[error("archive entry {path:?} has an invalid PAX value for {key}")]
    Pax {
        /// The entry.
        path: String,
        /// The record.
        key: &'static str,
    },
    /// Owner that Linux cannot express.
    #[error("archive entry {path:?} has owner {uid}:{gid}, out of range")]
    Owner {
        /// The entry.
        path: String,
        /// As written.
        uid: u64,
        /// As written.
        gid: u64,
    },
    /// A type that no image has.
    #[error("archive entry {path:?} has the unknown type {kind:?}")]
    Kind {
        /// The entry.
        path: String,
        /// As written.
        kind: EntryType,
    },
    /// Regions overlap, go backwards, or lie outside of the file.
    #[error("archive entry {0:?} has an invalid sparse map")]
    SparseMap(String),
}

/// Type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Regular file; the only kind with content.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// A further name of an earlier entry.
    HardLink,
    /// Character device.
    CharDevice,
    /// Block device.
    BlockDevice,
    /// Named pipe.
    Fifo,
}

/// An entry, nothing of it verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its type.
    pub kind: EntryKind,
    /// As written.
    pub path: Vec<u8>,
    /// Target of a link, as written; empty otherwise.
    pub link: Vec<u8>,
    /// Permissions with setuid, setgid and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Seconds and nanoseconds since 1970.
    pub mtime: (i64, u32),
    /// Bytes of content in the archive.
    pub size: u64,
    /// Major and minor number of a device.
    pub device: Option<(u32, u32)>,
    /// Names and values.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// Map of a sparse file's content.
    pub sparse: Option<SparseMap>,
}

/// The regions of a sparse file that have content, in order, without overlap, whose lengths add up to the entry's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseMap {
    /// Offset and length.
    pub regions: Vec<(u64, u64)>,
    /// Length of the file.
    pub real_size: u64,
}

/// Source of an archive; skipping may be cheaper than reading.
pub trait Source: Read {
    /// Passes over `count` bytes; an error if there are fewer.
    fn skip(&mut self, count: u64) -> io::Result<()>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        (**self).skip(count)
    }
}

/// A source that can only be read.
#[derive(Debug)]
pub struct Streamed<R>(pub R);

impl<R: Read> Read for Streamed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: Read> Source for Streamed<R> {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        match io::copy(&mut (&mut self.0).take(count), &mut io::sink())? == count {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A file, in which skipping is seeking.
#[derive(Debug)]
pub struct Seekable {
    file: std::fs::File,
    length: u64,
}

impl Seekable {
    /// Reads from the file's present position.
    pub fn new(file: std::fs::File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }
}

impl Read for Seekable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Source for Seekable {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        let target = self.file.stream_position()?.checked_add(count).filter(|target| *target <= self.length);
        let target = target.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.file.seek(SeekFrom::Start(target)).map(|_| ())
    }
}

impl TarReader<Seekable> {
    /// Offset in the file of what is read next: of the present entry's content, as long as nothing of it was read.
    pub fn offset(&mut self) -> io::Result<u64> {
        let ahead = (self.end - self.start) as u64;
        Ok(self.source.file.stream_position()?.saturating_sub(ahead))
    }
}

/// Reads an archive. As [`Read`] it gives the content of the present entry.
#[derive(Debug)]
pub struct TarReader<R> {
    source: R,
    parser: Parser,
    buffer: Vec<u8>,
    /// The part of `buffer` that has been read and not been consumed.
    start: usize,
    end: usize,
    /// Of the present entry.
    content: u64,
    padding: u64,
}

impl<R: Source> TarReader<R> {
    /// A reader at the beginning of an archive.
    pub fn new(source: R) -> Self {
        let mut parser = Parser::new(Limits { max_path_len: Some(PATH_MAX), ..Limits::default() });
        // An archive of a root directory may have an entry for the root itself.
        parser.set_allow_empty_path(true);
        // Times before 1970 are legal in PAX and not for this parser; all values that matter are read again, strictly.
        parser.set_ignore_pax_errors(true);
        Self { source, parser, buffer: vec![0; WINDOW], start: 0, end: 0, content: 0, padding: 0 }
    }

    /// The next entry, or `None` at the end. What is left of the present one's content is skipped.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, TarError> {
        self.skip(self.content + self.padding)?;
        (self.content, self.padding) = (0, 0);
        let mut wanted = BLOCK as usize;
        loop {
            if !self.fill(wanted)? {
                // Some writers end with one block of zeros or with none.
                return match self.window().iter().all(|byte| *byte == 0) {
                    true => Ok(None),
                    false => Err(TarError::Truncated),
                };
            }
            let window = &self.buffer[self.start..self.end];
            let (consumed, entry) = match self.parser.parse(window).map_err(TarError::Header)? {
                ParseEvent::NeedData { min_bytes } => {
                    wanted = min_bytes.max(window.len() + 1);
                    continue;
                }
                ParseEvent::End { consumed } => {
                    self.start += consumed;
                    return Ok(None);
                }
                // Defaults for all further entries; no implementation of layers honours them.
                ParseEvent::GlobalExtensions { consumed, .. } => (consumed, None),
                ParseEvent::Entry { consumed, entry } => (consumed, Some(owned(&entry, None)?)),
                ParseEvent::SparseEntry { consumed, entry, sparse_map, real_size } => {
                    let regions = sparse_map.iter().map(|region| (region.offset, region.length)).collect();
                    (consumed, Some(owned(&entry, Some(SparseMap { regions, real_size }))?))
                }
            };
            self.start += consumed;
            match entry {
                None => wanted = BLOCK as usize,
                Some(entry) => {
                    self.content = entry.size;
                    self.padding = (BLOCK - entry.size % BLOCK) % BLOCK;
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// The next piece of content of the present entry, at most `limit` bytes; empty at its end.
    pub fn chunk(&mut self, limit: u64) -> Result<&[u8], TarError> {
        let limit = limit.min(self.content);
        if limit == 0 {
            return Ok(&[]);
        }
        if self.start == self.end {
            (self.start, self.end) = (0, read_some(&mut self.source, &mut self.buffer)?);
            if self.end == 0 {
                return Err(TarError::Truncated);
            }
        }
        let length = usize::try_from(limit).unwrap_or(usize::MAX).min(self.end - self.start);
        let start = self.start;
        self.start += length;
        self.content -= length as u64;
        Ok(&self.buffer[start..start + length])
    }

    /// The first bytes of the present entry's content, at most `count`, without consuming them.
    pub fn peek(&mut self, count: usize) -> Result<&[u8], TarError> {
        let count = usize::try_from(self.content).unwrap_or(usize::MAX).min(count);
        if !self.fill(count)? {
            return Err(TarError::Truncated);
        }
        Ok(&self.buffer[self.start..self.start + count])
    }

    /// Reads on to the end of the stream, beyond the end of the archive: what digests the stream has then seen all of it. An error when there is
    /// more than padding.
    pub fn drain(mut self) -> Result<R, TarError> {
        let mut trailing = (self.end - self.start) as u64;
        loop {
            if trailing > TRAILING_MAX {
                return Err(TarError::Trailing);
            }
            match read_some(&mut self.source, &mut self.buffer)? {
                0 => return Ok(self.source),
                count => trailing += count as u64,
            }
        }
    }

    fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Has at least `wanted` bytes in the window; `false` when the stream ends before.
    fn fill(&mut self, wanted: usize) -> Result<bool, TarError> {
        if wanted > WINDOW_MAX {
            return Err(TarError::HeaderTooLarge);
        }
        if wanted > self.buffer.len() {
            self.buffer.resize(wanted, 0);
        }
        if self.start + wanted > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.end - self.start < wanted {
            match read_some(&mut self.source, &mut self.buffer[self.end..])? {
                0 => return Ok(false),
                count => self.end += count,
            }
        }
        Ok(true)
    }

    fn skip(&mut self, count: u64) -> Result<(), TarError> {
        let buffered = usize::try_from(count).unwrap_or(usize::MAX).min(self.end - self.start);
        self.start += buffered;
        match count - buffered as u64 {
            0 => Ok(()),
            rest => self.source.skip(rest).map_err(truncated),
        }
    }
}

impl<R: Source> Read for TarReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk = self.chunk(buffer.len() as u64).map_err(|error| match error {
            TarError::Read(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })?;
        buffer[..chunk.len()].copy_from_slice(chunk);
        Ok(chunk.len())
    }
}

fn read_some(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize, TarError> {
    loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(TarError::Read),
        }
    }
}

fn truncated(error: io::Error) -> TarError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => TarError::Truncated,
        _ => TarError::Read(error),
    }
}

fn owned(entry: &ParsedEntry<'_>, sparse: Option<SparseMap>) -> Result<Entry, TarError> {
    let shown = || entry.path_lossy().into_owned();
    let kind = match entry.entry_type {
        // Archives older than the type flag mark directories by a slash.
        EntryType::Regular if entry.path.ends_with(b"/") => EntryKind::Directory,
        EntryType::Regular | EntryType::Continuous | EntryType::GnuSparse => EntryKind::File,
        EntryType::Directory => EntryKind::Directory,
        EntryType::Symlink => EntryKind::Symlink,
        EntryType::Link => EntryKind::HardLink,
        EntryType::Char => EntryKind::CharDevice,
        EntryType::Block => EntryKind::BlockDevice,
        EntryType::Fifo => EntryKind::Fifo,
        kind @ (EntryType::GnuLongName
        | EntryType::GnuLongLink
        | EntryType::XHeader
        | EntryType::XGlobalHeader
        | EntryType::Other(_)) => {
            return Err(TarError::Kind { path: shown(), kind });
        }
    };
    let mut mtime = (header_time(&entry.header.as_ustar().mtime, entry.mtime), 0);
    for record in PaxExtensions::new(entry.pax.unwrap_or_default()) {
        let record = record.map_err(|error| TarError::Header(error.into()))?;
        let (key, good) = match record.key_bytes() {
            b"mtime" => ("mtime", parse_time(record.value_bytes()).map(|time| mtime = time).is_some()),
            b"size" => ("size", is_number(record.value_bytes())),
            b"uid" => ("uid", is_number(record.value_bytes())),
            b"gid" => ("gid", is_number(record.value_bytes())),
            _ => continue,
        };
        if !good {
            return Err(TarError::Pax { path: shown(), key });
        }
    }
    let (Ok(uid), Ok(gid)) = (u32::try_from(entry.uid), u32::try_from(entry.gid)) else {
        return Err(TarError::Owner { path: shown(), uid: entry.uid, gid: entry.gid });
    };
    if uid == u32::MAX || gid == u32::MAX {
        // To chown(2) this means "unchanged".
        return Err(TarError::Owner { path: shown(), uid: entry.uid, gid: entry.gid });
    }
    let sparse = sparse.filter(|_| kind == EntryKind::File);
    // Only files have content, whatever the size says: so do the readers that made and verified the image.
    let size = if kind == EntryKind::File { entry.size } else { 0 };
    if let Some(map) = &sparse {
        check_sparse(map, size).ok_or_else(|| TarError::SparseMap(shown()))?;
    }
    Ok(Entry {
        kind,
        path: entry.path.to_vec(),
        link: entry.link_target.as_deref().unwrap_or_default().to_vec(),
        mode: entry.mode & 0o7777,
        uid,
        gid,
        mtime,
        size,
        device: entry.dev_major.zip(entry.dev_minor),
        xattrs: entry.xattrs.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        sparse,
    })
}

fn check_sparse(map: &SparseMap, size: u64) -> Option<()> {
    let mut position = 0;
    let mut total: u64 = 0;
    for (offset, length) in &map.regions {
        let end = offset.checked_add(*length)?;
        if *offset < position || end > map.real_size {
            return None;
        }
        position = end;
        total += length;
    }
    (total == size).then_some(())
}

fn is_number(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| text.parse::<u64>().is_ok())
}

/// The header's time. GNU tar writes times before 1970 as a negative binary number, which the parser does not know.
fn header_time(field: &[u8; 12], parsed: u64) -> i64 {
    let [0xff, _, _, _, low @ ..] = field else { return i64::try_from(parsed).unwrap_or(0) };
    i64::from_be_bytes(*low)
}

/// `-12.5` as seconds (rounded down) and nanoseconds.
fn parse_time(value: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    match whole.starts_with('-') && nanoseconds > 0 {
        true => Some((seconds.checked_sub(1)?, 1_000_000_000 - nanoseconds)),
        false => Some((seconds, nanoseconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_fraction_and_sign() {
        for (text, time) in [
            ("0", (0, 0)),
            ("12.5", (12, 500_000_000)),
            ("-1.25", (-2, 750_000_000)),
            ("-3", (-3, 0)),
            ("1.1234567899", (1, 123_456_789)),
        ] {
            assert_eq!(parse_time(text.as_bytes()), Some(time), "{text}");
        }
        for text in ["", "x", "1.x", "1.2.3", "99999999999999999999"] {
            assert_eq!(parse_time(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_sparse_map_must_go_forward_and_fit() {
        let map = |regions: &[(u64, u64)], real_size| SparseMap { regions: regions.to_vec(), real_size };
        assert!(check_sparse(&map(&[(0, 5), (10, 5), (20, 0)], 20), 10).is_some());
        assert!(check_sparse(&map(&[(0, 5), (4, 5)], 20), 10).is_none(), "overlap");
        assert!(check_sparse(&map(&[(10, 11)], 20), 11).is_none(), "outside");
        assert!(check_sparse(&map(&[(u64::MAX, 2)], 20), 2).is_none(), "overflow");
        assert!(check_sparse(&map(&[(0, 5)], 20), 6).is_none(), "content that belongs nowhere");
    }

    #[test]
    fn an_archive_may_end_in_zeros_or_in_nothing_but_not_in_half_a_header() {
        for (bytes, good) in
            [(vec![], true), (vec![0; 512], true), (vec![0; 1024], true), (vec![0; 10240], true), (vec![0, 0, 1], false)]
        {
            let result = TarReader::new(Streamed(&bytes[..])).next_entry();
            assert_eq!(matches!(result, Ok(None)), good, "{} bytes: {result:?}", bytes.len());
        }
    }
}
