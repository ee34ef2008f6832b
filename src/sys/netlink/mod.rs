//! Netlink, spoken without other programs: interfaces, addresses and routes (rtnetlink), packet rules (nftables),
//! sockets that listen (sock_diag).
//!
//! [`message`], [`rtnetlink`], [`nftables`], [`maps`], [`sources`] and [`listening`] are pure: bytes out of and into headers and attributes. [`socket`] sends and receives.
//! In: requests built by the network; out: acknowledgements, dumps and notifications of the kernel.

pub mod accepting;
pub mod conntrack;
mod default_route;
pub mod expressions;
pub mod link_news;
pub mod listening;
pub mod maps;
pub mod message;
pub mod nftables;
pub mod rtnetlink;
pub mod socket;
pub mod sources;

pub use message::{Answer, Body, Request, answers, attributes};
pub use socket::{NetlinkError, NetlinkSocket, Protocol};
