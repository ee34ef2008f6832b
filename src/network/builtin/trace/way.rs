//! Destinations as clients name them, and where the packet rules lead them: addresses and ports of pods. **Pure**, but for [`Translations::read`].

use super::super::lease::Lease;
use super::super::names::Names;
use super::super::services::recovery;
use super::super::{GATEWAY_V4, GATEWAY_V6, record};
use super::TraceError;
use podstead_pod::host_ports::{HostPort, Protocol};
use podstead_service::allocate::Grant;
use podstead_service::frontends::{Backing, Frontend, Frontends, NodeSocket, Socket};
use podstead_service::name::ObjectName;
use podstead_service::range::{Family, Subnet};
use podstead_settings::AddressRange;
use podstead_sys::layout::Paths;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// Records of Services that are read.
const MOST_RECORDS: usize = 10_000;
/// The largest record that is read.
const MOST_BYTES: u64 = 64 << 10;

/// The translation of a destination on the way to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// The address that the client connects to.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The owner of that port.
    pub owner: Owner,
}

/// The owner of an address and port that lead elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A Service, by its own address or by a port of the host.
    Service(ObjectName),
    /// A Service that has no record.
    UnknownService,
    /// A pod with this `hostPort`.
    HostPort(ObjectName),
}

/// An address and port of an end, and the translation that leads there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The end.
    pub(super) to: SocketAddr,
    /// The translation, if there is one.
    pub(super) through: Option<Through>,
    /// Clients that a load balancer answers do not include the source.
    pub(super) is_fenced: bool,
}

/// Everything that rewrites destinations.
#[derive(Debug, Default)]
pub(super) struct Translations {
    /// Services that have an address or a port of the host.
    grants: BTreeMap<ObjectName, Grant>,
    /// Ranges of addresses of Services that were chosen.
    ranges: Vec<Subnet>,
    /// Ranges of addresses of pods.
    pod_ranges: Vec<AddressRange>,
    /// Endpoints in the kernel.
    frontends: Frontends,
    /// Ports of the host that lead to pods.
    host_ports: Vec<(HostPort, ObjectName, Vec<IpAddr>)>,
    /// Addresses of the host.
    own: Vec<IpAddr>,
}

impl Translations {
    /// Reads the records, and the rules in the kernel.
    pub(super) fn read(paths: &Paths, leases: &[Lease], own: &[IpAddr]) -> Self {
        let chosen = record::read_ranges(paths).unwrap_or_default();
        let of_pod = |lease: &Lease| {
            let name = super::name_of(lease);
            let ports: Vec<_> = lease.ports.iter().map(|port| (*port, name.clone(), lease.addresses.clone())).collect();
            ports
        };
        Self {
            pod_ranges: chosen.parsed().into_iter().flatten().collect(),
            grants: read_grants(paths),
            ranges: [chosen.service_ipv4, chosen.service_ipv6].into_iter().flatten().filter_map(|text| text.parse().ok()).collect(),
            // Without a table there are no Services.
            frontends: recovery::read(&Names::new(paths.instance())).ok().flatten().unwrap_or_default(),
            host_ports: leases.iter().filter(|lease| lease.slot.is_some()).flat_map(of_pod).collect(),
            own: own.to_vec(),
        }
    }

    /// Reports whether only pods have this address.
    pub(super) fn is_of_pods(&self, address: IpAddr) -> bool {
        self.pod_ranges.iter().any(|range| range.contains(address))
    }

    /// The addresses of a Service; `None` if none of this name has one.
    pub(super) fn addresses_of(&self, service: &ObjectName) -> Option<Vec<IpAddr>> {
        let addresses = self.grants.get(service).map(|grant| grant.cluster_ips.clone());
        addresses.filter(|addresses| !addresses.is_empty())
    }

