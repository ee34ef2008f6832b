//! What of the kernel is waited for with tokio: clocks, netlink notifications, addresses that cannot be had yet.
//!
//! Apart from `podstead-sys`, so that the shim has no tokio.

pub mod clock;
pub mod notifications;
pub mod tcp_listener;
