//! Execution of the plan for one pod.

use super::chain::{Chain, ChainError, Target};
use super::directory::DirectoryError;
use super::namespace::{self, Contents};
use super::plan::{Attachment, Stage, Step, steps};
use super::record::{self, PodRecord};
use super::routes::{self, Lead};
use super::spec::conflist::Conflist;
use super::spec::invocation::Ask;
use super::status::status;
use super::wish::{Wish, Wishes};
use super::work::{Direction, Work};
use super::{PATIENCE, Shared, lock, strays};
use crate::OperationError;
use crate::record::RecordError;
use podstead_pod::{Pod, PodFullName, PodUid};
use podstead_runtime::{NetworkError, OwnRoute, PodNetworkStatus};
use podstead_telemetry::error_chain;
use std::error::Error;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One pod that is being connected.
#[derive(Debug)]
struct Connection {
    uid: PodUid,
    name: PodFullName,
    pod: Pod,
    wishes: Wishes,
    netns: PathBuf,
    base: Option<PodNetworkStatus>,
    /// Routes through the first interface from the network behind, if it made that.
    own_routes: Vec<OwnRoute>,
}

impl Shared {
    /// Connects a pod as far as it is not connected yet. Gives up waiting, but not working, after [`PATIENCE`].
    pub(super) async fn set_up(
        self: &Arc<Self>,
        uid: &PodUid,
        pod: &Pod,
        wishes: Wishes,
        netns: &Path,
        base: Option<PodNetworkStatus>,
        own_routes: Vec<OwnRoute>,
    ) -> Result<PodNetworkStatus, NetworkError> {
        let work = self.works.of(uid);
        if let Some(failure) = work.take_failure(Direction::SetUp) {
            return Err(failure);
        }
        let Ok(_) = work.try_turn().map(drop) else { return Err(NetworkError::UnderWay) };
        let name = PodFullName::of(pod);
        self.claim_ports(uid, &name, wishes.ports.clone(), false).await?;
        let cancel = work.begin();
        let connection = Connection { uid: uid.clone(), name, pod: pod.clone(), wishes, netns: netns.to_owned(), base, own_routes };
        let (shared, working) = (Arc::clone(self), Arc::clone(&work));
        self.awaited(uid, &work, Direction::SetUp, async move {
            let _turn = working.turn().await;
            shared.connect(&connection, &working, &cancel).await
        })
        .await
    }

    /// Takes everything down that plugins gave a pod. NotFound is success.
    pub(super) async fn tear_down(self: &Arc<Self>, uid: &PodUid) -> Result<(), NetworkError> {
        if !lock(&self.records).contains_key(uid) {
            return Ok(());
        }
        let work = self.works.of(uid);
        if let Some(failure) = work.take_failure(Direction::TearDown) {
            return Err(failure);
        }
        if work.break_off() && work.try_turn().is_err() {
            return Err(NetworkError::UnderWay);
        }
        let (shared, working, uid_) = (Arc::clone(self), Arc::clone(&work), uid.clone());
        self.awaited(uid, &work, Direction::TearDown, async move {
            let _turn = working.turn().await;
            shared.disconnect(&uid_, &working).await
        })
        .await
    }

