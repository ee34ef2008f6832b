//! podstead's own network: an address of each family for every pod, routed; ports of the host that lead to pods.
//!
//! ```text
//!   setup ---> lease (who has what) ---> packet rules (one transaction) ---> interface (links) ---> record of the lease
//!   settle --> the record outlives a power cut; no process of the pod starts before
//!   teardown -> packet rules away ---> interface away;   release -> lease away
//!   start ---> leases from disk, interfaces from the kernel: what has no lease is removed, the rules are recreated
//! ```
//!
//! All of it carries podstead's name: `ip link show group 0x70737464`, `ip route show proto 112`, `nft list table inet podstead`.

mod bridge;
mod bridged;
mod care;
pub mod diagnosis;
mod durability;
mod family;
mod firewalld;
mod firewalls;
mod fixed_rules;
mod guests;
mod host;
mod lease;
mod leave;
mod links;
pub(crate) mod listeners;
mod mending;
mod names;
mod policies;
mod ranges;
mod record;
mod relearn;
mod resolver_rules;
mod rules;
mod ruleset;
mod service_ports;
mod services;
mod sets;
mod shared;
mod state;
mod switches;
#[cfg(test)]
mod testing;
pub mod trace;
mod tracked;
mod uplink;
mod watch;

pub(super) use guests::Guest;
pub use leave::{LeaveError, leave};
pub(super) use names::{GATEWAY_V4, GATEWAY_V6, RESOLVER_ON_HOST};
pub(super) use policies::policed;
pub use policies::policing::PoliceError;
pub use policies::{NoPolicies, PolicyObjects, PolicySource, ScopedPolicy};
pub use services::{ServeError, ServiceRanges};
pub use shared::NetworkLinks;

use super::{OperationError, host_ips};
use async_trait::async_trait;
use diagnosis::Denied;
use durability::LeaseRecords;
use host::PrepareError;
use lease::{Facts, Lease, Wish};
use names::{NEXT_HOP_V6, Names};
use podstead_pod::host_ports::{HostPort, host_ports, is_isolated};
use podstead_pod::{Pod, PodFullName, PodUid};
use podstead_runtime::{NetworkError, OwnRoute, PodNetwork, PodNetworkStatus};
use podstead_service::frontends::Frontends;
use podstead_settings::{AddressRange, NetworkMode};
use podstead_sys::netlink::NetlinkError;
use podstead_telemetry::error_chain;
use rules::Rules;
use ruleset::rules_of;
use shared::Shared;
use state::State;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tracked::{Leads, nowhere};

/// podstead's own network.
#[derive(Clone, Debug)]
pub struct BuiltinNetwork {
    shared: Arc<Shared>,
}

impl BuiltinNetwork {
    /// Takes up what an earlier daemon left: pods that are connected stay connected, what has no owner goes. What does not work is told,
    /// and tried again when a pod needs it.
    pub async fn open(links: NetworkLinks) -> Self {
        let names = Names::new(links.paths.instance());
        let rules = Mutex::new(Rules::new(names.clone()));
        let state = Arc::default();
        let records = Arc::new(LeaseRecords::new(links.paths.clone(), links.write_ahead.clone(), Arc::clone(&state)));
        let shared = Shared { links, names, state, records, rules, policing: Mutex::default(), news: Mutex::default() };
        let network = Self { shared: Arc::new(shared) };
        let shared = Arc::clone(&network.shared);
        // A panic in there is met again, and told, by the first pod.
        tokio::task::spawn_blocking(move || shared.recover()).await.ok();
        network
    }

    /// Keeps the packet rules in force until the daemon exits: they are recreated as soon as they are flushed.
    pub async fn watch(self) {
        watch::watch(&self.shared).await;
    }

    /// Makes Services reachable at these frontends, and at no other one (R7). They are arranged from those that were given last
    /// (`Frontends::next`), from none after the daemon has started. Without ranges there are no Services. If it fails, pods keep their
    /// rules, and the next call makes all of those of Services.
    pub async fn serve(&self, ranges: ServiceRanges, frontends: Frontends) -> Result<(), ServeError> {
        let shared = Arc::clone(&self.shared);
        let served = tokio::task::spawn_blocking(move || shared.serve(ranges, frontends)).await;
        served.map_err(|_| ServeError::Interrupted)?.map_err(ServeError::Rules)
    }

