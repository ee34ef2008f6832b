//! The stream's headers and pieces. **Pure** but for reading and writing.

use super::MAX_DEPTH;
use std::io::{self, Read, Write};
use thiserror::Error;

/// First bytes of a stream.
pub const MAGIC: &[u8; 16] = b"podstead-copy/1\n";
/// Bytes of a piece of content, at most.
pub const MAX_PIECE: usize = 64 << 10;
/// Bytes of a path or of the target of a link, at most (`PATH_MAX`).
const MAX_PATH: usize = 4096;
/// Kind, mode, owner, group, length of the path, length of the target.
const HEADER: usize = 1 + 4 + 4 + 4 + 2 + 2;

/// Stream that is not one.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The stream itself.
    #[error("read failed")]
    Read(#[source] io::Error),
    /// It ended before its end.
    #[error("the stream ended early")]
    Truncated,
    /// Something else, or another version.
    #[error("this is no stream of files of this version")]
    Magic,
    /// A header that no writer of this crate makes.
    #[error("invalid header: {0}")]
    Header(&'static str),
}

/// Type of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file; its content follows.
    File,
    /// A directory; what is in it follows.
    Directory,
    /// A symbolic link with this target.
    Symlink(Vec<u8>),
}

/// A file, directory or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Components of its path from the root; none for the root itself.
    pub path: Vec<Vec<u8>>,
    /// Its type.
    pub kind: Kind,
    /// Permissions with setuid, setgid and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Writes a stream.
#[derive(Debug)]
pub struct FrameWriter<W> {
    out: W,
}

impl<W: Write> FrameWriter<W> {
    /// Begins a stream.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Self { out })
    }

    /// Begins a file, directory or link. Content of a file has to follow, and [`Self::end_content`].
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let too_long = || io::Error::from(io::ErrorKind::InvalidFilename);
        let (kind, target) = match &entry.kind {
            Kind::File => (1, &[][..]),
            Kind::Directory => (2, &[][..]),
            Kind::Symlink(target) => (3, &target[..]),
        };
        let path = entry.path.join(&b'/');
        if path.len() > MAX_PATH || target.len() > MAX_PATH {
            return Err(too_long());
        }
        let mut header = vec![kind];
        for number in [entry.mode, entry.uid, entry.gid] {
            header.extend_from_slice(&number.to_be_bytes());
        }
        for length in [path.len(), target.len()] {
            header.extend_from_slice(&u16::try_from(length).map_err(|_| too_long())?.to_be_bytes());
        }
        header.extend_from_slice(&path);
        header.extend_from_slice(target);
        self.out.write_all(&header)
    }

    /// Writes content of the file that was begun.
    pub fn content(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(MAX_PIECE) {
            self.out.write_all(&u32::try_from(piece.len()).unwrap_or_default().to_be_bytes())?;
            self.out.write_all(piece)?;
        }
        Ok(())
    }

    /// Ends the content of a file.
    pub fn end_content(&mut self) -> io::Result<()> {
        self.out.write_all(&0_u32.to_be_bytes())
    }

    /// Ends the stream.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(&[0; HEADER])?;
        self.out.flush()
    }
}

/// Reads a stream.
#[derive(Debug)]
pub struct FrameReader<R> {
    source: R,
    piece: Vec<u8>,
    has_content: bool,
}

impl<R: Read> FrameReader<R> {
    /// Reads the beginning.
    pub fn new(source: R) -> Result<Self, FrameError> {
        let mut reader = Self { source, piece: Vec::new(), has_content: false };
        let mut magic = [0; MAGIC.len()];
        reader.fill(&mut magic)?;
        if magic == *MAGIC { Ok(reader) } else { Err(FrameError::Magic) }
    }

    /// The next file, directory or link; `None` at the end. Content that was not read is skipped.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, FrameError> {
        while self.piece()?.is_some() {}
        let mut header = [0; HEADER];
        self.fill(&mut header)?;
        if header == [0; HEADER] {
            return Ok(None);
        }
        let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
        let (path, target) = (self.bytes(length(13))?, self.bytes(length(15))?);
        let kind = match (header[0], target.is_empty()) {
            (1, true) => Kind::File,
            (2, true) => Kind::Directory,
            (3, false) if !target.contains(&0) => Kind::Symlink(target),
            _ => return Err(FrameError::Header("kind")),
        };
        self.has_content = kind == Kind::File;
        let mode = number(1);
        if mode & !0o7777 != 0 {
            return Err(FrameError::Header("mode"));
        }
        Ok(Some(Entry { path: components(&path)?, kind, mode, uid: number(5), gid: number(9) }))
    }

    /// The next piece of the file's content; `None` at its end.
    pub fn piece(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if !self.has_content {
            return Ok(None);
        }
        let mut length = [0; 4];
        self.fill(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX_PIECE {
            return Err(FrameError::Header("length of a piece"));
        }
        if length == 0 {
            self.has_content = false;
            return Ok(None);
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(length, 0);
        self.fill(&mut piece)?;
        self.piece = piece;
        Ok(Some(&self.piece))
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, FrameError> {
        if length > MAX_PATH {
            return Err(FrameError::Header("length of a path"));
        }
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), FrameError> {
        self.source.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Truncated,
            _ => FrameError::Read(error),
        })
    }
}

/// Splits a path. Each component is a name in its directory: not empty, no `.` and no `..`.
fn components(path: &[u8]) -> Result<Vec<Vec<u8>>, FrameError> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let components: Vec<Vec<u8>> = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
    let is_name = |name: &Vec<u8>| !name.contains(&0) && !matches!(name.as_slice(), b"" | b"." | b"..");
    if components.len() > MAX_DEPTH {
        return Err(FrameError::Header("depth of a path"));
    }
    if components.iter().all(is_name) { Ok(components) } else { Err(FrameError::Header("path")) }
}
