//! Waiting for the kernel with tokio: clocks, netlink notifications, addresses that are not available yet.
//!
//! Apart from `podstead-sys`, so that the shim has no tokio.

pub mod clock;
pub mod disk_errors;
pub mod mount_table;
pub mod notifications;
pub mod tcp_listener;
pub mod uevents;
pub mod wall_timer;
