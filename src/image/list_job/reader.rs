//! The entries of an archive, read by the job, or by the command of a user whose archive it is.

use super::super::compression::Decoder;
use super::super::limits::Limits;
use super::super::tar::{Entry, EntryKind, Seekable, Source, Streamed, TarError, TarReader};
use super::wire::{self, Form, Listed, ListedKind};
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};

/// Bytes read at once.
const READ: usize = 256 << 10;

/// The entries of a plain archive.
#[derive(Debug)]
pub(super) struct PlainEntries(TarReader<Seekable>);

impl PlainEntries {
    /// Reads `archive` from its beginning on.
    pub(super) fn open(mut archive: File) -> io::Result<Self> {
        archive.seek(SeekFrom::Start(0))?;
        Ok(Self(TarReader::new(Seekable::new(archive)?)))
    }

    /// The next entry.
    pub(super) fn next_entry(&mut self) -> Result<Option<Listed>, TarError> {
        let Some(entry) = self.0.next_entry()? else { return Ok(None) };
        let at = self.0.offset().map_err(TarError::Read)?;
        Ok(Some(listed(&entry, at)))
    }
}

/// Reason why not all entries were told.
#[derive(Debug)]
pub(super) enum TellError {
    /// The archive.
    Archive(TarError),
    /// The daemon, which takes no more.
    Daemon,
}

impl From<TarError> for TellError {
    fn from(error: TarError) -> Self {
        Self::Archive(error)
    }
}

impl From<io::Error> for TellError {
    fn from(_: io::Error) -> Self {
        Self::Daemon
    }
}

/// Tells all entries, and of a compressed archive their content.
pub(super) fn tell(archive: File, form: Form, limits: &Limits, mut to: impl Write) -> Result<(), TellError> {
    match form {
        Form::Plain => {
            let mut entries = PlainEntries::open(archive).map_err(TarError::Read)?;
            while let Some(entry) = entries.next_entry()? {
                wire::write(&entry, &mut to)?;
            }
        }
        Form::Compressed => {
            let decoder = Decoder::new(BufReader::with_capacity(READ, archive), limits).map_err(TarError::Read)?;
            let mut reader = TarReader::new(Streamed(decoder));
            while let Some(entry) = reader.next_entry()? {
                wire::write(&listed(&entry, 0), &mut to)?;
                pass_on(&mut reader, &mut to)?;
            }
            // To the end, so that damage behind the last entry (a wrong gzip checksum) is seen.
            reader.drain()?;
        }
    }
    Ok(to.flush()?)
}

fn pass_on<R: Source>(reader: &mut TarReader<R>, to: &mut impl Write) -> Result<(), TellError> {
    loop {
        match reader.chunk(u64::MAX)? {
            [] => return Ok(()),
            chunk => to.write_all(chunk)?,
        }
    }
}

fn listed(entry: &Entry, at: u64) -> Listed {
    let kind = match entry.kind {
        EntryKind::File => ListedKind::File,
        EntryKind::Symlink => ListedKind::Symlink,
        EntryKind::HardLink => ListedKind::HardLink,
        EntryKind::Directory | EntryKind::CharDevice | EntryKind::BlockDevice | EntryKind::Fifo => ListedKind::Other,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (path, link, is_sparse) = (text(&entry.path), text(&entry.link), entry.sparse.is_some());
    Listed { kind, path, link, size: entry.size, at, is_sparse }
}
