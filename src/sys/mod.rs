//! The kernel: clock, atomic files, cgroups, mounts, namespaces, sd_notify. The only module beside `shim` that may hold `unsafe`.

pub mod atomic_file;
pub mod beneath;
pub mod boot;
pub mod cgroup;
pub mod clock;
pub mod descriptor_passing;
pub mod disk_usage;
pub mod file_lease;
pub mod kernel;
pub mod libgit2;
pub mod loopback;
pub mod machine_key;
pub mod memory;
pub mod mount_tree;
pub mod mounts;
pub mod namespaces;
pub mod netlink;
pub mod netns_socket;
pub mod overlay;
pub mod pidfd;
pub mod process;
pub mod remove_tree;
pub mod sd_notify;
pub mod self_exec;
pub mod terminal;
pub mod time_sync;
