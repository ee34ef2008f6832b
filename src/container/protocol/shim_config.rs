//! Configuration of a shim, read once at its start: a file in the pod's run directory.

use crate::SandboxSpec;
use crate::cgroup::{CgroupError, Cgroups, Hierarchies};
use jiff::Timestamp;
use podstead_sys::layout::Paths;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything that a shim and its helpers know about their surroundings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShimConfig {
    /// Roots of the layout on disk, as in [`Paths`].
    pub state: PathBuf,
    /// As in [`Paths`].
    pub run: PathBuf,
    /// As in [`Paths`].
    pub logs: PathBuf,
    /// The sandbox to make.
    pub spec: SandboxSpec,
    /// The time at which the daemon decided to make it.
    pub created_at: Timestamp,
    /// The pod's cgroup, as an absolute path below the cgroup mounts (`/podstead.slice/...`).
    pub cgroup: PathBuf,
    /// Name of the top of the cgroup tree that it is in.
    pub cgroup_slice: String,
    /// The hierarchies of cgroups in which the daemon made the pod's. `None` from a daemon that did not write them.
    #[serde(default)]
    pub hierarchies: Option<Hierarchies>,
    /// Limits for the rotation of log files.
    #[serde(default)]
    pub log_limits: LogLimits,
    /// Seconds after which a helper that has not answered is killed.
    #[serde(default = "default_helper_timeout_secs")]
    pub helper_timeout_secs: u64,
}

/// Rotation of log files (kubelet rule D18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// A file that has reached this many bytes is rotated.
    pub max_bytes: u64,
    /// Files of one container's run that are kept, the current one included; at least 2.
    pub max_files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { max_bytes: 10 << 20, max_files: 5 }
    }
}

impl ShimConfig {
    /// The layout that the roots make.
    pub fn paths(&self) -> Paths {
        Paths { state: self.state.clone(), run: self.run.clone(), logs: self.logs.clone() }
    }

    /// The hierarchies of cgroups. They are looked for only if the daemon did not write them: a host may have thousands of mounts to look through.
    pub fn hierarchies(&self) -> Result<Hierarchies, CgroupError> {
        self.hierarchies.clone().map_or_else(Hierarchies::detect, Ok)
    }

    /// The tree of cgroups that the pod's are in.
    pub fn cgroups(&self) -> Result<Cgroups, CgroupError> {
        Ok(Cgroups::new(self.hierarchies()?, &self.cgroup_slice))
    }
}

/// Long, because a machine that starts a hundred pods from a slow disk is not broken.
fn default_helper_timeout_secs() -> u64 {
    120
}
