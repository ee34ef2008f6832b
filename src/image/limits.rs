//! Limits of an image's resource usage on this host, and the usage of its layers. **Pure**.
//!
//! An image is counted as a whole: its layers are unpacked at the same time and share one [`Budget`]. What one layer keeps in memory is
//! bounded by the layer.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Unpacked bytes from which the ratio of unpacked to compressed bytes is checked: a small layer of zeros does no harm.
const RATIO_FROM: u64 = 256 << 20;
/// Images of which an archive may have the entries and bytes of the largest.
const ARCHIVE_IMAGES: u64 = 16;

/// Bounds of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Entries of all layers: files, directories, whiteouts, and directories that have no entry of their own.
    pub entries: u64,
    /// Directories of all layers that have no entry of their own.
    pub implicit_directories: u64,
    /// Bytes of all layers after decompression.
    pub unpacked_bytes: u64,
    /// Bytes of all layers as they come from the registry.
    pub compressed_bytes: u64,
    /// Unpacked bytes of a layer for each compressed one, above 256 MiB.
    pub ratio: u64,
    /// Length of a sparse file with its holes.
    pub file_bytes: u64,
    /// Memory for the paths of one layer's directories.
    pub path_memory: u64,
    /// Names and values of the extended attributes of one entry.
    pub xattr_bytes_per_entry: u64,
    /// Names and values of the extended attributes of one layer.
    pub xattr_bytes: u64,
    /// Window of a zstd stream, a power of two: memory of its decompression.
    pub zstd_window: u64,
    /// Components of a path.
    pub depth: usize,
}

impl Default for Limits {
    /// Several times what the largest images have.
    fn default() -> Self {
        Self {
            entries: 500_000,
            implicit_directories: 10_000,
            unpacked_bytes: 64 << 30,
            compressed_bytes: 32 << 30,
            ratio: 200,
            file_bytes: 1 << 40,
            path_memory: 32 << 20,
            xattr_bytes_per_entry: 64 << 10,
            xattr_bytes: 64 << 20,
            zstd_window: 64 << 20,
            depth: 256,
        }
    }
}

impl Limits {
    /// Returns true if a stream expands more than any honest one does.
    pub fn is_expansion(&self, unpacked: u64, compressed: u64) -> bool {
        unpacked > RATIO_FROM && unpacked / self.ratio.max(1) > compressed
    }

    /// Refuses more compressed bytes than an image may have.
    pub fn check_compressed(&self, bytes: u64) -> Result<(), Exceeded> {
        check(Bound::CompressedBytes, bytes, self.compressed_bytes)
    }
}

/// Kind of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// [`Limits::entries`].
    Entries,
    /// [`Limits::implicit_directories`].
    ImplicitDirectories,
    /// [`Limits::unpacked_bytes`].
    UnpackedBytes,
    /// [`Limits::compressed_bytes`].
    CompressedBytes,
    /// [`Limits::ratio`].
    Ratio,
    /// [`Limits::file_bytes`].
    FileBytes,
    /// [`Limits::path_memory`].
    PathMemory,
    /// [`Limits::xattr_bytes_per_entry`].
    EntryXattrs,
    /// [`Limits::xattr_bytes`].
    LayerXattrs,
    /// [`Limits::zstd_window`].
    ZstdWindow,
}

impl Bound {
    /// Subject, noun, and the field of `images.limits`.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Entries => ("image has", "files and directories", "entries"),
            Self::ImplicitDirectories => ("image has", "directories without their own entry", "implicitDirectories"),
            Self::UnpackedBytes => ("image has", "after decompression", "unpackedSize"),
            Self::CompressedBytes => ("image has", "to download", "compressedSize"),
            Self::Ratio => ("layer expands", "times its compressed size", "ratio"),
            Self::FileBytes => ("image has a sparse file of", "", "fileSize"),
            Self::PathMemory => ("layer needs", "of memory for paths of directories", "pathMemory"),
            Self::EntryXattrs => ("entry has", "of extended attributes", "xattrSizePerEntry"),
            Self::LayerXattrs => ("layer has", "of extended attributes", "xattrSize"),
            Self::ZstdWindow => ("zstd stream needs a window of", "", "zstdWindow"),
        }
    }

    fn is_bytes(self) -> bool {
        !matches!(self, Self::Entries | Self::ImplicitDirectories | Self::Ratio)
    }
}

/// An image, a layer or an entry is beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceeded {
    /// Of what.
    pub bound: Bound,
    /// The limit.
    pub limit: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, noun, field) = self.bound.words();
        let limit = if self.bound.is_bytes() { shown_bytes(self.limit) } else { self.limit.to_string() };
        let space = if noun.is_empty() { "" } else { " " };
        write!(f, "{subject} more than {limit}{space}{noun}, the limit of images.limits.{field}")
    }
}

