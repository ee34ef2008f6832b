//! Addresses that the resolver starts to listen on while it runs: networks of CNI plugins have their own.

use super::sockets::{SocketError, Sockets};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Opens sockets for the resolver.
#[derive(Debug)]
pub struct Listeners {
    open: Mutex<BTreeSet<IpAddr>>,
    /// Unbounded: one entry for each address of a router that this host is, which the host's owner configures.
    sockets: mpsc::UnboundedSender<Sockets>,
}

impl Listeners {
    /// The other end is the resolver's.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Sockets>) {
        let (sockets, further) = mpsc::unbounded_channel();
        (Self { open: Mutex::default(), sockets }, further)
    }

    /// Has port 53 of an address answered, from now until the daemon ends. Idempotent. Within tokio's runtime.
    pub fn listen_at(&self, address: IpAddr) -> Result<(), SocketError> {
        let mut open = self.open();
        if !open.contains(&address) {
            // A resolver that is not there any more belongs to a daemon that ends.
            self.sockets.send(Sockets::open_at_domain_port(address)?).ok();
            open.insert(address);
        }
        Ok(())
    }

    /// Returns true if port 53 of an address is served.
    pub fn is_open_at(&self, address: IpAddr) -> bool {
        self.open().contains(&address)
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<IpAddr>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_listened_at_once_and_one_that_is_taken_is_tried_again() {
        let (listeners, mut further) = Listeners::new();
        let address: IpAddr = "127.83.7.1".parse().unwrap();
        let other = std::net::UdpSocket::bind((address, 53)).unwrap();
        let taken = listeners.listen_at(address).unwrap_err();
        assert_eq!(taken.address.to_string(), "127.83.7.1:53");
        assert!(!listeners.is_open_at(address));
        drop(other);
        for _ in 0..2 {
            listeners.listen_at(address).unwrap();
        }
        assert!(listeners.is_open_at(address));
        let sockets = further.try_recv().unwrap();
        assert_eq!((sockets.port, sockets.udp.len(), sockets.tcp.len()), (53, 1, 1));
        further.try_recv().unwrap_err();
    }
}
