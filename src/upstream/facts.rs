//! What this host is, asked of the kernel and of a few files. Nothing here fails: what cannot be learnt is empty.

use super::plan::node::{HostFacts, HostIdentity, Pressure};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Available memory below which there is too little, as the kubelet's threshold of eviction.
const LEAST_MEMORY: u64 = 100 << 20;
/// Part of the disk that has to be free, as the kubelet's.
const LEAST_DISK_PERCENT: u64 = 10;
/// Part of the inodes that has to be free, as the kubelet's.
const LEAST_INODES_PERCENT: u64 = 5;
/// Part of the process ids that has to be free.
const LEAST_PIDS_PERCENT: u64 = 10;

/// Looks at the host.
#[derive(Debug)]
pub struct HostView {
    state: PathBuf,
    addresses: fn() -> Vec<IpAddr>,
    identity: HostIdentity,
}

impl HostView {
    /// `state` is the directory of the durable state; `addresses` asks for the host's addresses, the primary one first.
    pub fn new(state: PathBuf, addresses: fn() -> Vec<IpAddr>) -> Self {
        Self { state, addresses, identity: identity() }
    }

    /// The host as it is now.
    pub fn look(&self) -> HostFacts {
        let disk = rustix::fs::statvfs(&self.state).ok();
        HostFacts {
            host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            addresses: (self.addresses)(),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
            memory_bytes: crate::sys::memory::memory_bytes(),
            storage_bytes: disk.as_ref().map_or(0, |disk| disk.f_blocks * disk.f_frsize),
            identity: self.identity.clone(),
            pressure: Pressure {
                memory: available_memory(&text("/proc/meminfo")).is_some_and(|bytes| bytes < LEAST_MEMORY),
                disk: disk.is_some_and(|disk| {
                    is_short(disk.f_bavail, disk.f_blocks, LEAST_DISK_PERCENT)
                        || is_short(disk.f_favail, disk.f_files, LEAST_INODES_PERCENT)
                }),
                pids: free_pids(&text("/proc/loadavg"), &text("/proc/sys/kernel/pid_max"))
                    .is_some_and(|(free, all)| is_short(free, all, LEAST_PIDS_PERCENT)),
            },
        }
    }
}

/// Less than `percent` of `all` is free; file systems that do not count have nothing.
fn is_short(free: u64, all: u64, percent: u64) -> bool {
    all > 0 && u128::from(free) * 100 < u128::from(all) * u128::from(percent)
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
    let version = format!("v1.34.0+podstead.{}", env!("CARGO_PKG_VERSION"));
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
        let facts = HostView::new("/".into(), Vec::new).look();
        assert!(facts.cpus > 0 && facts.memory_bytes > 0 && facts.storage_bytes > 0);
        assert!(!facts.identity.boot_id.is_empty() && !facts.identity.kernel_version.is_empty());
    }

    #[test]
    fn pressure_is_read_from_what_the_kernel_says() {
        assert_eq!(available_memory("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(free_pids("0.1 0.1 0.1 2/300 4711", "1000\n"), Some((700, 1000)));
        assert!(is_short(9, 100, 10) && !is_short(10, 100, 10) && !is_short(0, 0, 10));
        assert_eq!(os_image("NAME=x\nPRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
    }
}
