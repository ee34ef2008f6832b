//! Names of pods, and what they stand for. **Pure**.
//!
//! ```text
//!   <pod>.<namespace>.svc.<domain>                     the pod, as soon as it has an address
//!   <subdomain>.<namespace>.svc.<domain>               its ready pods: a headless Service for each subdomain
//!   <hostname>.<subdomain>.<namespace>.svc.<domain>    the pod; <pod> and <a-b-c-d> do as well as <hostname>
//!   <a-b-c-d>.<namespace>.pod.<domain>                 the pod that has this address
//!   7.0.201.10.in-addr.arpa                            back again
//! ```
//!
//! A pod answers to its name before it is ready, as with `publishNotReadyAddresses`: members of a cluster have to find each other in
//! order to become ready.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the zone knows of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZonePod {
    /// Its namespace.
    pub(super) namespace: String,
    /// Names that it is found by in its namespace; the first one is what its addresses lead back to.
    pub(super) names: Vec<String>,
    /// `spec.hostname` or what stands for it.
    pub(super) hostname: String,
    /// `spec.subdomain`.
    pub(super) subdomain: Option<String>,
    /// Its addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// Its condition `Ready`.
    pub(super) is_ready: bool,
    /// The addresses are its own, not those of the host.
    pub(super) owns_addresses: bool,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// These addresses, of any family.
    Addresses(Vec<IpAddr>),
    /// A name, absolute and with the final dot.
    Pointer(String),
    /// The top of the zone.
    Apex,
    /// Nothing, and there is something below it, or will be.
    Empty,
    /// There is no such name.
    Missing,
    /// It is not of this zone.
    Foreign,
}

/// All names of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    domain: String,
    labels: Vec<String>,
    servers: Vec<IpAddr>,
    serial: u32,
    namespaces: BTreeMap<String, Namespace>,
    reverse: BTreeMap<IpAddr, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Namespace {
    services: BTreeMap<String, Service>,
    addresses: BTreeSet<IpAddr>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Service {
    addresses: BTreeSet<IpAddr>,
    members: BTreeMap<String, BTreeSet<IpAddr>>,
}

impl Zone {
    /// The zone of `domain`, which has no final dot. `servers` are the addresses of the resolver itself; `serial` grows with each change.
    pub(super) fn new<'a>(domain: &str, servers: &[IpAddr], serial: u32, pods: impl Iterator<Item = &'a ZonePod>) -> Self {
        let domain = domain.to_ascii_lowercase();
        let labels = domain.split('.').map(str::to_owned).collect();
        let mut zone = Self { domain, labels, servers: servers.to_vec(), serial, ..Self::default() };
        pods.for_each(|pod| zone.add(pod));
        zone
    }

    fn add(&mut self, pod: &ZonePod) {
        let namespace = self.namespaces.entry(pod.namespace.clone()).or_default();
        let names = pod.names.iter().filter(|name| is_label(name));
        for name in names.clone() {
            namespace.services.entry(name.clone()).or_default().addresses.extend(&pod.addresses);
        }
        if let Some(subdomain) = &pod.subdomain {
            let service = namespace.services.entry(subdomain.clone()).or_default();
            if pod.is_ready {
                service.addresses.extend(&pod.addresses);
            }
            let dashed = pod.addresses.iter().map(|address| dashed(*address));
            for member in names.clone().chain([&pod.hostname]).cloned().chain(dashed) {
                service.members.entry(member).or_default().extend(&pod.addresses);
            }
        }
        if !pod.owns_addresses {
            return;
        }
        namespace.addresses.extend(&pod.addresses);
        let name = match &pod.subdomain {
            Some(subdomain) => Some(format!("{}.{subdomain}", pod.hostname)),
            None => pod.names.iter().find(|name| is_label(name)).cloned(),
        };
        if let Some(name) = name {
            let full = format!("{name}.{}.svc.{}.", pod.namespace, self.domain);
            self.reverse.extend(pod.addresses.iter().map(|address| (*address, full.clone())));
        }
    }

    /// The domain, without a final dot.
    pub(super) fn domain(&self) -> &str {
        &self.domain
    }

    /// Number of changes before this one.
    pub(super) fn serial(&self) -> u32 {
        self.serial
    }

    /// What a name stands for. Labels are in the order in which they are written, in lower case.
    pub(super) fn find(&self, name: &[String]) -> Found {
        if let Some(address) = reverse_address(name) {
            return self.reverse.get(&address).map_or(Found::Foreign, |name| Found::Pointer(name.clone()));
        }
        let Some(own) = name.len().checked_sub(self.labels.len()).filter(|own| name[*own..] == self.labels) else {
            return Found::Foreign;
        };
        let own: Vec<&str> = name[..own].iter().map(String::as_str).collect();
        match *own.as_slice() {
            [] => Found::Apex,
            ["svc" | "pod" | "dns"] => Found::Empty,
            ["ns", "dns"] => Found::Addresses(self.servers.clone()),
            [namespace, "svc" | "pod"] if self.namespaces.contains_key(namespace) => Found::Empty,
            [address, namespace, "pod"] => {
                let has = |address: &IpAddr| self.namespaces.get(namespace).is_some_and(|own| own.addresses.contains(address));
                undashed(address).filter(has).map_or(Found::Missing, |address| Found::Addresses(vec![address]))
            }
            [service, namespace, "svc"] => addresses(self.service(namespace, service).map(|service| &service.addresses)),
            [member, service, namespace, "svc"] => {
                addresses(self.service(namespace, service).and_then(|service| service.members.get(member)))
            }
            [..] => Found::Missing,
        }
    }

    fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.namespaces.get(namespace)?.services.get(name)
    }
}

