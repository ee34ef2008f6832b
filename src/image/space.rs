//! Space and inodes that images leave free on the file system of the store, for containers and the daemon's own records.

use super::collect::plan::Amount;
use super::limits::shown_bytes;
use super::live::Live;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Written bytes, made entries and time between two looks at the file system while a layer is unpacked.
const LOOK_BYTES: u64 = 64 << 20;
const LOOK_ENTRIES: u64 = 4096;
const LOOK_TIME: Duration = Duration::from_secs(2);

/// Free space that images must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Part of the file system's space.
    pub storage_percent: u8,
    /// Bytes, where that part is less; of a small file system at most half.
    pub storage_at_least: u64,
    /// Part of the file system's inodes.
    pub inodes_percent: u8,
}

impl Default for Reserve {
    fn default() -> Self {
        Self { storage_percent: 5, storage_at_least: 256 << 20, inodes_percent: 5 }
    }
}

/// State of a file system, as an unprivileged process would see it: what root alone may use is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) bytes: u64,
    pub(super) all_bytes: u64,
    pub(super) inodes: u64,
    /// 0 where the file system makes inodes as they are needed.
    pub(super) all_inodes: u64,
}

/// Reason why there is no space for an image.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SpaceError {
    /// Too few bytes.
    #[error(
        "{} of {} free, {} of it reserved (images.reserve), at least {} needed: remove images or other files, or enlarge the file system",
        shown_bytes(*free), shown_bytes(*all), shown_bytes(*reserved), shown_bytes(*needed)
    )]
    Bytes {
        /// Left.
        free: u64,
        /// Of the file system.
        all: u64,
        /// Left free.
        reserved: u64,
        /// Of the image.
        needed: u64,
    },
    /// Too few inodes.
    #[error(
        "{free} of {all} inodes free, {reserved} of them reserved (images.reserve), at least {needed} needed: remove images or other files, or recreate the file system with more inodes"
    )]
    Inodes {
        /// Left.
        free: u64,
        /// Of the file system.
        all: u64,
        /// Left free.
        reserved: u64,
        /// Of the image.
        needed: u64,
    },
    /// The file system does not say.
    #[error("read the free space of the image store")]
    Look(#[source] Arc<io::Error>),
}

impl Reserve {
    /// Space that must be freed before an image that needs so much may be unpacked.
    fn lacking(&self, free: &Free, needed_bytes: u64, needed_inodes: u64) -> Amount {
        match self.check(free, needed_bytes, 0) {
            Err(SpaceError::Bytes { free, reserved, needed, .. }) => {
                Amount { bytes: reserved.saturating_add(needed).saturating_sub(free), inodes: 0 }
            }
            Ok(()) | Err(SpaceError::Inodes { .. } | SpaceError::Look(_)) => Amount::default(),
        }
        .plus(match self.check(&Free { bytes: u64::MAX, ..*free }, 0, needed_inodes) {
            Err(SpaceError::Inodes { free, reserved, needed, .. }) => {
                Amount { bytes: 0, inodes: reserved.saturating_add(needed).saturating_sub(free) }
            }
            Ok(()) | Err(SpaceError::Bytes { .. } | SpaceError::Look(_)) => Amount::default(),
        })
    }

    /// Decides whether an image that needs so much more may be unpacked.
    fn check(&self, free: &Free, needed_bytes: u64, needed_inodes: u64) -> Result<(), SpaceError> {
        let part = |all: u64, percent: u8| u64::try_from(u128::from(all) * u128::from(percent) / 100).unwrap_or(u64::MAX);
        // A file system that is hardly larger than the amount is of use, too.
        let at_least = self.storage_at_least.min(free.all_bytes / 2);
        let reserved = part(free.all_bytes, self.storage_percent).max(at_least);
        if free.bytes < reserved.saturating_add(needed_bytes) {
            return Err(SpaceError::Bytes { free: free.bytes, all: free.all_bytes, reserved, needed: needed_bytes });
        }
        let reserved = part(free.all_inodes, self.inodes_percent);
        if free.all_inodes > 0 && free.inodes < reserved.saturating_add(needed_inodes) {
            return Err(SpaceError::Inodes { free: free.inodes, all: free.all_inodes, reserved, needed: needed_inodes });
        }
        Ok(())
    }
}

/// The file system of a store.
#[derive(Clone, Debug)]
pub struct Space {
    directory: Arc<Path>,
    reserve: Live<Reserve>,
}

impl Space {
    /// The file system that `directory` is on.
    pub fn of(directory: &Path, reserve: Reserve) -> Self {
        Self { directory: directory.into(), reserve: Live::new(reserve) }
    }

