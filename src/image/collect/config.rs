//! Settings of collection, and what they say of a file system. **Pure**.

use super::plan::Amount;
use crate::space::Free;
use std::time::Duration;

/// Settings of collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionConfig {
    /// Used part of the file system, or of its inodes, from which on images are removed.
    pub high_percent: u8,
    /// Used part down to which they are removed.
    pub low_percent: u8,
    /// Images that were used more recently stay.
    pub minimum_age: Duration,
    /// Revisions of each source before the one in force whose images stay.
    pub keep_revisions: usize,
    /// References of images that stay.
    pub pinned: Vec<String>,
}

impl Default for CollectionConfig {
    /// The percentages and the age are the kubelet's.
    fn default() -> Self {
        Self { high_percent: 85, low_percent: 80, minimum_age: Duration::from_secs(120), keep_revisions: 2, pinned: Vec::new() }
    }
}

impl CollectionConfig {
    /// Space to be freed because the file system is used beyond the high mark: down to the low one.
    pub(crate) fn surplus(&self, free: &Free) -> Amount {
        let over = |free: u64, all: u64| {
            let least = |percent: u8| {
                let part = u128::from(all) * u128::from(100_u8.saturating_sub(percent)) / 100;
                u64::try_from(part).unwrap_or(u64::MAX)
            };
            if all > 0 && free < least(self.high_percent) { least(self.low_percent).saturating_sub(free) } else { 0 }
        };
        Amount { bytes: over(free.bytes, free.all_bytes), inodes: over(free.inodes, free.all_inodes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_high_mark_space_is_wanted() {
        let config = CollectionConfig::default();
        let free = |bytes, inodes| Free { bytes, all_bytes: 1000, inodes, all_inodes: 200 };
        assert_eq!(config.surplus(&free(150, 30)), Amount::default());
        assert_eq!(config.surplus(&free(149, 30)), Amount { bytes: 51, inodes: 0 });
        assert_eq!(config.surplus(&free(150, 29)), Amount { bytes: 0, inodes: 11 });
        assert_eq!(config.surplus(&Free { all_inodes: 0, ..free(500, 0) }), Amount::default());
    }
}
