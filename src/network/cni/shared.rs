//! State that the work on all pods shares.

use super::care::Care;
use super::directory::Directory;
use super::exec::Plugins;
use super::names::Names;
use super::record::PodRecord;
use super::watch::Watch;
use crate::{BuiltinNetwork, NameService, PolicySource};
use podstead_pod::PodUid;
use podstead_runtime::NetworkError;
use podstead_settings::NetworkConfig;
use podstead_sys::layout::Paths;
use podstead_telemetry::events::EventRecorder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{RwLock, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Time that a turn of a worker waits for plugins. Longer than they usually take.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Services that the network uses.
#[derive(Clone, Debug)]
pub struct CniLinks {
    /// Paths of records.
    pub paths: Paths,
    /// Configuration: the provider of the first interface, and the directories of configurations and plugins.
    pub config: NetworkConfig,
    /// Receiver of events.
    pub events: Arc<dyn EventRecorder>,
    /// DNS for pods that plugins connected; `None` where they use the host's name servers.
    pub names: Option<Arc<dyn NameService>>,
    /// podstead's own network, whose packet rules serve Services; `None` where there is none.
    pub builtin: Option<BuiltinNetwork>,
    /// NetworkPolicies of all sources.
    pub policies: Arc<dyn PolicySource>,
    /// Pods that want a turn. Unbounded: at most one entry per end of the work on a pod, and per change of the configuration and pod.
    pub pokes: mpsc::UnboundedSender<PodUid>,
}

/// Work on one pod.
#[derive(Debug, Default)]
pub(in super::super) struct Seat {
    /// Serialises the work on the pod.
    pub(super) work: tokio::sync::Mutex<()>,
    /// Breaks off the work under way.
    pub(super) cancel: Mutex<CancellationToken>,
    /// Failure that nobody waited for, with true for a teardown.
    pub(super) failure: Mutex<Option<(bool, NetworkError)>>,
    /// Waits for another configuration.
    pub(super) is_waiting: AtomicBool,
    /// Something happened that is worth another attempt.
    pub(super) has_news: AtomicBool,
    /// Attempts to take the pod's attachments down that ended at plugins that are not there.
    pub(super) vain_attempts: Mutex<u32>,
}

pub(in super::super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of the network and of its pods.
///
/// One type because connecting, care and recovery work on the same records, one at a time for each pod; the parts own their state.
#[derive(Debug)]
pub(in super::super) struct Shared {
    pub(super) links: CniLinks,
    pub(super) plugins: Plugins,
    pub(super) directory: Mutex<Directory>,
    pub(super) records: Mutex<BTreeMap<PodUid, PodRecord>>,
    pub(super) names: Names,
    pub(super) seats: Mutex<BTreeMap<PodUid, Arc<Seat>>>,
    pub(super) slots: Semaphore,
    /// Held for reading while plugins are called, for writing while they collect garbage.
    pub(super) gate: RwLock<()>,
    pub(super) watch: Watch,
    pub(super) care: Care,
    pub(super) told: Mutex<BTreeSet<String>>,
    /// Held while packet rules learn which pods reach Services.
    pub(super) admitting: Mutex<()>,
}
