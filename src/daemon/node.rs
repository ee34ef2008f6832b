//! Facts about this host that containers can read.

use podstead_config::Config;
use podstead_pod::env::EnvFacts;
use podstead_sys::memory::memory_bytes;

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
