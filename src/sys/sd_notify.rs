//! Messages to the service manager (`sd_notify(3)`): one datagram to the socket named in the environment.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Name of the environment variable that names the socket.
pub const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Sends `message` (e.g. `READY=1`) to the socket, a path or, with a leading `@`, an abstract name.
pub fn notify(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_reaches_a_socket_at_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let receiver = UnixDatagram::bind(&path).unwrap();
        notify(path.as_os_str(), "READY=1").unwrap();
        let mut buffer = [0; 64];
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");
    }

    #[test]
    fn an_abstract_name_is_understood() {
        let name = format!("podstead-test-{}", std::process::id());
        let receiver = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        notify(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        let mut buffer = [0; 64];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 10);
    }

    #[test]
    fn a_manager_that_is_gone_is_an_error() {
        assert!(notify(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
    }
}
