//! Pulls: from a reference to a complete image, once for all requesters.
//!
//! A pull is a task of its own: it goes on when its requester goes away, since the request will come again.

use super::access::{Access, SecretUse};
use super::collect::Collector;
use super::commit::{CommitError, NewImage};
use super::disk::Disk;
use super::document::{Configuration, Descriptor, DocumentError, ImageManifest, Manifest, Platform};
use super::explain::{explain, is_for_want_of_space};
use super::fetch::{FetchError, Fetcher, WantedLayer, pause};
use super::layer::{Bounds, StagedLayer};
use super::platform;
use super::registry::{RegistryError, Who};
use super::room::{self, Part, RoomError};
use super::slots::Slots;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_pod::objects::FingerprintKey;
use podstead_runtime::pull_secrets::Login;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const CONFIG_MAX: u64 = 8 << 20;
/// Time limit of a whole document, so that no registry can delay a pull byte by byte.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Requests for a document before a pull is given up.
const ATTEMPTS: u32 = 3;
/// Indexes in indexes: no deeper than anybody nests them.
const NESTING: usize = 4;

/// Failure of a pull, for those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PullFailure {
    /// For a person.
    pub(super) reason: String,
    /// The registry could not be asked: what is present may be used.
    pub(super) unreachable: bool,
}

/// Reason why a pull failed.
#[derive(Debug, thiserror::Error)]
enum PullError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A document is not the one that was named.
    #[error("{what} has digest {actual} instead of {expected}: it was altered or damaged in transit")]
    Digest { what: &'static str, expected: Digest, actual: Digest },
    #[error("image is for {offered}, but this host is {host}")]
    Platform { offered: String, host: String },
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("layer {digest}")]
    Layer {
        digest: Digest,
        #[source]
        source: FetchError,
    },
    #[error("store the image")]
    Commit(#[from] CommitError),
    #[error("the pull was cancelled")]
    Stopped,
}

impl PullError {
    fn is_unreachable(&self) -> bool {
        match self {
            Self::Registry(error) | Self::Layer { source: FetchError::Registry(error), .. } => error.is_unreachable(),
            // A captive portal may answer every request with such a page.
            Self::Document(DocumentError::Json { .. }) => true,
            Self::Document(_) | Self::Digest { .. } | Self::Platform { .. } | Self::Room(_) | Self::Layer { .. } => false,
            Self::Commit(_) | Self::Stopped => false,
        }
    }

    /// Returns true if another attempt would fetch and refuse the same.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Layer { source: FetchError::Layer(error), .. } if error.is_refusal())
    }
}

/// A layer that one registry delivers. The blob's digest is verified; the chain id is what the image claims that it unpacks to, so it must not
/// be the key alone: a registry could then block every other one that has the layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Transfer {
    host: String,
    blob: Digest,
    chain: Digest,
}

/// A reference, and the credentials of the pod that asks for it.
type Asked = (String, Vec<Login>);

type Waiting = Shared<BoxFuture<'static, Result<(), PullFailure>>>;

/// Pulls images into a store.
pub(super) struct Puller {
    disk: Arc<Disk>,
    fetcher: Fetcher,
    /// Of layers that are being fetched.
    slots: Arc<Slots>,
    collector: Arc<Collector>,
    /// Pulls under way: those of the same reference with the same credentials are one.
    running: Mutex<HashMap<Asked, Waiting>>,
    fingerprint_key: FingerprintKey,
    /// Layers being fetched: images of one registry with a base in common fetch it once.
    transfers: Mutex<HashMap<Transfer, Arc<tokio::sync::Mutex<()>>>>,
}

impl fmt::Debug for Puller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Puller").field("fetcher", &self.fetcher).finish_non_exhaustive()
    }
}

/// A layer that the store lacks; no other pull fetches it while this lives.
struct MissingLayer {
    chain: Digest,
    diff_id: Digest,
    descriptor: Descriptor,
    _alone: OwnedMutexGuard<()>,
}

