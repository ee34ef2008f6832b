//! Pulls: from a reference to a complete image, once for all requesters.
//!
//! A pull is a task of its own: it goes on when its requester goes away, since the request will come again.

use super::access::{Access, SecretUse};
use super::ask::{Ask, Served};
use super::collect::Collector;
use super::commit::{CommitError, NewImage};
use super::disk::Disk;
use super::document::{Configuration, Descriptor, DocumentError, ImageManifest, Manifest, Platform};
use super::explain::{explain, is_for_want_of_space};
use super::fetch::{FetchError, FetchedLayer, Fetcher, WantedLayer};
use super::figures::Figures;
use super::interest::{Interest, Urgency};
use super::layer::{Bounds, StagedLayer};
use super::names::NamedLayer;
use super::platform;
use super::policy::record::Subject;
use super::policy::search::{Place, SearchError, search};
use super::policy::{Asker, Gate, Refusal, Wanted};
use super::pulls::{Pull, Pulls};
use super::registry::{Caller, HostLogin, Need, RegistryError, Who};
use super::room::{self, Part, RoomError};
use super::transfer::{BlobKey, Joined, Source};
use super::windows::{Standing, WaitEnd, Windows};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use jiff::Timestamp;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_container::{ImageLease, ResolvedImage};
use podstead_pod::objects::FingerprintKey;
use podstead_runtime::pull_secrets::Login;
use podstead_runtime::{PullFigures, PullHold, PullState};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A pull that lasts longer publishes its lowest layers while others are fetched. Before, nothing of it would survive a power cut anyway, and each
/// time costs a sync of the file system.
const EARLY: Duration = Duration::from_secs(10);
/// Indexes in indexes: no deeper than anybody nests them.
pub(super) const NESTING: usize = 4;

/// Failure of a pull, for those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PullFailure {
    /// For a person.
    pub(super) reason: String,
    /// Consequence for the requester.
    pub(super) kind: FailureKind,
}

/// Consequence of a failure for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The registry could not be asked: what is present may be used.
    Unreachable,
    /// The policy refuses the image.
    Refused,
    /// Everything else.
    Failed,
}

/// Reason why a pull failed.
#[derive(Debug, thiserror::Error)]
enum PullError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("image is for {offered}, but this host is {host}")]
    Platform { offered: String, host: String },
    /// The policy.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The search for signatures.
    #[error("ask {host} for signatures")]
    Signatures {
        host: String,
        #[source]
        source: RegistryError,
    },
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("layer {digest}{}", if *is_foreign { ", which its owner distributes and a registry need not have" } else { "" })]
    Layer {
        digest: Digest,
        /// Only its owner may distribute it.
        is_foreign: bool,
        #[source]
        source: FetchError,
    },
    #[error("store the image")]
    Commit(#[from] CommitError),
    /// The windows are closed, until then.
    #[error("outside the windows for updates (images.windows)")]
    Outside(Option<Timestamp>),
    #[error("the pull was cancelled")]
    Stopped,
}

impl PullError {
    fn kind(&self) -> FailureKind {
        if matches!(self, Self::Refused(_)) {
            FailureKind::Refused
        } else if self.is_unreachable() {
            FailureKind::Unreachable
        } else {
            FailureKind::Failed
        }
    }

    fn is_unreachable(&self) -> bool {
        match self {
            Self::Registry(error) | Self::Signatures { source: error, .. } => error.is_unreachable(),
            Self::Layer { source, .. } => source.is_unreachable(),
            // A captive portal may answer every request with such a page.
            Self::Document(DocumentError::Json { .. } | DocumentError::WebPage) => true,
            Self::Document(_) | Self::Platform { .. } | Self::Room(_) => false,
            Self::Refused(_) | Self::Commit(_) | Self::Outside(_) | Self::Stopped => false,
        }
    }

    /// Returns true if other credentials may succeed.
    fn is_about_access(&self) -> bool {
        match self {
            Self::Registry(error) | Self::Signatures { source: error, .. } => error.is_about_access(),
            Self::Layer { source: FetchError::Transfer(error), .. } => error.is_about_access(),
            Self::Layer { .. } | Self::Document(_) | Self::Platform { .. } => false,
            Self::Refused(_) | Self::Room(_) | Self::Commit(_) | Self::Outside(_) | Self::Stopped => false,
        }
    }

