//! The task of a transfer: connections that fill the spool, one after the other.

use super::super::limits::shown_bytes;
use super::super::rate::{RateMeter, TooSlow};
use super::super::registry::RegistryError;
use super::super::slots::Slot;
use super::super::space::SpaceWatch;
use super::blocks::Schedule;
use super::pace::{Gauge, Pace};
use super::retry::{Attempts, Next};
use super::spool::Spool;
use super::{Activity, BlobKey, Counts, Source, State, Transfer, TransferError, Transfers, lock};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, ReadyChunks};
use podstead_runtime::WaitCause;
use podstead_telemetry::events::{EventType, Subject};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Chunks of the network written at once, as far as they are here.
const BATCH: usize = 4;
/// Between two looks at a connection that brings nothing.
const TICK: Duration = Duration::from_secs(1);
/// Bytes that a host without ranges may send again, however often.
const DISCARDED: u64 = 8 << 20;
/// A pause that shows that several attempts in a row brought nothing.
const OUTAGE: Duration = Duration::from_millis(1500);
/// Beyond it, a blob may be begun again so often.
const RESTARTS: u32 = 3;

/// A host to be asked.
struct Candidate {
    source: Source,
    /// It will not deliver.
    is_refused: bool,
    /// Its last failure.
    failure: Option<TransferError>,
    /// It failed since the last pause.
    has_failed: bool,
    /// Connections that began at byte 0 again.
    restarts: u32,
    /// Bytes of its longest connection.
    longest: u64,
}

impl Candidate {
    fn host(&self) -> &str {
        self.source.route.host()
    }
}

/// Reason why a connection ended before the last byte.
enum Stop {
    /// Another attempt may help.
    Broken(RegistryError),
    /// This host does not help.
    Refused(TransferError),
    /// No host helps.
    Failed(TransferError),
    /// Somebody joined who may know a better host.
    Challenged,
}

impl From<RegistryError> for Stop {
    fn from(error: RegistryError) -> Self {
        match error.is_transient() {
            Some(_) => Self::Broken(error),
            None => Self::Refused(error.into()),
        }
    }
}

/// A transfer while it fetches.
///
/// One type because one task owns it from the first request to the last byte; its parts own their state.
pub(super) struct Download<'a> {
    transfers: &'a Transfers,
    transfer: &'a Arc<Transfer>,
    begun: Instant,
    counts: Counts,
    gauge: Gauge,
    schedule: Schedule,
    attempts: Attempts,
    candidates: Vec<Candidate>,
    /// The only host to be asked, since the content was wrong before.
    alone: Option<String>,
    writing: Option<JoinHandle<io::Result<()>>>,
    syncing: Option<JoinHandle<io::Result<()>>>,
    watch: SpaceWatch,
    /// An interruption was told, and no byte came since.
    is_interrupted: bool,
}

/// The part of a blob's stream that has arrived, at least one chunk.
type Batches = ReadyChunks<BoxStream<'static, Result<Bytes, RegistryError>>>;

impl<'a> Download<'a> {
    pub(super) fn new(transfers: &'a Transfers, transfer: &'a Arc<Transfer>) -> Self {
        Self {
            transfers,
            transfer,
            begun: Instant::now(),
            counts: Counts::default(),
            gauge: Gauge::new(),
            schedule: Schedule::new(0),
            attempts: Attempts::default(),
            candidates: Vec::new(),
            alone: None,
            writing: None,
            syncing: None,
            watch: SpaceWatch::new(transfers.setup.space.clone()),
            is_interrupted: false,
        }
    }

    /// Fetches until all bytes are in the spool, or nobody wants them any more.
    pub(super) async fn run(mut self) -> Result<(), TransferError> {
        let spool = self.open().await?;
        let transfer = Arc::clone(self.transfer);
        let fetched = transfer.stop.run_until_cancelled(self.fetch(&spool)).await;
        // Writes that were under way when the transfer was stopped end before the next transfer opens the spool.
        let written = self.end_write().await;
        let synced = self.end_sync().await;
        match fetched {
            None => return Err(TransferError::Stopped),
            Some(result) => result?,
        }
        written.and(synced)?;
        if let Some(blocks) = self.schedule.last(self.begun.elapsed(), self.counts.have) {
            self.begin_sync(&spool, blocks);
            self.end_sync().await?;
        }
        self.transfer.state.send_replace(State::Complete { spool, counts: self.counts });
        Ok(())
    }

