//! One layer from its compressed bytes to a verified tree in the staging directory, in one pass.
//!
//! Three threads, so that a layer is as fast as its slowest step: the caller's reads, digests and decompresses; one digests what comes
//! out (the diff id); one unpacks. Chunks between them are bounded, so memory is, too.

use super::compression::{self, Decoder};
use super::limits::{Budget, Exceeded, Limits};
use super::space::Space;
use super::staging::StagingDirectory;
use super::tar::Streamed;
use super::unpack::{Meter, UnpackError, Unpacked, unpack};
use podstead_container::digest::{Digest, Hasher};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of one chunk between the threads.
const CHUNK: usize = 256 << 10;
/// Chunks waiting for a thread at most.
const QUEUE: usize = 4;
/// Number of bytes that are still read of a layer that cannot be unpacked, to find out whether its digest is wrong, too: that is the better
/// message.
const EXPLAIN: u64 = 64 << 20;

/// Expected digests of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Digest of its bytes as they come; `None` when none is expected.
    pub blob: Option<Digest>,
    /// Digest of the archive inside; `None` when it is compared later.
    pub diff_id: Option<Digest>,
}

/// A verified layer that is not in the store yet. Dropping it removes it.
#[derive(Debug)]
pub struct StagedLayer {
    /// Its directory.
    pub directory: StagingDirectory,
    /// Digest of its bytes as they came.
    pub blob: Digest,
    /// Their number.
    pub blob_size: u64,
    /// Digest of the archive inside.
    pub diff_id: Digest,
    /// Its content.
    pub unpacked: Unpacked,
}

/// Reason why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Its bytes do not come.
    #[error("read layer")]
    Read(#[source] io::Error),
    /// It is not what its compression says.
    #[error("decompress layer")]
    Decompress(#[source] io::Error),
    /// It, or the image that it belongs to, is larger than an image may be.
    #[error(transparent)]
    Limit(#[from] Exceeded),
    /// The archive inside.
    #[error("unpack layer")]
    Unpack(#[source] UnpackError),
    /// The bytes are not those that were promised.
    #[error("layer has digest {actual} instead of {expected}: its content was altered or damaged in transit")]
    BlobDigest {
        /// Promised by the manifest.
        expected: Digest,
        /// Seen.
        actual: Digest,
    },
    /// The archive inside is not the one that the image's configuration names.
    #[error("layer has diff ID {actual} instead of {expected}: the image is damaged")]
    DiffId {
        /// In the configuration.
        expected: Digest,
        /// Seen.
        actual: Digest,
    },
    /// The staging directory.
    #[error("open staging directory")]
    Stage(#[source] io::Error),
}

impl LayerError {
    /// Returns true if the layer's content is the reason: another attempt would fail in the same way.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Decompress(_) | Self::Limit(_) | Self::Unpack(_) | Self::DiffId { .. } => true,
            Self::Read(_) | Self::BlobDigest { .. } | Self::Stage(_) => false,
        }
    }
}

/// Limits for a layer.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Of an image.
    pub limits: Limits,
    /// Use by the image's layers so far.
    pub image: Arc<Budget>,
    /// Space that the layer is unpacked to.
    pub space: Space,
}

/// Unpacks and verifies a layer into `directory`. Blocks; reads `source` to its end.
pub fn stage_layer(
    source: impl Read,
    directory: StagingDirectory,
    expected: Expected,
    bounds: &Bounds,
) -> Result<StagedLayer, LayerError> {
    let meter = Meter::new(&bounds.limits, &bounds.image, &bounds.space);
    let root = File::open(directory.tree()).map_err(LayerError::Stage)?;
    let mut digesting = Digesting::new(source);
    let outcome = std::thread::scope(|scope| {
        let (to_hasher, from_decoder) = sync_channel::<Arc<Vec<u8>>>(QUEUE);
        let hasher = scope.spawn(move || digest_chunks(&from_decoder));
        let (to_unpacker, from_decoder) = sync_channel::<Arc<Vec<u8>>>(QUEUE);
        let unpacker =
            scope.spawn(move || unpack(Streamed(Chunks { from: from_decoder, current: None, position: 0 }), root.into(), meter));
        let decoded = decode(&mut digesting, bounds, &to_hasher, &to_unpacker);
        drop((to_hasher, to_unpacker));
        let (Ok(diff_id), Ok(unpacked)) = (hasher.join(), unpacker.join()) else {
            return Err(LayerError::Read(io::Error::other("a thread panicked")));
        };
        match (decoded, unpacked) {
            (Err(Stop::Limit(exceeded)), _) => Err(exceeded.into()),
            (Err(Stop::Stream(error)), _) if digesting.failed => Err(LayerError::Read(error)),
            (Err(Stop::Stream(error)), _) => Err(LayerError::Decompress(error)),
            (Ok(()), unpacked) => Ok((diff_id, unpacked.map_err(LayerError::Unpack)?)),
        }
    });
    if outcome.is_err() && !digesting.failed {
        // Failing here changes nothing: the first error is the one to tell.
        let _read = io::copy(&mut (&mut digesting).take(EXPLAIN), &mut io::sink());
    }
    let complete = digesting.at_end;
    let (blob, blob_size) = (digesting.hasher.finish(), digesting.count);
    match expected.blob {
        Some(expected) if complete && expected != blob => return Err(LayerError::BlobDigest { expected, actual: blob }),
        Some(_) | None => {}
    }
    let (diff_id, unpacked) = outcome?;
    match expected.diff_id {
        Some(expected) if expected != diff_id => Err(LayerError::DiffId { expected, actual: diff_id }),
        Some(_) | None => Ok(StagedLayer { directory, blob, blob_size, diff_id, unpacked }),
    }
}

/// Reason why decompression ended early.
enum Stop {
    Stream(io::Error),
    Limit(Exceeded),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        compression::exceeded(&error).map_or(Self::Stream(error), Self::Limit)
    }
}