    /// From now on this is left free.
    pub(super) fn set_reserve(&self, reserve: Reserve) {
        self.reserve.set(reserve);
    }

    /// Refuses what does not fit beside the reserve.
    pub fn check(&self, needed_bytes: u64, needed_inodes: u64) -> Result<(), SpaceError> {
        let free = self.free().map_err(|error| SpaceError::Look(Arc::new(error)))?;
        self.reserve.get().check(&free, needed_bytes, needed_inodes)
    }

    /// Reads the state of the file system.
    pub(super) fn free(&self) -> io::Result<Free> {
        let found = rustix::fs::statvfs(&*self.directory)?;
        Ok(Free {
            bytes: found.f_bavail.saturating_mul(found.f_frsize),
            all_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            inodes: found.f_favail,
            all_inodes: found.f_files,
        })
    }

    /// Space that must be freed before an image that needs so much may be unpacked.
    pub(super) fn lacking(&self, free: &Free, needed_bytes: u64, needed_inodes: u64) -> Amount {
        self.reserve.get().lacking(free, needed_bytes, needed_inodes)
    }
}

/// A look at the file system now and then, while a layer is unpacked to it.
#[derive(Debug)]
pub(super) struct SpaceWatch {
    space: Space,
    bytes: u64,
    entries: u64,
    looked: Instant,
}

impl SpaceWatch {
    pub(super) fn new(space: Space) -> Self {
        Self { space, bytes: 0, entries: 0, looked: Instant::now() }
    }

    /// Takes note of what is about to be written, and looks when it is time.
    pub(super) fn passes(&mut self, bytes: u64, entries: u64) -> Result<(), SpaceError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries = self.entries.saturating_add(entries);
        if self.bytes < LOOK_BYTES && self.entries < LOOK_ENTRIES && self.looked.elapsed() < LOOK_TIME {
            return Ok(());
        }
        (self.bytes, self.entries, self.looked) = (0, 0, Instant::now());
        self.space.check(0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const PLENTY: Free = Free { bytes: 50 * GIB, all_bytes: 100 * GIB, inodes: 500, all_inodes: 1000 };

    #[test]
    fn the_larger_reserve_of_space_counts() {
        let reserve = Reserve::default();
        assert!(reserve.check(&PLENTY, 45 * GIB, 0).is_ok());
        assert!(matches!(reserve.check(&PLENTY, 45 * GIB + 1, 0), Err(SpaceError::Bytes { reserved, .. }) if reserved == 5 * GIB));
        let small = Free { bytes: 300 << 20, all_bytes: GIB, ..PLENTY };
        assert!(reserve.check(&small, 44 << 20, 0).is_ok());
        let told = reserve.check(&small, 45 << 20, 0).unwrap_err().to_string();
        assert!(
            told.starts_with("300 MiB of 1 GiB free, 256 MiB of it reserved (images.reserve), at least 45 MiB needed"),
            "{told}"
        );
        let tiny = Free { bytes: 220 << 20, all_bytes: 230 << 20, ..PLENTY };
        assert!(
            reserve.check(&tiny, 105 << 20, 0).is_ok() && reserve.check(&tiny, 106 << 20, 0).is_err(),
            "half of it is for images"
        );
        let none = Reserve { storage_percent: 0, storage_at_least: 0, inodes_percent: 0 };
        assert!(none.check(&small, 300 << 20, 500).is_ok());
    }

    #[test]
    fn lack_is_what_makes_check_pass() {
        let reserve = Reserve::default();
        let short = Free { bytes: 4 * GIB, inodes: 45, ..PLENTY };
        let lacking = reserve.lacking(&short, GIB, 10);
        assert_eq!(lacking, Amount { bytes: 2 * GIB, inodes: 15 });
        assert!(reserve.check(&Free { bytes: 6 * GIB, inodes: 60, ..short }, GIB, 10).is_ok());
        assert_eq!(reserve.lacking(&PLENTY, GIB, 10), Amount::default());
    }

    #[test]
    fn inodes_are_looked_at_where_they_are_counted() {
        let reserve = Reserve::default();
        assert!(reserve.check(&PLENTY, 0, 450).is_ok());
        assert!(matches!(reserve.check(&PLENTY, 0, 451), Err(SpaceError::Inodes { reserved: 50, free: 500, .. })));
        assert!(reserve.check(&Free { inodes: 0, all_inodes: 0, ..PLENTY }, 0, 9).is_ok());
    }
}
