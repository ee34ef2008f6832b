//! State that the work on all pods shares.

use super::care::Care;
use super::directory::Directory;
use super::exec::Plugins;
use super::names::Names;
use super::record::PodRecord;
use super::watch::Watch;
use super::work::Works;
use crate::{BuiltinNetwork, NameService, PolicySource};
use podstead_pod::PodUid;
use podstead_settings::NetworkConfig;
use podstead_sys::layout::Paths;
use podstead_telemetry::events::EventRecorder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{RwLock, Semaphore, mpsc};

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

pub(in super::super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of the network and of its pods.
///
/// One type because connecting, care and recovery change the same records, in turns that [`Works`] gives for each pod. Plugins of several pods run
/// side by side, each pod's in a task of its own while there is work; between that a pod needs none. The parts own their state.
#[derive(Debug)]
pub(in super::super) struct Shared {
    pub(super) links: CniLinks,
    pub(super) plugins: Plugins,
    pub(super) directory: Mutex<Directory>,
    pub(super) records: Mutex<BTreeMap<PodUid, PodRecord>>,
    pub(super) names: Names,
    pub(super) works: Works,
    pub(super) slots: Semaphore,
    /// Held for reading while plugins are called, for writing while they collect garbage.
    pub(super) gate: RwLock<()>,
    pub(super) watch: Watch,
    pub(super) care: Care,
    pub(super) told: Mutex<BTreeSet<String>>,
    /// Held while packet rules learn which pods reach Services.
    pub(super) admitting: Mutex<()>,
}
