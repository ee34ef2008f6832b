//! Facts about this host from the kernel and a few files. Nothing here fails: an unknown fact is empty.

use super::plan::node::{Health, HostFacts, HostIdentity, Pressure};
use podstead_settings::PressureThresholds;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Asks podstead how it is.
pub type AskHealth = Box<dyn Fn() -> Health + Send + Sync>;

/// Looks at the host.
pub struct HostView {
    state: PathBuf,
    addresses: fn() -> Vec<IpAddr>,
    health: AskHealth,
    thresholds: PressureThresholds,
    identity: HostIdentity,
}

impl fmt::Debug for HostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostView").field("state", &self.state).field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl HostView {
    /// `state` is the directory of the durable state; `addresses` asks for the host's addresses, the primary one first.
    pub fn new(state: PathBuf, addresses: fn() -> Vec<IpAddr>, health: AskHealth, thresholds: PressureThresholds) -> Self {
        Self { state, addresses, health, thresholds, identity: identity() }
    }

    /// The host as it is now.
    pub fn look(&self) -> HostFacts {
        let disk = rustix::fs::statvfs(&self.state).ok();
        let memory_bytes = podstead_sys::memory::memory_bytes();
        let PressureThresholds { memory, storage, inodes, pids } = self.thresholds;
        HostFacts {
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            addresses: (self.addresses)(),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
            memory_bytes,
            storage_bytes: disk.as_ref().map_or(0, |disk| disk.f_blocks * disk.f_frsize),
            identity: self.identity.clone(),
            health: (self.health)(),
            pressure: Pressure {
                memory: available_memory(&text("/proc/meminfo")).is_some_and(|free| memory.is_short(free, memory_bytes)),
                disk: disk.is_some_and(|disk| {
                    let (free, all) = (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize);
                    storage.is_short(free, all) || inodes.is_short(disk.f_favail, disk.f_files)
                }),
                pids: free_pids(&text("/proc/loadavg"), &text("/proc/sys/kernel/pid_max"))
                    .is_some_and(|(free, all)| pids.is_short(free, all)),
            },
        }
    }
}

fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Free process ids, and all of them.
fn free_pids(loadavg: &str, pid_max: &str) -> Option<(u64, u64)> {
    let used: u64 = loadavg.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    let all: u64 = pid_max.trim().parse().ok()?;
    Some((all.saturating_sub(used), all))
}

fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn os_image(os_release: &str) -> String {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "Linux".to_owned(), |name| name.trim_matches(['"', '\'']).to_owned())
}

fn identity() -> HostIdentity {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let version = podstead_pod::kubernetes_version();
    HostIdentity {
        machine_id: text("/etc/machine-id"),
        system_uuid: text("/sys/class/dmi/id/product_uuid"),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        kernel_version: rustix::system::uname().release().to_string_lossy().into_owned(),
        os_image: os_image(&text("/etc/os-release")),
        container_runtime_version: format!("podstead://{}", env!("CARGO_PKG_VERSION")),
        kubelet_version: version.clone(),
        kube_proxy_version: version,
        operating_system: "linux".to_owned(),
        architecture: architecture.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_seen_as_it_is() {
        let facts = HostView::new("/".into(), Vec::new, Box::new(Health::default), PressureThresholds::default()).look();
        assert!(facts.cpus > 0 && facts.memory_bytes > 0 && facts.storage_bytes > 0);
        assert!(!facts.identity.boot_id.is_empty() && !facts.identity.kernel_version.is_empty());
    }

    #[test]
    fn pressure_is_read_from_what_the_kernel_says() {
        assert_eq!(available_memory("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(free_pids("0.1 0.1 0.1 2/300 4711", "1000\n"), Some((700, 1000)));
        assert_eq!(os_image("NAME=x\nPRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
    }
}
