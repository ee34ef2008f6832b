//! Identity of the boot: process IDs, mounts and cgroups mean nothing in another one.

use crate::atomic_file;
use std::fs;
use std::io;
use std::path::Path;
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

/// Reports whether [`put_mark`] made this file in this boot.
pub(crate) fn is_marked(mark: &Path) -> bool {
    matches!((fs::read_to_string(mark), boot_id()), (Ok(marked), Ok(now)) if marked == now && !now.is_empty())
}

/// Makes a file that tells this boot from others.
pub(crate) fn put_mark(mark: &Path) -> io::Result<()> {
    atomic_file::write_atomic(mark, boot_id()?.as_bytes(), 0o600)
}