/// A pull under way; however it ends, the next one to ask begins a new one.
struct Running<'a> {
    puller: &'a Puller,
    key: Asked,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.puller.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl Puller {
    pub(super) fn new(
        disk: Arc<Disk>,
        fetcher: Fetcher,
        slots: Arc<Slots>,
        collector: Arc<Collector>,
        fingerprint_key: FingerprintKey,
    ) -> Self {
        Self { disk, fetcher, slots, collector, running: Mutex::default(), fingerprint_key, transfers: Mutex::default() }
    }

    /// Makes `reference` name what its registry says it is, and that image whole. `written` is how it was written. The credentials are
    /// tried in their order, then those of the configuration.
    pub(super) async fn pull(
        self: &Arc<Self>,
        reference: &Reference,
        written: &str,
        logins: Vec<Login>,
    ) -> Result<(), PullFailure> {
        let pull = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (reference.to_string(), logins);
            match running.get(&key) {
                Some(pull) => pull.clone(),
                None => {
                    let pull = self.begin(reference.clone(), written.to_owned(), key.clone());
                    running.insert(key, pull.clone());
                    pull
                }
            }
        };
        pull.await
    }

    fn begin(self: &Arc<Self>, reference: Reference, written: String, asked: Asked) -> Waiting {
        let (done, end) = oneshot::channel();
        let puller = Arc::clone(self);
        tokio::spawn(async move {
            let logins = asked.1.clone();
            let running = Running { puller: &puller, key: asked };
            let result = puller.try_each(&reference, &written, logins).await;
            drop(running);
            // A waiter may close the store once it learns of the end.
            drop(puller);
            // There is no waiter: fine.
            drop(done.send(result));
        });
        let stopped = || Err(PullFailure { reason: PullError::Stopped.to_string(), unreachable: false });
        end.map(move |result| result.unwrap_or_else(|_| stopped())).boxed().shared()
    }

    /// Tries the credentials of the pod, then those of the configuration if there are some. Without any, nobody's are tried only if the
    /// pod has none for this image, as the kubelet does.
    async fn try_each(&self, reference: &Reference, written: &str, logins: Vec<Login>) -> Result<(), PullFailure> {
        let of_host = logins.is_empty() || self.fetcher.registry.has_credentials(reference.host());
        let has_logins = !logins.is_empty();
        let of_pod = logins.into_iter().map(Some);
        let mut reasons: Vec<String> = Vec::new();
        for login in of_pod.chain(of_host.then_some(None)) {
            let access = login.as_ref().map_or(Access::open(), |login| Access::with(SecretUse::of(login, &self.fingerprint_key)));
            let with = login.as_ref().map_or("the configuration".to_owned(), |login| format!("Secret {}", login.name()));
            let who = login.map_or(Who::Host, |login| Who::Pod(login.credentials));
            let mut result = self.attempt(reference, &who, written, access.clone()).await;
            if result.as_ref().is_err_and(|error| is_for_want_of_space(error)) && self.collector.recover().await {
                result = self.attempt(reference, &who, written, access).await;
            }
            let Err(error) = result else { return Ok(()) };
            let reason = explain(&error);
            reasons.push(if has_logins { format!("with {with}: {reason}") } else { reason });
            // The other credentials would fail in the same way.
            if error.is_unreachable() {
                return Err(PullFailure { reason: reasons.join("; "), unreachable: true });
            }
        }
        Err(PullFailure { reason: reasons.join("; "), unreachable: false })
    }

    async fn attempt(&self, reference: &Reference, who: &Who, written: &str, access: Access) -> Result<(), PullError> {
        // One small question, if the image is here: does the tag still mean it?
        if reference.digest().is_none()
            && let Some((known, _)) = self.disk.find(reference)
            && retried(|| self.fetcher.registry.resolve(reference, who)).await? == known
        {
            return self.on_disk(reference, move |disk, reference| disk.allow(reference, known, &access)).await;
        }
        tracing::info!(image = %reference, "pulling");
        let host = platform::host();
        let (target, digest, bytes, manifest) = self.manifest(reference, who, &host).await?;
        if self.disk.has_manifest(digest) {
            return self.on_disk(reference, move |disk, reference| disk.name(reference, target, digest, access)).await;
        }
        let config = self.document(reference, who, &manifest.config).await?;
        let configuration = Configuration::parse(&config, manifest.layers.len())?;
        if !platform::runs_on(&configuration.platform, &host) {
            return Err(PullError::Platform { offered: platform::spell(&configuration.platform), host: platform::spell(&host) });
        }
        let _lease = self.disk.hold(&configuration);
        let missing = self.missing(reference, &manifest, &configuration).await?;
        self.make_room(&missing).await;
        let bounds = self.bounds(&manifest, &configuration, &missing)?;
        let (staged, failure) = self.layers(reference, who, written, &missing, &bounds).await;
        let (manifest, config) = (bytes.to_vec(), config.to_vec());
        let result = match failure {
            None => {
                self.on_disk(reference, move |disk, reference| {
                    disk.commit(NewImage { manifest, config, staged }, reference, target, access)
                })
                .await
            }
            // The layers would be of no use to the next attempt.
            Some(error) if error.is_refusal() => {
                let gone = move |_: &Disk, _: &Reference| {
                    drop(staged);
                    Ok(())
                };
                self.on_disk(reference, gone).await.and(Err(error))
            }
            Some(error) => {
                let kept = self.on_disk(reference, move |disk, _| disk.salvage(&configuration, staged).map(|_| ())).await;
                if let Err(error) = kept {
                    tracing::warn!(image = %reference, error = %explain(&error), "cannot keep the layers of a failed pull");
                }
                Err(error)
            }
        };
        drop(missing);
        self.forget_transfers();
        result.inspect(|()| {
            self.disk.registry_answered(reference.host());
            tracing::info!(image = %reference, digest = %digest, "pulled");
        })
    }

    /// The manifest for this host: what the reference names, digest and bytes of the manifest, and the manifest.
    async fn manifest(
        &self,
        reference: &Reference,
        who: &Who,
        host: &Platform,
    ) -> Result<(Digest, Digest, Bytes, ImageManifest), PullError> {
        let mut at = reference.clone();
        let mut target = None;
        for _ in 0..NESTING {
            let bytes = retried(|| self.fetcher.registry.manifest(&at, who)).await?;
            let actual = Digest::of(&bytes);
            match at.digest() {
                Some(expected) if expected != actual => return Err(PullError::Digest { what: "manifest", expected, actual }),
                Some(_) | None => {}
            }
            let target = *target.get_or_insert(actual);
            match Manifest::parse(&bytes)? {
                Manifest::Image(manifest) => return Ok((target, actual, bytes, manifest)),
                Manifest::Index(entries) => at = reference.at(platform::choose(&entries, host)?.digest),
            }
        }
        Err(DocumentError::NotAnImage("an index nested more than two levels deep".into()).into())
    }

    /// A small blob, whole and verified.
    async fn document(&self, reference: &Reference, who: &Who, descriptor: &Descriptor) -> Result<Bytes, PullError> {
        let limit = CONFIG_MAX.min(descriptor.size);
        let fetch = || async {
            let mut stream = self.fetcher.registry.blob(reference, who, descriptor.digest, 0).await?;
            let mut body = BytesMut::new();
            while let Some(chunk) = stream.chunks.next().await {
                body.extend_from_slice(&chunk?);
                if body.len() as u64 > limit {
                    return Err(RegistryError::TooLarge { host: reference.host().to_owned(), limit });
                }
            }
            Ok(body.freeze())
        };
        let in_time = || async {
            let late = |_| RegistryError::Stalled { host: reference.host().to_owned() };
            tokio::time::timeout(DOCUMENT_TIMEOUT, fetch()).await.map_err(late)?
        };
        let body = retried(in_time).await?;
        match Digest::of(&body) {
            actual if actual == descriptor.digest => Ok(body),
            actual => Err(PullError::Digest { what: "image configuration", expected: descriptor.digest, actual }),
        }
    }

    /// The layers that the store lacks, each reserved. Waits while another pull fetches one of them from the same registry.
    async fn missing(
        &self,
        reference: &Reference,
        manifest: &ImageManifest,
        configuration: &Configuration,
    ) -> Result<Vec<MissingLayer>, PullError> {
        // Those of a pull that was refused or dropped.
        self.forget_transfers();
        let mut missing = Vec::new();
        let layers = manifest.layers.iter().zip(&configuration.diff_ids);
        // Images that share a layer share all below it: every pull takes them in the same order, lowest first.
        for (chain, (descriptor, diff_id)) in configuration.chain_ids().into_iter().zip(layers) {
            if self.disk.has_layer(chain) {
                continue;
            }
            let transfer = Transfer { host: reference.host().to_owned(), blob: descriptor.digest, chain };
            let lock = Arc::clone(self.transfers.lock().unwrap_or_else(PoisonError::into_inner).entry(transfer).or_default());
            let alone = lock.lock_owned().await;
            if !self.disk.has_layer(chain) {
                missing.push(MissingLayer { chain, diff_id: *diff_id, descriptor: descriptor.clone(), _alone: alone });
            }
        }
        Ok(missing)
    }

    /// Limits for the layers to be fetched; an error if the image is obviously too large.
    fn bounds(
        &self,
        manifest: &ImageManifest,
        configuration: &Configuration,
        missing: &[MissingLayer],
    ) -> Result<Bounds, PullError> {
        let fetched: HashMap<Digest, u64> = missing.iter().map(|layer| (layer.chain, layer.descriptor.size)).collect();
        let part =
            |chain| fetched.get(&chain).map_or_else(|| Part::Present(self.disk.layer_record(chain)), |size| Part::Missing(*size));
        let parts: Vec<Part> = configuration.chain_ids().into_iter().map(part).collect();
        let compressed = manifest.layers.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.size));
        let (limits, space) = (self.fetcher.limits, self.disk.space().clone());
        let image = Arc::new(room::budget(&limits, &space, compressed, &parts)?);
        Ok(Bounds { limits, image, space })
    }

    /// Removes unused images if these layers may not fit beside them.
    async fn make_room(&self, missing: &[MissingLayer]) {
        if !missing.is_empty() {
            let compressed = missing.iter().fold(0, |sum: u64, layer| sum.saturating_add(layer.descriptor.size));
            self.collector.prepare(compressed, missing.len() as u64).await;
        }
    }

    fn forget_transfers(&self) {
        self.transfers.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, lock| Arc::strong_count(lock) > 1);
    }

    /// Fetches layers, several at once. Those that were staged are returned even if another one failed; one that another registry delivered in the
    /// meantime is in the store.
    async fn layers(
        &self,
        reference: &Reference,
        who: &Who,
        written: &str,
        missing: &[MissingLayer],
        bounds: &Bounds,
    ) -> (BTreeMap<Digest, StagedLayer>, Option<PullError>) {
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        for layer in missing {
            let chain = layer.chain;
            let wanted = WantedLayer {
                reference: reference.clone(),
                who: who.clone(),
                written: written.to_owned(),
                layer: layer.descriptor.clone(),
                diff_id: layer.diff_id,
                bounds: bounds.clone(),
            };
            let (fetcher, slots, disk) = (self.fetcher.clone(), Arc::clone(&self.slots), Arc::clone(&self.disk));
            let stop = stop.child_token();
            tasks.spawn(async move {
                let fetch = async {
                    let slot = stop.run_until_cancelled(slots.begin(wanted.reference.host())).await;
                    let mut slot = slot.ok_or(FetchError::Stopped)?;
                    fetcher.layer(&wanted, &mut slot, &stop).await
                };
                let mut fetch = pin!(fetch);
                let result = tokio::select! {
                    result = &mut fetch => result,
                    () = disk.wait_for_layer(chain) => {
                        stop.cancel();
                        fetch.await
                    }
                };
                match result {
                    Ok(staged) => Ok(Some((chain, staged))),
                    Err(_) if disk.has_layer(chain) => Ok(None),
                    Err(source) => Err(PullError::Layer { digest: wanted.layer.digest, source }),
                }
            });
        }
        let mut staged = BTreeMap::new();
        let mut failure = None;
        while let Some(result) = tasks.join_next().await {
            match result {
                Ok(Ok(Some((chain, layer)))) => drop(staged.insert(chain, layer)),
                Ok(Ok(None)) => {}
                // The first one is the reason, the others were stopped for it.
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(_) => failure = failure.or(Some(PullError::Stopped)),
            }
            if failure.is_some() {
                stop.cancel();
            }
        }
        (staged, failure)
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

/// Asks again when that may help.
async fn retried<T, F: Future<Output = Result<T, RegistryError>>>(ask: impl Fn() -> F) -> Result<T, RegistryError> {
    let mut failures = 0;
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        failures += 1;
        match error.is_transient() {
            Some(wanted) if failures < ATTEMPTS => tokio::time::sleep(pause(failures, wanted)).await,
            Some(_) | None => return Err(error),
        }
    }
}
