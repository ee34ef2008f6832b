//! Content of a pod's network namespace.

use podstead_pod::networks::FIRST_INTERFACE;
use podstead_sys::loopback::set_loopback_up;
use podstead_sys::netlink::rtnetlink::{self, Link};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Reason why the namespace cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum NamespaceError {
    /// It is gone.
    #[error("open network namespace {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The kernel refused.
    #[error("list the pod's interfaces")]
    Look(#[source] NetlinkError),
    /// `lo` cannot be set up.
    #[error("set lo up")]
    Loopback(#[source] io::Error),
}

/// Interfaces and routes in the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Names of interfaces.
    pub(super) interfaces: Vec<String>,
    /// Addresses of the first interface that others can reach.
    pub(super) first_ips: Vec<IpAddr>,
}

/// Looks into a namespace. Blocks for about the time that starting a thread takes.
pub(super) fn contents(netns: &Path) -> Result<Contents, NamespaceError> {
    let file = File::open(netns).map_err(|source| NamespaceError::Open { path: netns.to_owned(), source })?;
    let mut socket = NetlinkSocket::open_in(&file, Protocol::Route).map_err(NamespaceError::Look)?;
    let mut links: Vec<Link> = Vec::new();
    let mut request = Request::new();
    rtnetlink::list_links(&mut request);
    socket.dump(&request, |answer| links.extend(rtnetlink::link(&answer))).map_err(NamespaceError::Look)?;
    let first = links.iter().find(|link| link.name == FIRST_INTERFACE).map(|link| link.index);
    let mut first_ips = Vec::new();
    let mut request = Request::new();
    rtnetlink::list_addresses(&mut request);
    let is_reachable = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    socket
        .dump(&request, |answer| {
            let address = rtnetlink::address(&answer).filter(|address| Some(address.interface) == first);
            first_ips.extend(address.map(|address| address.network).filter(is_reachable));
        })
        .map_err(NamespaceError::Look)?;
    Ok(Contents { interfaces: links.into_iter().map(|link| link.name).collect(), first_ips })
}

/// As [`contents`], with `lo` up.
pub(super) fn prepared(netns: &Path) -> Result<Contents, NamespaceError> {
    set_loopback_up(netns).map_err(NamespaceError::Loopback)?;
    contents(netns)
}
