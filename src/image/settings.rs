//! Settings that may change while the store is used, beside the policy.
//!
//! Work that has begun under an old one ends under it where a change would make no sense: limits of an image that is being unpacked, and the least rate of a
//! connection.

use super::collect::CollectionConfig;
use super::limits::Limits;
use super::live::Live;
use super::rate::MinimumRate;
use super::registry::LiveRegistries;
use super::slots::{SlotLimits, Slots};
use super::space::Reserve;
use super::transfer::{Bandwidth, Caps};
use super::windows::{PullWindow, Windows};
use std::sync::Arc;
use std::time::Duration;

/// Transfers from one host.
const LAYERS_PER_HOST: usize = 3;

/// The part of the configuration of a store that may change while the store is used, beside registries and policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Limits of one image.
    pub limits: Limits,
    /// Space on the disk that images must leave free.
    pub reserve: Reserve,
    /// Limits and times of the removal of unused images.
    pub collection: CollectionConfig,
    /// Layers fetched at once.
    pub parallel_layers: usize,
    /// Bytes per second below which a connection is made again; 0 for no minimum.
    pub minimum_rate: u64,
    /// Most bytes per second of layers.
    pub bandwidth: Bandwidth,
    /// Times outside of which layers are fetched only for pods without a running version, and by hand.
    pub windows: Vec<PullWindow>,
}

/// The settings as they are now, for those who go by them. The disk and the collector keep theirs themselves.
#[derive(Debug)]
pub(super) struct LiveSettings {
    pub(super) registries: Arc<LiveRegistries>,
    pub(super) limits: Live<Limits>,
    pub(super) slots: Arc<Slots>,
    pub(super) minimum_rate: Live<MinimumRate>,
    pub(super) caps: Arc<Caps>,
    pub(super) windows: Windows,
}

/// Limits of transfers if so many run in all.
pub(super) fn slot_limits(parallel: usize) -> SlotLimits {
    let total = parallel.max(1);
    SlotLimits { per_host: total.min(LAYERS_PER_HOST), total }
}

/// The least rate over such a time.
pub(super) fn minimum_rate(bytes_per_second: u64, window: Duration) -> MinimumRate {
    MinimumRate { bytes_per_second, window }
}
