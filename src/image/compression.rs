//! Compression of layers and archives: none, gzip or zstd, detected by magic bytes, since media types and names may be wrong.

use super::limits::{Bound, Exceeded, Limits};
use std::io::{self, BufRead, Read};

/// Decompresses a stream, and ends one that expands more than [`Limits::ratio`] or wants a window larger than [`Limits::zstd_window`].
pub struct Decoder<R: BufRead> {
    kind: Kind<Counted<R>>,
    limits: Limits,
    produced: u64,
}

enum Kind<R: BufRead> {
    /// gzip, also of several members.
    Gzip(Box<flate2::bufread::MultiGzDecoder<R>>),
    /// zstd, also of several frames.
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
    /// Not compressed.
    Plain(R),
}

/// Counts what is taken of a stream.
struct Counted<R> {
    source: R,
    count: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count += count as u64;
        self.source.consume(count);
    }
}

impl<R: BufRead> Decoder<R> {
    /// Looks at the first bytes and chooses.
    pub fn new(mut source: R, limits: &Limits) -> io::Result<Self> {
        let start = source.fill_buf()?;
        let (is_gzip, is_zstd) = (is_gzip(start), is_zstd(start));
        let source = Counted { source, count: 0 };
        let kind = if is_gzip {
            Kind::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(source)))
        } else if is_zstd {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
            decoder.window_log_max(limits.zstd_window.max(1).ilog2())?;
            Kind::Zstd(Box::new(decoder))
        } else {
            Kind::Plain(source)
        };
        Ok(Self { kind, limits: *limits, produced: 0 })
    }

    fn consumed(&self) -> u64 {
        match &self.kind {
            Kind::Gzip(decoder) => decoder.get_ref().count,
            Kind::Zstd(decoder) => decoder.get_ref().count,
            Kind::Plain(source) => source.count,
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.kind {
            Kind::Gzip(decoder) => decoder.read(buffer)?,
            Kind::Zstd(decoder) => decoder.read(buffer).map_err(|error| explained(error, &self.limits))?,
            Kind::Plain(source) => source.read(buffer)?,
        };
        self.produced += count as u64;
        match self.limits.is_expansion(self.produced, self.consumed()) {
            true => Err(refusal(Bound::Ratio, self.limits.ratio)),
            false => Ok(count),
        }
    }
}

/// An error that [`exceeded`] finds again.
fn refusal(bound: Bound, limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Exceeded { bound, limit })
}

/// The limit that ended a stream, if one did.
pub fn exceeded(error: &io::Error) -> Option<Exceeded> {
    error.get_ref()?.downcast_ref().copied()
}

/// The decoder has numbers for its errors and gives only their names.
fn explained(error: io::Error, limits: &Limits) -> io::Error {
    match error.to_string().contains("too much memory") {
        true => refusal(Bound::ZstdWindow, limits.zstd_window),
        false => error,
    }
}

impl<R: BufRead> std::fmt::Debug for Decoder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::Gzip(_) => "Gzip",
            Kind::Zstd(_) => "Zstd",
            Kind::Plain(_) => "Plain",
        })
    }
}

/// Returns true if content begins like gzip.
pub fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

/// Returns true if content begins like zstd.
pub fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}

/// Returns true if content begins like a tar archive: a header with magic, or the zeros of an empty archive.
pub fn is_tar(start: &[u8]) -> bool {
    match start.get(..512) {
        Some(block) => &block[257..262] == b"ustar" || block.iter().all(|byte| *byte == 0),
        None => false,
    }
}