fn addresses(found: Option<&BTreeSet<IpAddr>>) -> Found {
    match found {
        None => Found::Missing,
        // A subdomain none of whose pods is ready.
        Some(addresses) if addresses.is_empty() => Found::Empty,
        Some(addresses) => Found::Addresses(addresses.iter().copied().collect()),
    }
}

fn is_label(name: &str) -> bool {
    !name.is_empty() && name.len() <= 63 && !name.contains('.')
}

fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

fn undashed(label: &str) -> Option<IpAddr> {
    let as_ipv4 = label.replace('-', ".").parse::<Ipv4Addr>().map(IpAddr::V4);
    as_ipv4.or_else(|_| label.replace('-', ":").parse::<Ipv6Addr>().map(IpAddr::V6)).ok()
}

/// The address that a whole name below `in-addr.arpa` or `ip6.arpa` is about.
fn reverse_address(name: &[String]) -> Option<IpAddr> {
    let (own, top) = name.split_at_checked(name.len().checked_sub(2)?)?;
    let digits = own.iter().rev();
    match (top[0].as_str(), top[1].as_str(), own.len()) {
        ("in-addr", "arpa", 4) => digits.map(String::as_str).collect::<Vec<_>>().join(".").parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        ("ip6", "arpa", 32) => {
            let nibble = |label: &String| u128::from_str_radix(label, 16).ok().filter(|_| label.len() == 1 && label != "+");
            digits.map(nibble).try_fold(0, |bits, nibble| Some(bits << 4 | nibble?)).map(|bits| Ipv6Addr::from_bits(bits).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pod(names: &[&str], subdomain: Option<&str>, addresses: &[&str], is_ready: bool) -> ZonePod {
        ZonePod {
            namespace: "shop".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            hostname: names[0].to_owned(),
            subdomain: subdomain.map(str::to_owned),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            is_ready,
            owns_addresses: true,
        }
    }

    fn labels(name: &str) -> Vec<String> {
        name.split('.').filter(|label| !label.is_empty()).map(str::to_owned).collect()
    }

    fn zone(pods: &[ZonePod]) -> Zone {
        Zone::new("Cluster.local", &["169.254.0.1".parse().unwrap()], 1, pods.iter())
    }

    fn has(zone: &Zone, name: &str, addresses: &[&str]) {
        let expected = addresses.iter().map(|address| address.parse().unwrap()).collect();
        assert_eq!(zone.find(&labels(name)), Found::Addresses(expected), "{name}");
    }

    #[test]
    fn a_pod_is_found_by_each_of_its_names_and_its_addresses_lead_back() {
        let zone = zone(&[pod(&["web", "web-edge-1"], None, &["10.201.0.7", "fd00::7"], false)]);
        for name in ["web.shop.svc.cluster.local", "web-edge-1.shop.svc.cluster.local"] {
            has(&zone, name, &["10.201.0.7", "fd00::7"]);
        }
        has(&zone, "10-201-0-7.shop.pod.cluster.local", &["10.201.0.7"]);
        has(&zone, "fd00--7.shop.pod.cluster.local", &["fd00::7"]);
        has(&zone, "ns.dns.cluster.local", &["169.254.0.1"]);
        let back = Found::Pointer("web.shop.svc.cluster.local.".into());
        assert_eq!(zone.find(&labels("7.0.201.10.in-addr.arpa")), back);
        let v6 = format!("7.{}0.0.d.f.ip6.arpa", "0.".repeat(27));
        assert_eq!(zone.find(&labels(&v6)), back);
    }

    #[test]
    fn a_subdomain_has_its_ready_pods_and_each_of_them_by_its_host_name() {
        let pods = [
            pod(&["db-0", "db-0-edge"], Some("db"), &["10.201.0.1"], true),
            pod(&["db-1", "db-1-edge"], Some("db"), &["10.201.0.2"], false),
            pod(&["db-2", "db-2-edge"], Some("db"), &["10.201.0.3"], true),
        ];
        let zone = zone(&pods);
        has(&zone, "db.shop.svc.cluster.local", &["10.201.0.1", "10.201.0.3"]);
        has(&zone, "db-1.db.shop.svc.cluster.local", &["10.201.0.2"]);
        has(&zone, "10-201-0-3.db.shop.svc.cluster.local", &["10.201.0.3"]);
        assert_eq!(zone.find(&labels("2.0.201.10.in-addr.arpa")), Found::Pointer("db-1.db.shop.svc.cluster.local.".into()));
        let none_ready = super::Zone::new("cluster.local", &[], 1, pods[1..2].iter());
        assert_eq!(none_ready.find(&labels("db.shop.svc.cluster.local")), Found::Empty);
    }

    #[test]
    fn what_is_above_names_is_empty_and_what_is_beside_them_is_missing_or_somebody_elses() {
        let mut on_host = pod(&["host.with.dots", "host"], None, &["192.0.2.2"], true);
        on_host.owns_addresses = false;
        let zone = zone(&[pod(&["web"], None, &["10.201.0.7"], true), on_host]);
        has(&zone, "host.shop.svc.cluster.local", &["192.0.2.2"]);
        for (name, found) in [
            ("cluster.local", Found::Apex),
            ("svc.cluster.local", Found::Empty),
            ("shop.svc.cluster.local", Found::Empty),
            ("shop.pod.cluster.local", Found::Empty),
            ("other.svc.cluster.local", Found::Missing),
            ("web.other.svc.cluster.local", Found::Missing),
            ("api.web.shop.svc.cluster.local", Found::Missing),
            ("a.b.c.d.cluster.local", Found::Missing),
            ("example.org.cluster.local", Found::Missing),
            ("10-201-0-8.shop.pod.cluster.local", Found::Missing),
            ("192-0-2-2.shop.pod.cluster.local", Found::Missing),
            ("nonsense.shop.pod.cluster.local", Found::Missing),
            ("web", Found::Foreign),
            ("local", Found::Foreign),
            ("", Found::Foreign),
            ("example.org", Found::Foreign),
            ("xcluster.local", Found::Foreign),
            ("2.2.0.192.in-addr.arpa", Found::Foreign),
            ("0.201.10.in-addr.arpa", Found::Foreign),
            ("x.0.201.10.in-addr.arpa", Found::Foreign),
        ] {
            assert_eq!(zone.find(&labels(name)), found, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_address_that_leads_to_a_name_is_found_by_that_name(
            pods in proptest::collection::vec(("[a-z]{1,3}", proptest::option::of("[a-c]"), any::<[u8; 4]>(), any::<bool>()), 0..20)
        ) {
            let pods: Vec<ZonePod> = pods.iter().map(|(name, subdomain, address, ready)| {
                pod(&[name], subdomain.as_deref(), &[&Ipv4Addr::from(*address).to_string()], *ready)
            }).collect();
            let zone = zone(&pods);
            for address in pods.iter().flat_map(|pod| &pod.addresses) {
                let IpAddr::V4(v4) = address else { unreachable!() };
                let [a, b, c, d] = v4.octets();
                let Found::Pointer(name) = zone.find(&labels(&format!("{d}.{c}.{b}.{a}.in-addr.arpa"))) else { panic!("no name") };
                let Found::Addresses(found) = zone.find(&labels(&name)) else { panic!("no address") };
                prop_assert!(found.contains(address));
            }
        }

        #[test]
        fn no_name_is_too_odd(name in proptest::collection::vec(".{0,9}", 0..40)) {
            let name: Vec<String> = name.into_iter().chain(labels("shop.svc.cluster.local")).collect();
            zone(&[pod(&["web"], Some("s"), &["10.201.0.7"], true)]).find(&name);
        }
    }
}
