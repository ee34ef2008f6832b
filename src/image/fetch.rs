//! One layer from a transfer into staging: unpacked while it arrives if that is quick, or when its last byte is here.

use super::background;
use super::document::Descriptor;
use super::layer::{Bounds, Expected, LayerError, StagedLayer, stage_layer};
use super::limits::Budget;
use super::limits::Limits;
use super::live::Live;
use super::pulls::Pull;
use super::registry::Registry;
use super::staging::Staging;
use super::transfer::{BlobKey, Joined, Source, TransferError, Transfers, Wish};
use podstead_container::digest::Digest;
use podstead_runtime::{PullProgress, PulledLayer};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Between two reports of progress.
const REPORT: Duration = Duration::from_millis(200);
/// Times that a layer is fetched whose content is wrong: once more, and again as long as other registries than its own took part.
const ATTEMPTS: u32 = 4;

/// Reason why a layer did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The transfer.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The content is not what its digest says, whoever delivers it.
    #[error("{hosts} delivered wrong content twice")]
    Wrong {
        /// The hosts that it came from.
        hosts: String,
        /// The digests.
        #[source]
        source: LayerError,
    },
    /// The content.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// Another layer of the image failed.
    #[error("stopped")]
    Stopped,
}

impl FetchError {
    /// No registry could be asked.
    pub(super) fn is_unreachable(&self) -> bool {
        match self {
            Self::Transfer(error) => error.is_unreachable(),
            Self::Wrong { .. } | Self::Layer(_) | Self::Stopped => false,
        }
    }
}

/// Shared parts for fetching layers.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) transfers: Transfers,
    pub(super) staging: Staging,
    pub(super) limits: Live<Limits>,
    /// Layers that are unpacked at once: each needs some MiB of memory and more than one thread.
    pub(super) unpackers: Arc<Semaphore>,
    pub(super) progress: broadcast::Sender<PullProgress>,
}

/// A layer, and whom to ask for it.
#[derive(Clone, Debug)]
pub(super) struct WantedLayer {
    /// The hosts that may have it, in their order.
    pub(super) sources: Vec<Source>,
    /// For reports of progress.
    pub(super) pull: Arc<Pull>,
    pub(super) layer: Descriptor,
    /// Digest of the archive inside.
    pub(super) diff_id: Digest,
    pub(super) chain: Digest,
    /// Order of the pull among all pulls.
    pub(super) order: u64,
    /// Limits that the layer shares with its image.
    pub(super) bounds: Bounds,
}

/// A staged layer, and the blob that it was made of.
#[derive(Debug)]
pub(super) struct FetchedLayer {
    pub(super) staged: StagedLayer,
    pub(super) blob: Joined,
}

