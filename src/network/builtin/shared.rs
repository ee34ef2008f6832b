//! State that the parts of the network share.

use super::durability::LeaseRecords;
use super::names::Names;
use super::policies::PolicySource;
use super::policies::policing::Policing;
use super::rules::Rules;
use super::state::State;
use podstead_pod::PodUid;
use podstead_settings::NetworkConfig;
use podstead_sys::layout::Paths;
use podstead_sys::write_ahead::WriteAheadLog;
use podstead_telemetry::events::EventRecorder;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Services that the network uses.
#[derive(Clone, Debug)]
pub struct NetworkLinks {
    /// Paths of records.
    pub paths: Paths,
    /// Makes leases durable.
    pub write_ahead: WriteAheadLog,
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
/// One type because a pod's lease, rules and interface change together, and those of several pods side by side: each change is a row of calls into
/// the kernel on a thread of its own, for which a task that owned all of it would have every other pod wait. Rules, policies in force and records
/// are types that own their state. A lock is held for one step; policing is locked before state, state before rules and records.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) links: NetworkLinks,
    pub(super) names: Names,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) records: Arc<LeaseRecords>,
    pub(super) rules: Mutex<Rules>,
    pub(super) policing: Mutex<Policing>,
    /// Pods without their interface, until their workers are notified.
    pub(super) news: Mutex<BTreeSet<PodUid>>,
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
