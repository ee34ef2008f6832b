//! Services that an earlier daemon has left in the table: they stay in force until what sources and pods say takes their place (R8).

use super::super::names::Names;
use super::elements::{self, MAPS, name};
use podstead_service::frontends::{Elements, Frontends};
use podstead_service::range::Family;
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request, maps};

/// The frontends in the kernel; `None` without a table that has Services.
pub(in super::super) fn read(names: &Names) -> Result<Option<Frontends>, NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Netfilter)?;
    let mut found = Elements::new();
    for map in MAPS {
        // Bonds are to be had over IPv4 only.
        for family in Family::ALL.into_iter().filter(|family| *family == Family::V4 || !map.starts_with("sticky")) {
            let mut request = Request::new();
            maps::list_elements(&mut request, &names.table, &name(map, family));
            let listed = socket.dump(&request, |answer| {
                found.extend(maps::elements(&answer).iter().filter_map(|element| elements::read(map, family, element)));
            });
            match listed {
                Err(error) if error.is_not_found() => return Ok(None),
                listed => listed?,
            }
        }
    }
    Ok(Some(Frontends::recovered(&found)))
}
