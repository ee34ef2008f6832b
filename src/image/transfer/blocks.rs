//! Blocks of a spool: how much of it can be trusted, and when more of it is made durable. **Pure**.

use std::ops::Range;
use std::time::Duration;

/// Bytes with one checksum.
pub(super) const BLOCK: u64 = 256 << 10;
/// Bytes of a checksum.
pub(super) const SUM: u64 = 32;
/// A blob that is complete sooner is never synced, so that a good link pays nothing.
const LAZY: Duration = Duration::from_secs(10);
/// Bytes and time between two syncs: what a power cut costs.
const SYNC_BYTES: u64 = 8 << 20;
const SYNC_TIME: Duration = Duration::from_secs(15);

/// Bytes that are kept of a spool with so many bytes of data and of checksums. In the same boot the page cache has all that was written; after
/// another one only blocks with a checksum count.
pub(super) fn kept(data: u64, sums: u64, size: u64, is_same_boot: bool) -> u64 {
    let with_sums = (sums / SUM).saturating_mul(BLOCK);
    let kept = if is_same_boot { data } else { data.min(with_sums) };
    if kept > size { 0 } else { kept }
}

/// The sync points of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Blocks with a durable checksum.
    blocks: u64,
    /// Time of the last sync, since the transfer began.
    last: Duration,
}

impl Schedule {
    /// A schedule of a spool with so many durable blocks.
    pub(super) fn new(blocks: u64) -> Self {
        Self { blocks, last: Duration::ZERO }
    }

    /// Whole blocks to be synced now, after `elapsed` with `have` bytes.
    pub(super) fn due(&self, elapsed: Duration, have: u64) -> Option<Range<u64>> {
        let whole = have / BLOCK;
        let is_much = (whole.saturating_sub(self.blocks)).saturating_mul(BLOCK) >= SYNC_BYTES;
        let is_time = elapsed.saturating_sub(self.last) >= SYNC_TIME;
        (elapsed >= LAZY && whole > self.blocks && (is_much || is_time)).then_some(self.blocks..whole)
    }

    /// Whole blocks to be synced when the last byte is here: none of a blob that came quickly.
    pub(super) fn last(&self, elapsed: Duration, have: u64) -> Option<Range<u64>> {
        let whole = have / BLOCK;
        (elapsed >= LAZY && whole > self.blocks).then_some(self.blocks..whole)
    }

    /// Takes note of a sync that began.
    pub(super) fn synced(&mut self, elapsed: Duration, blocks: u64) {
        *self = Self { blocks, last: elapsed };
    }

    /// Durable blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn another_boot_keeps_summed_blocks_alone() {
        assert_eq!(kept(10 * MIB + 7, 8 * SUM, 20 * MIB, true), 10 * MIB + 7);
        assert_eq!(kept(10 * MIB + 7, 8 * SUM + 5, 20 * MIB, false), 2 * MIB);
        assert_eq!(kept(MIB, 8 * SUM, 20 * MIB, false), MIB, "checksums ahead of the data");
        assert_eq!(kept(30 * MIB, 0, 20 * MIB, true), 0, "more than there can be");
    }

    #[test]
    fn first_ten_seconds_have_no_sync() {
        let schedule = Schedule::new(0);
        assert_eq!(schedule.due(Duration::from_secs(9), 500 * MIB), None);
        assert_eq!(schedule.last(Duration::from_secs(9), 500 * MIB), None);
        assert_eq!(schedule.due(Duration::from_secs(10), 8 * MIB), Some(0..32));
        assert_eq!(schedule.due(Duration::from_secs(10), 7 * MIB), None);
        assert_eq!(schedule.due(Duration::from_secs(15), BLOCK), Some(0..1));
        assert_eq!(schedule.due(Duration::from_secs(15), BLOCK - 1), None);
    }

    #[test]
    fn syncs_follow_bytes_or_time() {
        let mut schedule = Schedule::new(0);
        schedule.synced(Duration::from_secs(20), 40);
        assert_eq!(schedule.due(Duration::from_secs(21), 11 * MIB), None);
        assert_eq!(schedule.due(Duration::from_secs(35), 11 * MIB), Some(40..44));
        assert_eq!(schedule.due(Duration::from_secs(21), 18 * MIB), Some(40..72));
        assert_eq!(schedule.last(Duration::from_secs(21), 10 * MIB + BLOCK), Some(40..41));
    }

    proptest! {
        #[test]
        fn kept_bytes_are_there(data in 0_u64..50_000_000, sums in 0_u64..10_000, size in 1_u64..50_000_000, same: bool) {
            let kept = kept(data, sums, size, same);
            prop_assert!(kept <= data && kept <= size);
            prop_assert!(same || kept <= sums / SUM * BLOCK);
        }
    }
}
