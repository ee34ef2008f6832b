//! Layers and archives come plain, as gzip or as zstd; which, is seen from their first bytes, since media types and names lie.

use std::io::{self, BufRead, Read};

/// Decompresses a stream.
pub enum Decoder<R: BufRead> {
    /// gzip, also of several members.
    Gzip(Box<flate2::bufread::MultiGzDecoder<R>>),
    /// zstd, also of several frames.
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
    /// Not compressed.
    Plain(R),
}

impl<R: BufRead> Decoder<R> {
    /// Looks at the first bytes and chooses.
    pub fn new(mut source: R) -> io::Result<Self> {
        let start = source.fill_buf()?;
        if is_gzip(start) {
            Ok(Self::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(source))))
        } else if is_zstd(start) {
            Ok(Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(source)?)))
        } else {
            Ok(Self::Plain(source))
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Plain(source) => source.read(buffer),
        }
    }
}

impl<R: BufRead> std::fmt::Debug for Decoder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gzip(_) => "Gzip",
            Self::Zstd(_) => "Zstd",
            Self::Plain(_) => "Plain",
        })
    }
}

/// Whether content begins as gzip does.
pub fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

/// Whether content begins as zstd does.
pub fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}

/// Whether content begins as a tar archive does: a header with magic, or the zeros of an empty archive.
pub fn is_tar(start: &[u8]) -> bool {
    match start.get(..512) {
        Some(block) => &block[257..262] == b"ustar" || block.iter().all(|byte| *byte == 0),
        None => false,
    }
}