    /// The ranges of addresses of Services, chosen and recorded when they are first asked for (S4).
    pub async fn service_ranges(&self) -> Result<ServiceRanges, ServeError> {
        let shared = Arc::clone(&self.shared);
        let ranges = tokio::task::spawn_blocking(move || shared.choose_service_ranges()).await;
        ranges.map_err(|_| ServeError::Interrupted)?
    }

    /// Frontends that an earlier daemon left in force, with the ranges of their Services (R8); `None` if there are none, and after the first call of
    /// [`BuiltinNetwork::serve`].
    pub fn recovered_services(&self) -> Option<(ServiceRanges, Frontends)> {
        self.shared.rules().recovered()
    }

    /// The holder of a port of the host, in words: a pod, or a program that listens there (S9, S11).
    pub async fn holder_of(&self, port: HostPort) -> Option<String> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || shared.holder_of(&port)).await.ok().flatten()
    }

    /// Puts the NetworkPolicies that sources want now into force, and ends connections that they deny (N12). To be called when sources want others;
    /// a pod that is set up has them at once.
    pub async fn police(&self) -> Result<(), PoliceError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || shared.police(true)).await.map_err(|_| PoliceError::Interrupted)?
    }

    /// Has these pods, and no others that plugins connected, reach addresses of Services. Blocks.
    pub(super) fn admit(&self, guests: BTreeSet<Guest>) -> Result<(), NetlinkError> {
        self.shared.rules().admit(guests)
    }

    /// Returns true if there are Services.
    pub(super) fn has_services(&self) -> bool {
        !self.shared.rules().service_ranges().is_empty()
    }

    /// Packets that NetworkPolicies denied, by pod and direction, since the table of packet rules was made.
    pub fn denied(&self) -> Result<Vec<Denied>, NetlinkError> {
        let leases: Vec<Lease> = self.shared.state().leases.iter().map(|(_, lease)| lease.clone()).collect();
        diagnosis::denied(&self.shared.names, &leases)
    }

    /// Returns true if this is the address of a pod: no packet of a pod has another source.
    pub fn is_address_of_pod(&self, address: IpAddr) -> bool {
        self.shared.state().leases.iter().any(|(_, lease)| lease.addresses.contains(&address))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        uid: &PodUid,
        work: impl FnOnce(&Arc<Shared>) -> Result<T, NetworkError> + Send + 'static,
    ) -> Result<T, NetworkError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| Err(NetworkError::failed(uid, OperationError::Interrupted(error))))
    }
}

#[async_trait]
impl PodNetwork for BuiltinNetwork {
    async fn setup(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        let wish = Wish { pod: PodFullName::of(pod), ports: host_ports(pod), is_isolated: is_isolated(pod), facts: Facts::of(pod) };
        let (owned, netns) = (uid.clone(), netns.map(Path::to_owned));
        let begin = tokio::time::Instant::now();
        let status = self.blocking(uid, move |shared| shared.set_up(&owned, &wish, netns.as_deref())).await;
        // Benchmarks read this line.
        tracing::debug!(pod_uid = %uid, took_us = begin.elapsed().as_micros(), "network is set up");
        status
    }

    async fn settle(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.shared.records.settle(uid).await
    }

    async fn teardown(&self, uid: &PodUid) -> Result<(), NetworkError> {
        let owned = uid.clone();
        let begin = tokio::time::Instant::now();
        let done = self.blocking(uid, move |shared| shared.tear_down(&owned)).await;
        tracing::debug!(pod_uid = %uid, took_us = begin.elapsed().as_micros(), "network is taken down");
        done
    }

    async fn release(&self, uid: &PodUid) -> Result<(), NetworkError> {
        let owned = uid.clone();
        self.blocking(uid, move |shared| shared.release(&owned)).await
    }

    fn own_routes(&self) -> Vec<OwnRoute> {
        let ranges = self.shared.state().ranges.clone().unwrap_or_default();
        let next_hop = |is_ipv4: bool| if is_ipv4 { IpAddr::from(GATEWAY_V4) } else { IpAddr::from(NEXT_HOP_V6) };
        let has_ipv6 = ranges.iter().any(|range| range.network().is_ipv6());
        // Of IPv4, the host's address is a neighbour's.
        let host = has_ipv6.then_some(((GATEWAY_V6.into(), 128), NEXT_HOP_V6.into()));
        let ranges = ranges.iter().map(|range| ((range.network(), range.prefix()), next_hop(range.network().is_ipv4())));
        ranges.chain(host).collect()
    }

