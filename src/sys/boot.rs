//! Identity of the boot: process IDs, mounts and cgroups mean nothing in another one.

use std::fs;
use std::io;
use std::time::Duration;

/// A point in time that no change of the wall clock moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootTime {
    /// ID of the boot; empty where the kernel does not report it, so that no two boots are told apart.
    pub boot_id: String,
    /// Time since it, sleep included.
    pub since_boot: Duration,
}

impl BootTime {
    /// Now. What cannot be read counts as the beginning.
    pub fn now() -> Self {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let seconds = uptime.split([' ', '.']).next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        Self { boot_id: boot_id().unwrap_or_default(), since_boot: Duration::from_secs(seconds) }
    }
}

/// The kernel's random id of this boot.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
