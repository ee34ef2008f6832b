//! The entries of an archive as they come, each checked, and their content.

use super::super::limits::Limits;
use super::client::Lent;
use super::error::ListError;
use super::reader::PlainEntries;
use super::wire::{self, Form, Listed, ListedKind, Unread};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// Bytes of entries read at once.
const READ: usize = 64 << 10;
/// Bytes at the start of a file by which its format is known: a tar header has this many.
const START: u64 = 512;
const TRUNCATED: &str = "archive ends in the middle of an entry";

/// A way to list a plain archive.
pub trait Lists {
    /// Lists `archive` from its beginning on.
    fn list(&self, archive: &File) -> Result<Listing, ListError>;
}

/// Lists in this process: for the command of a user, who has named the file and has no rights that the file does not get anyway.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Lists for Here {
    fn list(&self, archive: &File) -> Result<Listing, ListError> {
        let archive = archive.try_clone().map_err(ListError::Read)?;
        let length = archive.metadata().map_err(ListError::Read)?.len();
        let entries = PlainEntries::open(archive.try_clone().map_err(ListError::Read)?).map_err(ListError::Read)?;
        Ok(Listing::new(archive, length, Form::Plain, &Limits::default(), Entries::Here(entries)))
    }
}

/// The place that entries come from.
#[derive(Debug)]
enum Entries {
    /// This process.
    Here(PlainEntries),
    /// A job, which nobody vouches for.
    Job {
        // A socket, for it knows deadlines.
        from: BufReader<UnixStream>,
        job: Box<Lent>,
    },
    /// There are no more.
    Ended,
}

/// Entries of an archive. As [`Read`] it gives the content of the present one, to its end or with an error.
#[derive(Debug)]
pub struct Listing {
    entries: Entries,
    archive: File,
    length: u64,
    form: Form,
    limits: Limits,
    /// End of the content of all entries so far: in the archive, or counted from the first.
    end: u64,
    /// Content of the present entry that was not read yet.
    left: u64,
    /// The first bytes of the present file.
    start: Vec<u8>,
    /// Those of them that were read as content.
    given: usize,
}

impl Listing {
    fn new(archive: File, length: u64, form: Form, limits: &Limits, entries: Entries) -> Self {
        let (end, left, start, given) = (0, 0, Vec::new(), 0);
        Self { entries, archive, length, form, limits: *limits, end, left, start, given }
    }

    pub(super) fn of_job(archive: File, length: u64, form: Form, limits: &Limits, entries: UnixStream, job: Lent) -> Self {
        let from = BufReader::with_capacity(READ, entries);
        Self::new(archive, length, form, limits, Entries::Job { from, job: Box::new(job) })
    }

    /// The next entry, or `None` at the end. Content of the present one that was not read is passed over.
    pub fn next_entry(&mut self) -> Result<Option<Listed>, ListError> {
        self.pass()?;
        let entry = match &mut self.entries {
            Entries::Here(entries) => entries.next_entry()?,
            Entries::Job { from, .. } => match wire::read(from) {
                Ok(Some(entry)) => Some(entry),
                Ok(None) => self.ended().map(|()| None)?,
                Err(Unread::Rule(rule)) => return Err(self.broke(rule)),
                Err(Unread::Io(error)) => return Err(self.failed(error)),
            },
            Entries::Ended => None,
        };
        if let Some(entry) = &entry {
            self.check(entry)?;
            self.begin(entry)?;
        }
        Ok(entry)
    }

    /// The first bytes of the present file.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// Content that was not read yet.
    fn pass(&mut self) -> Result<(), ListError> {
        if self.form == Form::Compressed {
            let mut buffer = vec![0; if self.left > 0 { READ } else { 0 }];
            while self.left > 0 {
                self.piece(&mut buffer)?;
            }
        }
        Ok(())
    }

    /// Checks that the content is where it may be.
    fn check(&mut self, entry: &Listed) -> Result<(), ListError> {
        if entry.kind != ListedKind::File || self.form == Form::Compressed {
            return Ok(());
        }
        // Content of two files does not overlap, so that all of it is not longer than the archive.
        if entry.at < self.end {
            return Err(self.broke("content in front of that of another entry"));
        }
        match entry.at.checked_add(entry.size).filter(|end| *end <= self.length) {
            Some(end) => self.end = end,
            // As the job says when it comes there.
            None => return Err(ListError::Archive(TRUNCATED.to_owned())),
        }
        Ok(())
    }

    fn begin(&mut self, entry: &Listed) -> Result<(), ListError> {
        (self.left, self.given) = (entry.size, 0);
        let mut start = vec![0; usize::try_from(entry.size.min(START)).unwrap_or_default()];
        let mut count = 0;
        while count < start.len() {
            count += self.piece(&mut start[count..])?;
        }
        self.start = start;
        Ok(())
    }