    async fn look_after(&self) {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || shared.look_after()).await.ok();
    }

    fn has_news(&self, uid: &PodUid) -> bool {
        self.shared.news().remove(uid)
    }

    fn trouble(&self) -> Option<String> {
        self.shared.state().trouble.clone()
    }

    async fn status(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        match netns {
            None => self.shared.status_on_host(uid),
            Some(_) => {
                let (shared, owned, facts) = (Arc::clone(&self.shared), uid.clone(), Facts::of(pod));
                // Only a panic could keep it from being done, and setup does it again.
                tokio::task::spawn_blocking(move || shared.renew_facts(&owned, facts)).await.ok();
                let ips = self.shared.state().leases.get(uid).map(|lease| lease.addresses.clone()).unwrap_or_default();
                Ok(PodNetworkStatus { ips, ..PodNetworkStatus::default() })
            }
        }
    }
}

impl Shared {
    fn set_up(self: &Arc<Self>, uid: &PodUid, wish: &Wish, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        self.read_again(uid).map_err(|error| NetworkError::failed(uid, error))?;
        let Some(netns) = netns else {
            self.grant(uid, wish, &[], false)?;
            return self.status_on_host(uid);
        };
        let ranges = self.prepare().map_err(|error| NetworkError::failed(uid, error))?;
        let lease = self.state().leases.get(uid).cloned();
        let is_connected = match lease {
            // Its processes know its addresses, also if its interface was removed.
            Some(lease) if lease.holds_ports => lease.slot.is_some(),
            Some(Lease { slot: Some(slot), .. }) => {
                links::is_connected(&self.names, slot, netns).map_err(|error| NetworkError::failed(uid, error))?
            }
            Some(_) | None => false,
        };
        let (lease, is_new) = self.grant(uid, wish, &ranges, is_connected)?;
        let Some(slot) = lease.slot else { return Ok(PodNetworkStatus::default()) };
        self.police(is_connected).map_err(|error| NetworkError::failed(uid, error))?;
        self.check_enforced(uid, &lease, is_connected)?;
        let connected = self.connect(uid, &lease, slot, netns, &ranges);
        // Also of a pod that could not be connected: what it was given is its own. Not earlier, since the disk's work slows that of connecting down; the pod's
        // first process waits for it in any case, and an interface without a lease is removed by the next daemon.
        if is_new {
            self.records.begin(uid);
        }
        connected?;
        // A policy may have come meanwhile.
        self.check_enforced(uid, &lease, true)?;
        Ok(PodNetworkStatus { ips: lease.addresses, ..PodNetworkStatus::default() })
    }

    fn serve(&self, ranges: ServiceRanges, frontends: Frontends) -> Result<(), NetlinkError> {
        let begin = tokio::time::Instant::now();
        let (moved, were, added) = {
            let mut rules = self.rules();
            let (were, before) = (rules.service_ranges(), rules.frontends().clone());
            let moved = rules.serve(ranges, frontends)?;
            (moved, were, before.new_behind_node_ports(rules.frontends()))
        };
        tracing::debug!(took_us = begin.elapsed().as_micros(), "packet rules of Services are changed");
        self.open_to_loopback(&added);
        if were != ranges {
            self.route_services();
        }
        if moved.is_empty() {
            return Ok(());
        }
        let frontends = self.rules().frontends().clone();
        services::datagrams::forget(&moved, &frontends)
    }

    /// Has pods with these addresses reached from 127.0.0.1 by NodePorts. The interface of a pod that is connected later gets it at once.
    fn open_to_loopback(&self, addresses: &BTreeSet<IpAddr>) {
        let state = self.state();
        if addresses.is_empty() || state.mode != NetworkMode::Routed {
            return;
        }
        let has = |lease: &&Lease| lease.addresses.iter().any(|address| addresses.contains(address));
        for slot in state.leases.iter().map(|(_, lease)| lease).filter(has).filter_map(|lease| lease.slot) {
            let interface = self.names.interface(slot);
            if let Err(error) = services::route::reach_from_loopback(&interface) {
                tracing::debug!(%interface, error = %error_chain(&error), "NodePorts at 127.0.0.1 do not lead to the pod");
            }
        }
    }

