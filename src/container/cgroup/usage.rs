//! Resource usage of a group.

use super::control::{keyed, number};
use super::tree::below;
use super::{CgroupError, CgroupVersion, Cgroups};
use std::path::{Path, PathBuf};

/// Resource usage of a group; zero where the host does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time since the group was made, in nanoseconds.
    pub cpu_nanos: u64,
    /// Bytes of memory charged to the group, page cache included.
    pub memory_bytes: u64,
    /// The same without the page cache that could be dropped at once: what the kubelet calls the working set.
    pub working_set_bytes: u64,
    /// Processes and threads.
    pub pids: u64,
}

impl Cgroups {
    /// Number of processes of the group and below that the kernel killed for lack of memory.
    pub fn oom_kills(&self, path: &Path) -> Result<u64, CgroupError> {
        let file = match self.version() {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        match self.file("memory", path, file) {
            Some(file) => Ok(keyed(&file, "oom_kill")?.unwrap_or_default()),
            None => Ok(0),
        }
    }

    /// Resource usage of the group and all below.
    pub fn usage(&self, path: &Path) -> Result<Usage, CgroupError> {
        let number_of = |controller, file| match self.file(controller, path, file) {
            Some(file) => Ok(number(&file)?.unwrap_or_default()),
            None => Ok(0),
        };
        let keyed_of = |controller, file, key| match self.file(controller, path, file) {
            Some(file) => Ok(keyed(&file, key)?.unwrap_or_default()),
            None => Ok(0),
        };
        let (cpu_nanos, memory_bytes, inactive) = match self.version() {
            CgroupVersion::V1 => (
                number_of("cpuacct", "cpuacct.usage")?,
                number_of("memory", "memory.usage_in_bytes")?,
                keyed_of("memory", "memory.stat", "total_inactive_file")?,
            ),
            CgroupVersion::V2 => (
                keyed_of("cpu", "cpu.stat", "usage_usec")?.saturating_mul(1000),
                number_of("memory", "memory.current")?,
                keyed_of("memory", "memory.stat", "inactive_file")?,
            ),
        };
        let pids = number_of("pids", "pids.current")?;
        Ok(Usage { cpu_nanos, memory_bytes, working_set_bytes: memory_bytes.saturating_sub(inactive), pids })
    }

    fn file(&self, controller: &str, path: &Path, file: &str) -> Option<PathBuf> {
        self.hierarchies.controller(controller).map(|root| below(root, path).join(file))
    }
}
