//! Listening sockets of the host: a hostPort must not take a port from a service of the host.

use podstead_pod::host_ports::{HostPort, Protocol};
use podstead_sys::netlink::{self, NetlinkError, NetlinkSocket, listening};
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A listening socket of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    /// Its address; unspecified for all.
    address: IpAddr,
    port: u16,
    inode: u64,
}

/// `TCP_LISTEN`, and `TCP_CLOSE`, which is how an unconnected UDP socket is shown.
const LISTENING: &str = "0A";
const UNCONNECTED: &str = "07";

/// The listener in the way of a port; `None` if there is none. `is_own` tells sockets that are in nobody's way.
pub(super) fn in_the_way(port: &HostPort, is_own: impl Fn(IpAddr, u16) -> bool) -> io::Result<Option<Listener>> {
    let is_obstacle = |listener: &Listener| is_in_the_way(listener, port) && !is_own(listener.address, listener.port);
    let waiting = match NetlinkSocket::open(netlink::Protocol::Sockets).and_then(|socket| asked(socket, port)) {
        Ok(waiting) => waiting,
        // A kernel without the module for it.
        Err(_) => read(Path::new("/proc"), port.protocol)?,
    };
    Ok(waiting.into_iter().find(is_obstacle))
}

/// Reports whether somebody listens at `port`, in the network namespace pinned at `netns` or in that of this process; `None` if the kernel cannot tell.
pub(super) fn is_heard(netns: Option<&Path>, port: &HostPort) -> Option<bool> {
    let socket = match netns {
        Some(netns) => NetlinkSocket::open_in(&File::open(netns).ok()?, netlink::Protocol::Sockets),
        None => NetlinkSocket::open(netlink::Protocol::Sockets),
    };
    let waiting = asked(socket.ok()?, port).ok()?;
    Some(waiting.iter().any(|listener| is_in_the_way(listener, port)))
}

/// Listeners at the port, from the kernel.
fn asked(mut socket: NetlinkSocket, port: &HostPort) -> Result<Vec<Listener>, NetlinkError> {
    let mut found = Vec::new();
    for request in listening::list(port.protocol.number(), port.host_port) {
        socket.dump(&request, |answer| found.extend(listening::waiting(&answer)))?;
    }
    let listener =
        |waiting: listening::Waiting| Listener { address: waiting.address, port: waiting.port, inode: waiting.inode.into() };
    Ok(found.into_iter().map(listener).collect())
}