    /// The ways from a source to a port of an address: several for a Service. The error is that of a destination that refuses everybody.
    pub(super) fn ways(&self, sources: &[IpAddr], address: IpAddr, port: (Protocol, u16)) -> Result<Vec<Way>, TraceError> {
        let through = |owner| Some(Through { address, port: port.1, owner });
        // Ports of pods go before those of Services (R6).
        if let Some((host_port, pod, addresses)) = self.host_port(address, port) {
            let of_family = addresses.iter().find(|of_pod| of_pod.is_ipv4() == address.is_ipv4());
            let ways = of_family.map(|of_pod| Way {
                to: SocketAddr::new(*of_pod, host_port.container_port),
                through: through(Owner::HostPort(pod.clone())),
                is_fenced: false,
            });
            return Ok(ways.into_iter().collect());
        }
        let Some((frontend, Backing { endpoints, source_ranges, .. })) = self.frontend(address, port) else {
            return self.without_frontend(address, port);
        };
        let owner = self.owner(frontend).map_or(Owner::UnknownService, |name| Owner::Service(name.clone()));
        let is_own = |address: &IpAddr| source_ranges.is_empty() || source_ranges.iter().any(|range| range.contains(*address));
        let of_family = |source: &&IpAddr| source.is_ipv4() == address.is_ipv4();
        let is_fenced = !sources.iter().filter(of_family).all(is_own);
        let way = |to: SocketAddr| Way { to, through: through(owner.clone()), is_fenced };
        Ok(endpoints.iter().map(way).collect())
    }

    fn is_of_host(&self, address: IpAddr) -> bool {
        self.own.contains(&address) || [IpAddr::from(GATEWAY_V4), GATEWAY_V6.into()].contains(&address)
    }

    fn host_port(&self, address: IpAddr, (protocol, number): (Protocol, u16)) -> Option<&(HostPort, ObjectName, Vec<IpAddr>)> {
        let is_at = |port: &HostPort| port.host_ip.is_none_or(|ip| ip.is_unspecified() || ip == address);
        let is_this = |port: &HostPort| (port.protocol, port.host_port) == (protocol, number) && is_at(port);
        self.host_ports.iter().find(|(port, ..)| is_this(port)).filter(|_| self.is_of_host(address))
    }

    fn frontend(&self, address: IpAddr, (protocol, port): (Protocol, u16)) -> Option<(&Frontend, &Backing)> {
        let exact = Frontend::Address(Socket { address, protocol, port });
        let of_host = Frontend::Node(NodeSocket { family: Family::of(address), protocol, port });
        let find = |wanted: Frontend| self.frontends.iter().find(|(frontend, _)| **frontend == wanted);
        find(exact).or_else(|| find(of_host).filter(|_| self.is_of_host(address)))
    }

    /// The Service that has a frontend.
    fn owner(&self, frontend: &Frontend) -> Option<&ObjectName> {
        let is_node_port = |grant: &Grant, protocol: Protocol, port: u16| {
            let is_balanced = grant.load_balancer_ports.iter().any(|of| (of.protocol, of.port) == (protocol, port));
            is_balanced || grant.node_ports.iter().any(|of| (of.protocol, of.node_port) == (protocol, port))
        };
        let has = |grant: &Grant| match frontend {
            Frontend::Address(socket) => {
                let is_host = grant.host_addresses.contains(&socket.address);
                grant.cluster_ips.contains(&socket.address) || is_host && is_node_port(grant, socket.protocol, socket.port)
            }
            Frontend::Node(socket) => is_node_port(grant, socket.protocol, socket.port),
        };
        self.grants.iter().find(|(_, grant)| has(grant)).map(|(name, _)| name)
    }

    /// An address without an endpoint behind it: nobody's, a Service's, or one that is not translated.
    fn without_frontend(&self, address: IpAddr, (protocol, number): (Protocol, u16)) -> Result<Vec<Way>, TraceError> {
        let owner = self.owner(&Frontend::Address(Socket { address, protocol, port: number }));
        let at_host = || self.owner(&Frontend::Node(NodeSocket { family: Family::of(address), protocol, port: number }));
        match owner.or_else(|| at_host().filter(|_| self.is_of_host(address))) {
            Some(service) => Err(TraceError::NoEndpoint(service.clone(), number, protocol)),
            None if self.ranges.iter().any(|range| range.contains(address)) => Err(TraceError::NoService(address)),
            None => Ok(vec![Way { to: SocketAddr::new(address, number), through: None, is_fenced: false }]),
        }
    }
}

