//! `images`: limits of images, the disk space that they leave free, and how and when they are fetched.

use super::pull_windows::{WrittenWindow, resolve_windows};
use podstead_container::reference::Reference;
use podstead_image::{Bandwidth, CollectionConfig, Limits, PullWindow, Reserve};
use podstead_settings::check::Check;
use podstead_settings::{ConfigError, size};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Largest number of a size field: sums of a few stay within 64 bits.
const SIZE_MAX: u64 = 1 << 50;
/// Least cap: below it, servers take a connection for dead.
const LEAST_BANDWIDTH: u64 = 4 << 10;
/// Smallest and largest window that zstd has.
const WINDOW: (u64, u64) = (1 << 10, 1 << 30);

/// `images`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenImages {
    /// Limits of one image. An image beyond one of them is refused, whether it is pulled, imported or preloaded.
    #[serde(default)]
    pub limits: WrittenLimits,
    /// Part of the file system of `images` in `paths.state` that is kept free of images.
    #[serde(default)]
    pub reserve: WrittenReserve,
    /// Limits and times of the removal of unused images.
    #[serde(default)]
    pub collection: WrittenCollection,
    /// Most bytes per second of layers that are fetched. Default: no limit.
    #[serde(default)]
    pub bandwidth: WrittenBandwidth,
    /// Times in which layers are fetched for updates of what runs. At other times they are fetched for pods without a running version, and by
    /// `podstead image pull`. Default: any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WrittenWindow>,
}

/// `images.bandwidth`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenBandwidth {
    /// From all registries and mirrors together, at least 4Ki. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// From each host, at least 4Ki. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_host: Option<String>,
}

impl WrittenBandwidth {
    fn resolve(&self, check: &Check<'_>) -> Result<Bandwidth, ConfigError> {
        let rate = |field: &str, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            let field = format!("images.bandwidth.{field}");
            let rate = size::parse(text).ok_or_else(|| check.invalid(&field, format!("{text:?} is not a size such as 10Mi")))?;
            check.range(&field, rate, LEAST_BANDWIDTH, SIZE_MAX).map(Some)
        };
        Ok(Bandwidth { total: rate("total", &self.total)?, per_host: rate("perHost", &self.per_host)? })
    }

    fn of(Bandwidth { total, per_host }: Bandwidth) -> Self {
        Self { total: total.map(size::format), per_host: per_host.map(size::format) }
    }
}

/// `images.limits`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenLimits {
    /// Most files, directories and whiteouts of all layers, directories without an entry of their own included. Default: 500000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Most directories of all layers that have no entry of their own. Default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implicit_directories: Option<u64>,
    /// Largest size of all layers after decompression. Default: 64Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpacked_size: Option<String>,
    /// Largest size of all layers as they are fetched. Default: 32Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed_size: Option<String>,
    /// Highest compression ratio of a layer of more than 256Mi, and of a compressed archive. Default: 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<u64>,
    /// Largest length of a sparse file, holes included. Default: 1024Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<String>,
    /// Most memory for the paths of the directories of one layer. Default: 32Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_memory: Option<String>,
    /// Largest size of the extended attributes of one file or directory, names and values. Default: 64Ki.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xattr_size_per_entry: Option<String>,
    /// Largest size of the extended attributes of one layer, names and values. Default: 64Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xattr_size: Option<String>,
    /// Largest window of a zstd stream, a power of two; decompression takes as much memory. `zstd --ultra -22` needs 128Mi. Default: 64Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zstd_window: Option<String>,
}

/// `images.reserve`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenReserve {
    /// Percentage of the disk space to keep free, 0 to 90. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_percent: Option<u8>,
    /// Disk space to keep free where the percentage is less; at most half of a small file system. Default: 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_at_least: Option<String>,
    /// Percentage of the inodes to keep free, 0 to 90. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes_percent: Option<u8>,
}

/// `images.collection`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenCollection {
    /// Used percentage of the disk space, or of the inodes, above which unused images are removed, 1 to 100. Default: 85.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_percent: Option<u8>,
    /// Used percentage down to which they are removed, less than `highPercent`. Default: 80, or `highPercent` less 5 where that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_percent: Option<u8>,
    /// Images that were used within this time stay. Default: 120.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_age_seconds: Option<u64>,
    /// Number of revisions of each source before the one in force whose images stay, so that a rollback needs no registry. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_revisions: Option<u64>,
    /// Images that are never removed, as pods name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<String>,
}

impl WrittenCollection {
    fn resolve(&self, check: &Check<'_>) -> Result<CollectionConfig, ConfigError> {
        let WrittenCollection { high_percent, low_percent, minimum_age_seconds, keep_revisions, pinned } = self;
        let default = CollectionConfig::default();
        let at = |field: &str| format!("images.collection.{field}");
        let high_percent = check.range(&at("highPercent"), high_percent.unwrap_or(default.high_percent), 1, 100)?;
        let low_percent = low_percent.unwrap_or(default.low_percent.min(high_percent.saturating_sub(5)));
        let age = minimum_age_seconds.unwrap_or(default.minimum_age.as_secs());
        for (number, image) in pinned.iter().enumerate() {
            if let Err(reason) = image.parse::<Reference>() {
                return Err(
                    check.invalid(&at(&format!("pinned[{number}]")), format!("{image:?} is not an image reference: {reason}"))
                );
            }
        }
        let keep = check.range(&at("keepRevisions"), keep_revisions.unwrap_or(default.keep_revisions as u64), 0, 100)?;
        Ok(CollectionConfig {
            high_percent,
            low_percent: check.range(&at("lowPercent"), low_percent, 0, high_percent - 1)?,
            minimum_age: Duration::from_secs(check.range(&at("minimumAgeSeconds"), age, 0, 365 * 24 * 3600)?),
            keep_revisions: usize::try_from(keep).unwrap_or(default.keep_revisions),
            pinned: pinned.clone(),
        })
    }