/// Decompresses to both threads. Ends early, without an error, when the unpacker has given up: it has the reason.
fn decode<R: Read>(
    source: &mut Digesting<R>,
    bounds: &Bounds,
    hasher: &SyncSender<Arc<Vec<u8>>>,
    unpacker: &SyncSender<Arc<Vec<u8>>>,
) -> Result<(), Stop> {
    let mut decoder = Decoder::new(&mut *source, &bounds.limits)?;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        (&mut decoder).take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        // Headers, padding and what follows the archive are work, too.
        bounds.image.take_bytes(chunk.len() as u64).map_err(Stop::Limit)?;
        let chunk = Arc::new(chunk);
        if hasher.send(Arc::clone(&chunk)).is_err() || unpacker.send(chunk).is_err() {
            return Ok(());
        }
    }
    // Bytes after the compressed stream belong to the blob and to its digest.
    io::copy(source, &mut io::sink())?;
    Ok(())
}

fn digest_chunks(from: &Receiver<Arc<Vec<u8>>>) -> Digest {
    let mut hasher = Hasher::default();
    for chunk in from {
        hasher.update(&chunk);
    }
    hasher.finish()
}

/// Chunks of the decoder as a stream.
struct Chunks {
    from: Receiver<Arc<Vec<u8>>>,
    current: Option<Arc<Vec<u8>>>,
    position: usize,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(chunk) = self.current.as_ref().filter(|chunk| self.position < chunk.len()) {
                let rest = &chunk[self.position..];
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                self.position += count;
                return Ok(count);
            }
            match self.from.recv() {
                Ok(chunk) => (self.current, self.position) = (Some(chunk), 0),
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Digests and counts what passes, and knows whether an error was its source's.
struct Digesting<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    hasher: Hasher,
    count: u64,
    at_end: bool,
    failed: bool,
}

impl<R: Read> Digesting<R> {
    fn new(source: R) -> Self {
        Self {
            source,
            buffer: vec![0; 64 << 10],
            start: 0,
            end: 0,
            hasher: Hasher::default(),
            count: 0,
            at_end: false,
            failed: false,
        }
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

#[cfg(test)]
mod tests {
    use super::super::space::Reserve;
    use super::super::staging::Staging;
    use super::*;
    use std::io::Write;

    /// An archive with one directory.
    fn archive() -> Vec<u8> {
        let mut header = tar_core::Header::new_ustar();
        header.set_path(b"d/").unwrap();
        header.set_mode_small(0o755);
        header.set_entry_type(tar_core::EntryType::Directory);
        // Giving a file to oneself needs no root.
        header.set_uid(nix::unistd::getuid().as_raw().into()).unwrap();
        header.set_gid(nix::unistd::getgid().as_raw().into()).unwrap();
        header.set_checksum();
        [header.as_bytes().to_vec(), vec![0; 1024]].concat()
    }

    fn stage(bytes: &[u8], expected: Expected) -> Result<StagedLayer, LayerError> {
        let directory = tempfile::tempdir().unwrap();
        let staging = Staging::open(directory.path().join("staging")).unwrap();
        stage_layer(bytes, staging.directory().unwrap(), expected, &bounds(&staging))
    }

    fn bounds(staging: &Staging) -> Bounds {
        let limits = Limits::default();
        let reserve = Reserve { storage_percent: 0, storage_at_least: 0, inodes_percent: 0 };
        Bounds { limits, image: Arc::new(Budget::of(limits, 1)), space: Space::of(staging.path(), reserve) }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_gzip_and_zstd_layers_have_the_same_diff_id() {
        let plain = archive();
        for blob in [plain.clone(), gzip(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
            let expected = Expected { blob: Some(Digest::of(&blob)), diff_id: Some(Digest::of(&plain)) };
            let layer = stage(&blob, expected).unwrap();
            assert_eq!((layer.blob_size, layer.unpacked.entries), (blob.len() as u64, 1));
        }
    }

    #[test]
    fn a_damaged_layer_is_reported_by_its_digest_whatever_else_is_wrong_with_it() {
        let blob = gzip(&archive());
        let expected = Expected { blob: Some(Digest::of(&blob)), diff_id: None };
        for position in [3, blob.len() / 2, blob.len() - 1] {
            let mut damaged = blob.clone();
            damaged[position] ^= 0x55;
            assert!(matches!(stage(&damaged, expected), Err(LayerError::BlobDigest { .. })), "{position}");
        }
        let longer = [blob.clone(), vec![0; 10]].concat();
        assert!(matches!(stage(&longer, expected), Err(LayerError::BlobDigest { .. })));
        assert!(matches!(stage(&blob[..blob.len() - 5], expected), Err(LayerError::BlobDigest { .. })));
        let wrong = Expected { blob: None, diff_id: Some(Digest::of(b"other")) };
        assert!(matches!(stage(&blob, wrong), Err(LayerError::DiffId { .. })));
    }

    #[test]
    fn an_error_of_the_source_is_told_as_one() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("cable"))
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let staging = Staging::open(directory.path().join("staging")).unwrap();
        let blob = gzip(&archive());
        let source = (&blob[..20]).chain(Broken);
        let expected = Expected { blob: Some(Digest::of(b"")), diff_id: None };
        let error = stage_layer(source, staging.directory().unwrap(), expected, &bounds(&staging)).unwrap_err();
        assert!(matches!(error, LayerError::Read(_)), "{error:?}");
        drop(staging);
    }
}