    /// Returns true if another attempt would fetch and refuse the same.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Layer { source: FetchError::Layer(error), .. } if error.is_refusal())
    }
}

/// A reference, and what the pod that asks for it may pull with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// The reference.
    pub(super) reference: String,
    /// Credentials of the pod, in the order in which they are tried.
    pub(super) logins: Vec<Login>,
    /// Those of this host may be used, too.
    pub(super) of_host: bool,
}

type Waiting = Shared<BoxFuture<'static, Result<(), PullFailure>>>;

/// A pull under way, and those who wait for it.
#[derive(Clone)]
struct UnderWay {
    waiting: Waiting,
    interest: Arc<Interest>,
}

/// Pulls images into a store.
pub(super) struct Puller {
    disk: Arc<Disk>,
    fetcher: Fetcher,
    collector: Arc<Collector>,
    /// Pulls under way: those of the same reference with the same credentials are one.
    running: Mutex<HashMap<Asked, UnderWay>>,
    fingerprint_key: FingerprintKey,
    shown: Pulls,
    gate: Arc<Gate>,
    figures: Figures,
    windows: Windows,
}

impl fmt::Debug for Puller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Puller").field("fetcher", &self.fetcher).finish_non_exhaustive()
    }
}

/// A layer that the store lacks.
struct MissingLayer {
    chain: Digest,
    diff_id: Digest,
    descriptor: Descriptor,
}

/// Content that a reference names.
struct Found {
    /// The index or manifest that the registry has for it.
    target: Digest,
    /// Indexes from the outermost on, and the manifest for this host.
    documents: Vec<Bytes>,
    /// Digest of that manifest.
    digest: Digest,
    manifest: ImageManifest,
    /// Whom hosts gave them to.
    served: Served,
}

/// Failures of a pull, one for each of the credentials.
#[derive(Debug, Default)]
struct Failures {
    reasons: Vec<(String, String)>,
    /// Credentials of this host that could not be read.
    problems: Vec<String>,
    /// There are credentials of this host that the pod may not use.
    kept_back: bool,
}

impl Failures {
    fn add(&mut self, with: &str, error: &PullError) {
        self.reasons.push((with.to_owned(), explain(error)));
    }

    fn end(self, named: bool, kind: FailureKind) -> PullFailure {
        let named = named || self.reasons.len() > 1;
        let told = |(with, reason): (String, String)| if named { format!("with {with}: {reason}") } else { reason };
        let mut reasons: Vec<String> = self.reasons.into_iter().map(told).collect();
        reasons.extend(self.problems);
        if self.kept_back && kind == FailureKind::Failed {
            let hint = "credentials of this host are not for this source (allow.registryCredentials of the source is not set)";
            reasons.push(hint.to_owned());
        }
        PullFailure { reason: reasons.join("; "), kind }
    }
}

/// A pull under way; however it ends, the next one to ask begins a new one.
struct Running<'a> {
    puller: &'a Puller,
    key: Asked,
    interest: Arc<Interest>,
}

impl Running<'_> {
    /// Makes the next one to ask begin a new pull, if nobody waits for this one; returns true then.
    fn is_over_if_deserted(&self) -> bool {
        let mut running = self.puller.running();
        let is_over = self.interest.is_deserted();
        if is_over {
            self.forget(&mut running);
        }
        is_over
    }

    /// Forgets this pull, but not one that came after it.
    fn forget(&self, running: &mut HashMap<Asked, UnderWay>) {
        if running.get(&self.key).is_some_and(|under_way| Arc::ptr_eq(&under_way.interest, &self.interest)) {
            running.remove(&self.key);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.forget(&mut self.puller.running());
    }
}

impl Puller {
    pub(super) fn new(
        disk: Arc<Disk>,
        fetcher: Fetcher,
        collector: Arc<Collector>,
        fingerprint_key: FingerprintKey,
        gate: Arc<Gate>,
    ) -> Self {
        let (running, shown, figures, windows) = Default::default();
        Self { disk, fetcher, collector, running, fingerprint_key, shown, gate, figures, windows }
    }

