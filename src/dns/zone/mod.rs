//! Names of pods, and their records. **Pure**.
//!
//! ```text
//!   <pod>.<namespace>.svc.<domain>                     the pod, as soon as it has an address
//!   <subdomain>.<namespace>.svc.<domain>               its ready pods: a headless Service for each subdomain
//!   <hostname>.<subdomain>.<namespace>.svc.<domain>    the pod; <pod> and <a-b-c-d> do as well as <hostname>
//!   _<port>._<protocol>.<service>.<namespace>.svc.<domain>   the port of a Service
//!   <a-b-c-d>.<namespace>.pod.<domain>                 the pod that has this address
//!   7.0.201.10.in-addr.arpa                            back again
//! ```
//!
//! A pod answers to its name before it is ready, as with `publishNotReadyAddresses`: members of a cluster have to find each other in
//! order to become ready.
//!
//! A Service has its name before a pod, and before pods that have it as their subdomain. Pods of that subdomain keep their names below it.
//!
//! A name that a pod has and others have as their subdomain is the pod's. A name is that of one realm: of all unrestricted sources together, or
//! of one restricted source. The unrestricted ones come first, then the restricted source whose pod has had it for the longest time. Pods of
//! other realms are members of a subdomain where it is shared with their source, and never under a name that a pod of the realm has.
//!
//! A [`Zone`] is of one moment; [`ZoneBuilder`] makes the next one from a change, and looks only at the names that it concerns.

mod builder;
mod pods;

pub(super) use builder::ZoneBuilder;
pub(super) use pods::ZonePod;

use super::services::{NamesOfServices, ServiceNames};
use pods::NamesOfPods;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// These addresses, of any family.
    Addresses(Vec<IpAddr>),
    /// A name, absolute and with the final dot.
    Pointer(String),
    /// Ports, each with the absolute name that has it.
    Ports(Vec<(u16, String)>),
    /// A text.
    Text(&'static str),
    /// Another name, absolute and with the final dot.
    Alias(String),
    /// The top of the zone.
    Apex,
    /// Nothing, and there is something below it, or will be.
    Empty,
    /// There is no such name.
    Missing,
    /// It is not of this zone.
    Foreign,
}

/// All names of one moment. A copy costs some counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    top: Arc<Top>,
    serial: u32,
    pods: NamesOfPods,
    services: NamesOfServices,
}

/// The parts of a zone that never change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Top {
    domain: String,
    labels: Vec<String>,
    /// Addresses of the resolver itself.
    servers: Vec<IpAddr>,
}

/// The version of the specification of names that the zone follows.
const VERSION: &str = "1.1.0";

impl Zone {
    /// The domain, without a final dot.
    pub(super) fn domain(&self) -> &str {
        &self.top.domain
    }

    /// Number of changes before this one.
    pub(super) fn serial(&self) -> u32 {
        self.serial
    }

    /// Looks a name up. Labels are in the order in which they are written, in lower case.
    pub(super) fn find(&self, name: &[String]) -> Found {
        if let Some(address) = reverse_address(name) {
            let of_service = || self.services.owner(address).map(|names| self.full_name(names));
            return self.pods.pointer(address).or_else(of_service).map_or(Found::Foreign, Found::Pointer);
        }
        let Some(own) = name.len().checked_sub(self.top.labels.len()).filter(|own| name[*own..] == self.top.labels) else {
            return Found::Foreign;
        };
        let own: Vec<&str> = name[..own].iter().map(String::as_str).collect();
        match *own.as_slice() {
            [] => Found::Apex,
            ["svc" | "pod" | "dns"] => Found::Empty,
            ["ns", "dns"] => Found::Addresses(self.top.servers.clone()),
            ["dns-version"] => Found::Text(VERSION),
            [namespace, "svc" | "pod"] if self.has_namespace(namespace) => Found::Empty,
            [address, namespace, "pod"] => {
                let has = |address: &IpAddr| self.pods.has_address(namespace, *address);
                undashed(address).filter(has).map_or(Found::Missing, |address| Found::Addresses(vec![address]))
            }
            [service, namespace, "svc"] => self.service(namespace, service),
            [protocol, service, namespace, "svc"] if protocol.starts_with('_') => {
                let mut labels = self.services.named(namespace, service).into_iter().flat_map(ServiceNames::ports);
                if labels.any(|(_, of)| of == protocol) { Found::Empty } else { Found::Missing }
            }
            [port, protocol, service, namespace, "svc"] => self.port(namespace, service, port, protocol),
            [member, service, namespace, "svc"] => self.member(namespace, service, member),
            [..] => Found::Missing,
        }
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        self.pods.has_namespace(namespace) || self.services.has_namespace(namespace)
    }