    /// Returns true if the pod is reached from 127.0.0.1, by host ports or NodePorts.
    fn reaches_loopback(&self, lease: &Lease) -> bool {
        let behind = self.rules().behind_node_ports();
        lease.ports.iter().any(is_on_loopback) || lease.addresses.iter().any(|address| behind.contains(address))
    }

    /// Forgets where datagrams for Services went while the rules were away, unless that is where they lead.
    fn forget_datagrams_of_services(&self) {
        let frontends = self.rules().frontends().clone();
        if let Err(error) = services::datagrams::forget(&Frontends::default().moved_udp(&frontends), &frontends) {
            tracing::warn!(error = %error_chain(&error), "cannot forget connections of UDP to Services");
        }
    }

    /// Keeps the routes to Services, which go with the last interface of a pod.
    fn route_services(&self) {
        let ranges = self.rules().service_ranges();
        if let Err(error) = services::route::keep(ranges) {
            // Nothing is behind Services while there is no pod.
            tracing::debug!(error = %error_chain(&error), "no route to the range of Services");
        }
    }

    fn connect(&self, uid: &PodUid, lease: &Lease, slot: u32, netns: &Path, ranges: &[AddressRange]) -> Result<(), NetworkError> {
        // The rules come first: they are there before the pod can send or be sent anything.
        let (mode, mtu) = {
            let state = self.state();
            (state.mode, state.mtu)
        };
        if let Some(rules) = rules_of(&self.names, mode, lease) {
            let begin = tokio::time::Instant::now();
            let moved = self.rules().publish(uid, rules).map_err(|error| NetworkError::failed(uid, PrepareError::Rules(error)))?;
            tracing::debug!(pod_uid = %uid, took_us = begin.elapsed().as_micros(), "packet rules lead to the pod");
            self.forget_datagrams(&nowhere(&moved));
        }
        let bridge = match mode {
            NetworkMode::Routed => None,
            NetworkMode::Bridge => {
                Some((bridge::present(&self.names, ranges).map_err(|error| NetworkError::failed(uid, error))?, ranges))
            }
        };
        let reaches_loopback = self.reaches_loopback(lease);
        let wanted = links::Wanted { reaches_loopback, mtu, bridge };
        links::connect(&self.names, lease, slot, netns, wanted).map_err(|error| NetworkError::failed(uid, error))?;
        self.state().connected.insert(uid.clone());
        self.route_services();
        Ok(())
    }

    /// Gives a pod addresses and ports. Whether that is to be recorded; of a pod that is connected already, or will not be, it is on disk.
    fn grant(&self, uid: &PodUid, wish: &Wish, ranges: &[AddressRange], is_connected: bool) -> Result<(Lease, bool), NetworkError> {
        let before = self.state().leases.get(uid).cloned();
        let had = before.as_ref().filter(|lease| lease.holds_ports).map(|lease| lease.ports.clone()).unwrap_or_default();
        // A pod on the host's network listens itself.
        let added = wish.ports.iter().filter(|port| !ranges.is_empty() && !had.contains(port));
        for port in added {
            self.check_free(port)?;
        }
        let lease = self.state().leases.grant(uid, wish, ranges, is_connected).map_err(|error| match error {
            error @ lease::LeaseError::PortTaken { .. } => NetworkError::PortTaken(error.to_string()),
            error @ lease::LeaseError::Exhausted { .. } => NetworkError::failed(uid, error),
        })?;
        let is_recorded = before.as_ref().is_some_and(|before| Lease { holds_ports: true, ..before.clone() } == lease);
        let is_new = !is_recorded && (lease.slot.is_some() || !lease.ports.is_empty());
        if is_new && (is_connected || ranges.is_empty()) {
            record::write_lease(&self.links.paths, uid, &lease).map_err(|error| {
                self.state().leases.restore(uid, before);
                NetworkError::failed(uid, error)
            })?;
        }
        Ok((lease, is_new))
    }

    /// On a bridge, packets between pods do not meet the rules of policies (N15): a selected pod waits, and one that runs goes on.
    fn check_enforced(&self, uid: &PodUid, lease: &Lease, is_connected: bool) -> Result<(), NetworkError> {
        if self.state().mode != NetworkMode::Bridge {
            return Ok(());
        }
        let told = self.tell_not_enforced(uid, &lease.facts.policed(&lease.pod, lease.addresses.clone()));
        told.filter(|_| !is_connected).map_or(Ok(()), |message| Err(NetworkError::NotReady(message)))
    }

