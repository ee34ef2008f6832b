//! The uplink: the MTU of its interfaces.

use super::names::Names;
use podstead_sys::netlink::rtnetlink::{self, Link};
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request};

/// IPv6 does not work with less.
const LEAST_MTU: u32 = 1280;

/// The largest packet that all interfaces of default routes take; `None` without a default route.
pub(super) fn mtu(names: &Names) -> Result<Option<u32>, NetlinkError> {
    let mut socket = NetlinkSocket::open(Protocol::Route)?;
    let (mut links, mut ways) = (Vec::new(), Vec::new());
    let mut request = Request::new();
    rtnetlink::list_links(&mut request);
    socket.dump(&request, |answer| links.extend(rtnetlink::link(&answer).filter(|link| link.group != names.group)))?;
    let mut request = Request::new();
    rtnetlink::list_routes(&mut request);
    socket.dump(&request, |answer| ways.extend(rtnetlink::default_route(&answer)))?;
    Ok(smallest(&links, &ways))
}

fn smallest(links: &[Link], ways: &[u32]) -> Option<u32> {
    let taken = links.iter().filter(|link| ways.contains(&link.index) && link.mtu > 0).map(|link| link.mtu);
    taken.min().map(|mtu| mtu.max(LEAST_MTU))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_way_to_the_world_counts() {
        let link = |index, mtu| Link { index, mtu, ..Link::default() };
        let links = [link(1, 65536), link(2, 9000), link(3, 1400), link(4, 576)];
        assert_eq!(smallest(&links, &[]), None);
        assert_eq!(smallest(&links, &[2]), Some(9000));
        assert_eq!(smallest(&links, &[2, 3]), Some(1400));
        assert_eq!(smallest(&links, &[4]), Some(1280));
        assert_eq!(smallest(&links, &[5]), None);
    }
}