    /// The next piece of content that was not read yet, of which there must be some.
    fn piece(&mut self, buffer: &mut [u8]) -> Result<usize, ListError> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..wanted];
        let count = loop {
            let read = match (self.form, &mut self.entries) {
                (Form::Plain, _) => self.archive.read_at(buffer, self.end - self.left),
                (Form::Compressed, Entries::Job { from, .. }) => from.read(buffer),
                (Form::Compressed, Entries::Here(_) | Entries::Ended) => Ok(0),
            };
            match (read, self.form) {
                (Err(error), _) if error.kind() == io::ErrorKind::Interrupted => {}
                (Ok(0), Form::Plain) => return Err(ListError::Archive(TRUNCATED.to_owned())),
                (Err(error), Form::Plain) => return Err(ListError::Read(error)),
                (Ok(0), Form::Compressed) => return Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
                (Err(error), Form::Compressed) => return Err(self.failed(error)),
                (Ok(count), _) => break count,
            }
        };
        self.left -= count as u64;
        if self.form == Form::Compressed {
            self.end = self.end.saturating_add(count as u64);
            // A job that keeps to its limits has ended before.
            if self.limits.is_expansion(self.end, self.length) {
                return Err(self.broke("more content than the archive may expand to"));
            }
        }
        Ok(count)
    }

    /// Asks the job, which has closed its end, whether that was the end of the archive.
    fn ended(&mut self) -> Result<(), ListError> {
        match std::mem::replace(&mut self.entries, Entries::Ended) {
            Entries::Job { job, .. } => job.end(),
            Entries::Here(_) | Entries::Ended => Ok(()),
        }
    }

    /// The reason for which the socket gave no more.
    fn failed(&mut self, error: io::Error) -> ListError {
        let Entries::Job { job, .. } = std::mem::replace(&mut self.entries, Entries::Ended) else { return ListError::Read(error) };
        match error.kind() {
            io::ErrorKind::WouldBlock => job.hangs(),
            io::ErrorKind::UnexpectedEof => job.broke_off(),
            _ => ListError::Read(error),
        }
    }

    fn broke(&mut self, rule: &str) -> ListError {
        match std::mem::replace(&mut self.entries, Entries::Ended) {
            Entries::Job { job, .. } => job.broke(rule),
            Entries::Here(_) | Entries::Ended => ListError::Archive(rule.to_owned()),
        }
    }
}

impl Read for Listing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given < self.start.len() {
            let rest = &self.start[self.given..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.given += count;
            return Ok(count);
        }
        match self.left > 0 && !buffer.is_empty() {
            false => Ok(0),
            true => self.piece(buffer).map_err(|error| match error {
                ListError::Read(error) => error,
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A tar header of an ordinary file.
    fn header(name: &str, size: usize) -> Vec<u8> {
        let mut block = vec![0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[100..107].copy_from_slice(b"0000644");
        block[108..115].copy_from_slice(b"0000000");
        block[116..123].copy_from_slice(b"0000000");
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        block[136..147].copy_from_slice(b"00000000000");
        block[156] = b'0';
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }

    fn archive(files: &[(&str, Vec<u8>)]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for (name, content) in files {
            file.write_all(&header(name, content.len())).unwrap();
            file.write_all(content).unwrap();
            file.write_all(&vec![0; (512 - content.len() % 512) % 512]).unwrap();
        }
        file.write_all(&[0; 1024]).unwrap();
        file
    }

    #[test]
    fn content_is_that_of_the_entry_however_much_was_read() {
        let (small, large) = (b"small".to_vec(), vec![7; 100_000]);
        let mut listing = Here.list(&archive(&[("a", small.clone()), ("b", large.clone()), ("c", Vec::new())])).unwrap();
        let entry = listing.next_entry().unwrap().unwrap();
        assert_eq!((entry.path.as_str(), entry.size, listing.start()), ("a", 5, &small[..]));
        let entry = listing.next_entry().unwrap().unwrap();
        assert_eq!((entry.path.as_str(), listing.start()), ("b", &large[..512]));
        let mut content = Vec::new();
        listing.read_to_end(&mut content).unwrap();
        assert_eq!(content, large);
        assert_eq!(listing.next_entry().unwrap().unwrap().path, "c");
        assert_eq!(listing.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(listing.next_entry().unwrap(), None);
        assert_eq!(listing.next_entry().unwrap(), None);
    }

    #[test]
    fn content_that_is_cut_is_told() {
        let whole = archive(&[("a", vec![1; 2000])]);
        whole.set_len(1500).unwrap();
        let error = Here.list(&whole).unwrap().next_entry().unwrap_err();
        assert!(matches!(&error, ListError::Archive(text) if text == TRUNCATED), "{error:?}");
    }
}
