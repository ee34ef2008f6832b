//! Bonds of clients to endpoints that are gone (S20). They go in a transaction of their own for each: one that has just expired would undo the others.

use super::super::names::Names;
use super::elements::name;
use podstead_service::frontends::{Frontend, Frontends};
use podstead_service::range::Family;
use podstead_sys::netlink::maps::{self, MapElement, MapValue};
use podstead_sys::netlink::nftables::Batch;
use podstead_sys::netlink::rtnetlink::octets;
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Request};
use std::collections::BTreeMap;

/// Offset of a bond's frontend in its key, after the client's address.
const FRONTEND: usize = 4;
/// Offset of its protocol and port, after the address that the client connected to.
const PORT: usize = 8;

/// Endpoints, as values of bonds, by the end of the keys of bonds to a frontend.
type Endpoints = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Ends the bonds to endpoints that frontends with affinity have lost.
pub(in super::super) fn end(
    socket: &mut NetlinkSocket,
    names: &Names,
    before: &Frontends,
    after: &Frontends,
) -> Result<(), NetlinkError> {
    let changed = changed(before, after);
    if changed.is_empty() {
        return Ok(());
    }
    let map = name("affinity", Family::V4);
    let mut request = Request::new();
    maps::list_elements(&mut request, &names.table, &map);
    let mut stale = Vec::new();
    socket.dump(&request, |answer| {
        stale.extend(maps::elements(&answer).into_iter().filter(|bond| is_stale(bond, &changed)));
    })?;
    for bond in stale {
        let mut batch = Batch::new(&names.table);
        batch.delete_map_elements(&map, &[MapElement::key(bond.key)]);
        match socket.transact(&batch.end(), |_| {}) {
            // It expired meanwhile.
            Err(error) if !error.is_not_found() => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// The frontends with affinity that lost an endpoint, with those that they have (pure).
fn changed(before: &Frontends, after: &Frontends) -> Endpoints {
    let mut changed = Endpoints::new();
    for (frontend, backing, now) in before.differences(after).filter(|(frontend, ..)| frontend.family() == Family::V4) {
        let Some(backing) = backing.filter(|backing| backing.affinity.is_some()) else { continue };
        let now = now.map(|backing| backing.endpoints.clone()).unwrap_or_default();
        if backing.endpoints.iter().any(|endpoint| !now.contains(&endpoint)) {
            let values = now.iter().map(|endpoint| [octets(endpoint.ip()), port(endpoint.port())].concat()).collect();
            changed.insert(end_of_key(frontend), values);
        }
    }
    changed
}

/// The end of the keys of bonds to a frontend: a port of the host has no address of its own.
fn end_of_key(frontend: &Frontend) -> Vec<u8> {
    let (address, number) = match frontend {
        Frontend::Address(socket) => (octets(socket.address), socket.port),
        Frontend::Node(socket) => (Vec::new(), socket.port),
    };
    [address, vec![frontend.protocol().number(), 0, 0, 0], port(number)].concat()
}

fn port(number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    vec![high, low, 0, 0]
}

/// Returns true if a bond is to an endpoint that its frontend no longer has (pure).
fn is_stale(bond: &MapElement, changed: &Endpoints) -> bool {
    let MapValue::Data(endpoint) = &bond.value else { return false };
    // An address of a Service is none of the host, so that only one of both can be meant.
    let ends = [bond.key.get(FRONTEND..), bond.key.get(PORT..)];
    let endpoints = ends.into_iter().flatten().find_map(|end| changed.get(end));
    endpoints.is_some_and(|endpoints| !endpoints.contains(endpoint))
}