    /// The absolute name of a Service.
    fn full_name(&self, names: &ServiceNames) -> String {
        format!("{}.{}.svc.{}.", names.name.name, names.name.namespace, self.top.domain)
    }

    /// The addresses of a Service, before those of pods.
    fn service(&self, namespace: &str, name: &str) -> Found {
        match self.services.named(namespace, name) {
            Some(names) => match names.alias() {
                Some(target) => Found::Alias(format!("{}.", target.to_ascii_lowercase())),
                None => addresses(Some(names.addresses.iter())),
            },
            None => addresses(self.pods.named(namespace, name).map(|service| service.addresses.iter())),
        }
    }

    /// The addresses of a member: of the pods that it is the name of, below the Service or the subdomain.
    fn member(&self, namespace: &str, name: &str, member: &str) -> Found {
        let of_service = self.services.named(namespace, name).and_then(|names| names.member(member));
        let of_pods = self.pods.named(namespace, name).and_then(|service| service.members.get(member));
        let found: BTreeSet<IpAddr> = of_service.into_iter().chain(of_pods).flatten().copied().collect();
        addresses(of_service.or(of_pods).map(|_| found.iter()))
    }

    /// The targets of a port of a Service.
    fn port(&self, namespace: &str, name: &str, port: &str, protocol: &str) -> Found {
        let labels = (port.to_owned(), protocol.to_owned());
        let Some(names) = self.services.named(namespace, name) else { return Found::Missing };
        let full = self.full_name(names);
        let name_of = |member: &Option<String>| member.as_ref().map_or_else(|| full.clone(), |member| format!("{member}.{full}"));
        match names.port(&labels) {
            Some(targets) => Found::Ports(targets.iter().map(|target| (target.port, name_of(&target.member))).collect()),
            None => Found::Missing,
        }
    }
}