    /// Takes up other properties of a pod that was connected by an earlier daemon.
    fn renew_facts(&self, uid: &PodUid, facts: Facts) {
        let Some(lease) = self.state().leases.renew(uid, facts) else { return };
        let recorded = record::write_lease(&self.links.paths, uid, &lease);
        if let Err(error) = recorded {
            tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "cannot record a pod's labels");
        }
        if let Err(error) = self.police(true) {
            tracing::error!(pod_uid = %uid, error = %error_chain(&error), "cannot enforce NetworkPolicies");
        }
    }

    fn check_free(&self, port: &HostPort) -> Result<(), NetworkError> {
        let holder = self.listener_at(port).or_else(|| self.leads_to_service(port).then(|| "a Service".to_owned()));
        holder.map_or(Ok(()), |holder| Err(NetworkError::PortTaken(format!("hostPort {port} is in use by {holder}"))))
    }

    fn tear_down(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.news().remove(uid);
        let lease = {
            let mut state = self.state();
            state.connected.remove(uid);
            state.leases.get(uid).cloned()
        };
        let moved = self.rules().withdraw(uid).map_err(|error| NetworkError::failed(uid, PrepareError::Rules(error)))?;
        self.forget_datagrams(&nowhere(&moved));
        if let Some(lease) = lease
            && let Some(slot) = lease.slot
            && let Some(link) = links::find_host_end(&self.names, slot).map_err(|error| NetworkError::failed(uid, error))?
        {
            // The kernel takes tens of milliseconds. The index is this interface's alone, whatever is made in the meantime; what is left
            // is found by the next start, or by whoever looks after the network.
            let (index, name) = (link.index, link.name);
            let bridged = (self.state().mode == NetworkMode::Bridge).then(|| (self.names.clone(), lease.addresses));
            std::thread::spawn(move || {
                let removed = links::remove(index);
                let forgotten = removed.and_then(|()| match bridged {
                    Some((names, addresses)) => bridge::forget_neighbours(&names, &addresses),
                    None => Ok(()),
                });
                if let Err(error) = forgotten {
                    tracing::warn!(interface = name, error = %error_chain(&error), "cannot remove the interface of a pod");
                }
            });
        }
        if self.state().leases.rest(uid) {
            self.forget_lease(uid);
        }
        Ok(())
    }

    fn release(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.tear_down(uid)?;
        // The record first: an unknown lease is worse than an unused address.
        let removed = self.records.remove(uid);
        removed.map_err(|error| NetworkError::failed(uid, error))?;
        let mut state = self.state();
        let had_address = state.leases.release(uid).is_some_and(|lease| lease.slot.is_some());
        state.unread.remove(uid);
        drop(state);
        if had_address && let Err(error) = self.police(false) {
            // Its address is given to no other pod before that works.
            tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "NetworkPolicies still have the addresses of a pod that is gone");
        }
        Ok(())
    }

    /// Forgets where datagrams went that are to go elsewhere.
    fn forget_datagrams(&self, leads: &Leads) {
        let ranges = self.state().ranges.clone().unwrap_or_default();
        if let Err(error) = tracked::forget(leads, &ranges) {
            tracing::warn!(error = %error_chain(&error), "cannot delete tracked connections: UDP clients that keep sending may not reach the pod");
        }
    }

    fn forget_lease(&self, uid: &PodUid) {
        if let Err(error) = self.records.remove(uid) {
            tracing::warn!(pod_uid = %uid, error = %error_chain(&error), "cannot remove the record of a pod's addresses");
        }
    }

    fn status_on_host(&self, uid: &PodUid) -> Result<PodNetworkStatus, NetworkError> {
        let ips = host_ips().map_err(|error| NetworkError::failed(uid, OperationError::HostAddresses(error)))?;
        Ok(PodNetworkStatus { ips, ..PodNetworkStatus::default() })
    }
}

/// Returns true if a port is open on 127.0.0.1, too.
fn is_on_loopback(port: &HostPort) -> bool {
    match port.host_ip {
        None => true,
        Some(IpAddr::V4(ip)) => ip.is_unspecified() || ip.is_loopback(),
        Some(IpAddr::V6(_)) => false,
    }
}
