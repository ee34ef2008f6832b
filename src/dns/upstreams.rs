//! Choice and order of the host's name servers. **Pure**.

use podstead_pod::host_files::ResolvConf;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

/// Maximum number of servers, as the C library uses.
const MOST: usize = 3;
const PORT: u16 = 53;
/// For how long a name server that did not answer is asked after the others.
const PENALTY: Duration = Duration::from_secs(20);

/// The host's settings for name servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostSettings {
    /// Its `resolv.conf`; empty without one.
    pub(super) resolv_conf: String,
    /// The servers that systemd-resolved uses; empty without it.
    pub(super) resolved: String,
}

/// The name servers to ask. `configured` ones count alone; otherwise those of the host, and behind a stub of systemd-resolved those that it
/// asks, should it be stopped. The resolver itself, at `own`, is never asked. `scope` finds the number of an interface.
pub(super) fn name_servers(
    settings: &HostSettings,
    configured: &[SocketAddr],
    own: &[IpAddr],
    scope: impl Fn(&str) -> Option<u32>,
) -> Vec<SocketAddr> {
    if !configured.is_empty() {
        return configured.to_vec();
    }
    let listed = |file: &str| -> Vec<SocketAddr> {
        let servers = ResolvConf::parse(file).nameservers;
        let servers = servers.iter().filter_map(|server| server_address(server, &scope));
        servers.filter(|server| !own.contains(&server.ip())).take(MOST).collect()
    };
    let mut servers = listed(&settings.resolv_conf);
    if servers.iter().all(|server| is_stub(server.ip())) && !servers.is_empty() {
        servers.extend(listed(&settings.resolved));
    }
    let mut unique = Vec::new();
    servers.retain(|server| {
        let is_new = !unique.contains(server);
        unique.push(*server);
        is_new
    });
    servers
}

/// Returns true if systemd-resolved's stub has this address.
fn is_stub(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if matches!(address.octets(), [127, 0, 0, 53 | 54]))
}

/// `address` or `address%interface`.
fn server_address(text: &str, scope: &impl Fn(&str) -> Option<u32>) -> Option<SocketAddr> {
    match text.split_once('%') {
        None => text.parse().ok().map(|address| SocketAddr::new(address, PORT)),
        Some((address, interface)) => {
            let number = interface.parse().ok().or_else(|| scope(interface))?;
            Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, number).into())
        }
    }
}

/// Failed name servers, with the times.
#[derive(Debug, Default)]
pub(super) struct Standing {
    failed: BTreeMap<SocketAddr, Duration>,
}

impl Standing {
    /// Notes that a name server was silent.
    pub(super) fn failed(&mut self, server: SocketAddr, now: Duration) {
        self.failed.insert(server, now);
        self.failed.retain(|_, at| *at + PENALTY > now);
    }

    /// Notes that it answered.
    pub(super) fn answered(&mut self, server: SocketAddr) {
        self.failed.remove(&server);
    }

    /// The servers, those that were silent lately last.
    pub(super) fn order(&self, servers: &[SocketAddr], now: Duration) -> Vec<SocketAddr> {
        let mut order = servers.to_vec();
        order.sort_by_key(|server| self.failed.get(server).is_some_and(|at| *at + PENALTY > now));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(resolv_conf: &str, resolved: &str) -> Vec<String> {
        let settings = HostSettings { resolv_conf: resolv_conf.into(), resolved: resolved.into() };
        let own = ["169.254.0.1".parse().unwrap()];
        let found = name_servers(&settings, &[], &own, |name| (name == "eth0").then_some(7));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_hosts_name_servers_are_asked_and_never_the_resolver_itself() {
        let file =
            "nameserver 169.254.0.1\nnameserver 192.0.2.1\nnameserver nonsense\nnameserver 2001:db8::1\nnameserver 192.0.2.1\n";
        assert_eq!(servers(file, "nameserver 192.0.2.9\n"), ["192.0.2.1:53", "[2001:db8::1]:53"]);
        assert_eq!(
            servers("nameserver fe80::1%eth0\nnameserver fe80::2%9\nnameserver fe80::3%none\n", ""),
            ["[fe80::1%7]:53", "[fe80::2%9]:53"]
        );
        let many = (1..9).map(|number| format!("nameserver 192.0.2.{number}\n")).collect::<String>();
        assert_eq!(servers(&many, "").len(), 3);
        for none in ["", "search example.org\n", "nameserver\n"] {
            assert_eq!(servers(none, "nameserver 192.0.2.9\n"), [""; 0]);
        }
    }

    #[test]
    fn behind_the_stub_of_resolved_is_what_it_asks_itself() {
        assert_eq!(servers("nameserver 127.0.0.53\n", "nameserver 192.0.2.9\n"), ["127.0.0.53:53", "192.0.2.9:53"]);
        assert_eq!(servers("nameserver 127.0.0.53\n", ""), ["127.0.0.53:53"]);
        assert_eq!(servers("nameserver 127.0.0.1\n", "nameserver 192.0.2.9\n"), ["127.0.0.1:53"]);
    }

    #[test]
    fn configured_ones_count_alone() {
        let settings = HostSettings { resolv_conf: "nameserver 192.0.2.1\n".into(), resolved: String::new() };
        let configured = ["192.0.2.7:5353".parse().unwrap()];
        assert_eq!(name_servers(&settings, &configured, &[], |_| None), configured);
    }

    #[test]
    fn who_was_silent_is_asked_last_for_a_while() {
        let [a, b]: [SocketAddr; 2] = ["192.0.2.1:53".parse().unwrap(), "192.0.2.2:53".parse().unwrap()];
        let mut standing = Standing::default();
        let at = Duration::from_secs;
        standing.failed(a, at(100));
        assert_eq!(standing.order(&[a, b], at(101)), [b, a]);
        assert_eq!(standing.order(&[a, b], at(120)), [a, b]);
        standing.answered(a);
        assert_eq!(standing.order(&[a, b], at(101)), [a, b]);
    }
}