    fn of(config: CollectionConfig) -> Self {
        let CollectionConfig { high_percent, low_percent, minimum_age, keep_revisions, pinned } = config;
        Self {
            high_percent: Some(high_percent),
            low_percent: Some(low_percent),
            minimum_age_seconds: Some(minimum_age.as_secs()),
            keep_revisions: Some(keep_revisions as u64),
            pinned,
        }
    }
}

/// Limits of images, free disk space and collection, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagesConfig {
    /// Bounds of one image.
    pub limits: Limits,
    /// Disk space and inodes to keep free.
    pub reserve: Reserve,
    /// Removal of unused images.
    pub collection: CollectionConfig,
    /// Most bytes per second of layers.
    pub bandwidth: Bandwidth,
    /// Times for updates; none for any time.
    pub windows: Vec<PullWindow>,
}

impl WrittenImages {
    pub(super) fn resolve(&self, check: &Check<'_>) -> Result<ImagesConfig, ConfigError> {
        let WrittenImages { limits, reserve, collection, bandwidth, windows } = self;
        let default = ImagesConfig::default();
        let bytes = |field: &str, text: &Option<String>, default: u64, least: u64, most: u64| {
            let Some(text) = text else { return Ok(default) };
            let bytes = size::parse(text).ok_or_else(|| check.invalid(field, format!("{text:?} is not a size such as 10Mi")))?;
            check.range(field, bytes, least, most)
        };
        let limit = |field: &str, text, default| bytes(&format!("images.limits.{field}"), text, default, 1, SIZE_MAX);
        let count = |field: &str, count: Option<u64>, default| {
            check.range(&format!("images.limits.{field}"), count.unwrap_or(default), 1, SIZE_MAX)
        };
        let percent = |field: &str, percent: Option<u8>, default| {
            check.range(&format!("images.reserve.{field}"), percent.unwrap_or(default), 0, 90)
        };
        let Limits { depth, .. } = default.limits;
        let zstd_window = bytes("images.limits.zstdWindow", &limits.zstd_window, default.limits.zstd_window, WINDOW.0, WINDOW.1)?;
        if !zstd_window.is_power_of_two() {
            let message = format!("is {}, must be a power of two", size::format(zstd_window));
            return Err(check.invalid("images.limits.zstdWindow", message));
        }
        Ok(ImagesConfig {
            collection: collection.resolve(check)?,
            bandwidth: bandwidth.resolve(check)?,
            windows: resolve_windows(windows, check)?,
            limits: Limits {
                entries: count("entries", limits.entries, default.limits.entries)?,
                implicit_directories: count(
                    "implicitDirectories",
                    limits.implicit_directories,
                    default.limits.implicit_directories,
                )?,
                unpacked_bytes: limit("unpackedSize", &limits.unpacked_size, default.limits.unpacked_bytes)?,
                compressed_bytes: limit("compressedSize", &limits.compressed_size, default.limits.compressed_bytes)?,
                ratio: count("ratio", limits.ratio, default.limits.ratio)?,
                file_bytes: limit("fileSize", &limits.file_size, default.limits.file_bytes)?,
                path_memory: limit("pathMemory", &limits.path_memory, default.limits.path_memory)?,
                xattr_bytes_per_entry: limit(
                    "xattrSizePerEntry",
                    &limits.xattr_size_per_entry,
                    default.limits.xattr_bytes_per_entry,
                )?,
                xattr_bytes: limit("xattrSize", &limits.xattr_size, default.limits.xattr_bytes)?,
                zstd_window,
                depth,
            },
            reserve: Reserve {
                storage_percent: percent("storagePercent", reserve.storage_percent, default.reserve.storage_percent)?,
                storage_at_least: bytes(
                    "images.reserve.storageAtLeast",
                    &reserve.storage_at_least,
                    default.reserve.storage_at_least,
                    0,
                    SIZE_MAX,
                )?,
                inodes_percent: percent("inodesPercent", reserve.inodes_percent, default.reserve.inodes_percent)?,
            },
        })
    }

    pub(super) fn of(config: ImagesConfig) -> Self {
        let ImagesConfig { limits, reserve, collection, bandwidth, windows } = config;
        let Limits {
            entries,
            implicit_directories,
            unpacked_bytes,
            compressed_bytes,
            ratio,
            file_bytes,
            path_memory,
            xattr_bytes_per_entry,
            xattr_bytes,
            zstd_window,
            depth: _,
        } = limits;
        let Reserve { storage_percent, storage_at_least, inodes_percent } = reserve;
        let text = |bytes: u64| Some(size::format(bytes));
        Self {
            collection: WrittenCollection::of(collection),
            bandwidth: WrittenBandwidth::of(bandwidth),
            windows: windows.iter().map(WrittenWindow::of).collect(),
            limits: WrittenLimits {
                entries: Some(entries),
                implicit_directories: Some(implicit_directories),
                unpacked_size: text(unpacked_bytes),
                compressed_size: text(compressed_bytes),
                ratio: Some(ratio),
                file_size: text(file_bytes),
                path_memory: text(path_memory),
                xattr_size_per_entry: text(xattr_bytes_per_entry),
                xattr_size: text(xattr_bytes),
                zstd_window: text(zstd_window),
            },
            reserve: WrittenReserve {
                storage_percent: Some(storage_percent),
                storage_at_least: text(storage_at_least),
                inodes_percent: Some(inodes_percent),
            },
        }
    }
}
