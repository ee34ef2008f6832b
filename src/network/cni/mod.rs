//! Networks by plugins of the Container Network Interface: the pods' first interface, if the configuration says so, and what pods ask for
//! beside it by the annotation `k8s.v1.cni.cncf.io/networks`, whoever makes the first one.
//!
//! ```text
//!   pod ---> wish (pure) ---+
//!   record, namespace ------+--> plan (pure) ---> connect ---> chain ---> exec ---> plugin
//!   directory of networks --------------------------^
//! ```
//!
//! [`CniNetwork`] stands before another network, which makes the first interface where plugins do not. Every attachment is recorded in
//! the pod's state directory before a plugin is called, with all that DEL needs; the record is what recovery works from. Calls of plugins
//! may take long: they go on in tasks of their own, one at a time for each pod, and the worker is poked at their end.

mod care;
mod chain;
mod connect;
mod directory;
mod exec;
mod lost_leases;
mod names;
mod namespace;
mod open_pods;
mod plan;
mod ports;
mod record;
mod routes;
mod services;
mod shared;
mod spec;
mod status;
mod strays;
mod watch;
mod wish;
mod work;

use crate::builtin::policed;
use async_trait::async_trait;
use care::Care;
use directory::Directory;
use exec::Plugins;
use names::Names;
use open_pods::{Notice, OpenPods, Way, names_of};
use podstead_pod::host_ports::host_ports;
use podstead_pod::{Pod, PodFullName, PodUid};
use podstead_runtime::{NetworkError, PodNetwork, PodNetworkStatus};
use podstead_settings::NetworkKind;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventType, Subject};
use record::PodRecord;
pub use shared::CniLinks;
use shared::PATIENCE;
pub(super) use shared::{Shared, lock};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::{RwLock, Semaphore};
use watch::Watch;
use wish::Wishes;
use work::Works;

/// Pods whose plugins run at the same time: iptables has one lock for all.
const PARALLEL_PODS: usize = 8;

/// Pods' attachments by plugins, before a network that makes the first interface where they do not.
#[derive(Clone, Debug)]
pub struct CniNetwork {
    shared: Arc<Shared>,
    /// Pods that NetworkPolicies do not reach.
    open: Arc<Mutex<OpenPods>>,
    base: Arc<dyn PodNetwork>,
}

impl CniNetwork {
    /// Takes up what an earlier daemon recorded. `base` makes the first interface where plugins do not.
    pub async fn open(links: CniLinks, base: Arc<dyn PodNetwork>) -> Self {
        let cni = links.config.cni.clone();
        let shared = Arc::new(Shared {
            plugins: Plugins { directories: cni.bin_directories, timeout: cni.timeout },
            directory: Mutex::new(Directory::new(cni.config_directory.clone())),
            names: Names::new(links.names.clone()),
            works: Works::new(links.pokes.clone()),
            links,
            records: Mutex::default(),
            slots: Semaphore::new(PARALLEL_PODS),
            gate: RwLock::default(),
            watch: Watch::default(),
            care: Care::default(),
            told: Mutex::default(),
            admitting: Mutex::default(),
        });
        let recovering = Arc::clone(&shared);
        // A panic in there comes from reading records: pods are reconnected, or their interfaces are found in their namespaces.
        tokio::task::spawn_blocking(move || {
            recovering.recover();
            recovering.watch_directory();
        })
        .await
        .ok();
        Self { shared, open: Arc::default(), base }
    }

    /// The pods that plugins have given something.
    pub fn connected(&self) -> Vec<PodUid> {
        lock(&self.shared.records).keys().cloned().collect()
    }

    /// Returns true if this is the first address of a pod that plugins connected.
    pub fn is_address_of_pod(&self, address: IpAddr) -> bool {
        self.shared.names.is_pod(address)
    }