impl std::error::Error for Exceeded {}

/// Bytes with the largest binary unit that keeps at least one digit: whole, or with one decimal.
pub(super) fn shown_bytes(bytes: u64) -> String {
    for (unit, shift) in [("GiB", 30_u32), ("MiB", 20), ("KiB", 10)] {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return match tenths % 10 {
                0 => format!("{} {unit}", tenths / 10),
                rest => format!("{}.{rest} {unit}", tenths / 10),
            };
        }
    }
    format!("{bytes} bytes")
}

/// Refuses `used` beyond `limit`.
pub(super) fn check(bound: Bound, used: u64, limit: u64) -> Result<(), Exceeded> {
    if used > limit { Err(Exceeded { bound, limit }) } else { Ok(()) }
}

/// The share of an image's limits that its layers took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// Entries, and directories without one.
    pub entries: u64,
    /// Directories without an entry.
    pub implicit_directories: u64,
    /// Memory for their paths.
    pub path_memory: u64,
    /// Decompressed bytes.
    pub bytes: u64,
}

impl Used {
    /// The difference to `earlier`; `None` if something became less.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            entries: self.entries.checked_sub(earlier.entries)?,
            implicit_directories: self.implicit_directories.checked_sub(earlier.implicit_directories)?,
            path_memory: self.path_memory.checked_sub(earlier.path_memory)?,
            bytes: self.bytes.checked_sub(earlier.bytes)?,
        })
    }
}

/// Count of what the layers of an image have taken, shared by the threads that unpack them.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    /// Images that share the budget: more than one only for an archive.
    images: u64,
    /// The budget of the image, of which this is one attempt to unpack a layer.
    image: Option<Arc<Budget>>,
    entries: AtomicU64,
    implicit_directories: AtomicU64,
    implicit_memory: AtomicU64,
    unpacked_bytes: AtomicU64,
}

impl Budget {
    /// A budget for so many images, of which nothing is used.
    pub fn of(limits: Limits, images: u64) -> Self {
        let (entries, implicit_directories, implicit_memory, unpacked_bytes) = Default::default();
        Self { limits, images: images.max(1), image: None, entries, implicit_directories, implicit_memory, unpacked_bytes }
    }

    /// A budget for an archive with at most so many images.
    pub fn of_archive(limits: Limits, images: usize) -> Self {
        Self::of(limits, ARCHIVE_IMAGES.min(images as u64))
    }

    /// The budget of one attempt to unpack a layer of the image whose budget is `image`.
    pub fn of_attempt(image: &Arc<Budget>) -> Self {
        Self { image: Some(Arc::clone(image)), ..Self::of(image.limits, image.images) }
    }

