//! The kernel: clock, atomic files, cgroups, mounts, namespaces, sd_notify. The only module beside `shim` that may hold `unsafe`.

pub mod atomic_file;
pub mod beneath;
pub mod boot;
pub mod cgroup_moves;
pub mod descriptor_passing;
pub mod device_filter;
pub mod device_node;
pub mod disk_usage;
pub mod empty_mounts;
pub mod file_lease;

pub mod jail;
pub mod layout;
pub mod loopback;
pub mod machine_key;
pub mod medium;
pub mod memory;
pub mod mount_tree;
pub mod mounts;
pub mod namespaces;
pub mod net_dev;
pub mod netlink;
pub mod netns_socket;
pub mod ordered_journal;
pub mod overlay;
pub mod own_memory;
pub mod peer_groups;
pub mod pidfd;
pub mod proc_stat;
pub mod process;
pub mod quiet_look;
pub mod random;
pub mod rcu;
pub mod remove_tree;
pub mod sd_notify;
pub mod seccomp;
pub mod self_exec;
pub mod spawn;
pub mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tick;
pub mod time_sync;
pub mod uevents;
pub mod user_namespace;
pub mod write_ahead;
