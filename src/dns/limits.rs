//! Limits on the queries of a pod. **Pure**: the time is an argument, counted from any fixed moment.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Questions in a second that are answered for one address, in the long run.
const RATE: u64 = 1000;
/// Questions at once.
const BURST: u64 = 2000;
/// Questions under way at the host's name servers.
const FORWARDED: usize = 512;
/// The same for one address.
const FORWARDED_EACH: usize = 128;
/// Connections.
const CONNECTIONS: usize = 128;
/// The same for one address.
const CONNECTIONS_EACH: usize = 16;
/// Addresses remembered before those that ask nothing are forgotten.
const REMEMBERED: usize = 1024;

/// Limited resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A forwarded query.
    Forward,
    /// A connection by TCP.
    Connection,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    /// Thousandths of questions that may be asked at once.
    credit: u64,
    at: Duration,
    forwarded: usize,
    connections: usize,
}

/// Present use by all pods.
#[derive(Debug, Default)]
pub(super) struct Limits {
    clients: HashMap<IpAddr, Client>,
    forwarded: usize,
    connections: usize,
}

impl Limits {
    /// Returns true if one more query of this address is answered.
    pub(super) fn ask(&mut self, from: IpAddr, now: Duration) -> bool {
        let client = self.client(from, now);
        let earned = u64::try_from(now.saturating_sub(client.at).as_millis()).unwrap_or(u64::MAX).saturating_mul(RATE);
        client.credit = client.credit.saturating_add(earned).min(BURST * 1000);
        client.at = client.at.max(now);
        let rest = client.credit.checked_sub(1000);
        client.credit = rest.unwrap_or(client.credit);
        rest.is_some()
    }

    /// Takes one of what is limited; `false` when there is no more. What was taken is given back with [`Limits::end`].
    pub(super) fn begin(&mut self, what: Use, from: IpAddr, now: Duration) -> bool {
        let (all, most, most_each) = match what {
            Use::Forward => (self.forwarded, FORWARDED, FORWARDED_EACH),
            Use::Connection => (self.connections, CONNECTIONS, CONNECTIONS_EACH),
        };
        let client = self.client(from, now);
        let own = match what {
            Use::Forward => &mut client.forwarded,
            Use::Connection => &mut client.connections,
        };
        if all >= most || *own >= most_each {
            return false;
        }
        *own += 1;
        *self.all(what) += 1;
        true
    }

    /// Gives it back.
    pub(super) fn end(&mut self, what: Use, from: IpAddr) {
        if let Some(client) = self.clients.get_mut(&from) {
            let own = match what {
                Use::Forward => &mut client.forwarded,
                Use::Connection => &mut client.connections,
            };
            *own = own.saturating_sub(1);
        }
        let all = self.all(what);
        *all = all.saturating_sub(1);
    }

    fn all(&mut self, what: Use) -> &mut usize {
        match what {
            Use::Forward => &mut self.forwarded,
            Use::Connection => &mut self.connections,
        }
    }

    fn client(&mut self, from: IpAddr, now: Duration) -> &mut Client {
        if self.clients.len() >= REMEMBERED && !self.clients.contains_key(&from) {
            // An address without queries for this long has full credit again.
            let rested = Duration::from_secs(BURST / RATE);
            self.clients.retain(|_, client| client.forwarded > 0 || client.connections > 0 || client.at + rested > now);
        }
        self.clients.entry(from).or_insert(Client { credit: BURST * 1000, at: now, forwarded: 0, connections: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0ac9_0000 + last).into()
    }

    #[test]
    fn a_pod_that_asks_too_much_is_held_back_and_others_are_not() {
        let mut limits = Limits::default();
        let start = Duration::from_secs(100);
        let answered = (0..5000).filter(|_| limits.ask(address(1), start)).count();
        assert_eq!(answered as u64, BURST);
        assert!(limits.ask(address(2), start));
        let later = start + Duration::from_millis(500);
        let answered = (0..5000).filter(|_| limits.ask(address(1), later)).count();
        assert_eq!(answered as u64, RATE / 2);
        assert!(!limits.ask(address(1), start), "a clock that goes back gives nothing");
    }

    #[test]
    fn what_is_under_way_is_limited_for_each_and_for_all_and_given_back() {
        let now = Duration::ZERO;
        for (what, most, each) in [(Use::Forward, FORWARDED, FORWARDED_EACH), (Use::Connection, CONNECTIONS, CONNECTIONS_EACH)] {
            let mut limits = Limits::default();
            let mut taken = 0;
            for pod in 0..20 {
                taken += (0..most).filter(|_| limits.begin(what, address(pod), now)).count().min(each);
            }
            assert_eq!(taken, most, "{what:?}");
            assert!(!limits.begin(what, address(99), now));
            limits.end(what, address(0));
            assert!(limits.begin(what, address(99), now));
        }
    }

    #[test]
    fn addresses_that_ask_nothing_are_forgotten() {
        let mut limits = Limits::default();
        assert!(limits.begin(Use::Connection, address(0), Duration::ZERO));
        for number in 1..10_000 {
            limits.ask(address(number), Duration::from_secs(number.into()));
        }
        assert!(limits.clients.len() <= REMEMBERED + 1, "{}", limits.clients.len());
        assert!(limits.clients.contains_key(&address(0)), "it has a connection");
    }
}