    /// Keeps updates to these windows.
    pub(super) fn with_windows(self, windows: Windows) -> Self {
        Self { windows, ..self }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Asked, UnderWay>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same figures for the transfers.
    pub(super) fn with_figures(self, figures: Figures) -> Self {
        Self { figures, ..self }
    }

    pub(super) fn figures(&self) -> PullFigures {
        self.figures.get()
    }

    /// States of the pulls under way, to which others may add theirs.
    pub(super) fn shown(&self) -> Pulls {
        self.shown.clone()
    }

    /// Pulls under way, the oldest first.
    pub(super) fn pulls(&self) -> Vec<PullState> {
        self.shown.list()
    }

    /// Makes `reference` name what its registry says it is, and that image whole. `written` is how it was written. The credentials of the pod are
    /// tried in their order, then those of this host.
    pub(super) async fn pull(
        self: &Arc<Self>,
        reference: &Reference,
        written: &str,
        key: Asked,
        urgency: Urgency,
    ) -> Result<(), PullFailure> {
        let (waiting, _waiter) = {
            let mut running = self.running();
            let under_way = running.entry(key).or_insert_with_key(|key| {
                let interest = Interest::of(urgency);
                let waiting = self.begin(reference.clone(), written.to_owned(), key.clone(), Arc::clone(&interest));
                UnderWay { waiting, interest }
            });
            (under_way.waiting.clone(), under_way.interest.join(urgency))
        };
        waiting.await
    }

    fn begin(self: &Arc<Self>, reference: Reference, written: String, asked: Asked, interest: Arc<Interest>) -> Waiting {
        let (done, end) = oneshot::channel();
        let puller = Arc::clone(self);
        tokio::spawn(async move {
            let of_pod = asked.clone();
            let running = Running { puller: &puller, key: asked, interest: Arc::clone(&interest) };
            let pull = Arc::new(puller.shown.begin_for(&reference, written, interest));
            let begun = Instant::now();
            let result = puller.try_each(&reference, &running, &pull, of_pod).await;
            puller.figures.ended(result.is_ok(), begun.elapsed());
            drop((running, pull));
            // A waiter may close the store once it learns of the end.
            drop(puller);
            // There is no waiter: fine.
            drop(done.send(result));
        });
        let stopped = || Err(PullFailure { reason: PullError::Stopped.to_string(), kind: FailureKind::Failed });
        end.map(move |result| result.unwrap_or_else(|_| stopped())).boxed().shared()
    }

    /// Tries the credentials of the pod, then those of this host. Without any, nobody's are tried only if the pod has none for this image, as the
    /// kubelet does.
    async fn try_each(
        &self,
        reference: &Reference,
        running: &Running<'_>,
        pull: &Arc<Pull>,
        asked: Asked,
    ) -> Result<(), PullFailure> {
        let (has_logins, mut failures) = (!asked.logins.is_empty(), Failures::default());
        for login in asked.logins {
            let access = Access::with(SecretUse::of(&login, &self.fingerprint_key));
            let with = format!("Secret {}", login.name());
            let caller =
                Caller { who: Who::Pod(login.credentials), of_host: asked.of_host, session: self.fetcher.registry.session() };
            let result = self.attempt_in_window(reference, &caller, (running, pull), access).await;
            let Err(error) = result else { return Ok(()) };
            failures.add(&with, &error);
            // The other credentials would fail in the same way.
            if error.kind() != FailureKind::Failed {
                return Err(failures.end(true, error.kind()));
            }
        }
        let of_host = self.fetcher.registry.host_logins(reference).await;
        let mut logins = of_host.logins;
        if !asked.of_host {
            failures.kept_back = !logins.is_empty();
            logins.clear();
        } else {
            failures.problems = of_host.problems;
        }
        if !has_logins {
            logins.push(HostLogin::Nobody);
        }
        for login in logins {
            let access = if login == HostLogin::Nobody { Access::open() } else { Access::with_host_credentials() };
            let caller = Caller { who: Who::Host(login.clone()), of_host: asked.of_host, session: self.fetcher.registry.session() };
            let result = self.attempt_in_window(reference, &caller, (running, pull), access).await;
            let Err(error) = result else { return Ok(()) };
            failures.add(&login.to_string(), &error);
            if !error.is_about_access() {
                return Err(failures.end(has_logins, error.kind()));
            }
        }
        Err(failures.end(has_logins, FailureKind::Failed))
    }

    /// Attempts it, and again each time that a window opens for it. Meanwhile its tag may have come to name another image.
    async fn attempt_in_window(
        &self,
        reference: &Reference,
        caller: &Caller,
        (running, pull): (&Running<'_>, &Arc<Pull>),
        access: Access,
    ) -> Result<(), PullError> {
        loop {
            let until = match self.attempt_with_room(reference, caller, pull, access.clone()).await {
                Err(PullError::Outside(until)) => until,
                result => return result,
            };
            tracing::info!(image = %reference, until = until.map(tracing::field::display), "waiting for a window for updates");
            pull.waits(PullHold { until });
            while self.windows.wait(&pull.interest).await == WaitEnd::Deserted {
                if running.is_over_if_deserted() {
                    return Err(PullError::Stopped);
                }
            }
        }
    }

    async fn attempt_with_room(
        &self,
        reference: &Reference,
        caller: &Caller,
        pull: &Arc<Pull>,
        access: Access,
    ) -> Result<(), PullError> {
        let result = self.attempt(reference, caller, pull, access.clone()).await;
        if result.as_ref().is_err_and(|error| is_for_want_of_space(error)) && self.collector.recover().await {
            return self.attempt(reference, caller, pull, access).await;
        }
        result
    }

    async fn attempt(&self, reference: &Reference, caller: &Caller, pull: &Arc<Pull>, access: Access) -> Result<(), PullError> {
        pull.resolving();
        let ask = Ask { registry: &*self.fetcher.registry, caller };
        let wanted = self.gate.wanted(reference, Asker::Pod)?;
        // One small question, if the image is here: does the tag still mean it?
        if reference.digest().is_none()
            && let Some((known, image)) = self.disk.find(reference)
            && let (now, served) = ask.digest(reference).await?
            && now == known
            && self.accepts_stored(&image, wanted.clone()).await?
        {
            let access = access.given(served);
            return self.on_disk(reference, move |disk, reference| disk.allow(reference, known, &access)).await;
        }
        tracing::info!(image = %reference, "pulling");
        let host = platform::host();
        let Found { target, documents, digest, manifest, served: given } = self.manifest(reference, ask, &host).await?;
        let signatures = self.signatures(Place { ask, reference }, &documents, digest, wanted).await?;
        let access = access.given(given);
        if self.disk.has_manifest(digest) {
            let name = move |disk: &Disk, reference: &Reference| disk.name_signed(reference, target, digest, access, &signatures);
            return self.on_disk(reference, name).await;
        }
        let config = ask.configuration(reference, &manifest.config).await?;
        let configuration = Configuration::parse(&config, manifest.layers.len())?;
        if !platform::runs_on(&configuration.platform, &host) {
            return Err(PullError::Platform { offered: platform::spell(&configuration.platform), host: platform::spell(&host) });
        }
        // Also those that are published before the image is complete.
        let (layers, _lease) = self.hold(&manifest, &configuration).await?;
        let missing = self.missing(&manifest, &layers);
        if !missing.is_empty() {
            pull.downloading(missing.iter().map(|layer| &layer.descriptor));
            if let Standing::Closed(until) = self.windows.standing(&pull.interest) {
                return Err(PullError::Outside(until));
            }
        }
        self.make_room(&missing).await;
        let bounds = self.bounds(&manifest, &layers, &missing).await?;
        let (mut fetched, failure) = self.layers(reference, caller, pull, &missing, &layers, &bounds).await;
        let (manifest, config) = (documents.last().map(|bytes| bytes.to_vec()).unwrap_or_default(), config.to_vec());
        let result = match failure {
            None => {
                pull.storing();
                let (staged, blobs) = served(std::mem::take(&mut fetched)).await;
                let committed = self
                    .on_disk(reference, move |disk, reference| {
                        disk.commit(NewImage { manifest, config, signatures, staged }, reference, target, access)
                    })
                    .await;
                if committed.is_ok() {
                    finish(blobs).await;
                }
                committed
            }
            // The layers would be of no use to the next attempt.
            Some(error) if error.is_refusal() => {
                let (staged, blobs): (Vec<_>, Vec<_>) = fetched.into_values().map(|layer| (layer.staged, layer.blob)).unzip();
                finish(blobs).await;
                let gone = move |_: &Disk, _: &Reference| {
                    drop(staged);
                    Ok(())
                };
                self.on_disk(reference, gone).await.and(Err(error))
            }
            Some(error) => {
                if let Err(error) = self.publish(reference, &layers, fetched).await {
                    tracing::warn!(image = %reference, error = %explain(&error), "cannot keep the layers of a failed pull");
                }
                Err(error)
            }
        };
        result.inspect(|()| {
            self.disk.registry_answered(reference.host());
            tracing::info!(image = %reference, digest = %digest, "pulled");
        })
    }

    /// Returns true if the signatures that are kept of an image suffice.
    async fn accepts_stored(&self, image: &ResolvedImage, wanted: Option<Wanted>) -> Result<bool, PullError> {
        let Some(wanted) = wanted else { return Ok(true) };
        let (disk, digest) = (Arc::clone(&self.disk), image.digest.clone());
        let judge = move || disk.judge_stored(&digest, wanted).is_ok();
        tokio::task::spawn_blocking(judge).await.map_err(|_| PullError::Stopped)
    }

    /// The signatures of an image, kept ones and those of its registry, which suffice.
    async fn signatures(
        &self,
        place: Place<'_>,
        documents: &[Bytes],
        manifest: Digest,
        wanted: Option<Wanted>,
    ) -> Result<Vec<Subject>, PullError> {
        let Some(wanted) = wanted else { return Ok(Vec::new()) };
        let trusted = tokio::task::spawn_blocking(move || wanted.trusted()).await.map_err(|_| PullError::Stopped)??;
        search(place, documents, self.disk.signatures(manifest), &trusted).await.map_err(|error| match error {
            SearchError::Refused(refusal) => PullError::Refused(refusal),
            SearchError::Registry(source) => PullError::Signatures { host: place.reference.host().to_owned(), source },
        })
    }

    /// The manifest for this host, and the documents that lead to it.
    async fn manifest(&self, reference: &Reference, ask: Ask<'_>, host: &Platform) -> Result<Found, PullError> {
        let mut at = reference.clone();
        let mut documents = Vec::new();
        let mut target = None;
        let mut all_served = Served::AsAsked;
        for _ in 0..NESTING {
            let (bytes, served) = ask.manifest(&at).await?;
            all_served = all_served.and(served);
            let actual = Digest::of(&bytes);
            let target = *target.get_or_insert(actual);
            match Manifest::parse(&bytes)? {
                Manifest::Image(manifest) => {
                    manifest.check()?;
                    documents.push(bytes);
                    return Ok(Found { target, documents, digest: actual, manifest: *manifest, served: all_served });
                }
                Manifest::Index(entries) => at = reference.at(platform::choose(&entries, host)?.digest),
            }
            documents.push(bytes);
        }
        Err(DocumentError::NotAnImage("an index nested more than three levels deep".into()).into())
    }

    /// The layers of the image by their names in the store, and a lease on them.
    async fn hold(
        &self,
        manifest: &ImageManifest,
        configuration: &Configuration,
    ) -> Result<(Vec<NamedLayer>, ImageLease), PullError> {
        let (disk, manifest, configuration) = (Arc::clone(&self.disk), manifest.clone(), configuration.clone());
        tokio::task::spawn_blocking(move || disk.hold(&manifest, &configuration)).await.map_err(|_| PullError::Stopped)
    }

    /// The layers that the store lacks.
    fn missing(&self, manifest: &ImageManifest, layers: &[NamedLayer]) -> Vec<MissingLayer> {
        let missing = layers.iter().zip(&manifest.layers).filter(|(layer, _)| !self.disk.has_layer(layer.name));
        missing
            .map(|(layer, descriptor)| MissingLayer { chain: layer.name, diff_id: layer.diff_id, descriptor: descriptor.clone() })
            .collect()
    }

    /// Limits for the layers to be fetched; an error if the image is obviously too large. Partly fetched layers of others make room for it.
    async fn bounds(&self, manifest: &ImageManifest, layers: &[NamedLayer], missing: &[MissingLayer]) -> Result<Bounds, PullError> {
        let transfers = self.fetcher.transfers.clone();
        let keys: BTreeSet<BlobKey> = missing.iter().map(|layer| blob_key(&layer.descriptor)).collect();
        let spooled = tokio::task::spawn_blocking(move || transfers.spooled()).await.map_err(|_| PullError::Stopped)?;
        let rest = |layer: &MissingLayer| {
            layer.descriptor.size.saturating_sub(spooled.get(&blob_key(&layer.descriptor)).copied().unwrap_or_default())
        };
        let fetched: HashMap<Digest, u64> = missing.iter().map(|layer| (layer.chain, rest(layer))).collect();
        let part =
            |chain| fetched.get(&chain).map_or_else(|| Part::Present(self.disk.layer_record(chain)), |size| Part::Missing(*size));
        let parts: Vec<Part> = layers.iter().map(|layer| part(layer.name)).collect();
        let compressed = manifest.layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.size));
        let (limits, space) = (self.fetcher.limits.get(), self.disk.space().clone());
        let image = match room::budget(&limits, &space, compressed, &parts) {
            Err(RoomError::Space(_)) => {
                let transfers = self.fetcher.transfers.clone();
                let freed = tokio::task::spawn_blocking(move || transfers.discard_unwanted(&keys)).await;
                let freed = freed.map_err(|_| PullError::Stopped)?.unwrap_or_default();
                tracing::info!(bytes = freed, "removed partly fetched layers that nobody fetches now, to make room");
                room::budget(&limits, &space, compressed, &parts)?
            }
            budget => budget?,
        };
        Ok(Bounds { limits, image: Arc::new(image), space })
    }

