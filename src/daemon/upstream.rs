//! The cluster as configured to the thread that speaks to it.

use jiff::Timestamp;
use podstead_api::Published;
use podstead_config::Config;
use podstead_network::host_ips;
use podstead_runtime::PodNetwork;
use podstead_settings::UpstreamConfig;
use podstead_status::UpstreamStatus;
use podstead_sync::Pulse;
use podstead_sys::machine_key::MachineKey;
use podstead_sys::random::any_number;
use podstead_telemetry::{EventLog, error_chain};
use podstead_upstream::client::HttpCluster;
use podstead_upstream::facts::HostView;
use podstead_upstream::plan::node::{Health, NodeSettings};
use podstead_upstream::run::{Board, Links};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Purpose of the derived key that distinguishes this host from others with the same name.
const AGENT: &str = "podstead upstream agent 1";

/// Parts of the daemon that the connection needs.
pub(super) struct Daemon<'a> {
    pub(super) config: &'a Config,
    pub(super) published: &'a Arc<Published>,
    pub(super) events: &'a Arc<EventLog>,
    pub(super) machine_key: &'a MachineKey,
    /// Labels of this host, as the configuration file has them at the time.
    pub(super) labels: watch::Receiver<BTreeMap<String, String>>,
    pub(super) network: Arc<dyn PodNetwork>,
    pub(super) pulse: Pulse,
    pub(super) sources_ready: watch::Receiver<bool>,
}

/// Starts the thread. An error is logged and does not stop the daemon, because a host works without its cluster.
pub(super) fn start(upstream: &UpstreamConfig, daemon: Daemon<'_>) -> watch::Receiver<UpstreamStatus> {
    let cluster = HttpCluster::new(&upstream.kubeconfig, upstream.context.as_deref());
    let board = Board::new(upstream.kubeconfig.display().to_string());
    let status = board.subscribe();
    let Daemon { config, published, events, machine_key, labels, network, pulse, sources_ready } = daemon;
    let health = move || Health { sync: pulse.trouble(), network: network.trouble() };
    let view = HostView::new(config.paths.state.clone(), || host_ips().unwrap_or_default(), Box::new(health), upstream.pressure);
    let links = Links {
        cluster: Arc::new(cluster),
        published: published.clone(),
        events: events.clone(),
        settings: NodeSettings {
            name: config.node_name.to_string(),
            labels: upstream.labels.clone(),
            taints: upstream.taints.clone(),
            max_pods: upstream.max_pods,
        },
        host_labels: labels,
        register: upstream.register_node,
        agent: hex::encode(&machine_key.derive(AGENT)[..8]),
        facts: Arc::new(move || view.look()),
        now: Timestamp::now,
        random: any_number,
        sources_ready,
        board,
    };
    if let Err(error) = podstead_upstream::start(links) {
        tracing::error!(error = %error_chain(&error), "cannot start the connection to the cluster: this host is not registered there");
    }
    status
}