/// The records of Services; what cannot be read is left out.
fn read_grants(paths: &Paths) -> BTreeMap<ObjectName, Grant> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(flatten)]
        name: ObjectName,
        grant: Grant,
    }
    let entries = fs::read_dir(paths.services()).into_iter().flatten().flatten().take(MOST_RECORDS);
    let is_small = |path: &std::path::PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MOST_BYTES);
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|of| of == "json")).filter(is_small);
    let records = paths.filter_map(|path| serde_json::from_slice::<Record>(&fs::read(path).ok()?).ok());
    records.map(|record| (record.name, record.grant)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_service::allocate::{HostSocket, NodePort};
    use podstead_service::frontends::{Chain, Elements, Key, Value};

    const TCP: Protocol = Protocol::Tcp;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "shop".into(), name: name.into() }
    }

    /// Service `web` with an address, a NodePort and a load balancer for some clients; Service `idle` with an address and nothing behind it.
    fn translations() -> Translations {
        let address = "10.202.0.9".parse().unwrap();
        let endpoint = "10.201.0.7:8080".parse().unwrap();
        let node = |port| NodeSocket { family: Family::V4, protocol: TCP, port };
        let socket = Socket { address, protocol: TCP, port: 80 };
        let elements: Elements = [
            (Key::Endpoint(socket, 0), Value::Target(endpoint)),
            (Key::Service(socket), Value::Present),
            (Key::NodeEndpoint(node(30080), 0), Value::Target(endpoint)),
            (Key::NodePort(node(30080)), Value::Present),
            (Key::NodeEndpoint(node(88), 0), Value::Target(endpoint)),
            (Key::NodePort(node(88)), Value::Verdict(Chain::Fenced(Family::V4))),
            (Key::FencedPort(node(88)), Value::Present),
            (Key::SourceRange(node(88), "192.0.2.0/24".parse().unwrap()), Value::Present),
        ]
        .into_iter()
        .collect();
        let web = Grant {
            cluster_ips: vec![address],
            node_ports: vec![NodePort { protocol: TCP, port: 80, node_port: 30080 }],
            load_balancer_ports: vec![HostSocket { protocol: TCP, port: 88 }],
            ..Grant::default()
        };
        let idle = Grant { cluster_ips: vec!["10.202.0.10".parse().unwrap()], ..Grant::default() };
        let host_port = HostPort { protocol: TCP, host_ip: None, host_port: 8080, container_port: 80 };
        Translations {
            grants: [(name("web"), web), (name("idle"), idle)].into(),
            ranges: vec!["10.202.0.0/20".parse().unwrap()],
            frontends: Frontends::recovered(&elements),
            host_ports: vec![(host_port, name("pod"), vec!["10.201.0.3".parse().unwrap()])],
            pod_ranges: vec!["10.201.0.0/20".parse().unwrap()],
            own: vec!["192.0.2.2".parse().unwrap()],
        }
    }

    fn ways(address: &str, port: u16) -> Result<Vec<Way>, TraceError> {
        translations().ways(&["10.201.0.2".parse().unwrap()], address.parse().unwrap(), (TCP, port))
    }

    #[test]
    fn addresses_and_ports_lead_to_pods() {
        let service = Owner::Service(name("web"));
        for (address, port, to, owner, is_fenced) in [
            ("10.202.0.9", 80, "10.201.0.7:8080", &service, false),
            ("192.0.2.2", 30080, "10.201.0.7:8080", &service, false),
            ("169.254.0.1", 30080, "10.201.0.7:8080", &service, false),
            ("192.0.2.2", 88, "10.201.0.7:8080", &service, true),
            ("192.0.2.2", 8080, "10.201.0.3:80", &Owner::HostPort(name("pod")), false),
        ] {
            let expected = Through { address: address.parse().unwrap(), port, owner: owner.clone() };
            let expected = Way { to: to.parse().unwrap(), through: Some(expected), is_fenced };
            assert_eq!(ways(address, port).unwrap(), [expected], "{address}:{port}");
        }
        let untouched = ways("198.51.100.1", 30080).unwrap();
        assert_eq!((untouched[0].to.to_string().as_str(), &untouched[0].through), ("198.51.100.1:30080", &None));
    }

    #[test]
    fn addresses_that_refuse_everybody_are_told_apart() {
        let refused = |address: &str, port| ways(address, port).unwrap_err();
        assert!(matches!(refused("10.202.0.10", 80), TraceError::NoEndpoint(service, 80, TCP) if service == name("idle")));
        assert!(matches!(refused("10.202.0.9", 81), TraceError::NoEndpoint(service, 81, TCP) if service == name("web")));
        assert!(matches!(refused("10.202.3.4", 80), TraceError::NoService(_)));
        assert_eq!(translations().addresses_of(&name("pod")), None);
    }
}