    /// Returns true if plugins make, or made, the first interface of a pod.
    fn has_first(&self, uid: &PodUid, wishes: &Wishes) -> bool {
        let by_record = |record: &PodRecord| record.attachments.iter().any(plan::Attachment::is_primary);
        wishes.attachments.iter().any(wish::Wish::is_primary) || lock(&self.shared.records).get(uid).is_some_and(by_record)
    }

    /// Keeps a pod whose first interface plugins make from starting while a NetworkPolicy selects it, unless they enforce policies. One that is
    /// connected goes on.
    fn check_enforced(&self, uid: &PodUid, pod: &Pod) -> Result<(), NetworkError> {
        if self.shared.links.config.cni.enforces_policies {
            return Ok(());
        }
        if lock(&self.shared.records).contains_key(uid) {
            self.learn_open(uid, pod, Way::Plugins);
            return Ok(());
        }
        let Some(names) = names_of(&self.shared.links.policies.policies().0.read(), &policed(pod)) else { return Ok(()) };
        let (reason, message) = Way::Plugins.event(&names);
        self.shared.warn(uid, &PodFullName::of(pod), reason, &message);
        Err(NetworkError::NotReady(message))
    }

    /// Tells of a pod that runs, or is about to, while policies select it that are not enforced.
    fn learn_open(&self, uid: &PodUid, pod: &Pod, way: Way) {
        let policies = || self.shared.links.policies.policies().0.read();
        let notice = lock(&self.open).learn(uid, PodFullName::of(pod), policed(pod), way, policies);
        self.tell(notice);
    }

    /// Tells of pods that go on while policies select them now that are not enforced for them. To be called when sources want other policies.
    pub fn tell_of_policies(&self) {
        let mut open = lock(&self.open);
        if !open.is_empty() {
            self.tell(open.look(&self.shared.links.policies.policies().0.read()));
        }
    }

    fn tell(&self, notices: impl IntoIterator<Item = Notice>) {
        for Notice { uid, pod, reason, message } in notices {
            self.shared.warn(&uid, &pod, reason, &message);
        }
    }

    /// A pod on the host's network, which listens at its ports itself.
    async fn setup_on_host(&self, uid: &PodUid, pod: &Pod) -> Result<PodNetworkStatus, NetworkError> {
        if self.shared.links.config.kind == NetworkKind::Cni {
            self.shared.claim_ports(uid, &PodFullName::of(pod), host_ports(pod), true).await?;
        }
        if let Some(annotation) = wish::asks_for_networks(pod) {
            let message = format!("annotation {annotation} has no effect: the pod uses the host's network");
            self.shared.warn(uid, &PodFullName::of(pod), "NetworksIgnored", &message);
        }
        self.learn_open(uid, pod, Way::HostNetwork);
        self.base.setup(uid, pod, None).await
    }
}

#[async_trait]
impl PodNetwork for CniNetwork {
    async fn setup(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        let Some(netns) = netns else { return self.setup_on_host(uid, pod).await };
        let name = PodFullName::of(pod);
        let kind = self.shared.links.config.kind;
        let wishes = Wishes::of(uid, &name, pod, kind == NetworkKind::Cni).map_err(|error| NetworkError::failed(uid, error))?;
        let has_first = self.has_first(uid, &wishes);
        if let Some(port) = wishes.ports.first().filter(|_| kind != NetworkKind::Cni) {
            let reason = "hostPorts reach only pods on podstead's own network";
            return Err(NetworkError::PortTaken(format!("cannot forward hostPort {port} to the pod: {reason}")));
        }
        if wishes.has_bandwidth && !has_first {
            self.shared.warn(
                uid,
                &name,
                "BandwidthIgnored",
                "bandwidth limits need a CNI plugin: the pod's traffic is not limited",
            );
        }
        if has_first {
            self.check_enforced(uid, pod)?;
        }
        let base = if has_first { None } else { Some(self.base.setup(uid, pod, Some(netns)).await?) };
        let is_known = lock(&self.shared.records).contains_key(uid);
        if let Some(base) = base.as_ref().filter(|_| wishes.attachments.is_empty() && !is_known) {
            return Ok(base.clone());
        }
        let own_routes = if base.is_some() { self.base.own_routes() } else { Vec::new() };
        let status = self.shared.set_up(uid, pod, wishes, netns, base, own_routes).await?;
        if has_first {
            // A policy may have come meanwhile.
            self.check_enforced(uid, pod)?;
        }
        Ok(status)
    }

