//! The pure part of `sys::netlink`.

#[path = "../../../../src/sys/netlink/accepting.rs"]
pub(crate) mod accepting;
#[path = "../../../../src/sys/netlink/conntrack.rs"]
pub(crate) mod conntrack;
#[path = "../../../../src/sys/netlink/default_route.rs"]
mod default_route;
#[path = "../../../../src/sys/netlink/expressions.rs"]
pub(crate) mod expressions;
#[path = "../../../../src/sys/netlink/listening.rs"]
pub(crate) mod listening;
#[path = "../../../../src/sys/netlink/message.rs"]
pub(crate) mod message;
#[path = "../../../../src/sys/netlink/nftables.rs"]
pub(crate) mod nftables;
#[path = "../../../../src/sys/netlink/rtnetlink.rs"]
pub(crate) mod rtnetlink;
#[path = "../../../../src/sys/netlink/sources.rs"]
pub(crate) mod sources;

pub(crate) use message::{Answer, Body, Request, answers, attributes};
