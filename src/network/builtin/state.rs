//! State of the network in memory.

use super::lease::Leases;
use podstead_pod::PodUid;
use podstead_settings::{AddressRange, NetworkMode};
use std::collections::BTreeSet;

/// State of the network in memory, beside its packet rules.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Ranges of pod addresses; `None` until the host is prepared.
    pub(super) ranges: Option<Vec<AddressRange>>,
    /// Mode in which pods are connected.
    pub(super) mode: NetworkMode,
    pub(super) leases: Leases,
    /// Pods with their interface, unless it was removed since.
    pub(super) connected: BTreeSet<PodUid>,
    /// The leases could not even be listed: nothing is touched before they are.
    pub(super) is_blind: bool,
    /// Pods whose lease the disk did not give, and which could not be learnt from an interface either: one that nobody has may be theirs.
    pub(super) unread: BTreeSet<PodUid>,
    /// Largest packet that the uplink takes; `None` without one.
    pub(super) mtu: Option<u32>,
    /// Reason why the host could not be prepared when that was tried last.
    pub(super) trouble: Option<String>,
    /// Recorded problems, so that each is recorded once.
    pub(super) told: BTreeSet<String>,
}
