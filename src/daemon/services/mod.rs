//! Services of all sources, served: from objects and published pods to addresses, packet rules, names and what the API shows.
//!
//! [`Steward`] is one task. In: the view of objects and the [`backends`] (watch channels: the latest of each counts). Out: grants on disk
//! ([`record`]), packet rules of the builtin network, names of the resolver, [`ServiceView`] of the API. A turn takes the present state up
//! ([`state`]), which says what Services it concerns; it decides with [`plan`] and acts in the order of S6 and S17: record, remove names, change
//! rules, add names.

mod addresses;
mod backends;
mod hold;
mod index;
mod plan;
mod record;
mod state;
#[cfg(test)]
mod tests;
mod variables;

pub(super) use backends::PublishedBackends;
pub(super) use variables::Variables;

use addresses::Addresses;
use backends::Pods;
use hold::Hold;
use plan::{Refused, UNSERVED};
use podstead_api::services::ServiceView;
use podstead_dns::{NamesOfServices, Records};
use podstead_mux::ObjectView;
use podstead_network::{BuiltinNetwork, ServeError, ServiceRanges};
use podstead_pod::host_ports::HostPort;
use podstead_pod::objects::Objects;
use podstead_service::allocate::{Grants, HostSocket, Pool};
use podstead_service::frontends::{Frontends, MOST_ENDPOINTS, MOST_ENDPOINTS_OF_HOST};
use podstead_service::name::ObjectName;
use podstead_service::range::PortRange;
use podstead_sys::layout::Paths;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use variables::Allocated;

/// Time until something that failed, or a port that somebody has, is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// Turns of the search for ports that nobody listens at: each one excludes the ports that the last one met.
const MOST_SEARCHES: usize = 16;

/// Inputs and outputs of the task.
#[derive(Debug)]
pub(super) struct StewardLinks {
    /// Objects of all sources.
    pub(super) objects: Arc<ObjectView>,
    /// Published pods.
    pub(super) pods: watch::Receiver<Pods>,
    /// The network with the packet rules; `None` without one that podstead makes itself.
    pub(super) network: Option<BuiltinNetwork>,
    /// Names of pods and Services; `None` without a resolver.
    pub(super) names: Option<Arc<Records>>,
    /// Paths of records.
    pub(super) paths: Paths,
    /// Range of NodePorts.
    pub(super) node_ports: PortRange,
    /// Name of this host in EndpointSlices.
    pub(super) node: String,
    /// Receiver of events.
    pub(super) events: Arc<dyn EventRecorder>,
    /// Receiver of the Services that the API shows.
    pub(super) view: Arc<ServiceView>,
}

