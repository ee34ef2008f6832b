//! Facts about this host that containers can read, and the Node that clients of the local API see.

use jiff::Timestamp;
use podstead_api::NodeView;
use podstead_config::Config;
use podstead_network::host_ips;
use podstead_pod::env::EnvFacts;
use podstead_runtime::PodNetwork;
use podstead_settings::PressureThresholds;
use podstead_sys::memory::memory_bytes;
use podstead_upstream::facts::HostView;
use podstead_upstream::plan::node::{Health, NodeSettings, node_object_after};
use serde_json::Value;
use std::sync::Arc;

/// Pods that the Node of a host without a cluster says it has room for, as a kubelet's.
const MAX_PODS: u32 = 110;

/// The Node of the local API, as it is registered in a cluster.
pub fn view(config: &Config, network: Arc<dyn PodNetwork>) -> NodeView {
    let upstream = config.upstream.as_ref();
    let settings = NodeSettings {
        name: config.node_name.to_string(),
        labels: upstream.map(|upstream| upstream.labels.clone()).unwrap_or_default(),
        taints: upstream.map(|upstream| upstream.taints.clone()).unwrap_or_default(),
        max_pods: upstream.map_or(MAX_PODS, |upstream| upstream.max_pods),
    };
    let thresholds = upstream.map_or_else(PressureThresholds::default, |upstream| upstream.pressure);
    let health = move || Health { sync: None, network: network.trouble() };
    let host = HostView::new(config.paths.state.clone(), || host_ips().unwrap_or_default(), Box::new(health), thresholds);
    NodeView(Arc::new(move |before: &Value| node_object_after(&settings, &host.look(), before, Timestamp::now())))
}

/// Asks the kernel. Addresses are asked for when they are needed: they come and go.
pub fn facts(config: &Config) -> EnvFacts {
    let disk = rustix::fs::statvfs(&config.paths.state).map_or(0, |stat| stat.f_blocks * stat.f_frsize);
    EnvFacts {
        node_name: config.node_name.clone(),
        cluster_domain: config.network.dns.domain.clone(),
        host_ips: Vec::new(),
        pod_ips: Vec::new(),
        service_variables: Vec::new(),
        allocatable_cpu_milli: std::thread::available_parallelism().map_or(1000, |cpus| cpus.get() as u64 * 1000),
        allocatable_memory_bytes: memory_bytes(),
        allocatable_ephemeral_storage_bytes: disk,
    }
}
