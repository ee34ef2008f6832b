//! Addresses to which no server may lead a client: loopback, link-local, unspecified, multicast and broadcast ones.
//!
//! The server chooses a redirect or a token server's URL. Without this check it reaches services that trust whoever asks from this host,
//! and the metadata service of a cloud. Addresses are checked when a connection is made, so that a name cannot resolve to something else in
//! between.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Addresses of one server that are kept; a name has no more.
const HOMES_MAX: usize = 16;

/// A server that is not local leads to a local address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("redirect or token server {0} is refused: it has a loopback or link-local address, and the server itself does not")]
pub struct ForbiddenAddress(
    /// The host as written in the URL.
    pub String,
);

/// Reports whether an address is loopback, link-local, unspecified, multicast or broadcast, also in the forms in which IPv6 carries IPv4 addresses.
pub fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_local_v4(address),
        IpAddr::V6(address) => {
            let own =
                address.is_loopback() || address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local();
            own || embedded(address).is_some_and(is_local_v4)
        }
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    let is_this_network = address.octets()[0] == 0;
    is_this_network || address.is_loopback() || address.is_link_local() || address.is_multicast() || address.is_broadcast()
}

/// The IPv4 address within an IPv6 one: mapped or compatible (RFC 4291, 2.5.5), translated (RFC 6052, 2.1), 6to4 (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

/// Decides where one server may lead. It may lead to local addresses at which it was reached itself.
#[derive(Debug, Default)]
pub struct AddressGuard {
    /// Names of proxies: the resolver is asked for them, too.
    proxies: BTreeSet<String>,
    homes: Mutex<BTreeSet<IpAddr>>,
}

impl AddressGuard {
    /// A guard for a client that reaches others through these proxies.
    pub fn new(proxies: impl IntoIterator<Item = String>) -> Self {
        Self { proxies: proxies.into_iter().collect(), homes: Mutex::default() }
    }

    /// Records that the server answered from this address, at this URL.
    pub fn learn(&self, url: &Url, address: IpAddr) {
        let address = address.to_canonical();
        // Behind a proxy the address is the proxy's; only a URL that names the address itself says where the server is.
        let is_known = self.proxies.is_empty() || literal(url) == Some(address) || url.host_str() == Some("localhost");
        let mut homes = self.lock();
        if is_local(address) && is_known && homes.len() < HOMES_MAX {
            homes.insert(address);
        }
    }

    /// The local addresses to which the server may lead.
    pub fn homes(&self) -> Vec<IpAddr> {
        self.lock().iter().copied().collect()
    }

    /// Allows a local address, as a guard in another process does.
    pub fn allow(&self, address: IpAddr) {
        let mut homes = self.lock();
        if homes.len() < HOMES_MAX {
            homes.insert(address.to_canonical());
        }
    }

    /// Checks a URL that has an address instead of a name; names are checked when they are resolved.
    pub fn check(&self, url: &Url) -> Result<(), ForbiddenAddress> {
        let host = url.host_str().unwrap_or_default();
        let is_proxy = self.proxies.contains(host);
        match literal(url) {
            Some(address) if self.allows(address) => Ok(()),
            Some(_) => Err(ForbiddenAddress(host.to_owned())),
            // The resolver would take it for the proxy.
            None if is_proxy => Err(ForbiddenAddress(host.to_owned())),
            None => Ok(()),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        !is_local(address) || self.lock().contains(&address.to_canonical())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<IpAddr>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the addresses of a name to which the server may lead.
    fn filter(&self, name: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ForbiddenAddress> {
        if self.proxies.contains(name) {
            return Ok(addresses);
        }
        let allowed: Vec<SocketAddr> = addresses.into_iter().filter(|address| self.allows(address.ip())).collect();
        if allowed.is_empty() { Err(ForbiddenAddress(name.to_owned())) } else { Ok(allowed) }
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    // In a URL, an IPv6 address is in brackets.
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The system's resolver, behind a guard.
#[derive(Clone, Debug)]
pub struct GuardedResolver(
    /// Decides about each address.
    pub Arc<AddressGuard>,
);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            // The client puts the port in.
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = guard.filter(name.as_str(), addresses.collect())?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn local_addresses_are_known_in_every_form() {
        for text in [
            "127.0.0.1",
            "127.8.9.10",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "239.1.2.3",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ] {
            assert!(is_local(text.parse().unwrap()), "{text}");
        }
        for text in
            ["192.0.2.1", "10.0.0.1", "192.168.1.1", "2001:db8::1", "fd00::1", "::ffff:192.0.2.1", "64:ff9b::c000:201", "1.0.0.1"]
        {
            assert!(!is_local(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn server_leads_to_itself_but_to_no_other_local_address() {
        let guard = AddressGuard::new([]);
        assert_eq!(guard.check(&url("https://127.0.0.1/")), Err(ForbiddenAddress("127.0.0.1".into())));
        guard.learn(&url("https://registry.lan/"), "::ffff:127.0.0.1".parse().unwrap());
        assert!(guard.check(&url("https://127.0.0.1/")).is_ok());
        assert!(guard.check(&url("https://[::ffff:127.0.0.1]:5000/")).is_ok());
        assert!(guard.check(&url("https://127.0.0.2/")).is_err());
        assert!(guard.check(&url("https://2130706434/")).is_err(), "127.0.0.2 as one number");
        assert!(guard.check(&url("https://[::1]/")).is_err());
        assert!(guard.check(&url("https://192.0.2.1/")).is_ok());
        let [here, there] = ["127.0.0.1:0", "127.0.0.9:0"].map(|text| text.parse::<SocketAddr>().unwrap());
        assert_eq!(guard.filter("cdn.example", vec![here, there]), Ok(vec![here]));
        assert!(guard.filter("cdn.example", vec![there]).is_err());
    }

    #[test]
    fn address_of_a_proxy_is_not_the_server_s() {
        let guard = AddressGuard::new(["localhost".to_owned()]);
        let proxy: IpAddr = "127.0.0.1".parse().unwrap();
        guard.learn(&url("https://registry.example/"), proxy);
        assert!(guard.check(&url("https://127.0.0.1/")).is_err());
        assert!(guard.check(&url("https://localhost/")).is_err());
        assert!(guard.filter("localhost", vec![SocketAddr::new(proxy, 0)]).is_ok(), "the proxy itself is reached");
        guard.learn(&url("http://127.0.0.1:5000/"), proxy);
        assert!(guard.check(&url("https://127.0.0.1/")).is_ok());
    }

    proptest! {
        #[test]
        fn mapped_address_is_judged_as_the_plain_one(bits: u32) {
            let address = Ipv4Addr::from(bits);
            prop_assert_eq!(is_local(IpAddr::V4(address)), is_local(IpAddr::V6(address.to_ipv6_mapped())));
        }

        #[test]
        fn guard_allows_a_local_address_only_after_it_was_learnt(bits: u32, home: u32) {
            let (address, home) = (Ipv4Addr::from(bits), Ipv4Addr::from(home));
            let guard = AddressGuard::new([]);
            guard.learn(&url("https://registry.example/"), IpAddr::V4(home));
            prop_assert_eq!(guard.allows(IpAddr::V4(address)), !is_local_v4(address) || address == home);
        }
    }
}
