//! The cluster as configured to the thread that speaks to it.

use crate::api::Published;
use crate::config::{Config, UpstreamConfig};
use crate::network::host_ips;
use crate::status::UpstreamStatus;
use crate::sys::machine_key::MachineKey;
use crate::telemetry::{EventLog, error_chain};
use crate::upstream::client::HttpCluster;
use crate::upstream::facts::HostView;
use crate::upstream::plan::node::NodeSettings;
use crate::upstream::run::{Board, Links};
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::Arc;
use tokio::sync::watch;

/// What the key that tells this host from others of its name is derived for.
const AGENT: &str = "podstead upstream agent 1";

/// What the daemon has for it.
pub(super) struct Daemon<'a> {
    pub(super) config: &'a Config,
    pub(super) published: &'a Arc<Published>,
    pub(super) events: &'a Arc<EventLog>,
    pub(super) machine_key: &'a MachineKey,
    pub(super) sources_ready: watch::Receiver<bool>,
}

/// Starts the thread. Whatever is wrong is told and keeps nothing else from starting: a host runs without its cluster.
pub(super) fn start(upstream: &UpstreamConfig, daemon: Daemon<'_>) -> watch::Receiver<UpstreamStatus> {
    let cluster = HttpCluster::new(&upstream.kubeconfig, upstream.context.as_deref());
    let board = Board::new(upstream.kubeconfig.display().to_string());
    let status = board.subscribe();
    let Daemon { config, published, events, machine_key, sources_ready } = daemon;
    let view = HostView::new(config.paths.state.clone(), || host_ips().unwrap_or_default());
    let mut labels = config.labels.clone();
    labels.extend(upstream.labels.clone());
    let links = Links {
        cluster: Arc::new(cluster),
        published: published.clone(),
        events: events.clone(),
        settings: NodeSettings {
            name: config.node_name.to_string(),
            labels,
            taints: upstream.taints.clone(),
            max_pods: upstream.max_pods,
        },
        register: upstream.register_node,
        agent: hex::encode(&machine_key.derive(AGENT)[..8]),
        facts: Arc::new(move || view.look()),
        now: Timestamp::now,
        random,
        sources_ready,
        board,
    };
    if let Err(error) = crate::upstream::start(links) {
        tracing::error!(error = %error_chain(&error), "the cluster is not told of this host");
    }
    status
}

/// Any number; where the system gives none, one in the middle.
fn random() -> u32 {
    let mut bytes = [0; 4];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        Err(_) => u32::MAX / 2,
    }
}
