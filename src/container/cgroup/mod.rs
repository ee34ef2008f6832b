//! Cgroups: where they are, the tree of pods in them, limits, killing, counting. Works on v2 and on v1 (hybrid included).
//!
//! The tree, the same in every hierarchy, is the kubelet's (rule D24) under a root of its own, never in the daemon's cgroup: systemd
//! refuses to restart a service whose cgroup has been divided.
//!
//! ```text
//! /podstead.slice/pod<uid>/<container id>                Guaranteed
//! /podstead.slice/burstable/pod<uid>/<container id>
//! /podstead.slice/besteffort/pod<uid>/<container id>
//! /podstead.slice/shims/<uid>                            the pod's shim and its short-lived helpers
//! /podstead.slice/jobs/<number>                          a job of the daemon
//! ```
//!
//! The shim stands beside its pod and not in it: on v2 no process may live in a group that has been divided, and a pod that uses up its
//! memory must lose a container, not its shim. Containers' groups are made by libcontainer from the absolute path
//! ([`Cgroups::container`]). On a hybrid host containers stay in their shim's group in the hierarchies that libcontainer does not know
//! (`name=systemd`, `unified`), so killing a shim's group kills the pod's containers: kill the pod first, to have their exits recorded.
//!
//! All functions block; none waits longer than it is told.

mod control;
mod counters;
mod devices;
mod hierarchies;
mod huge_pages;
mod jobs;
mod kill;
mod limits;
mod resize;
mod tree;
mod usage;

#[cfg(test)]
mod tests;

pub use counters::{Counters, DiskCounters};
pub use devices::DeviceChange;
pub use hierarchies::{CgroupVersion, Hierarchies};
pub use jobs::{JobEntrances, JobLimits, JobsPace};
pub use limits::cpu_weight;
pub use tree::Cgroups;
pub(crate) use tree::below;
pub use usage::Usage;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Error of a cgroup operation.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is no hierarchy that could limit anything.
    #[error("no cgroup hierarchy with controllers is mounted")]
    NoHierarchy,
    /// A file could not be read.
    #[error("read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A file could not be written.
    #[error("write {value:?} to {path:?}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A group could not be made.
    #[error("create cgroup {path:?}")]
    Make {
        /// Its directory.
        path: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A group could not be removed.
    #[error("remove cgroup {path:?}")]
    Remove {
        /// Its directory.
        path: PathBuf,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// Processes are still there after they were killed.
    #[error("cgroup {path:?} still has processes {waited:?} after they were killed")]
    NotEmpty {
        /// Its path in the tree.
        path: PathBuf,
        /// Time waited.
        waited: Duration,
    },
}
