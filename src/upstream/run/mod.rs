//! The loops that keep the cluster as the plan wants it. They run beside each other in one task and share nothing but channels.
//!
//! ```text
//! Node, Lease --standing--> watch --observations(64)--> mirrors <--changes-- published pods
//!      |                      |                            |
//!      +----------------------+---> board (status) <-------+        events <-- event log
//! ```
//!
//! What comes from the daemon is read from journals of bounded length, so nobody in the daemon ever waits for this. What comes from
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
use crate::api::Published;
use crate::pod::NodeName;
use crate::telemetry::EventLog;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{mpsc, watch as latest};

/// What the server said and was not looked at yet; the connection waits when there is more.
const OBSERVATIONS: usize = 64;

/// What the loops work with.
#[derive(Clone)]
pub struct Links {
    /// The API server.
    pub cluster: Arc<dyn Cluster>,
    /// Pods of this host.
    pub published: Arc<Published>,
    /// Events of this host.
    pub events: Arc<EventLog>,
    /// What the configuration says of the Node.
    pub settings: NodeSettings,
    /// Labels of the host as they are at the time; those of the Node's settings win.
    pub host_labels: latest::Receiver<BTreeMap<String, String>>,
    /// Whether a Node that is not there is created.
    pub register: bool,
    /// What tells this host from another one that has its name; the same after a restart.
    pub agent: String,
    /// Asks the host what it is.
    pub facts: Arc<dyn Fn() -> HostFacts + Send + Sync>,
    /// The wall clock, for what is shown; nothing is decided by it.
    pub now: fn() -> Timestamp,
    /// Any number.
    pub random: fn() -> u32,
    /// Whether all sources were heard: before, nothing is known to be unwanted.
    pub sources_ready: latest::Receiver<bool>,
    /// Where to tell how things stand.
    pub board: Board,
}

impl Links {
    /// What the configuration says of the Node now.
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

/// Whether this host speaks for the Node.
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