    /// Does work in a task of its own, and waits a while for it. What comes of work that nobody waited for is told next time.
    async fn awaited<T: Send + 'static>(
        self: &Arc<Self>,
        uid: &PodUid,
        work: &Arc<Work>,
        direction: Direction,
        doing: impl Future<Output = Result<T, NetworkError>> + Send + 'static,
    ) -> Result<T, NetworkError> {
        let mut task = tokio::spawn(doing);
        match tokio::time::timeout(PATIENCE, &mut task).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => Err(NetworkError::failed(uid, OperationError::Interrupted(error))),
            Err(_) => {
                let (shared, uid, work) = (Arc::clone(self), uid.clone(), Arc::clone(work));
                tokio::spawn(async move {
                    if let Ok(Err(error)) = task.await {
                        let error = Some((direction, error));
                        work.keep_failure(error.filter(|(_, error)| !matches!(error, NetworkError::UnderWay)));
                    }
                    shared.works.poke(&uid, &work);
                });
                Err(NetworkError::UnderWay)
            }
        }
    }

    pub(super) fn keep(&self, uid: &PodUid, record: &PodRecord) -> Result<(), RecordError> {
        record::write(&self.links.paths, uid, record)
    }

    /// Changes a pod's record, on disk and in memory.
    pub(super) async fn change(
        self: &Arc<Self>,
        uid: &PodUid,
        name: &PodFullName,
        edit: impl FnOnce(&mut PodRecord) + Send + 'static,
    ) -> Result<(), NetworkError> {
        let (shared, owner, name) = (Arc::clone(self), uid.clone(), name.clone());
        let written = tokio::task::spawn_blocking(move || {
            let mut record = lock(&shared.records).get(&owner).cloned().unwrap_or_else(|| PodRecord::new(name));
            edit(&mut record);
            shared.keep(&owner, &record)?;
            shared.names.learn(&owner, Some(&record).filter(|record| !record.is_empty()));
            let mut records = lock(&shared.records);
            match record.is_empty() {
                true => drop(records.remove(&owner)),
                false => drop(records.insert(owner, record)),
            }
            drop(records);
            shared.admit_guests();
            Ok::<(), RecordError>(())
        });
        match written.await {
            Ok(written) => written.map_err(|error| NetworkError::failed(uid, error)),
            Err(error) => Err(NetworkError::failed(uid, error)),
        }
    }

    fn attachments(&self, uid: &PodUid) -> Vec<Attachment> {
        lock(&self.records).get(uid).map(|record| record.attachments.clone()).unwrap_or_default()
    }

    async fn connect(
        self: &Arc<Self>,
        connection: &Connection,
        work: &Work,
        cancel: &CancellationToken,
    ) -> Result<PodNetworkStatus, NetworkError> {
        let Connection { uid, netns, wishes, base, .. } = connection;
        let path = netns.clone();
        let contents = match tokio::task::spawn_blocking(move || namespace::prepared(&path)).await {
            Ok(contents) => contents.map_err(|error| NetworkError::failed(uid, error))?,
            Err(error) => return Err(NetworkError::failed(uid, error)),
        };
        let attached = self.attachments(uid);
        let steps = steps(&wishes.attachments, &attached, &contents.interfaces);
        if !steps.is_empty() {
            // Closed only when the daemon ends.
            let _slot = self.slots.acquire().await.map_err(|error| NetworkError::failed(uid, error))?;
            let _gate = self.gate.read().await;
            if attached.iter().any(|attachment| attachment.stage != Stage::Added) {
                strays::end(uid.to_string(), strays::GRACE).await;
            }
            for step in &steps {
                if cancel.is_cancelled() {
                    return Err(NetworkError::UnderWay);
                }
                match step {
                    Step::Detach(interface) => {
                        self.detach(uid, &connection.name, work, interface, &netns.display().to_string()).await?
                    }
                    Step::Renew { wish, first } => self.renew(connection, work, wish, *first, cancel).await?,
                    Step::Attach(wish) => self.attach(connection, work, wish, cancel).await?,
                }
            }
        }
        self.lead(connection).await?;
        self.find_resolver(uid, &connection.name, netns).await?;
        let telling = Arc::clone(self);
        tokio::task::spawn_blocking(move || telling.tell_unreached()).await.ok();
        let Contents { first_ips, .. } = contents;
        let record = lock(&self.records).get(uid).cloned().unwrap_or_else(|| PodRecord::new(connection.name.clone()));
        Ok(self.status(&record, base.as_ref(), &first_ips))
    }

    /// Network status of a pod, from its record.
    pub(super) fn status(&self, record: &PodRecord, base: Option<&PodNetworkStatus>, first_ips: &[IpAddr]) -> PodNetworkStatus {
        let resolver = record.resolver.filter(|resolver| self.is_answered_at(*resolver));
        status(&record.attachments, base, first_ips, resolver, self.links.config.kind)
    }

    /// Gives the default routes to the interface that asks for them, or back to the first one.
    async fn lead(self: &Arc<Self>, connection: &Connection) -> Result<(), NetworkError> {
        let Connection { uid, name, wishes, netns, own_routes, .. } = connection;
        let wanted = wishes
            .attachments
            .iter()
            .find_map(|wish| Some(Lead { interface: wish.ask.place.interface.clone(), gateways: wish.default_route.clone()? }));
        let before = lock(&self.records).get(uid).and_then(|record| record.lead.clone());
        if wanted.is_none() && before.is_none() {
            return Ok(());
        }
        let is_recorded = wanted == before;
        if let Some(lead) = wanted.clone().filter(|_| !is_recorded) {
            self.change(uid, name, |record| record.lead = Some(lead)).await?;
        }
        let first = self.attachments(uid).into_iter().find(Attachment::is_primary);
        let gateways = first.map(|first| first.gained().default_gateways()).unwrap_or_default();
        let (netns, own_routes, is_over) = (netns.clone(), own_routes.clone(), wanted.is_none());
        let work = tokio::task::spawn_blocking(move || match wanted {
            Some(lead) => routes::lead(&netns, &lead, &own_routes),
            None => routes::give_back(&netns, &gateways),
        });
        match work.await {
            Ok(done) => done.map_err(|error| NetworkError::failed(uid, error))?,
            Err(error) => return Err(NetworkError::failed(uid, error)),
        }
        if is_over {
            self.change(uid, name, |record| record.lead = None).await?;
        }
        Ok(())
    }

    /// The network of a wish; a pod that cannot have it yet waits for a change of the configuration.
    async fn network(self: &Arc<Self>, connection: &Connection, work: &Work, wish: &Wish) -> Result<Conflist, NetworkError> {
        let (shared, wanted) = (Arc::clone(self), wish.network.clone());
        let found = tokio::task::spawn_blocking(move || {
            if shared.watch.is_stale() {
                shared.watch_directory();
            }
            let mut directory = lock(&shared.directory);
            match &wanted {
                None => directory.first(),
                Some(name) => directory.named(name),
            }
        });
        let uid = &connection.uid;
        // Before the answer is known: a change in between is not missed.
        work.waits(true);
        let (network, troubles) = match found.await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) if wish.network.is_none() => return Err(not_ready(&error)),
            Ok(Err(error @ (DirectoryError::Empty(_) | DirectoryError::Unknown { .. }))) => {
                return Err(NetworkError::failed(uid, error));
            }
            Ok(Err(error)) => return Err(NetworkError::failed(uid, error)),
            Err(error) => return Err(NetworkError::failed(uid, error)),
        };
        work.waits(false);
        for trouble in troubles {
            self.tell_once("NetworkConfigBroken", &error_chain(&trouble).to_string());
        }
        Ok(network)
    }

    async fn attach(
        self: &Arc<Self>,
        connection: &Connection,
        work: &Work,
        wish: &Wish,
        cancel: &CancellationToken,
    ) -> Result<(), NetworkError> {
        let Connection { uid, name, pod, netns, .. } = connection;
        let network = self.network(connection, work, wish).await?;
        if let Some(refusal) = wish.refusal(&network) {
            work.waits(true);
            return Err(if wish.ask.capabilities.port_mappings.is_empty() {
                NetworkError::failed(uid, refusal)
            } else {
                NetworkError::PortTaken(refusal)
            });
        }
        if wish.is_unlimited_by(&network) {
            let message = format!(
                "no plugin of network {} supports the capability bandwidth: the pod's traffic is not limited",
                network.name
            );
            self.warn(uid, name, "BandwidthIgnored", &message);
        }
        let chain = Chain { plugins: &self.plugins, network: &network, version: network.latest(), cancel };
        // If one is missing, none is called: the attachments of the others could not be deleted.
        chain.look_for_plugins().map_err(|error| NetworkError::failed(uid, error))?;
        let chain = Chain { version: chain.negotiated().await, ..chain };
        if let Err(error) = chain.status().await {
            work.waits(true);
            return Err(if wish.is_primary() || error.is_unavailable() {
                not_ready(&error)
            } else {
                NetworkError::failed(uid, error)
            });
        }
        let ask = wish.ask_of(&network, pod);
        let attachment = Attachment::new(wish, ask.clone(), &network, chain.version);
        self.change(uid, name, move |record| record.attachments.push(attachment)).await?;
        let netns = netns.display().to_string();
        let target = Target { ask: &ask, netns: &netns };
        match chain.add(target, 0, None).await {
            Ok((_, result)) => {
                let interface = ask.place.interface.clone();
                self.change(uid, name, move |record| {
                    if let Some(attachment) = record.find(&interface) {
                        (attachment.stage, attachment.result) = (Stage::Added, Some(result));
                    }
                })
                .await
            }
            Err(error) => {
                // An incomplete attachment is deleted at once; if that fails, too, the next attempt finds it in the record.
                if !error.is_broken_off()
                    && let Err(also) = self.detach(uid, name, work, &ask.place.interface, &netns).await
                {
                    tracing::warn!(%uid, error = %error_chain(&also), "cannot clean up an incomplete CNI attachment yet");
                }
                Err(if error.is_broken_off() { NetworkError::UnderWay } else { NetworkError::failed(uid, error) })
            }
        }
    }

    /// Tells the plugins from `first` on of other arguments.
    async fn renew(
        self: &Arc<Self>,
        connection: &Connection,
        work: &Work,
        wish: &Wish,
        first: usize,
        cancel: &CancellationToken,
    ) -> Result<(), NetworkError> {
        let Connection { uid, name, pod, netns, .. } = connection;
        let interface = wish.ask.place.interface.clone();
        let attachment = self.attachments(uid).into_iter().find(|attachment| attachment.interface() == interface);
        let Some((attachment, (network, version))) = attachment.and_then(|one| one.conflist().map(|conflist| (one, conflist)))
        else {
            return self.attach(connection, work, wish, cancel).await;
        };
        if let Some(refusal) = wish.refusal(&network) {
            return Err(NetworkError::PortTaken(refusal));
        }
        if wish.is_unlimited_by(&network) {
            let message = format!(
                "no plugin of network {} supports the capability bandwidth: the pod's traffic is not limited",
                network.name
            );
            self.warn(uid, name, "BandwidthIgnored", &message);
        }
        let ask = wish.ask_of(&network, pod);
        self.stage(uid, name, &interface, Stage::Adding, None).await?;
        let chain = Chain { plugins: &self.plugins, network: &network, version, cancel };
        let netns = netns.display().to_string();
        let result = attachment.result.clone();
        chain
            .del(Target { ask: &attachment.ask, netns: &netns }, first, result.as_ref())
            .await
            .map_err(|error| NetworkError::failed(uid, error))?;
        chain.add(Target { ask: &ask, netns: &netns }, first, result).await.map_err(|error| NetworkError::failed(uid, error))?;
        self.stage(uid, name, &interface, Stage::Added, Some(ask)).await
    }

    async fn stage(
        self: &Arc<Self>,
        uid: &PodUid,
        name: &PodFullName,
        interface: &str,
        stage: Stage,
        ask: Option<Ask>,
    ) -> Result<(), NetworkError> {
        let interface = interface.to_owned();
        self.change(uid, name, move |record| {
            if let Some(attachment) = record.find(&interface) {
                attachment.stage = stage;
                if let Some(ask) = ask {
                    attachment.ask = ask;
                }
            }
        })
        .await
    }

    /// Takes one attachment down.
    pub(super) async fn detach(
        self: &Arc<Self>,
        uid: &PodUid,
        name: &PodFullName,
        work: &Work,
        interface: &str,
        netns: &str,
    ) -> Result<(), NetworkError> {
        let attachment = self.attachments(uid).into_iter().find(|attachment| attachment.interface() == interface);
        let Some(attachment) = attachment else { return Ok(()) };
        self.stage(uid, name, interface, Stage::Deleting, None).await?;
        match attachment.conflist() {
            Some((network, version)) => {
                // A taking down that was begun is not broken off: it would have to be done again.
                let chain = Chain { plugins: &self.plugins, network: &network, version, cancel: &CancellationToken::new() };
                let target = Target { ask: &attachment.ask, netns };
                if let Err(error) = chain.del(target, 0, attachment.result.as_ref()).await {
                    self.give_up(uid, name, work, attachment.result.is_none(), error)?;
                }
            }
            None => self.warn(uid, name, "NetworkRecordLost", "cannot delete a CNI attachment of the pod: its record is damaged"),
        }
        let interface = interface.to_owned();
        self.change(uid, name, move |record| record.attachments.retain(|attachment| attachment.interface() != interface)).await
    }

    /// Decides whether a failed teardown is retried: always, except where plugins are gone for good, and where they never created what they
    /// must delete.
    fn give_up(&self, uid: &PodUid, name: &PodFullName, work: &Work, is_half: bool, error: ChainError) -> Result<(), NetworkError> {
        const VAIN_ATTEMPTS: u32 = 5;
        if !work.is_vain(is_half || error.is_missing(), VAIN_ATTEMPTS) {
            return Err(NetworkError::failed(uid, error));
        }
        let message = format!("a CNI plugin may have left resources of the pod behind: {}", error_chain(&error));
        self.warn(uid, name, "NetworkLeftBehind", &message);
        Ok(())
    }

    async fn disconnect(self: &Arc<Self>, uid: &PodUid, work: &Work) -> Result<(), NetworkError> {
        let Some(record) = lock(&self.records).get(uid).cloned() else { return Ok(()) };
        if !record.attachments.is_empty() {
            let _slot = self.slots.acquire().await.map_err(|error| NetworkError::failed(uid, error))?;
            let _gate = self.gate.read().await;
            if record.attachments.iter().any(|attachment| attachment.stage != Stage::Added) {
                strays::end(uid.to_string(), strays::GRACE).await;
            }
            let netns = self.links.paths.namespaces(uid).join("net");
            let is_there = {
                let path = netns.clone();
                tokio::task::spawn_blocking(move || namespace::contents(&path).is_ok()).await.unwrap_or(false)
            };
            // Plugins are told nothing of a namespace that is gone.
            let netns = if is_there { netns.display().to_string() } else { String::new() };
            let mut result = Ok(());
            for attachment in record.attachments.iter().rev() {
                let detached = self.detach(uid, &record.pod, work, attachment.interface(), &netns).await;
                result = result.and(detached);
            }
            result?;
        }
        self.change(uid, &record.pod, |record| *record = PodRecord::new(record.pod.clone())).await
    }
}

fn not_ready(error: &(dyn Error + 'static)) -> NetworkError {
    NetworkError::NotReady(plugin_not_ready(error))
}

/// In the kubelet's words.
pub(super) fn plugin_not_ready(error: &(dyn Error + 'static)) -> String {
    let error = error_chain(error);
    format!(
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: {error}"
    )
}
