//! Decides before the first byte of an image whether it fits: into its limits, and on the disk.

use super::layout::LayerRecord;
use super::limits::{Budget, Exceeded, Limits};
use super::space::{Space, SpaceError};

/// Reason why an image is refused before it is fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum RoomError {
    /// It is larger than an image may be.
    #[error(transparent)]
    Limit(#[from] Exceeded),
    /// It is larger than the disk.
    #[error("no space for the image")]
    Space(#[from] SpaceError),
}

/// A layer of the image.
pub(super) enum Part {
    /// In the store already.
    Present(Option<LayerRecord>),
    /// To be fetched, in so many bytes. A layer that comes several times is fetched and unpacked as often.
    Missing(u64),
}

/// Budget of an image whose layers have `compressed` bytes in all, from which those that are present are taken off.
pub(super) fn budget(limits: &Limits, space: &Space, compressed: u64, parts: &[Part]) -> Result<Budget, RoomError> {
    limits.check_compressed(compressed)?;
    let budget = Budget::of(*limits, 1);
    let (mut to_fetch, mut missing) = (0_u64, 0);
    for part in parts {
        match part {
            Part::Present(Some(record)) => {
                budget.take_bytes(record.bytes)?;
                budget.take_entries(record.entries)?;
            }
            // Its record says nothing: the index finds that out.
            Part::Present(None) => {}
            Part::Missing(bytes) => (to_fetch, missing) = (to_fetch.saturating_add(*bytes), missing + 1),
        }
    }
    if missing > 0 {
        // The least that an image needs: compression makes nothing larger, and each layer is a directory.
        space.check(to_fetch, missing)?;
    }
    Ok(budget)
}

/// Refuses an image whose unpacked layers, each with its bytes and entries, are too much together.
pub(super) fn check_whole(limits: &Limits, layers: impl Iterator<Item = (u64, u64)>) -> Result<(), Exceeded> {
    let budget = Budget::of(*limits, 1);
    for (bytes, entries) in layers {
        budget.take_bytes(bytes)?;
        budget.take_entries(entries)?;
    }
    Ok(())
}