    /// Removes unused images if these layers may not fit beside them.
    async fn make_room(&self, missing: &[MissingLayer]) {
        if !missing.is_empty() {
            let compressed = missing.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.descriptor.size));
            self.collector.prepare(compressed, missing.len() as u64).await;
        }
    }

    /// Fetches layers, several at once. Those that were staged are returned even if another one failed; those that were published meanwhile, here or by
    /// another pull, are in the store.
    async fn layers(
        &self,
        reference: &Reference,
        caller: &Caller,
        pull: &Arc<Pull>,
        missing: &[MissingLayer],
        layers: &[NamedLayer],
        bounds: &Bounds,
    ) -> (BTreeMap<Digest, FetchedLayer>, Option<PullError>) {
        pull.downloading(missing.iter().map(|layer| &layer.descriptor));
        let mut tasks = JoinSet::new();
        let routes = match self.fetcher.registry.routes(reference, caller, Need::Content).await {
            Ok(routes) => routes,
            Err(error) => return (BTreeMap::new(), Some(error.into())),
        };
        let sources: Vec<Source> = routes.into_iter().map(|route| Source { reference: reference.clone(), route }).collect();
        let (begun, stop, order) = (Instant::now(), CancellationToken::new(), self.fetcher.transfers.order());
        for layer in missing {
            let wanted = WantedLayer {
                sources: sources.clone(),
                pull: Arc::clone(pull),
                layer: layer.descriptor.clone(),
                diff_id: layer.diff_id,
                chain: layer.chain,
                order,
                bounds: bounds.clone(),
            };
            tasks.spawn(fetch_layer(self.fetcher.clone(), Arc::clone(&self.disk), wanted, stop.child_token()));
        }
        let mut fetched = BTreeMap::new();
        let mut failure = None;
        let mut early = pin!(tokio::time::sleep_until(begun + EARLY));
        let mut closed = pin!(self.windows.closed(&pull.interest));
        while !tasks.is_empty() {
            // All are cancel safe: no layer is lost when another one comes first.
            let result = tokio::select! {
                result = tasks.join_next() => result,
                () = &mut early, if !early.is_elapsed() => None,
                until = &mut closed, if failure.is_none() => {
                    failure = Some(PullError::Outside(until));
                    None
                }
            };
            match result {
                Some(Ok(Ok(Some((chain, layer))))) => drop(fetched.insert(chain, layer)),
                Some(Ok(Ok(None))) | None => {}
                // The first one is the reason, the others were stopped for it.
                Some(Ok(Err(error))) => failure = failure.or(Some(error)),
                Some(Err(_)) => failure = failure.or(Some(PullError::Stopped)),
            }
            if failure.is_some() {
                stop.cancel();
            } else if begun.elapsed() >= EARLY && !tasks.is_empty() {
                let lowest = self.lowest(layers, &mut fetched);
                if let Err(error) = self.publish(reference, layers, lowest).await {
                    failure = Some(error);
                    stop.cancel();
                }
            }
        }
        (fetched, failure)
    }

    /// Takes the staged layers below which nothing is missing.
    fn lowest(&self, layers: &[NamedLayer], fetched: &mut BTreeMap<Digest, FetchedLayer>) -> BTreeMap<Digest, FetchedLayer> {
        let mut lowest = BTreeMap::new();
        for chain in layers.iter().map(|layer| layer.name) {
            match fetched.remove(&chain) {
                Some(layer) => drop(lowest.insert(chain, layer)),
                None if self.disk.has_layer(chain) => {}
                None => break,
            }
        }
        lowest
    }

    /// Makes layers durable below which nothing is missing; what they were made of is not needed any more then.
    async fn publish(
        &self,
        reference: &Reference,
        layers: &[NamedLayer],
        fetched: BTreeMap<Digest, FetchedLayer>,
    ) -> Result<(), PullError> {
        if fetched.is_empty() {
            return Ok(());
        }
        let (chains, fetched): (Vec<_>, Vec<_>) = fetched.into_iter().unzip();
        let (staged, blobs): (Vec<_>, Vec<_>) = fetched.into_iter().map(|layer| (layer.staged, layer.blob)).unzip();
        let staged = chains.iter().copied().zip(staged).collect();
        let layers = layers.to_vec();
        self.on_disk(reference, move |disk, _| disk.salvage(&layers, staged).map(|_| ())).await?;
        let published = chains.iter().zip(blobs).filter(|(chain, _)| self.disk.has_layer(**chain));
        let served: Vec<Joined> = published.map(|(_, blob)| blob).collect();
        finish(served).await;
        Ok(())
    }

    async fn on_disk(
        &self,
        reference: &Reference,
        work: impl FnOnce(&Disk, &Reference) -> Result<(), CommitError> + Send + 'static,
    ) -> Result<(), PullError> {
        let (disk, reference) = (Arc::clone(&self.disk), reference.clone());
        let done = tokio::task::spawn_blocking(move || work(&disk, &reference)).await;
        Ok(done.map_err(|_| PullError::Stopped)??)
    }
}

