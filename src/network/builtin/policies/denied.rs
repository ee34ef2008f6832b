//! Numbers of packets that policies denied, by pod (N13). The kernel counts them; they start anew with a new table.

use super::super::names::Names;
use super::table;
use podstead_policy::definition::Direction;
use podstead_service::range::Family;
use podstead_sys::netlink::maps::{self, MapElement};
use podstead_sys::netlink::nftables::Batch;
use podstead_sys::netlink::rtnetlink::octets;
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};
use std::net::IpAddr;

/// Packets that were denied, by direction and address of the pod; nothing without a table that has policies.
pub(in super::super) fn read(names: &Names) -> Result<Vec<(Direction, IpAddr, u64)>, NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Netfilter)?;
    let mut found = Vec::new();
    for direction in [Direction::Ingress, Direction::Egress] {
        for family in Family::ALL {
            let mut request = Request::new();
            maps::list_elements(&mut request, &names.table, table::denied(direction, family));
            let listed = socket.dump(&request, |answer| {
                let counted = maps::counted(&answer).into_iter();
                found.extend(counted.filter_map(|(key, packets)| Some((direction, address(&key)?, packets))));
            });
            match listed {
                Err(error) if error.is_not_found() => return Ok(Vec::new()),
                listed => listed?,
            }
        }
    }
    Ok(found)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    v4.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

/// Transactions that each forget the number of a pod that is gone: another one may get its address. Most pods have none, so that each may fail.
pub(in super::super) fn forget(names: &Names, addresses: &[Vec<u8>]) -> Vec<Request> {
    let mut requests = Vec::new();
    for address in addresses {
        let family = if address.len() == octets(IpAddr::from([0; 4])).len() { Family::V4 } else { Family::V6 };
        for direction in [Direction::Ingress, Direction::Egress] {
            let mut batch = Batch::new(&names.table);
            batch.delete_map_elements(table::denied(direction, family), &[MapElement::key(address.clone())]);
            requests.push(batch.end());
        }
    }
    requests
}
