//! Fetch of one layer from the registry into staging: a connection that feeds the unpacking threads, and resumes after an interruption.

use super::document::Descriptor;
use super::layer::{Bounds, Expected, LayerError, StagedLayer, stage_layer};
use super::limits::Limits;
use super::rate::{MinimumRate, RateMeter, TooSlow};
use super::registry::{Registry, RegistryError, Who};
use super::slots::Slot;
use super::staging::Staging;
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_runtime::PullProgress;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Network chunks that wait for the unpacker.
const QUEUE: usize = 8;
/// Connections without a single new byte before a layer is given up.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Between two reports of progress.
const REPORT: Duration = Duration::from_millis(200);

/// Reason why a layer did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The registry.
    #[error("fetch")]
    Registry(#[from] RegistryError),
    /// More or fewer bytes than the manifest says.
    #[error("it has {actual} bytes instead of {expected}: its content was altered or damaged in transit")]
    Size {
        /// In the manifest.
        expected: u64,
        /// Seen.
        actual: u64,
    },
    /// The content.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// Another layer of the image failed.
    #[error("stopped")]
    Stopped,
}

/// Shared parts for fetching layers.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) staging: Staging,
    pub(super) limits: Limits,
    pub(super) minimum_rate: MinimumRate,
    pub(super) progress: broadcast::Sender<PullProgress>,
}

/// A layer, and whom to ask for it.
#[derive(Clone, Debug)]
pub(super) struct WantedLayer {
    pub(super) reference: Reference,
    pub(super) who: Who,
    /// The reference for reports of progress.
    pub(super) written: String,
    pub(super) layer: Descriptor,
    /// Digest of the archive inside.
    pub(super) diff_id: Digest,
    /// Limits that the layer shares with its image.
    pub(super) bounds: Bounds,
}

/// The pause before attempt number `failures` + 1.
pub(super) fn pause(failures: u32, wanted: Duration) -> Duration {
    (FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1))).max(wanted).min(LONGEST_PAUSE)
}

