//! The loops that keep the cluster as the plan wants it. They run beside each other in one task and share nothing but channels.
//!
//! ```text
//! Node, Lease --standing--> watch --observations(64)--> mirrors <--changes-- published pods
//!      |                      |                            |
//!      +----------------------+---> board (status) <-------+        events <-- event log
//! ```
//!
//! Data from the daemon is read from journals of bounded length, so nothing in the daemon ever waits for this. Data from
//! the server is bounded by the channel: a server that sends more has to wait.

mod board;
#[cfg(test)]
mod bounds_test;
mod entry;
mod events;
mod gate;
mod mirrors;
mod node;
mod pace;
mod perform;
mod queue;
mod request;
mod watch;

pub use board::Board;

use super::cluster::Cluster;
use super::plan::NodeRef;
use super::plan::node::{HostFacts, NodeSettings};
use jiff::Timestamp;
use podstead_api::Published;
use podstead_pod::NodeName;
use podstead_telemetry::EventLog;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{mpsc, watch as latest};

/// Observations that are not processed yet; the connection waits when there are more.
const OBSERVATIONS: usize = 64;

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
    fn settings_now(&self) -> NodeSettings {
        let mut labels = self.host_labels.borrow().clone();
        labels.extend(self.settings.labels.clone());
        NodeSettings { labels, ..self.settings.clone() }
    }

    fn node_name(&self) -> NodeName {
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
enum Standing {
    /// Not yet, or not any more.
    Silent,
    /// It does.
    Speaking(NodeRef),
}

/// Runs for ever. Dropping it ends everything that was begun.
pub async fn run(links: Links) -> Infallible {
    let (standing, follow) = latest::channel(Standing::Silent);
    let (observe, observations) = mpsc::channel(OBSERVATIONS);
    // None of them ends.
    tokio::select! {
        never = node::run(&links, standing) => never,
        never = watch::run(&links, follow.clone(), observe) => never,
        never = mirrors::run(&links, follow.clone(), observations) => never,
        never = events::run(&links, follow.clone()) => never,
    }
}