/// Reason why a turn was not completed. It is repeated.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error("record the addresses of Services")]
    Record(#[source] io::Error),
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// The task that serves Services.
#[derive(Debug)]
pub(super) struct Steward {
    links: StewardLinks,
    objects: watch::Receiver<Arc<Objects>>,
    /// Addresses for the variables of containers.
    allocated: watch::Sender<Arc<Allocated>>,
    /// Services and pods as they were seen last.
    state: State,
    /// Grants on disk.
    recorded: Arc<Grants>,
    /// Ranges in the packet rules; `None` if the last change of these failed.
    in_force: Option<ServiceRanges>,
    /// Frontends in the packet rules.
    frontends: Frontends,
    /// Services that an earlier daemon left in the packet rules.
    hold: Hold,
    /// Names in the resolver.
    names: NamesOfServices,
    /// Problems that were recorded as events.
    told: BTreeSet<(ObjectName, String)>,
    addresses: Addresses,
    /// Primary addresses of the host that the API shows.
    shown_host: Vec<IpAddr>,
}

impl Steward {
    /// Takes up what was recorded. A record without sense is set aside: the same addresses follow from the names (S5).
    pub(super) fn new(links: StewardLinks) -> Self {
        let recorded = Arc::new(record::read(&links.paths.services()));
        let (objects, allocated) = (links.objects.subscribe(), watch::Sender::default());
        Self {
            links,
            objects,
            allocated,
            state: State::default(),
            recorded,
            in_force: Some(ServiceRanges::default()),
            frontends: Frontends::default(),
            hold: Hold::default(),
            names: NamesOfServices::default(),
            told: BTreeSet::new(),
            addresses: Addresses::default(),
            shown_host: Vec::new(),
        }
    }

    /// Variables for containers.
    pub(super) fn variables(&self) -> Variables {
        Variables { objects: Arc::clone(&self.links.objects), allocated: self.allocated.subscribe() }
    }

    /// Serves until the daemon ends.
    pub(super) async fn run(mut self) {
        loop {
            let objects = Arc::clone(&self.objects.borrow_and_update());
            let pods = self.links.pods.borrow_and_update().clone();
            let is_settled = match self.turn(&objects, &pods).await {
                Ok(is_settled) => is_settled,
                Err(error) => {
                    self.state.forget();
                    self.tell_unserved(&error_chain(&error).to_string());
                    false
                }
            };
            let retry = (!is_settled).then(|| tokio::time::Instant::now() + RETRY);
            let retry = [retry, self.addresses.look_again()].into_iter().flatten().min();
            let retry = async {
                match retry {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            // All arms can be cancelled: the state is read anew in any case.
            let changed = tokio::select! {
                changed = self.objects.changed() => changed,
                changed = self.links.pods.changed() => changed,
                () = retry => Ok(()),
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Serves the present state; false if a port of the host that somebody has is to be tried again.
    async fn turn(&mut self, objects: &Arc<Objects>, pods: &Pods) -> Result<bool, TurnError> {
        self.state.see(objects, pods);
        let ranges = match &self.links.network {
            Some(network) if !self.state.is_empty() || !self.recorded.is_empty() => network.service_ranges().await?,
            Some(_) | None => ServiceRanges::default(),
        };
        if let Some(network) = &self.links.network
            && let Some((left, frontends)) = network.recovered_services().filter(|_| self.hold.is_new())
        {
            self.hold.begin(if left == ranges { frontends } else { Frontends::default() });
            self.frontends = self.hold.frontends();
        }
        match self.state.is_empty() {
            true => self.addresses = Addresses::default(),
            false => self.addresses.renew(tokio::time::Instant::now()),
        }
        if self.shown_host != self.addresses.primary {
            self.state.forget();
        }
        self.decide(ranges).await;
        let grants = Arc::clone(&self.state.decision().grants);
        self.record(&grants).map_err(TurnError::Record)?;
        self.allocate(objects);
        let names = self.state.next_names(&self.names);
        self.remove_names(&names);
        let frontends = self.next_frontends(objects, pods);
        if let Some(network) = &self.links.network
            && (self.in_force != Some(ranges) || frontends != self.frontends)
        {
            self.in_force = None;
            network.serve(ranges, frontends.clone()).await?;
            self.in_force = Some(ranges);
            self.links.view.count_change();
        }
        self.frontends = frontends;
        self.set_names(names);
        self.forget(objects, &grants).map_err(TurnError::Record)?;
        self.tell();
        self.show();
        self.state.settle();
        Ok(!self.hold.lasts() && !self.state.decision().refused.iter().any(|refused| refused.is_retried))
    }

    /// Decides who is served with what, unless nothing that it depends on has changed.
    async fn decide(&mut self, ranges: ServiceRanges) {
        let host = self.addresses.reachable.clone();
        let mut pool =
            Pool { ipv4: ranges.ipv4, ipv6: ranges.ipv6, node_ports: self.links.node_ports, host, taken: BTreeMap::new() };
        if self.state.is_decided(&pool) {
            return;
        }
        self.state.decide(&self.recorded, &pool);
        for _ in 0..MOST_SEARCHES {
            let holders = self.holders(&self.state.decision().grants, &pool).await;
            if holders.is_empty() {
                break;
            }
            pool.taken.extend(holders);
            self.state.decide(&self.recorded, &pool);
        }
    }

    /// Gives addresses to those who make variables of them.
    fn allocate(&self, objects: &Arc<Objects>) {
        let (services, grants) = (self.state.to_allocate(), Arc::clone(&self.state.decision().grants));
        self.allocated.send_if_modified(|allocated| {
            let is_of_now = allocated.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, objects));
            let is_same = is_of_now && Arc::ptr_eq(&allocated.services, &services) && Arc::ptr_eq(&allocated.grants, &grants);
            if !is_same {
                *allocated = Arc::new(Allocated { of: Some(Arc::clone(objects)), services, grants });
            }
            !is_same
        });
    }

    /// The frontends to serve.
    fn next_frontends(&mut self, objects: &Objects, pods: &Pods) -> Frontends {
        if self.hold.holds() {
            // Those of pods that were not published yet are no Service's: everything is looked at.
            self.state.forget_frontends();
        }
        let frontends = self.state.frontends(&self.frontends);
        if !self.hold.holds() {
            return frontends;
        }
        let (possible, now) = (self.state.possible_frontends(), tokio::time::Instant::now());
        self.hold.apply(frontends, &possible, pods, objects.is_complete(), now)
    }

    /// Shows what is served.
    fn show(&mut self) {
        let host = &self.addresses.primary;
        match self.state.shown(&self.links.node, host) {
            (shown, None) => self.links.view.replace(shown),
            (shown, Some(gone)) => {
                gone.iter().for_each(|service| self.links.view.hide(&service.namespace, &service.name));
                self.links.view.show_all(shown);
            }
        }
        self.shown_host.clone_from(host);
    }

    /// Holders of ports that are to be given and were not before: pods, and programs that listen.
    async fn holders(&self, grants: &Grants, pool: &Pool) -> BTreeMap<HostSocket, String> {
        let Some(network) = &self.links.network else { return BTreeMap::new() };
        let known: BTreeSet<HostSocket> = plan::ports(&self.recorded).collect();
        let mut found = BTreeMap::new();
        for socket in plan::ports(grants).filter(|socket| !known.contains(socket) && !pool.taken.contains_key(socket)) {
            let port = HostPort { protocol: socket.protocol, host_port: socket.port, host_ip: None, container_port: socket.port };
            found.extend(network.holder_of(port).await.map(|holder| (socket, holder)));
        }
        found
    }

    /// Makes new grants durable before anything shows them (S6).
    fn record(&mut self, grants: &Arc<Grants>) -> io::Result<()> {
        if Arc::ptr_eq(&self.recorded, grants) {
            return Ok(());
        }
        for (name, grant) in grants.iter().filter(|(name, grant)| self.recorded.get(*name) != Some(grant)) {
            record::write(&self.links.paths.services(), name, grant)?;
        }
        if self.recorded.keys().all(|name| grants.contains_key(name)) {
            // All of them are there: one copy does.
            self.recorded = Arc::clone(grants);
        } else {
            let new = grants.iter().map(|(name, grant)| (name.clone(), grant.clone()));
            Arc::make_mut(&mut self.recorded).extend(new);
        }
        Ok(())
    }

    /// Gives back what belonged to Services that no source has any more (S5).
    fn forget(&mut self, objects: &Objects, grants: &Arc<Grants>) -> io::Result<()> {
        if !objects.is_complete() || Arc::ptr_eq(&self.recorded, grants) {
            return Ok(());
        }
        let gone: Vec<ObjectName> = self.recorded.keys().filter(|name| !grants.contains_key(*name)).cloned().collect();
        for name in gone {
            record::remove(&self.links.paths.services(), &name)?;
            Arc::make_mut(&mut self.recorded).remove(&name);
        }
        self.recorded = Arc::clone(grants);
        Ok(())
    }

    /// Takes names away whose addresses lead nowhere after the next change of rules.
    fn remove_names(&mut self, next: &NamesOfServices) {
        let without = self.names.without_lost_addresses(next);
        self.set_names(without);
    }

    fn set_names(&mut self, names: NamesOfServices) {
        if names == self.names {
            return;
        }
        if let Some(records) = &self.links.names {
            records.set_services(names.clone());
        }
        self.names = names;
    }

    /// Records an event for each refusal, once while it lasts.
    fn tell(&mut self) {
        let (refused, excess) = (&self.state.decision().refused, self.state.excess());
        if refused.is_empty() && excess.is_empty() && self.told.is_empty() {
            return;
        }
        let mut lasting = BTreeSet::new();
        for Refused { service, reason, message, is_retried: _ } in refused {
            lasting.insert((service.clone(), message.clone()));
            if !self.told.contains(&(service.clone(), message.clone())) {
                self.event(service, reason, message);
            }
        }
        let of_service = format!("it has more than {MOST_ENDPOINTS} endpoints: only {MOST_ENDPOINTS} of them are used");
        let of_host = format!(
            "this host uses at most {MOST_ENDPOINTS_OF_HOST} endpoints of Services, and has them: new ones of this Service are not used until others go"
        );
        let of_service = excess.of_service.iter().map(|service| (service, &of_service));
        for (service, message) in of_service.chain(excess.of_host.iter().map(|service| (service, &of_host))) {
            lasting.insert((service.clone(), message.clone()));
            if !self.told.contains(&(service.clone(), message.clone())) {
                self.event(service, UNSERVED, message);
            }
        }
        self.told = lasting;
    }

    /// Records that Services are not served.
    fn tell_unserved(&mut self, message: &str) {
        tracing::warn!(error = message, "cannot serve Services");
        for name in self.state.names() {
            if self.told.insert((name.clone(), message.to_owned())) {
                self.event(name, UNSERVED, message);
            }
        }
    }

    fn event(&self, service: &ObjectName, reason: &str, message: &str) {
        let subject = Subject::Workload {
            uid: plan::uid(service),
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: service.namespace.to_string(),
            name: service.name.to_string(),
        };
        self.links.events.record(&subject, EventType::Warning, reason, message);
    }
}
