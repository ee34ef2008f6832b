//! Tracked connections of UDP that lead to an endpoint that is gone, or to nobody (S22): a client that goes on sending would never reach another one.

use super::super::tracked::{forget_all, own_addresses};
use podstead_service::frontends::{Frontend, Frontends};
use podstead_service::range::Family;
use podstead_sys::netlink::NetlinkError;
use podstead_sys::netlink::conntrack::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const UDP: u8 = 17;

/// Addresses of the endpoints that serve a frontend.
type Serving = BTreeMap<Frontend, BTreeSet<IpAddr>>;

/// Forgets connections to these frontends that no endpoint of theirs answers.
pub(in super::super) fn forget(moved: &BTreeSet<Frontend>, frontends: &Frontends) -> Result<(), NetlinkError> {
    if moved.is_empty() {
        return Ok(());
    }
    let serving = serving(moved, frontends);
    let own = own_addresses();
    forget_all(|connection| is_stale(connection, &serving, &own))
}

/// The endpoints of frontends, none for those that are gone (pure).
fn serving(moved: &BTreeSet<Frontend>, frontends: &Frontends) -> Serving {
    let addresses = |frontend: &Frontend| -> BTreeSet<IpAddr> {
        frontends.get(frontend).into_iter().flat_map(|backing| backing.endpoints.iter()).map(|endpoint| endpoint.ip()).collect()
    };
    moved.iter().map(|frontend| (*frontend, addresses(frontend))).collect()
}

/// Returns true if a connection was to one of the frontends and is not answered by its endpoints (pure).
fn is_stale(connection: &Connection, serving: &Serving, own: &[IpAddr]) -> bool {
    let (destination, port) = connection.destination;
    let is_to = |frontend: &Frontend| match frontend {
        Frontend::Address(socket) => (socket.address, socket.port) == (destination, port),
        Frontend::Node(socket) => {
            let is_own = own.contains(&destination) || destination.is_loopback();
            (socket.family, socket.port) == (Family::of(destination), port) && is_own
        }
    };
    connection.protocol == UDP
        && serving.iter().any(|(frontend, addresses)| is_to(frontend) && !addresses.contains(&connection.answers))
}