impl Fetcher {
    /// Fetches, verifies and unpacks one layer, unless `stop` comes first.
    pub(super) async fn layer(
        &self,
        wanted: &WantedLayer,
        slot: &mut Slot,
        stop: &CancellationToken,
    ) -> Result<StagedLayer, FetchError> {
        let directory = self.staging.directory().map_err(LayerError::Stage)?;
        let layer = &wanted.layer;
        let expected = Expected { blob: Some(layer.digest), diff_id: Some(wanted.diff_id) };
        let bounds = wanted.bounds.clone();
        let (sender, receiver) = mpsc::channel(QUEUE);
        let staging = tokio::task::spawn_blocking(move || {
            let source = Arriving { receiver, current: Bytes::new() };
            stage_layer(source, directory, expected, &bounds)
        });
        let mut report = Report::new(&self.progress, &wanted.written, layer);
        let fetched = stop.run_until_cancelled(self.feed(wanted, slot, &sender, &mut report)).await;
        let fetched = fetched.unwrap_or(Err(FetchError::Stopped));
        if fetched.is_err() {
            // Without this the unpacker would take the end of the channel for the end of the layer. If it is gone it has its own error.
            drop(sender.send(Err(io::Error::other("the download failed"))).await);
        }
        drop(sender);
        let staged = staging.await.unwrap_or_else(|error| Err(LayerError::Read(io::Error::other(error))));
        match (fetched, staged) {
            // The unpacker gave up first: it knows why.
            (Ok(()), staged) => {
                let staged = staged?;
                report.complete();
                Ok(staged)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Sends the layer's bytes; a broken connection is made again from where it broke off.
    async fn feed(
        &self,
        wanted: &WantedLayer,
        slot: &mut Slot,
        sender: &mpsc::Sender<io::Result<Bytes>>,
        report: &mut Report<'_>,
    ) -> Result<(), FetchError> {
        let mut done = 0;
        let mut failures = 0;
        loop {
            let before = done;
            let error = match self.connection(wanted, &mut done, slot, sender, report).await {
                Ok(()) => return Ok(()),
                Err(FetchError::Registry(error)) => error,
                Err(error) => return Err(error),
            };
            failures = if done > before { 1 } else { failures + 1 };
            match error.is_transient() {
                Some(asked) if failures < ATTEMPTS => {
                    tracing::info!(layer = %wanted.layer.digest, at = done, %error, "download interrupted, resuming");
                    slot.lend_during(tokio::time::sleep(pause(failures, asked))).await;
                    if matches!(error, RegistryError::Slow { .. }) {
                        slot.let_others_run().await;
                    }
                }
                Some(_) | None => return Err(error.into()),
            }
        }
    }

    async fn connection(
        &self,
        wanted: &WantedLayer,
        done: &mut u64,
        slot: &mut Slot,
        sender: &mpsc::Sender<io::Result<Bytes>>,
        report: &mut Report<'_>,
    ) -> Result<(), FetchError> {
        let WantedLayer { reference, who, layer, .. } = wanted;
        let mut stream = slot.lend_during(self.registry.blob(reference, who, layer.digest, *done)).await?;
        // A registry that always begins at 0 sends again what is present already.
        let protocol = |reason: &str| RegistryError::Protocol { host: reference.host().to_owned(), reason: reason.to_owned() };
        let mut again = done.checked_sub(stream.offset).ok_or_else(|| protocol("it sent a different range than requested"))?;
        let mut meter = RateMeter::new(self.minimum_rate);
        loop {
            let next = slot.lend_during(timed(stream.chunks.next())).await;
            let (Some(chunk), waited) = next else { break };
            let mut chunk = chunk?;
            let rate = meter.count(waited, chunk.len() as u64);
            let skipped = usize::try_from(again).unwrap_or(usize::MAX).min(chunk.len());
            chunk.advance(skipped);
            again -= skipped as u64;
            if chunk.is_empty() {
                rate.map_err(|slow| too_slow(reference, slow))?;
                continue;
            }
            *done += chunk.len() as u64;
            if *done > layer.size {
                return Err(FetchError::Size { expected: layer.size, actual: *done });
            }
            report.fetched(*done);
            if sender.send(Ok(chunk)).await.is_err() {
                // The unpacker gave up; it has the reason.
                return Ok(());
            }
            // Of a blob that is complete nothing can be asked for.
            if *done < layer.size {
                rate.map_err(|slow| too_slow(reference, slow))?;
            }
        }
        match *done == layer.size {
            true => Ok(()),
            false => Err(RegistryError::Broken {
                host: reference.host().to_owned(),
                reason: format!("received {done} of {} bytes", layer.size),
            }
            .into()),
        }
    }
}

/// The result of `work`, and how long it took.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let result = work.await;
    (result, begun.elapsed())
}

fn too_slow(reference: &Reference, TooSlow { bytes, waited }: TooSlow) -> RegistryError {
    RegistryError::Slow { host: reference.host().to_owned(), bytes, seconds: waited.as_secs() }
}

/// Progress of one layer, told now and then.
struct Report<'a> {
    to: &'a broadcast::Sender<PullProgress>,
    state: PullProgress,
    told: Option<Instant>,
}

impl<'a> Report<'a> {
    fn new(to: &'a broadcast::Sender<PullProgress>, reference: &str, layer: &Descriptor) -> Self {
        let (reference, layer, total) = (reference.to_owned(), layer.digest.to_string(), Some(layer.size));
        Self { to, state: PullProgress { reference, layer, fetched: 0, total, complete: false }, told: None }
    }

    fn fetched(&mut self, bytes: u64) {
        self.state.fetched = bytes;
        if self.told.is_none_or(|told| told.elapsed() >= REPORT) {
            self.told = Some(Instant::now());
            self.tell();
        }
    }

    fn complete(&mut self) {
        self.state.complete = true;
        self.tell();
    }

    fn tell(&self) {
        // There is no receiver: fine.
        drop(self.to.send(self.state.clone()));
    }
}

/// Chunks from the network as a blocking stream.
struct Arriving {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(chunk) => self.current = chunk?,
                None => return Ok(0),
            }
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
