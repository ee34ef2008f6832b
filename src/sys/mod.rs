//! The kernel: clock, atomic files, cgroups, mounts, namespaces, sd_notify. The only module beside `shim` that may hold `unsafe`.

pub mod atomic_file;
pub mod beneath;
pub mod cgroup;
pub mod clock;
pub mod kernel;
pub mod mounts;
pub mod remove_tree;