    /// Gives back what an attempt took that came to nothing.
    pub fn give_back(&self) {
        let Some(image) = &self.image else { return };
        for counter in [Self::entries_of, Self::implicit_directories_of, Self::implicit_memory_of, Self::unpacked_bytes_of] {
            counter(image).fetch_sub(counter(self).swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn entries_of(&self) -> &AtomicU64 {
        &self.entries
    }

    fn implicit_directories_of(&self) -> &AtomicU64 {
        &self.implicit_directories
    }

    fn implicit_memory_of(&self) -> &AtomicU64 {
        &self.implicit_memory
    }

    fn unpacked_bytes_of(&self) -> &AtomicU64 {
        &self.unpacked_bytes
    }

    /// Adds to a counter, of an attempt also to its image's; returns the image's sum.
    fn add(&self, counter: fn(&Self) -> &AtomicU64, count: u64) -> u64 {
        let sum = counter(self).fetch_add(count, Ordering::Relaxed).saturating_add(count);
        self.image.as_ref().map_or(sum, |image| image.add(counter, count))
    }

    /// Amounts taken so far.
    pub fn used(&self) -> Used {
        let [entries, implicit_directories, path_memory, bytes] =
            [Self::entries_of, Self::implicit_directories_of, Self::implicit_memory_of, Self::unpacked_bytes_of]
                .map(|counter| counter(self).load(Ordering::Relaxed));
        Used { entries, implicit_directories, path_memory, bytes }
    }

    /// Counts what was taken elsewhere.
    pub fn take_used(&self, used: Used) -> Result<(), Exceeded> {
        let Used { entries, implicit_directories, path_memory, bytes } = used;
        self.take(
            Self::implicit_directories_of,
            implicit_directories,
            Bound::ImplicitDirectories,
            self.limits.implicit_directories,
        )?;
        check(Bound::PathMemory, self.add(Self::implicit_memory_of, path_memory), self.limits.path_memory)?;
        self.take_entries(entries)?;
        self.take_bytes(bytes)
    }

    /// Counts entries.
    pub fn take_entries(&self, count: u64) -> Result<(), Exceeded> {
        self.take(Self::entries_of, count, Bound::Entries, self.limits.entries)
    }

    /// Counts a directory without an entry, whose path is kept until all layers are unpacked. It is an entry, too.
    pub fn take_implicit(&self, path_memory: u64) -> Result<(), Exceeded> {
        self.take(Self::implicit_directories_of, 1, Bound::ImplicitDirectories, self.limits.implicit_directories)?;
        // Memory is the host's, however many images an archive has.
        let kept = self.add(Self::implicit_memory_of, path_memory);
        check(Bound::PathMemory, kept, self.limits.path_memory)?;
        self.take_entries(1)
    }

    /// Counts decompressed bytes.
    pub fn take_bytes(&self, count: u64) -> Result<(), Exceeded> {
        self.take(Self::unpacked_bytes_of, count, Bound::UnpackedBytes, self.limits.unpacked_bytes)
    }

    fn take(&self, counter: fn(&Self) -> &AtomicU64, count: u64, bound: Bound, limit: u64) -> Result<(), Exceeded> {
        // The counter may go beyond the limit by what the other threads take at the same moment; it cannot wrap around: each taking beyond the
        // limit ends its layer.
        let used = self.add(counter, count);
        check(bound, used, limit.saturating_mul(self.images))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_an_image_share_its_limits() {
        let limits = Limits { entries: 10, implicit_directories: 4, unpacked_bytes: 100, ..Limits::default() };
        let budget = Budget::of(limits, 1);
        budget.take_entries(4).unwrap();
        (0..4).for_each(|_| budget.take_implicit(1).unwrap());
        assert_eq!(budget.take_implicit(1), Err(Exceeded { bound: Bound::ImplicitDirectories, limit: 4 }));
        assert_eq!(budget.take_entries(3), Err(Exceeded { bound: Bound::Entries, limit: 10 }));
        budget.take_bytes(100).unwrap();
        budget.take_bytes(1).unwrap_err();
        let two = Budget::of(limits, 2);
        two.take_entries(20).unwrap();
        two.take_entries(1).unwrap_err();
        let archive = Budget::of_archive(Limits { path_memory: 10, ..limits }, 3);
        archive.take_implicit(10).unwrap();
        assert_eq!(archive.take_implicit(1), Err(Exceeded { bound: Bound::PathMemory, limit: 10 }));
    }

    #[test]
    fn failed_attempt_takes_nothing_of_its_image() {
        let limits = Limits { entries: 10, unpacked_bytes: 100, ..Limits::default() };
        let image = Arc::new(Budget::of(limits, 1));
        for _ in 0..5 {
            let attempt = Budget::of_attempt(&image);
            attempt.take_entries(8).unwrap();
            attempt.take_implicit(1).unwrap();
            attempt.take_bytes(101).unwrap_err();
            attempt.give_back();
            attempt.give_back();
        }
        let kept = Budget::of_attempt(&image);
        kept.take_bytes(100).unwrap();
        Budget::of_attempt(&image).take_bytes(1).unwrap_err();
    }

    #[test]
    fn ratio_is_looked_at_in_large_streams_alone() {
        let limits = Limits::default();
        assert!(!limits.is_expansion(256 << 20, 1));
        assert!(limits.is_expansion((256 << 20) + 1, 1));
        assert!(!limits.is_expansion(1 << 30, (1 << 30) / 200 + 1));
        assert!(limits.is_expansion(1 << 30, (1 << 30) / 201));
    }

    #[test]
    fn messages_name_the_limit_and_its_field() {
        let told = |bound, limit| Exceeded { bound, limit }.to_string();
        assert_eq!(told(Bound::Entries, 5), "image has more than 5 files and directories, the limit of images.limits.entries");
        assert_eq!(
            told(Bound::UnpackedBytes, 64 << 30),
            "image has more than 64 GiB after decompression, the limit of images.limits.unpackedSize"
        );
        assert_eq!(
            told(Bound::FileBytes, 1 << 40),
            "image has a sparse file of more than 1024 GiB, the limit of images.limits.fileSize"
        );
        assert_eq!((shown_bytes(1000), shown_bytes(1536)), ("1000 bytes".to_owned(), "1.5 KiB".to_owned()));
    }
}
