//! Ranges of Services, and ports of the host that Services and hostPorts may not both have (S4, S9, S11).

use super::{ServeError, ServiceRanges, Shared, listeners, ranges, record};
use podstead_pod::host_ports::HostPort;
use podstead_service::frontends::Frontend;
use podstead_service::range::Subnet;
use podstead_settings::AddressRange;
use std::path::Path;

impl Shared {
    /// Those that are in force, else new ones, which are on disk when this returns.
    pub(super) fn choose_service_ranges(&self) -> Result<ServiceRanges, ServeError> {
        {
            let rules = self.rules();
            let in_force = rules.service_ranges();
            // The configuration may want others than an earlier daemon had.
            if !in_force.is_empty() && rules.recovered().is_none() {
                return Ok(in_force);
            }
        }
        let of_pods = self.prepare().map_err(|error| ServeError::Host(error.into()))?;
        let used = ranges::used_networks(&self.names).map_err(ServeError::Look)?;
        let earlier = record::read_ranges(&self.links.paths).map_err(|error| ServeError::Record(error.into()))?;
        let (chosen, [ipv4, ipv6]) = ranges::decide_of_services(&self.links.config, &earlier, &of_pods, &used);
        if chosen != earlier {
            record::write_ranges(&self.links.paths, &chosen).map_err(|error| ServeError::Record(error.into()))?;
        }
        let subnet = |range: AddressRange| Subnet::of(range.network(), range.prefix());
        let ranges = ServiceRanges { ipv4: ipv4.and_then(subnet), ipv6: ipv6.and_then(subnet) };
        if ranges.is_empty() { Err(ServeError::NoFreeRange) } else { Ok(ranges) }
    }

    /// The pod or the program that has a port of the host.
    pub(super) fn holder_of(&self, port: &HostPort) -> Option<String> {
        let of_pod = {
            let state = self.state();
            let is_same = |other: &HostPort| (other.protocol, other.host_port) == (port.protocol, port.host_port);
            let has = state.leases.iter().find(|(_, lease)| lease.holds_ports && lease.ports.iter().any(is_same));
            has.map(|(_, lease)| format!("pod {}/{}", lease.pod.namespace, lease.pod.name))
        };
        of_pod.or_else(|| self.listener_at(port))
    }

    /// The program that listens at a port of the host.
    pub(super) fn listener_at(&self, port: &HostPort) -> Option<String> {
        let is_own = |address, port| {
            // Packets to the resolver are told apart before ports of the host are looked up.
            self.links.dns_port == Some(port) && crate::GATEWAYS.contains(&address) || address == crate::RESOLVER_ON_HOST
        };
        match listeners::in_the_way(port, is_own) {
            Ok(listener) => {
                let owner = |listener| listeners::owner(Path::new("/proc"), &listener);
                listener.map(|listener| owner(listener).unwrap_or_else(|| "a service on this host".to_owned()))
            }
            Err(error) => {
                tracing::warn!(%error, %port, "cannot list listening sockets");
                None
            }
        }
    }

    /// Returns true if packets to a port of the host go to a Service.
    pub(super) fn leads_to_service(&self, port: &HostPort) -> bool {
        let rules = self.rules();
        let ranges = rules.service_ranges();
        let is_same = |frontend: &Frontend| match frontend {
            Frontend::Node(socket) => (socket.protocol, socket.port) == (port.protocol, port.host_port),
            // Others are addresses of the host.
            Frontend::Address(socket) => {
                let is_own = ranges.iter().any(|range| range.contains(socket.address));
                !is_own && (socket.protocol, socket.port) == (port.protocol, port.host_port)
            }
        };
        rules.frontends().iter().any(|(frontend, _)| is_same(frontend))
    }
}
