//! The part of `sys` that the target needs.

#[path = "netlink.rs"]
pub(crate) mod netlink;
