//! Environment of the loops, and the role of this host.

use super::board::Board;
use crate::cluster::Cluster;
use crate::plan::NodeRef;
use crate::plan::node::{HostFacts, NodeSettings};
use jiff::Timestamp;
use podstead_api::Published;
use podstead_pod::NodeName;
use podstead_telemetry::EventLog;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch as latest;

/// Environment of the loops.
#[derive(Clone)]
pub struct Links {
    /// The API server.
    pub cluster: Arc<dyn Cluster>,
    /// Pods of this host.
    pub published: Arc<Published>,
    /// Events of this host.
    pub events: Arc<EventLog>,
    /// Settings of the Node from the configuration.
    pub settings: NodeSettings,
    /// Labels of the host as they are at the time; those of the Node's settings win.
    pub host_labels: latest::Receiver<BTreeMap<String, String>>,
    /// True if a missing Node is created.
    pub register: bool,
    /// Identifier of this host among hosts of the same name; stable over restarts.
    pub agent: String,
    /// Asks the host what it is.
    pub facts: Arc<dyn Fn() -> HostFacts + Send + Sync>,
    /// The wall clock, for what is shown; nothing is decided by it.
    pub now: fn() -> Timestamp,
    /// Any number.
    pub random: fn() -> u32,
    /// True once all sources have delivered: before, no pod is known to be unwanted.
    pub sources_ready: latest::Receiver<bool>,
    /// The published status.
    pub board: Board,
}

impl Links {
    /// Returns the present settings of the Node.
    pub(super) fn settings_now(&self) -> NodeSettings {
        let mut labels = self.host_labels.borrow().clone();
        labels.extend(self.settings.labels.clone());
        NodeSettings { labels, ..self.settings.clone() }
    }

    pub(super) fn node_name(&self) -> NodeName {
        NodeName::new(self.settings.name.clone())
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("cluster", &self.cluster).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Role of this host for the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not yet, or not any more.
    Silent,
    /// It does.
    Speaking(NodeRef),
}
