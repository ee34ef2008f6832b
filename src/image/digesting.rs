//! A stream that is digested while it is read.

use podstead_container::digest::{Digest, Hasher};
use std::io::{self, BufRead, Read};

/// Bytes read at once.
const READ: usize = 256 << 10;

/// Digests and counts what passes, and knows whether an error was its source's.
#[derive(Debug)]
pub(super) struct Digesting<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    hasher: Hasher,
    count: u64,
    /// All bytes were read.
    pub(super) at_end: bool,
    /// An error was the source's.
    pub(super) failed: bool,
}

impl<R: Read> Digesting<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; READ], start: 0, end: 0, hasher: Hasher::default(), count: 0, at_end: false, failed: false }
    }
}

impl<R> Digesting<R> {
    /// Bytes so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The digest of the bytes so far, and their number.
    pub(super) fn finish(self) -> (Digest, u64) {
        (self.hasher.finish(), self.count)
    }
}

impl<R: Read> BufRead for Digesting<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end && !self.at_end {
            let count = loop {
                match self.source.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result,
                }
            };
            let count = count.inspect_err(|_| self.failed = true)?;
            self.at_end = count == 0;
            self.hasher.update(&self.buffer[..count]);
            self.count += count as u64;
            (self.start, self.end) = (0, count);
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}