fn addresses<'a>(found: Option<impl Iterator<Item = &'a IpAddr>>) -> Found {
    let Some(found) = found else { return Found::Missing };
    let addresses: Vec<IpAddr> = found.copied().collect();
    // A subdomain without ready pods.
    if addresses.is_empty() { Found::Empty } else { Found::Addresses(addresses) }
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
impl Zone {
    /// The zone of these pods, the first of which have the first UIDs.
    pub(super) fn of(
        domain: &str,
        servers: &[IpAddr],
        serial: u32,
        sharing: &podstead_pod::sharing::Sharing,
        pods: &[ZonePod],
        services: NamesOfServices,
    ) -> Self {
        let mut builder = ZoneBuilder::new(domain, servers);
        builder.set_sharing(&Arc::new(sharing.clone()));
        for (number, pod) in pods.iter().enumerate() {
            builder.set_pod(&podstead_pod::PodUid::new(format!("{number:03}")), Some(pod.clone()));
        }
        builder.set_services(services);
        Self { serial, ..Self::clone(&builder.zone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use podstead_pod::SourceId;
    use podstead_pod::sharing::Sharing;
    use podstead_pod::testing::sharing;
    use proptest::prelude::*;

    fn pod(names: &[&str], subdomain: Option<&str>, addresses: &[&str], is_ready: bool) -> ZonePod {
        ZonePod {
            source: SourceId::new("a"),
            seen: None,
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

    fn zone_of(sharing: &Sharing, pods: &[ZonePod]) -> Zone {
        Zone::of("Cluster.local", &["169.254.0.1".parse().unwrap()], 1, sharing, pods, NamesOfServices::default())
    }

    /// A pod of a source, seen at a second.
    fn of(source: &str, seen: i64, pod: ZonePod) -> ZonePod {
        ZonePod { source: SourceId::new(source), seen: Timestamp::from_second(seen).ok(), ..pod }
    }

    fn zone(pods: &[ZonePod]) -> Zone {
        zone_of(&sharing(&["a"], &[]), pods)
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
        let none_ready = self::zone(&pods[1..2]);
        assert_eq!(none_ready.find(&labels("db.shop.svc.cluster.local")), Found::Empty);
    }

    #[test]
    fn pod_name_wins_over_subdomain() {
        let zone = zone(&[pod(&["db"], None, &["10.201.0.1"], false), pod(&["x"], Some("db"), &["10.201.0.2"], true)]);
        has(&zone, "db.shop.svc.cluster.local", &["10.201.0.1"]);
        has(&zone, "x.db.shop.svc.cluster.local", &["10.201.0.2"]);
    }

    #[test]
    fn restricted_source_joins_no_name_of_another_one() {
        let pods = [
            of("r", 1, pod(&["x"], Some("db"), &["10.201.0.9"], true)),
            of("r", 1, pod(&["db-0"], Some("db"), &["10.201.0.8"], true)),
            of("r", 1, pod(&["y"], Some("web"), &["10.201.0.7"], true)),
            // Its name is another source's subdomain.
            of("r", 1, pod(&["db", "db-edge"], None, &["10.201.0.6"], true)),
            of("a", 2, pod(&["db-0"], Some("db"), &["10.201.0.1"], true)),
            of("a", 2, pod(&["web"], None, &["10.201.0.2"], true)),
        ];
        for sources in [["a", "r!"], ["r!", "a"]] {
            let zone = zone_of(&sharing(&sources, &[]), &pods);
            has(&zone, "db.shop.svc.cluster.local", &["10.201.0.1"]);
            has(&zone, "db-0.db.shop.svc.cluster.local", &["10.201.0.1"]);
            has(&zone, "web.shop.svc.cluster.local", &["10.201.0.2"]);
            for name in ["x.db", "y.web", "10-201-0-9.db"] {
                assert_eq!(zone.find(&labels(&format!("{name}.shop.svc.cluster.local"))), Found::Missing, "{name}");
            }
            // It keeps its own names.
            has(&zone, "x.shop.svc.cluster.local", &["10.201.0.9"]);
            has(&zone, "db-edge.shop.svc.cluster.local", &["10.201.0.6"]);
            let back = |address: &str| zone.find(&labels(&format!("{address}.201.10.in-addr.arpa")));
            assert_eq!(back("9.0"), Found::Pointer("x.shop.svc.cluster.local.".into()));
            assert_eq!(back("6.0"), Found::Pointer("db-edge.shop.svc.cluster.local.".into()));
            assert_eq!(back("1.0"), Found::Pointer("db-0.db.shop.svc.cluster.local.".into()));
        }
    }

    #[test]
    fn shared_subdomain_has_members_of_both_and_no_name_twice() {
        let pods = [
            of("r", 1, pod(&["db-0"], Some("db"), &["10.201.0.9"], true)),
            of("r", 1, pod(&["db-1"], Some("db"), &["10.201.0.8"], true)),
            of("s", 1, pod(&["db-2"], Some("db"), &["10.201.0.7"], true)),
            of("a", 2, pod(&["db-0"], Some("db"), &["10.201.0.1"], true)),
        ];
        let zone = zone_of(&sharing(&["r!", "a", "s!"], &[("a", "r", "db")]), &pods);
        has(&zone, "db.shop.svc.cluster.local", &["10.201.0.1", "10.201.0.8", "10.201.0.9"]);
        has(&zone, "db-0.db.shop.svc.cluster.local", &["10.201.0.1"]);
        has(&zone, "db-1.db.shop.svc.cluster.local", &["10.201.0.8"]);
        assert_eq!(zone.find(&labels("db-2.db.shop.svc.cluster.local")), Found::Missing);
    }

    #[test]
    fn among_restricted_sources_the_name_stays_whose_it_was() {
        let sharing = sharing(&["r!", "s!"], &[]);
        let (r, s) = (pod(&["r"], Some("db"), &["10.201.0.1"], true), pod(&["s"], Some("db"), &["10.201.0.2"], true));
        has(&zone_of(&sharing, &[of("r", 2, r.clone()), of("s", 1, s.clone())]), "db.shop.svc.cluster.local", &["10.201.0.2"]);
        has(&zone_of(&sharing, &[of("r", 1, r), of("s", 2, s)]), "db.shop.svc.cluster.local", &["10.201.0.1"]);
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