fn blob_key(descriptor: &Descriptor) -> BlobKey {
    BlobKey { digest: descriptor.digest, size: descriptor.size }
}

/// Fetches one layer. `None` if it is in the store by then, from another registry or an archive.
async fn fetch_layer(
    fetcher: Fetcher,
    disk: Arc<Disk>,
    wanted: WantedLayer,
    stop: CancellationToken,
) -> Result<Option<(Digest, FetchedLayer)>, PullError> {
    let chain = wanted.chain;
    let result = {
        let mut fetch = pin!(fetcher.layer(&wanted, &stop));
        tokio::select! {
            result = &mut fetch => result,
            () = disk.wait_for_layer(chain) => {
                stop.cancel();
                fetch.await
            }
        }
    };
    match result {
        Ok(layer) => Ok(Some((chain, layer))),
        Err(_) if disk.has_layer(chain) => Ok(None),
        Err(source) => {
            let (digest, is_foreign) = (wanted.layer.digest, wanted.layer.is_foreign());
            Err(PullError::Layer { digest, is_foreign, source })
        }
    }
}

/// The staged layers, and the blobs that a power cut would not lose. Other blobs go before the sync that makes the layers durable, which would write
/// them.
async fn served(fetched: BTreeMap<Digest, FetchedLayer>) -> (BTreeMap<Digest, StagedLayer>, Vec<Joined>) {
    let (mut staged, mut durable) = (BTreeMap::new(), Vec::new());
    for (chain, FetchedLayer { staged: layer, blob }) in fetched {
        staged.insert(chain, layer);
        if blob.is_durable() {
            durable.push(blob);
        } else {
            blob.finish().await;
        }
    }
    (staged, durable)
}

async fn finish(blobs: Vec<Joined>) {
    for blob in blobs {
        blob.finish().await;
    }
}
