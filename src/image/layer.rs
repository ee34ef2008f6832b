//! One layer from its compressed bytes to a verified tree in the staging directory, in one pass.
//!
//! The daemon reads and digests the bytes; a job ([`super::unpack_job`]) decompresses and unpacks them.

pub use super::layer_error::{Bounds, LayerError};

use super::digesting::Digesting;
use super::staging::StagingDirectory;
use super::unpack::{Unpacked, mark_opaque};
use podstead_container::digest::Digest;
use std::fs::File;
use std::io::{self, Read};

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
    /// Digest of the archive inside, as the job says. It tells of damage, and nothing may be found by it.
    pub diff_id: Digest,
    /// Its content, as the job says.
    pub unpacked: Unpacked,
}

/// Unpacks and verifies a layer into `directory`. Blocks; reads `source` to its end.
pub fn stage_layer(
    source: impl Read,
    directory: StagingDirectory,
    expected: Expected,
    bounds: &Bounds,
) -> Result<StagedLayer, LayerError> {
    let mut digesting = Digesting::new(source);
    let outcome = directory.unpacker().unpack(&mut digesting, &directory.tree(), bounds);
    if outcome.is_err() && !digesting.failed {
        // Failing here changes nothing: the first error is the one to tell.
        let _read = io::copy(&mut (&mut digesting).take(EXPLAIN), &mut io::sink());
    }
    let complete = digesting.at_end;
    let (blob, blob_size) = digesting.finish();
    match expected.blob {
        Some(expected) if complete && expected != blob => return Err(LayerError::BlobDigest { expected, actual: blob }),
        Some(_) | None => {}
    }
    let (diff_id, unpacked) = outcome?;
    let root = File::open(directory.tree()).map_err(LayerError::Stage)?;
    mark_opaque(&root.into(), &unpacked.opaque).map_err(LayerError::Mark)?;
    match expected.diff_id {
        Some(expected) if expected != diff_id => Err(LayerError::DiffId { expected, actual: diff_id }),
        Some(_) | None => Ok(StagedLayer { directory, blob, blob_size, diff_id, unpacked }),
    }
}