impl Fetcher {
    /// Fetches, verifies and unpacks one layer, unless `stop` comes first. Wrong content is fetched once more, from one host alone.
    pub(super) async fn layer(&self, wanted: &WantedLayer, stop: &CancellationToken) -> Result<FetchedLayer, FetchError> {
        let key = BlobKey { digest: wanted.layer.digest, size: wanted.layer.size };
        let mut attempt = 0;
        loop {
            attempt += 1;
            let wish = Wish { chain: wanted.chain, order: wanted.order, interest: Arc::clone(&wanted.pull.interest) };
            let join = self.transfers.join(key, &wanted.sources, wish);
            let mut joined = stop.run_until_cancelled(join).await.ok_or(FetchError::Stopped)?;
            match self.unpack(&mut joined, wanted, stop).await {
                Ok(staged) => return Ok(FetchedLayer { staged, blob: joined }),
                Err(FetchError::Layer(source @ LayerError::BlobDigest { .. })) => {
                    let hosts = joined.spoil();
                    let last = wanted.sources.last().map(|source| source.route.host());
                    let is_alone = hosts.iter().all(|host| Some(host.as_str()) == last);
                    if attempt >= ATTEMPTS || (attempt > 1 && is_alone) {
                        return Err(FetchError::Wrong { hosts: hosts.join(", "), source });
                    }
                    tracing::warn!(layer = %key.digest, hosts = hosts.join(", "), "wrong content, fetching it once more");
                }
                Err(FetchError::Layer(error)) if error.is_refusal() => {
                    // Damaged content may look so, too, before its digest is known.
                    joined.discard();
                    return Err(error.into());
                }
                // The transfer of others may have failed before this registry was asked.
                Err(FetchError::Transfer(_)) if attempt == 1 && !joined.is_first() => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn unpack(&self, joined: &mut Joined, wanted: &WantedLayer, stop: &CancellationToken) -> Result<StagedLayer, FetchError> {
        let mut report = Report::new(&self.progress, &wanted.pull, &wanted.layer);
        let mut crashed = false;
        loop {
            let begin = self.permit(joined, &mut report);
            let permit = stop.run_until_cancelled(begin).await.ok_or(FetchError::Stopped)??;
            if !joined.is_ready() {
                continue;
            }
            let result = self.stage(joined, wanted, stop, &mut report).await;
            drop(permit);
            match result {
                Ok(staged) => {
                    report.complete(joined);
                    return Ok(staged);
                }
                Err(LayerError::Read(_)) if stop.is_cancelled() => return Err(FetchError::Stopped),
                // It became far: it is unpacked when its last byte is here.
                Err(LayerError::Read(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Once: the bytes are here, and the layer may have no part in it.
                Err(LayerError::Job(error)) if error.is_crash() && !crashed => {
                    crashed = true;
                    tracing::warn!(layer = %wanted.layer.digest, error = &error as &dyn std::error::Error, "unpacking the layer once more");
                }
                Err(error @ LayerError::Read(_)) => return Err(joined.failure().map_or_else(|| error.into(), Into::into)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until the layer can be unpacked and may be.
    async fn permit(&self, joined: &mut Joined, report: &mut Report<'_>) -> Result<OwnedSemaphorePermit, FetchError> {
        loop {
            tokio::select! {
                ready = joined.ready() => break ready?,
                () = tokio::time::sleep(REPORT) => {}
            }
            report.fetched(joined);
        }
        joined.turn().await;
        // The semaphore is never closed.
        Arc::clone(&self.unpackers).acquire_owned().await.map_err(|_| FetchError::Stopped)
    }

    async fn stage(
        &self,
        joined: &mut Joined,
        wanted: &WantedLayer,
        stop: &CancellationToken,
        report: &mut Report<'_>,
    ) -> Result<StagedLayer, LayerError> {
        let directory = self.staging.directory().map_err(LayerError::Stage)?;
        let expected = Expected { blob: Some(wanted.layer.digest), diff_id: Some(wanted.diff_id) };
        let attempt = Arc::new(Budget::of_attempt(&wanted.bounds.image));
        let bounds = Bounds { image: Arc::clone(&attempt), ..wanted.bounds.clone() };
        let source = joined.follower(stop.clone());
        let mut staging = background::run(move || stage_layer(source, directory, expected, &bounds));
        let staged = loop {
            tokio::select! {
                staged = &mut staging => break staged,
                () = tokio::time::sleep(REPORT) => report.fetched(joined),
            }
        };
        let staged = staged.unwrap_or_else(|error| Err(LayerError::Read(io::Error::other(error))));
        if staged.is_err() {
            attempt.give_back();
        }
        report.fetched(joined);
        staged
    }
}

/// Progress of one layer, told now and then.
struct Report<'a> {
    to: &'a broadcast::Sender<PullProgress>,
    pull: &'a Pull,
    state: PullProgress,
    told: Option<Instant>,
}

impl<'a> Report<'a> {
    fn new(to: &'a broadcast::Sender<PullProgress>, pull: &'a Pull, layer: &Descriptor) -> Self {
        let (reference, layer, total) = (pull.written.clone(), layer.digest.to_string(), Some(layer.size));
        Self { to, pull, state: PullProgress { reference, layer, fetched: 0, total, complete: false }, told: None }
    }

    fn fetched(&mut self, joined: &Joined) {
        let layer = joined.shown();
        let bytes = layer.present_bytes;
        self.pull.layer(layer);
        if bytes == self.state.fetched {
            return;
        }
        self.state.fetched = bytes;
        if self.told.is_none_or(|told| told.elapsed() >= REPORT) {
            self.told = Some(Instant::now());
            self.tell();
        }
    }

    fn complete(&mut self, joined: &Joined) {
        self.pull.layer(PulledLayer { complete: true, ..joined.shown() });
        self.state.complete = true;
        self.tell();
    }

    fn tell(&self) {
        // There is no receiver: fine.
        drop(self.to.send(self.state.clone()));
    }
}
