//! From the compressed bytes of a layer to a tree and a diff id, in one pass.
//!
//! Three threads, so that a layer is as fast as its slowest step: the caller's decompresses; one digests what comes out (the diff id); one unpacks.
//! Chunks between them are bounded, so memory is, too.

use super::super::compression::{self, Decoder};
use super::super::limits::{Budget, Exceeded, Limits, Used};
use super::super::tar::Streamed;
use super::super::unpack::{Meter, UnpackError, Unpacked, unpack_alone};
use podstead_container::digest::{Digest, Hasher};
use std::io::{self, BufRead, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of one chunk between the threads.
const CHUNK: usize = 256 << 10;
/// Chunks waiting for a thread at most.
const QUEUE: usize = 4;

/// Reason why a stream is no layer.
#[derive(Debug)]
pub(super) enum StreamError {
    /// It is not what its compression says.
    Decompress(io::Error),
    /// It is beyond a limit.
    Limit(Exceeded),
    /// The archive inside.
    Unpack(UnpackError),
    /// A thread panicked.
    Panicked,
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        compression::exceeded(&error).map_or(Self::Decompress(error), Self::Limit)
    }
}

/// Applies the layer `source` to `root`, the root directory of this process, and reads it to its end. `tell` hears what was taken so far.
pub(super) fn unpack_stream(
    mut source: impl BufRead,
    root: OwnedFd,
    limits: &Limits,
    tell: impl FnMut(Used),
) -> Result<(Digest, Unpacked, Used), StreamError> {
    let budget = Arc::new(Budget::of(*limits, 1));
    let meter = Meter::part_of(limits, &budget);
    std::thread::scope(|scope| {
        let (to_hasher, from_decoder) = sync_channel::<Arc<Vec<u8>>>(QUEUE);
        let hasher = scope.spawn(move || digest_chunks(&from_decoder));
        let (to_unpacker, from_decoder) = sync_channel::<Arc<Vec<u8>>>(QUEUE);
        let chunks = Chunks { from: from_decoder, current: None, position: 0 };
        let unpacker = scope.spawn(move || unpack_alone(Streamed(chunks), root, meter));
        let decoded = decode(&mut source, limits, &budget, &Receivers { hasher: to_hasher, unpacker: to_unpacker }, tell);
        let (Ok(diff_id), Ok(unpacked)) = (hasher.join(), unpacker.join()) else { return Err(StreamError::Panicked) };
        decoded?;
        Ok((diff_id, unpacked.map_err(StreamError::Unpack)?, budget.used()))
    })
}

/// The threads that take chunks.
struct Receivers {
    hasher: SyncSender<Arc<Vec<u8>>>,
    unpacker: SyncSender<Arc<Vec<u8>>>,
}

/// Decompresses to both threads. Ends early, without an error, when the unpacker has given up: it has the reason.
fn decode(
    mut source: &mut impl BufRead,
    limits: &Limits,
    budget: &Budget,
    receivers: &Receivers,
    mut tell: impl FnMut(Used),
) -> Result<(), StreamError> {
    let mut decoder = Decoder::new(&mut source, limits)?;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        (&mut decoder).take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        // Headers, padding and what follows the archive are work, too.
        budget.take_bytes(chunk.len() as u64).map_err(StreamError::Limit)?;
        tell(budget.used());
        let chunk = Arc::new(chunk);
        if receivers.hasher.send(Arc::clone(&chunk)).is_err() || receivers.unpacker.send(chunk).is_err() {
            return Ok(());
        }
    }
    drop(decoder);
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
