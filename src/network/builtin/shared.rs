//! State that the parts of the network share.

use super::lease::Leases;
use super::names::Names;
use super::policies::PolicySource;
use super::policies::policing::Policing;
use super::rules::Rules;
use crate::record::RecordError;
use podstead_pod::PodUid;
use podstead_settings::{AddressRange, NetworkConfig, NetworkMode};
use podstead_sys::layout::Paths;
use podstead_telemetry::events::EventRecorder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Services that the network uses.
#[derive(Clone, Debug)]
pub struct NetworkLinks {
    /// Paths of records.
    pub paths: Paths,
    /// Ranges, if they are configured.
    pub config: NetworkConfig,
    /// Receiver of events about collisions and the like.
    pub events: Arc<dyn EventRecorder>,
    /// The port of the resolver at [`crate::GATEWAYS`], which pods ask at port 53; `None` without a resolver.
    pub dns_port: Option<u16>,
    /// Pods that need a turn. Unbounded: one entry per removed interface.
    pub pokes: mpsc::UnboundedSender<PodUid>,
    /// NetworkPolicies of all sources.
    pub policies: Arc<dyn PolicySource>,
}

/// State of the network and of its pods.
///
/// One type because leases, rules, interfaces and records of a pod change together, in one order of locks; the parts own their state.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) links: NetworkLinks,
    pub(super) names: Names,
    pub(super) state: Mutex<State>,
    pub(super) rules: Mutex<Rules>,
    pub(super) policing: Mutex<Policing>,
    pub(super) unsynced: Mutex<Unsynced>,
    /// Serialises lease writes.
    pub(super) writing: Mutex<()>,
    /// Pods without their interface, until their workers are notified.
    pub(super) news: Mutex<BTreeSet<PodUid>>,
}

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

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn news(&self) -> MutexGuard<'_, BTreeSet<PodUid>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pods with a lease that is not synced to disk, and the sync under way, if any.
pub(super) type Unsynced = BTreeMap<PodUid, Option<JoinHandle<Result<(), RecordError>>>>;