    async fn settle(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.base.settle(uid).await
    }

    async fn teardown(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.shared.tear_down(uid).await?;
        self.base.teardown(uid).await
    }

    async fn release(&self, uid: &PodUid) -> Result<(), NetworkError> {
        self.shared.tear_down(uid).await?;
        self.shared.works.forget(uid);
        lock(&self.open).forget(uid);
        self.base.release(uid).await
    }

    async fn look_after(&self) {
        self.base.look_after().await;
        care::begin(&self.shared);
    }

    async fn status(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        let record = lock(&self.shared.records).get(uid).filter(|record| !record.attachments.is_empty()).cloned();
        let has_first = record.as_ref().is_some_and(|record| record.attachments.iter().any(plan::Attachment::is_primary));
        // Its labels may be others, and an earlier daemon may have connected it.
        match netns {
            None => self.learn_open(uid, pod, Way::HostNetwork),
            Some(_) if has_first && !self.shared.links.config.cni.enforces_policies => self.learn_open(uid, pod, Way::Plugins),
            Some(_) => {}
        }
        let base = if has_first { None } else { Some(self.base.status(uid, pod, netns).await?) };
        Ok(match record {
            Some(record) => self.shared.status(&record, base.as_ref(), &[]),
            None => base.unwrap_or_default(),
        })
    }

    fn trouble(&self) -> Option<String> {
        match self.shared.links.config.kind {
            NetworkKind::Cni => lock(&self.shared.directory).first().err().map(|error| connect::plugin_not_ready(&error)),
            NetworkKind::Builtin | NetworkKind::None => self.base.trouble(),
        }
    }

    fn has_news(&self, uid: &PodUid) -> bool {
        let own = self.shared.works.has_news(uid);
        self.base.has_news(uid) || own
    }
}

impl Shared {
    fn recover(&self) {
        match record::read_all(&self.links.paths) {
            Ok((found, unreadable)) => {
                for (uid, error) in unreadable {
                    tracing::error!(%uid, error = %error_chain(&error), "cannot read the record of a pod's CNI attachments");
                    self.care.lack_records();
                }
                for (uid, record) in &found {
                    self.names.learn(uid, Some(record));
                    // Questions of pods that run wait in there instead of being lost.
                    record.resolver.map(|resolver| self.is_answered_at(resolver));
                }
                lock(&self.records).extend(found);
                self.admit_guests();
            }
            Err(error) => {
                tracing::error!(error = %error_chain(&error), "cannot read the records of CNI attachments");
                self.care.lack_records();
            }
        }
    }

    fn watch_directory(self: &Arc<Self>) {
        let shared = Arc::downgrade(self);
        let tell = move || {
            if let Some(shared) = shared.upgrade() {
                shared.works.poke_waiting();
            }
        };
        self.watch.set(&self.links.config.cni.config_directory, tell);
    }

    fn warn(&self, uid: &PodUid, name: &PodFullName, reason: &str, message: &str) {
        let subject = Subject::Pod { uid: uid.clone(), full_name: name.clone(), field_path: None };
        self.links.events.record(&subject, EventType::Warning, reason, message);
    }

    /// Records an event once per daemon.
    fn tell_once(&self, reason: &str, message: &str) {
        if lock(&self.told).insert(message.to_owned()) {
            tracing::warn!(reason, message, "network");
            self.links.events.record(&Subject::Node, EventType::Warning, reason, message);
        }
    }
}
