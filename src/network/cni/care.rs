//! Periodic care while pods run: garbage collection of networks once after the start, removed interfaces, results of CHECK.

use super::chain::{Chain, Target};
use super::lost_leases;
use super::namespace;
use super::plan::Stage;
use super::record::PodRecord;
use super::routes;
use super::spec::conflist::Conflist;
use super::spec::version::CniVersion;
use super::{Shared, lock};
use podstead_pod::PodUid;
use podstead_settings::NetworkKind;
use podstead_telemetry::error_chain;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Period of CHECK for each attachment. The kernel is asked at every turn.
const CHECK_EVERY: Duration = Duration::from_secs(600);

/// State of the care.
#[derive(Debug, Default)]
pub(super) struct Care {
    is_busy: AtomicBool,
    has_collected: AtomicBool,
    /// Pods have more than is known: what seems to be garbage may be theirs.
    lacks_records: AtomicBool,
    /// The time of the last CHECK of each attachment.
    checked: Mutex<BTreeMap<(PodUid, String), Instant>>,
}

impl Care {
    /// Records could not be read: no plugin is told what is garbage by this daemon.
    pub(super) fn lack_records(&self) {
        self.lacks_records.store(true, Ordering::Relaxed);
    }
}

/// Looks once, in a task of its own, unless that is going on already.
pub(super) fn begin(shared: &Arc<Shared>) {
    if shared.care.is_busy.swap(true, Ordering::AcqRel) {
        return;
    }
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        if shared.watch.is_stale() {
            let watching = Arc::clone(&shared);
            tokio::task::spawn_blocking(move || watching.watch_directory()).await.ok();
        }
        if !shared.care.has_collected.swap(true, Ordering::Relaxed) {
            shared.collect_garbage().await;
        }
        shared.check_all().await;
        // Services may have come since a pod was connected.
        let telling = Arc::clone(&shared);
        tokio::task::spawn_blocking(move || telling.tell_unreached()).await.ok();
        shared.care.is_busy.store(false, Ordering::Release);
    });
}

impl Shared {
    /// Has plugins remove what belongs to none of podstead's attachments, in networks that podstead has used.
    async fn collect_garbage(self: &Arc<Self>) {
        if self.care.lacks_records.load(Ordering::Relaxed) {
            let message = "cannot read all records of CNI attachments: CNI garbage collection is off until the daemon restarts and reads them all";
            return self.tell_once("NetworkRecordLost", message);
        }
        let directory = Arc::clone(self);
        let is_default = self.links.config.kind == NetworkKind::Cni;
        let first = tokio::task::spawn_blocking(move || lock(&directory.directory).first().ok().map(|(network, _)| network));
        let mut networks: BTreeMap<String, (Conflist, CniVersion)> = BTreeMap::new();
        if let Some(network) = first.await.ok().flatten().filter(|_| is_default) {
            let version = network.latest();
            networks.insert(network.name.clone(), (network, version));
        }
        // None is made or taken down meanwhile.
        let _gate = self.gate.write().await;
        let mut valid: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for attachment in lock(&self.records).values().flat_map(|record| &record.attachments) {
            let name = attachment.network_name().to_owned();
            if let Some(conflist) = attachment.conflist() {
                networks.entry(name.clone()).or_insert(conflist);
            }
            valid.entry(name).or_default().push((attachment.ask.place.container_id.clone(), attachment.interface().to_owned()));
        }
        for (name, (network, version)) in &networks {
            let chain = Chain { plugins: &self.plugins, network, version: *version, cancel: &CancellationToken::new() };
            let of_power_cuts = network.clone();
            match tokio::task::spawn_blocking(move || lost_leases::give_back(&of_power_cuts)).await {
                Ok(Ok(addresses)) if addresses.is_empty() => {}
                Ok(Ok(addresses)) => {
                    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    tracing::info!(network = name, addresses = texts.join(" "), "released unused host-local addresses");
                }
                Ok(Err(error)) => {
                    tracing::warn!(network = name, %error, "cannot find unused host-local addresses")
                }
                Err(error) => {
                    tracing::warn!(network = name, %error, "the search for unused host-local addresses was interrupted")
                }
            }
            let valid = valid.get(name).map(Vec::as_slice).unwrap_or_default();
            if let Err(error) = chain.gc(valid).await {
                tracing::warn!(network = name, error = %error_chain(&error), "CNI garbage collection failed");
            }
        }
    }

    async fn check_all(self: &Arc<Self>) {
        let pods: Vec<(PodUid, PodRecord)> = lock(&self.records)
            .iter()
            .filter(|(_, record)| !record.attachments.is_empty())
            .map(|(uid, record)| (uid.clone(), record.clone()))
            .collect();
        lock(&self.care.checked).retain(|(uid, _), _| pods.iter().any(|(pod, _)| pod == uid));
        for (uid, record) in pods {
            self.check_pod(&uid, &record).await;
        }
    }

    async fn check_pod(self: &Arc<Self>, uid: &PodUid, record: &PodRecord) {
        let PodRecord { pod: name, attachments, lead, .. } = record;
        let netns = self.links.paths.namespaces(uid).join("net");
        let path = netns.clone();
        let looked = tokio::task::spawn_blocking(move || namespace::contents(&path)).await;
        // Of a pod that has no namespace, there is nothing to say.
        let Ok(Ok(contents)) = looked else { return };
        let work = self.works.of(uid);
        // Other work on the pod takes precedence.
        let Ok(_turn) = work.try_turn() else { return };
        let _gate = self.gate.read().await;
        let mut is_lost = false;
        for attachment in attachments.iter().filter(|attachment| attachment.stage == Stage::Added) {
            let key = (uid.clone(), attachment.interface().to_owned());
            let is_there = attachment.is_there(&contents.interfaces);
            let is_due = lock(&self.care.checked).get(&key).is_none_or(|at| at.elapsed() >= CHECK_EVERY);
            if is_there && !is_due {
                continue;
            }
            lock(&self.care.checked).insert(key, Instant::now());
            let (Some((network, version)), Some(result)) = (attachment.conflist(), &attachment.result) else { continue };
            let chain = Chain { plugins: &self.plugins, network: &network, version, cancel: &CancellationToken::new() };
            let target = Target { ask: &attachment.ask, netns: &netns.display().to_string() };
            let checked = chain.check(target, result).await;
            let message = match (&checked, is_there) {
                (Ok(()), true) => continue,
                (Ok(()), false) => format!("interface {} of network {} is gone", attachment.interface(), network.name),
                (Err(error), _) => error_chain(error).to_string(),
            };
            is_lost |= !is_there;
            // If only a plugin reports a fault, the attachment stays as it is: reconnecting would break what works.
            let consequence = if is_there { "the pod stays connected" } else { "reconnecting the pod" };
            self.warn(uid, name, "NetworkCheckFailed", &format!("{message}; {consequence}"));
        }
        if let Some(lead) = lead.clone().filter(|_| !is_lost) {
            let (interface, path) = (lead.interface.clone(), netns);
            let looked = tokio::task::spawn_blocking(move || routes::is_led(&path, &lead)).await;
            if let Ok(Ok(false)) = looked {
                self.warn(
                    uid,
                    name,
                    "NetworkCheckFailed",
                    &format!("the default route through {interface} is gone; recreating it"),
                );
                is_lost = true;
            }
        }
        if is_lost {
            self.works.poke(uid, &work);
        }
    }
}
