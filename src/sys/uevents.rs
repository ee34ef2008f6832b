//! Messages about devices that come and go: those of the kernel, and those of udev, which follow when it has made its links.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The kernel's messages, and udev's.
const GROUPS: u32 = 1 | 2;
/// Longer than any message of the kernel.
const MESSAGE: usize = 16 * 1024;
/// Devices with a node have this in their messages.
const NODE: &[u8] = b"DEVNAME=";

/// Opens a socket that gets them from now on. It does not block.
pub fn open() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let opened = socket(AddressFamily::Netlink, SockType::Datagram, flags, SockProtocol::NetlinkKObjectUEvent)?;
    bind(opened.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
    Ok(opened)
}

/// Reads all messages that are there; returns true if one is about a device with a node, or may have been.
pub fn drain(socket: &OwnedFd) -> io::Result<bool> {
    let (mut buffer, mut counts) = (vec![0; MESSAGE], false);
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(read) => counts |= is_of_node(buffer.get(..read).unwrap_or_default()),
            // Messages were lost.
            Err(Errno::ENOBUFS) => counts = true,
            Err(Errno::EAGAIN) => return Ok(counts),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_of_node(message: &[u8]) -> bool {
    message.split(|byte| *byte == 0).any(|property| property.starts_with(NODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_devices_with_a_node_count() {
        assert!(is_of_node(b"add@/devices/x\0ACTION=add\0MAJOR=188\0DEVNAME=ttyUSB0\0"));
        assert!(is_of_node(b"libudev\0\xfe\xed\xca\xfeACTION=add\0DEVNAME=/dev/ttyUSB0\0"));
        assert!(!is_of_node(b"add@/devices/virtual/net/veth0\0ACTION=add\0INTERFACE=veth0\0"));
        assert!(!is_of_node(b""));
    }
}
