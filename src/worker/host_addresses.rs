//! The host's addresses, which come and go with its network.

use podstead_sys_async::clock::Moment;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time for which an answer of the kernel is cached.
const FRESH: Duration = Duration::from_secs(5);

/// Asks for the host's addresses, primary first.
pub(super) type AskAddresses = fn() -> io::Result<Vec<IpAddr>>;

/// The host's addresses as of a few seconds ago. Read only on demand.
pub struct HostAddresses {
    ask: AskAddresses,
    last: Mutex<Option<(Moment, Vec<IpAddr>)>>,
}

impl HostAddresses {
    /// Nothing asked yet.
    pub const fn new(ask: AskAddresses) -> Self {
        Self { ask, last: Mutex::new(None) }
    }

    /// The addresses, primary first; empty before the network is up.
    pub fn get(&self, now: Moment) -> Vec<IpAddr> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((asked, addresses)) if now.since(*asked) < FRESH => addresses.clone(),
            Some(_) | None => {
                let addresses = (self.ask)().unwrap_or_default();
                *last = Some((now, addresses.clone()));
                addresses
            }
        }
    }
}

impl fmt::Debug for HostAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostAddresses").finish_non_exhaustive()
    }
}
