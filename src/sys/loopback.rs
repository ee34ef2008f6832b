//! `lo` in a network namespace.

use super::netlink::message::Request;
use super::netlink::rtnetlink::switch_on;
use super::netlink::{NetlinkSocket, Protocol};
use std::fs::File;
use std::io;
use std::path::Path;

/// In every namespace `lo` is interface 1.
const LO: u32 = 1;

/// Sets `lo` up in the namespace pinned at `netns`; one that is up already stays so.
pub fn set_loopback_up(netns: &Path) -> io::Result<()> {
    let netns = File::open(netns)?;
    let mut request = Request::new();
    switch_on(&mut request, LO);
    let mut socket = NetlinkSocket::open_in(&netns, Protocol::Route).map_err(io::Error::other)?;
    socket.transact(&request, |_| {}).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_new_netns;

    #[test]
    fn lo_is_set_up_there_and_this_thread_stays_here() {
        let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        in_new_netns(|netns, is_up| {
            assert!(!is_up());
            set_loopback_up(netns).unwrap();
            assert!(is_up());
            set_loopback_up(netns).unwrap();
        });
        assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").unwrap(), own);
    }

    #[test]
    fn what_is_no_namespace_is_an_error() {
        set_loopback_up(Path::new("/dev/null")).unwrap_err();
        set_loopback_up(Path::new("/nowhere")).unwrap_err();
    }
}