/// Listeners at any port. `root` is `/proc`.
fn read(root: &Path, protocol: Protocol) -> io::Result<Vec<Listener>> {
    let files = match protocol {
        Protocol::Tcp => ["tcp", "tcp6"],
        Protocol::Udp => ["udp", "udp6"],
        // The kernel names them in another way; who serves SCTP on an edge host has no second server there.
        Protocol::Sctp => return Ok(Vec::new()),
    };
    let mut found = Vec::new();
    for file in files {
        match fs::read_to_string(root.join("net").join(file)) {
            Ok(table) => found.extend(listeners(&table, protocol)),
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn is_in_the_way(listener: &Listener, port: &HostPort) -> bool {
    let any = |ip: IpAddr| ip.is_unspecified();
    // A socket of all IPv6 addresses usually takes IPv4, too.
    let shares_address = match port.host_ip {
        None => true,
        Some(ip) if any(ip) || any(listener.address) => {
            ip.is_ipv4() == listener.address.is_ipv4() || listener.address == Ipv6Addr::UNSPECIFIED
        }
        Some(ip) => ip == listener.address,
    };
    listener.port == port.host_port && shares_address
}

/// Reads a table of sockets (pure). Lines that are not understood are left out.
fn listeners(table: &str, protocol: Protocol) -> Vec<Listener> {
    let state = match protocol {
        Protocol::Tcp | Protocol::Sctp => LISTENING,
        Protocol::Udp => UNCONNECTED,
    };
    let line = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, _remote, is) = (fields.next()?, fields.next()?, fields.next()?);
        let inode = fields.nth(5)?.parse().ok()?;
        let (address, port) = local.split_once(':')?;
        let listener = Listener { address: hex_address(address)?, port: u16::from_str_radix(port, 16).ok()?, inode };
        (is == state).then_some(listener)
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// Words of four bytes in the byte order of this machine, as they are in the packet.
fn hex_address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (index, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index * 8)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Name of the listener that conflicts with a port; `None` if there is none, or if it cannot be determined. `is_own` as for [`in_the_way`].
pub(crate) fn owner_of(root: &Path, port: &HostPort, is_own: impl Fn(IpAddr, u16) -> bool) -> Option<String> {
    let listener = in_the_way(port, is_own).ok().flatten()?;
    Some(owner(root, &listener).unwrap_or_else(|| "a service on this host".to_owned()))
}

/// Name and process id of who has the socket, for people; `None` if it cannot be told. Looks at all processes.
pub(super) fn owner(root: &Path, listener: &Listener) -> Option<String> {
    let socket = format!("socket:[{}]", listener.inode);
    for process in fs::read_dir(root).ok()?.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        let has_it = descriptors
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == socket.as_str()));
        if has_it {
            let program = fs::read_to_string(process.path().join("comm")).ok()?;
            return Some(format!("{} (process {pid})", program.trim()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    fn port(protocol: Protocol, ip: Option<&str>, number: u16) -> HostPort {
        HostPort { protocol, host_ip: ip.map(|ip| ip.parse().unwrap()), host_port: number, container_port: 80 }
    }

    fn found(port: &HostPort) -> Option<Listener> {
        let found = in_the_way(port, |_, _| false).unwrap();
        let read = read(Path::new("/proc"), port.protocol).unwrap();
        assert_eq!(read.into_iter().find(|listener| is_in_the_way(listener, port)), found, "both ways to look say the same");
        found
    }

    #[test]
    fn sockets_of_this_host_are_found_with_their_owner() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = tcp.local_addr().unwrap().port();
        let listener = found(&port(Protocol::Tcp, None, number)).unwrap();
        let owner = owner(Path::new("/proc"), &listener).unwrap();
        assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
        assert!(found(&port(Protocol::Tcp, Some("127.0.0.1"), number)).is_some());
        assert!(found(&port(Protocol::Tcp, Some("0.0.0.0"), number)).is_some());
        assert_eq!(found(&port(Protocol::Tcp, Some("192.0.2.1"), number)), None);
        assert_eq!(found(&port(Protocol::Udp, None, number)), None);
        let is_own = |address: IpAddr, port: u16| address.is_loopback() && port == number;
        assert_eq!(in_the_way(&port(Protocol::Tcp, None, number), is_own).unwrap(), None);

        let udp = UdpSocket::bind("[::]:0").unwrap();
        let number = udp.local_addr().unwrap().port();
        assert!(found(&port(Protocol::Udp, Some("192.0.2.1"), number)).is_some(), "it takes IPv4, too");
    }

    #[test]
    fn one_address_of_ipv6_is_in_the_way_of_ipv6_only() {
        let listener = |address: &str| Listener { address: address.parse().unwrap(), port: 8080, inode: 1 };
        let blocks = |address, ip| is_in_the_way(&listener(address), &port(Protocol::Tcp, Some(ip), 8080));
        assert!(!blocks("2001:db8::1", "0.0.0.0"));
        assert!(!blocks("192.0.2.1", "::"));
        assert!(blocks("2001:db8::1", "::") && blocks("::", "192.0.2.1") && blocks("::", "0.0.0.0"));
        assert!(blocks("0.0.0.0", "192.0.2.1") && !blocks("0.0.0.0", "2001:db8::1"));
    }

    #[test]
    fn a_client_is_in_nobodys_way() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 77 1\n\
            1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 78 1\n\
            2: nonsense\n";
        let listeners = listeners(table, Protocol::Tcp);
        assert_eq!(listeners, [Listener { address: Ipv4Addr::UNSPECIFIED.into(), port: 22, inode: 78 }]);
    }
}
