//! Default routes among the messages of rtnetlink. **Pure**.

use super::message::{ACK, Answer, Request, attributes, u32_at};
use super::rtnetlink::{MAIN_TABLE, NEW_ROUTE, ROUTE_HEADER, UNICAST, family_number, ip_of, octets};
use std::net::IpAddr;

const DELETE_ROUTE: u16 = 25;

/// Removes a default route of the main table.
pub fn delete_default_route(request: &mut Request, route: DefaultRoute) {
    let DefaultRoute { is_ipv4, interface, via, metric } = route;
    request.message(format!("remove the default route through interface {interface}"), DELETE_ROUTE, ACK, |body| {
        // Scope RT_SCOPE_NOWHERE: whatever it has.
        body.raw(&[family_number(is_ipv4), 0, 0, 0, MAIN_TABLE, 0, 255, 0, 0, 0, 0, 0]);
        if let Some(via) = via {
            body.bytes(5, &octets(via));
        }
        body.u32(4, interface);
        body.u32(6, metric);
    });
}

/// The interface of a default route; `None` for any other message.
pub fn default_route(answer: &Answer<'_>) -> Option<u32> {
    if answer.kind != NEW_ROUTE || *answer.body.get(7)? != UNICAST || *answer.body.get(1)? != 0 {
        return None;
    }
    attributes(answer.body.get(ROUTE_HEADER..)?).find(|(kind, _)| *kind == 4).and_then(|(_, value)| u32_at(value, 0))
}

/// A default route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultRoute {
    /// Of IPv4, or else of IPv6.
    pub is_ipv4: bool,
    /// Its interface.
    pub interface: u32,
    /// Its router, if it has one.
    pub via: Option<IpAddr>,
    /// The route with the least one counts.
    pub metric: u32,
}

/// Reads a default route of the main table, with one interface; `None` for any other message.
pub fn whole_default_route(answer: &Answer<'_>) -> Option<DefaultRoute> {
    if answer.kind != NEW_ROUTE
        || *answer.body.get(7)? != UNICAST
        || *answer.body.get(1)? != 0
        || *answer.body.get(4)? != MAIN_TABLE
    {
        return None;
    }
    let (mut interface, mut via, mut metric) = (None, None, 0);
    for (kind, value) in attributes(answer.body.get(ROUTE_HEADER..)?) {
        match kind {
            4 => interface = u32_at(value, 0),
            5 => via = ip_of(value),
            6 => metric = u32_at(value, 0)?,
            _ => {}
        }
    }
    Some(DefaultRoute { is_ipv4: *answer.body.first()? == family_number(true), interface: interface?, via, metric })
}
