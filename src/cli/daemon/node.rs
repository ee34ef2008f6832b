//! What containers can learn of this host.

use crate::config::Config;
use crate::network::host_ips;
use crate::pod::env::EnvFacts;
use crate::sys::memory::memory_bytes;

/// Asks the kernel. Addresses are those of now: a host without any starts its pods all the same.
pub(super) fn facts(config: &Config) -> EnvFacts {
    let host_ips = host_ips().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list this host's addresses");
        Vec::new()
    });
    let disk = rustix::fs::statvfs(&config.paths.state).map_or(0, |stat| stat.f_blocks * stat.f_frsize);
    EnvFacts {
        node_name: config.node_name.clone(),
        host_ips,
        pod_ips: Vec::new(),
        allocatable_cpu_milli: std::thread::available_parallelism().map_or(1000, |cpus| cpus.get() as u64 * 1000),
        allocatable_memory_bytes: memory_bytes(),
        allocatable_ephemeral_storage_bytes: disk,
    }
}