    async fn open(&mut self) -> Result<Arc<Spool>, TransferError> {
        let (setup, key) = (Arc::clone(&self.transfers.setup), self.transfer.key);
        let opened = tokio::task::spawn_blocking(move || Spool::open(&setup.root, &key, &setup.boot_id)).await;
        let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(disk("open the spool of"))?;
        let spool = Arc::new(opened.spool);
        (self.counts.have, self.counts.resumed) = (opened.have, opened.have);
        self.schedule = Schedule::new(opened.durable_blocks);
        self.transfer.is_durable.store(opened.durable_blocks > 0, Ordering::Relaxed);
        Ok(spool)
    }

    async fn fetch(&mut self, spool: &Arc<Spool>) -> Result<(), TransferError> {
        let mut slot: Option<(String, Slot)> = None;
        let size = self.transfer.key.size;
        while self.counts.have < size {
            self.meet_newcomers();
            let Some(index) = self.choose() else { return Err(self.refusal()) };
            let host = self.candidates[index].host().to_owned();
            let mut held = match slot.take() {
                Some((of, held)) if of == host => held,
                other => {
                    drop(other);
                    self.begin(&host).await
                }
            };
            if matches!(&*self.transfer.state.borrow(), State::Opening) {
                // Time in the queue says nothing about the rate.
                (self.begun, self.gauge) = (Instant::now(), Gauge::new());
                let (spool, counts) = (Arc::clone(spool), self.counts);
                self.transfer.state.send_replace(State::Running { spool, counts, pace: Pace::Near });
            }
            let before = self.counts.have;
            self.does(Activity::From(host.clone()));
            let ended = self.connection(spool, &mut held, index).await;
            let candidate = &mut self.candidates[index];
            candidate.longest = candidate.longest.max(self.counts.have - before);
            if self.counts.have > before {
                self.attempts.advanced(self.begun.elapsed());
            }
            match ended {
                Ok(()) => self.tell_passed_over(index),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Refused(error)) => (candidate.is_refused, candidate.failure) = (true, Some(error)),
                Err(Stop::Challenged) => candidate.has_failed = true,
                Err(Stop::Broken(error)) => {
                    (candidate.has_failed, candidate.failure) = (true, Some(error.clone().into()));
                    self.transfers.setup.registry.interrupted(&candidate.source.route);
                    self.transfers.setup.figures.interrupted(&host);
                    self.after_failure(&mut held, index, error).await?;
                }
            }
            slot = Some((host, held));
        }
        Ok(())
    }

    fn does(&self, activity: Activity) {
        *lock(&self.transfer.activity) = activity;
    }

    /// Waits for a slot. Whoever unpacks the blob learns meanwhile that nothing comes.
    async fn begin(&mut self, host: &str) -> Slot {
        self.does(Activity::Queued(host.to_owned()));
        let slots = Arc::clone(&self.transfers.setup.slots);
        let transfer = Arc::clone(self.transfer);
        let mut begin = std::pin::pin!(slots.begin(host, Arc::new(move || transfer.urgency())));
        loop {
            tokio::select! {
                slot = &mut begin => return slot,
                () = tokio::time::sleep(TICK) => self.report_pace(),
            }
        }
    }

    /// Waits before the next attempt, if no other host can be asked at once.
    async fn after_failure(&mut self, slot: &mut Slot, index: usize, error: RegistryError) -> Result<(), TransferError> {
        let at = self.counts.have;
        tracing::info!(layer = %self.transfer.key.digest, at, %error, "download interrupted, resuming");
        if let Some(closed) = error.is_transient()
            && closed > super::retry::LONGEST_WAIT
        {
            self.candidates[index].is_refused = true;
            return Ok(());
        }
        self.meet_newcomers();
        if self.candidates.iter().any(|candidate| !candidate.has_failed && self.may_ask(candidate)) {
            return Ok(());
        }
        let wanted = error.is_transient().unwrap_or_default();
        match self.attempts.failed(self.begun.elapsed(), wanted, chance()) {
            Next::GiveUp => Err(self.refusal()),
            Next::After(pause) => {
                self.tell_interrupted(pause, index, &error);
                let cause = if error.is_of_the_link() { WaitCause::Network } else { WaitCause::Registry };
                self.does(Activity::Paused(error.to_string(), cause));
                let mut again = self.transfers.setup.again.clone();
                again.mark_unchanged();
                let waited = slot.lend_during(async {
                    let mut pause = std::pin::pin!(tokio::time::sleep(pause));
                    loop {
                        tokio::select! {
                            () = &mut pause => return,
                            // What the registry asked for is waited for nevertheless.
                            Ok(()) = again.changed(), if wanted.is_zero() => return,
                            () = tokio::time::sleep(TICK) => self.report_pace(),
                        }
                        if self.transfer.members().has_newcomer {
                            return;
                        }
                    }
                });
                waited.await;
                if matches!(error, RegistryError::Slow { .. }) {
                    slot.let_others_run().await;
                }
                self.candidates.iter_mut().for_each(|candidate| candidate.has_failed = false);
                Ok(())
            }
        }
    }

    /// Tells, once, that no host delivers the rest of a blob.
    fn tell_interrupted(&mut self, pause: Duration, index: usize, error: &RegistryError) {
        if self.counts.have == 0 || self.is_interrupted || pause < OUTAGE {
            return;
        }
        self.is_interrupted = true;
        let message = format!("image {}: {}: {error}", self.candidates[index].source.reference, self.standing());
        self.transfers.setup.events.record(&Subject::Node, EventType::Warning, "PullInterrupted", &message);
    }

    /// Tells that a blob goes on after an interruption that was told.
    fn tell_resumed(&mut self, host: &str) {
        if std::mem::take(&mut self.is_interrupted) {
            let message = format!("{} from {host}", self.standing());
            self.transfers.setup.events.record(&Subject::Node, EventType::Normal, "PullResumed", &message);
        }
    }

    fn standing(&self) -> String {
        let BlobKey { digest, size } = self.transfer.key;
        format!("layer {} at {} of {}", &digest.hex()[..12], shown_bytes(self.counts.have), shown_bytes(size))
    }

    /// Takes the registries of those who joined since.
    fn meet_newcomers(&mut self) {
        let mut members = self.transfer.members();
        members.has_newcomer = false;
        for source in &members.sources[self.candidates.len().min(members.sources.len())..] {
            let source = source.clone();
            let candidate = Candidate { source, is_refused: false, failure: None, has_failed: false, restarts: 0, longest: 0 };
            self.candidates.push(candidate);
        }
    }

    fn may_ask(&self, candidate: &Candidate) -> bool {
        let is_allowed = |alone: &String| self.counts.have == 0 || alone == candidate.host();
        !candidate.is_refused && self.alone.as_ref().is_none_or(is_allowed)
    }

    /// The next host: as they joined, but those that cannot resume, or took part in wrong content, last. After wrong content, the registry itself comes
    /// before its mirrors, and the bytes of one host are not mixed with those of another.
    fn choose(&mut self) -> Option<usize> {
        let (key, hosts, have) = (self.transfer.key, &self.transfers.hosts, self.counts.have);
        let was_wrong = hosts.has_wrong(key);
        let rank = |candidate: &Candidate| {
            let host = candidate.host();
            let is_mirror = was_wrong && candidate.source.route.is_mirror();
            (candidate.has_failed, hosts.is_wrong(key, host), is_mirror, have > 0 && hosts.ignores_range(host))
        };
        let best = |this: &Self| {
            let candidates = this.candidates.iter().enumerate().filter(|(_, candidate)| this.may_ask(candidate));
            candidates.min_by_key(|(_, candidate)| rank(candidate)).map(|(index, _)| index)
        };
        // The one that delivered alone may refuse to go on.
        let index = best(self).or_else(|| {
            self.alone = None;
            best(self)
        })?;
        if was_wrong && (have == 0 || self.alone.is_none()) {
            self.alone = Some(self.candidates[index].host().to_owned());
        }
        Some(index)
    }

    /// The error of hosts of which none delivers.
    fn refusal(&self) -> TransferError {
        let failures = self.candidates.iter().filter_map(|candidate| candidate.failure.clone());
        TransferError::of_all(failures.collect()).unwrap_or(TransferError::Stopped)
    }

    /// Tells of mirrors that failed while another host delivered.
    fn tell_passed_over(&self, index: usize) {
        let delivered = self.candidates[index].host();
        for candidate in self.candidates.iter().filter(|candidate| candidate.host() != delivered) {
            if let Some(failure) = &candidate.failure {
                let Source { reference, route } = &candidate.source;
                self.transfers.setup.registry.passed_over(reference, route, failure);
            }
        }
    }

    async fn connection(&mut self, spool: &Arc<Spool>, slot: &mut Slot, index: usize) -> Result<(), Stop> {
        let (source, host) = (self.candidates[index].source.clone(), self.candidates[index].host().to_owned());
        let key = self.transfer.key;
        let registry = Arc::clone(&self.transfers.setup.registry);
        let offset = self.counts.have;
        let opening = async {
            let mut opening = std::pin::pin!(registry.blob(&source.reference, &source.route, key.digest, offset));
            loop {
                tokio::select! {
                    opened = &mut opening => return opened,
                    () = tokio::time::sleep(TICK) => self.report_pace(),
                }
            }
        };
        let stream = slot.lend_during(opening).await?;
        if let Some(actual) = stream.total.filter(|total| *total != key.size) {
            return Err(Stop::Refused(TransferError::Size { host, expected: key.size, actual }));
        }
        let mut again = self.bytes_again(index, stream.offset)?;
        // A stream that is not asked after its last chunk does not count a pause as silence of its host.
        let batch = if self.transfers.caps.is_capped() { 1 } else { BATCH };
        let mut batches = stream.chunks.ready_chunks(batch);
        let mut meter = RateMeter::new(self.transfers.setup.minimum_rate.get());
        lock(&self.transfer.hosts).insert(host.clone());
        loop {
            let (batch, waited) = slot.lend_during(self.next_batch(&mut batches)).await;
            let Some(batch) = batch? else { break };
            let mut failure = None;
            let mut chunks = Vec::with_capacity(batch.len());
            for chunk in batch {
                match chunk {
                    Ok(chunk) => chunks.push(chunk),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            let came = chunks.iter().map(|chunk| chunk.len() as u64).sum();
            self.counts.fetched += came;
            let rate = meter.count(waited, came);
            self.take(spool, chunks, &mut again, &host).await?;
            if let Some(error) = failure {
                return Err(error.into());
            }
            let pause = self.transfers.caps.take(&host, came);
            // Of a blob that is complete nothing can be asked for.
            if self.counts.have < key.size {
                self.pause(pause).await;
                rate.map_err(|TooSlow { bytes, waited }| RegistryError::Slow {
                    host: host.clone(),
                    bytes,
                    seconds: waited.as_secs(),
                })?;
            }
        }
        match self.counts.have == key.size {
            true => Ok(()),
            false => {
                let reason = format!("received {} of {} bytes", self.counts.have, key.size);
                Err(RegistryError::Broken { host, reason }.into())
            }
        }
    }

    /// Keeps to the caps. Whoever unpacks the blob learns meanwhile that nothing comes.
    async fn pause(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            tokio::time::sleep_until(until.min(Instant::now() + TICK)).await;
            self.report_pace();
        }
    }

    /// Bytes at the beginning of a stream that are here already, if they may be fetched again.
    fn bytes_again(&mut self, index: usize, offset: u64) -> Result<u64, Stop> {
        let (have, size) = (self.counts.have, self.transfer.key.size);
        let candidate = &mut self.candidates[index];
        let host = candidate.host().to_owned();
        let protocol = |reason: &str| RegistryError::Protocol { host: host.clone(), reason: reason.to_owned() };
        let again = have.checked_sub(offset).ok_or_else(|| protocol("it sent a different range than requested"))?;
        if again > 0 && offset == 0 {
            self.transfers.hosts.ignored_range(&host);
            candidate.restarts += u32::from(again > DISCARDED);
            if candidate.restarts > RESTARTS {
                let (source, longest) = (protocol("it sent the beginning instead of the requested range"), candidate.longest);
                return Err(Stop::Refused(TransferError::CannotResume { host, longest, size, source }));
            }
        }
        Ok(again)
    }

    /// The next chunks, as many as are here, and how long they were waited for. `None` at the end of the stream.
    async fn next_batch(&mut self, batches: &mut Batches) -> (Result<Option<Vec<Result<Bytes, RegistryError>>>, Stop>, Duration) {
        let waiting = Instant::now();
        loop {
            let next = tokio::time::timeout(TICK, batches.next()).await;
            if next.is_err() {
                self.report_pace();
            }
            if self.is_challenged() {
                return (Err(Stop::Challenged), waiting.elapsed());
            }
            if let Ok(batch) = next {
                return (Ok(batch), waiting.elapsed());
            }
        }
    }

    /// Somebody joined with another registry, and this one is slow.
    fn is_challenged(&self) -> bool {
        let is_far = matches!(&*self.transfer.state.borrow(), State::Running { pace: Pace::Far, .. });
        is_far && self.alone.is_none() && self.transfer.members().has_newcomer
    }

    /// Writes what came.
    async fn take(&mut self, spool: &Arc<Spool>, mut batch: Vec<Bytes>, again: &mut u64, host: &str) -> Result<(), Stop> {
        let came: u64 = batch.iter().map(|chunk| chunk.len() as u64).sum();
        for chunk in &mut batch {
            let skipped = usize::try_from(*again).unwrap_or(usize::MAX).min(chunk.len());
            chunk.advance(skipped);
            *again -= skipped as u64;
            self.counts.again += skipped as u64;
        }
        let (key, at) = (self.transfer.key, self.counts.have);
        let new: u64 = batch.iter().map(|chunk| chunk.len() as u64).sum();
        self.transfers.setup.figures.came(host, new, came - new);
        if at + new > key.size {
            return Err(Stop::Refused(TransferError::Size { host: host.to_owned(), expected: key.size, actual: at + new }));
        }
        if new == 0 {
            self.report_pace();
            return Ok(());
        }
        self.watch.passes(new, 0).map_err(|error| Stop::Failed(error.into()))?;
        let to = Arc::clone(spool);
        self.writing = Some(tokio::task::spawn_blocking(move || to.append(at, &batch)));
        self.end_write().await.map_err(Stop::Failed)?;
        self.counts.have += new;
        self.tell_resumed(host);
        self.report_pace();
        self.sync_if_due(spool).await.map_err(Stop::Failed)
    }

    /// Publishes the progress, and how far the last byte is.
    fn report_pace(&mut self) {
        let elapsed = self.begun.elapsed();
        let rest = self.transfer.key.size - self.counts.have;
        let new_pace = self.gauge.pace(elapsed, self.counts.fetched, rest);
        self.counts.rate = self.gauge.rate(elapsed, self.counts.fetched);
        let new_counts = self.counts;
        self.transfer.state.send_if_modified(|state| match state {
            State::Running { counts, pace, .. } => {
                let is_new = (*counts, *pace) != (new_counts, new_pace);
                (*counts, *pace) = (new_counts, new_pace);
                is_new
            }
            State::Opening | State::Complete { .. } | State::Failed(_) => false,
        });
    }

    async fn sync_if_due(&mut self, spool: &Arc<Spool>) -> Result<(), TransferError> {
        if self.syncing.as_ref().is_some_and(|syncing| !syncing.is_finished()) {
            return Ok(());
        }
        self.end_sync().await?;
        if let Some(blocks) = self.schedule.due(self.begun.elapsed(), self.counts.have) {
            self.begin_sync(spool, blocks);
        }
        Ok(())
    }

    fn begin_sync(&mut self, spool: &Arc<Spool>, blocks: std::ops::Range<u64>) {
        let (spool, is_first) = (Arc::clone(spool), self.schedule.blocks() == 0);
        self.schedule.synced(self.begun.elapsed(), blocks.end);
        self.transfer.is_durable.store(true, Ordering::Relaxed);
        self.syncing = Some(tokio::task::spawn_blocking(move || spool.sync(blocks, is_first)));
    }

    async fn end_write(&mut self) -> Result<(), TransferError> {
        // Stays where it is while it is waited for: who is stopped meanwhile waits again.
        let Some(writing) = &mut self.writing else { return Ok(()) };
        let written = writing.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        self.writing = None;
        written.map_err(disk("write"))
    }

    async fn end_sync(&mut self) -> Result<(), TransferError> {
        let Some(syncing) = &mut self.syncing else { return Ok(()) };
        let synced = syncing.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        self.syncing = None;
        synced.map_err(disk("sync"))
    }
}

fn disk(operation: &'static str) -> impl FnOnce(io::Error) -> TransferError {
    move |source| TransferError::Disk { operation, source: Arc::new(source) }
}

/// A number in 0..1000 that two hosts hardly share.
pub(in super::super) fn chance() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    u32::try_from(RandomState::new().hash_one(0) % 1000).unwrap_or_default()
}
