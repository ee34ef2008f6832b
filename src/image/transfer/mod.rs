//! Transfers: one per blob on this host, however many pods, images and registries want it.
//!
//! A transfer is a task that fetches a blob into its spool. Those who want the blob join it with their registry and read the spool while it grows
//! ([`Joined::follower`]). When the last one leaves, the task ends; the spool stays unless one of them had the whole blob and says so. Joining gives
//! no access: who joins was given a manifest with the blob's digest by its own registry, with its own credentials.
//!
//! Nothing is locked by a chain id, which any manifest can claim.

mod bandwidth;
mod blocks;
mod download;
mod error;
mod follow;
mod hosts;
mod lock;
mod pace;
mod retry;
mod spool;

pub use bandwidth::Bandwidth;
pub(super) use download::chance;
pub(super) use error::TransferError;
pub(super) use follow::Follower;
pub(super) use pace::Pace;
pub(super) use retry::{LONGEST_WAIT, pause};
pub(super) use spool::{BlobKey, FORGOTTEN};

use super::figures::Figures;
use super::interest::{Interest, Urgency};
use super::live::Live;
use super::rate::MinimumRate;
use super::registry::{Registry, Route};
use super::slots::Slots;
use super::space::Space;
pub(super) use bandwidth::Caps;
use hosts::HostMemory;
use lock::lock;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_runtime::{PulledLayer, WaitCause};
use podstead_telemetry::events::EventRecorder;
use spool::Spool;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Longest wait of a pull, after the last byte, for another one that unpacks the same blob as the same layer.
const YIELD: Duration = Duration::from_secs(30);

/// Parts that all transfers share.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) slots: Arc<Slots>,
    /// Directory of the spools.
    pub(super) root: PathBuf,
    pub(super) minimum_rate: Live<MinimumRate>,
    pub(super) bandwidth: Bandwidth,
    /// Counts the occasions to try again before a pause is over.
    pub(super) again: watch::Receiver<u64>,
    pub(super) space: Space,
    pub(super) boot_id: String,
    pub(super) figures: Figures,
    pub(super) events: Arc<dyn EventRecorder>,
}

/// All transfers of a store.
#[derive(Clone, Debug)]
pub(super) struct Transfers {
    setup: Arc<Setup>,
    running: Arc<Mutex<HashMap<BlobKey, Arc<Transfer>>>>,
    hosts: Arc<HostMemory>,
    caps: Arc<Caps>,
    pulls: Arc<AtomicU64>,
}

/// The use that a pull has for a blob.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// The layer to be made of it.
    pub(super) chain: Digest,
    /// Order of the pull among all pulls.
    pub(super) order: u64,
    /// Those who wait for the pull.
    pub(super) interest: Arc<Interest>,
}

/// A host that a blob can be had from, and the image that it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) reference: Reference,
    pub(super) route: Route,
}

/// Progress of a transfer, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// In the spool.
    pub(super) have: u64,
    /// Found in the spool when the transfer began.
    pub(super) resumed: u64,
    /// Come over the network.
    pub(super) fetched: u64,
    /// Come a second time, and discarded.
    pub(super) again: u64,
    /// Bytes per second, where that is known.
    pub(super) rate: Option<u64>,
}

/// State of a transfer. `Opening` becomes `Running` or `Failed`; `Running` becomes `Complete` or `Failed`; nothing else changes.
#[derive(Clone, Debug)]
enum State {
    Opening,
    Running { spool: Arc<Spool>, counts: Counts, pace: Pace },
    Complete { spool: Arc<Spool>, counts: Counts },
    Failed(TransferError),
}

/// Activity of the task of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Activity {
    /// It has not begun, or is over.
    #[default]
    Idle,
    /// It waits for a slot of a host.
    Queued(String),
    /// It fetches from a host.
    From(String),
    /// It waits after a failure, which is here.
    Paused(String, WaitCause),
}

/// Those who want the blob of one transfer.
#[derive(Debug, Default)]
struct Members {
    next: u64,
    wishes: BTreeMap<u64, Wish>,
    sources: Vec<Source>,
    /// One of them had the whole blob: the spool is not needed any more.
    is_consumed: bool,
    /// The content is not what the digest says.
    is_spoiled: bool,
    /// Somebody joined with a source that the task has not seen.
    has_newcomer: bool,
}

/// The transfer of one blob.
#[derive(Debug)]
struct Transfer {
    key: BlobKey,
    state: watch::Sender<State>,
    members: Mutex<Members>,
    changed: Notify,
    /// Nobody wants it any more.
    stop: CancellationToken,
    /// The task has ended.
    ended: CancellationToken,
    /// Hosts that bytes came from.
    hosts: Mutex<BTreeSet<String>>,
    activity: Mutex<Activity>,
    /// A power cut would not lose all of it.
    is_durable: AtomicBool,
}

impl Transfer {
    fn members(&self) -> MutexGuard<'_, Members> {
        lock(&self.members)
    }

    /// The need of the most urgent member.
    fn urgency(&self) -> Urgency {
        self.members().wishes.values().map(|wish| wish.interest.urgency()).min().unwrap_or(Urgency::Update)
    }
}

impl Transfers {
    /// Transfers into the spools below a directory. Spools that nobody asked for in a week are removed. Blocks.
    pub(super) fn new(setup: Setup) -> std::io::Result<Self> {
        super::staging::private_directory(&setup.root)?;
        for found in spool::list(&setup.root)?.into_iter().filter(spool::Found::is_forgotten) {
            tracing::info!(blob = %found.key.digest, "removing a partly fetched layer that nobody asks for");
            found.remove()?;
        }
        let caps = Arc::new(Caps::new(setup.bandwidth));
        Ok(Self { setup: Arc::new(setup), running: Arc::default(), hosts: Arc::default(), caps, pulls: Arc::default() })
    }

    /// Caps on the bytes per second.
    pub(super) fn caps(&self) -> Arc<Caps> {
        Arc::clone(&self.caps)
    }

    /// The order of a pull that begins: of two that make the same layers, the later one waits for the earlier one, and never both for each other.
    pub(super) fn order(&self) -> u64 {
        self.pulls.fetch_add(1, Ordering::Relaxed)
    }

    /// Joins the transfer of a blob, which begins if there is none.
    pub(super) async fn join(&self, key: BlobKey, sources: &[Source], wish: Wish) -> Joined {
        loop {
            let ending = match self.try_join(key, sources, &wish) {
                Ok(joined) => return joined,
                Err(ending) => ending,
            };
            ending.ended.cancelled().await;
        }
    }

    fn try_join(&self, key: BlobKey, sources: &[Source], wish: &Wish) -> Result<Joined, Arc<Transfer>> {
        let mut running = lock(&self.running);
        if let Some(transfer) = running.get(&key) {
            let transfer = Arc::clone(transfer);
            let has_failed = matches!(&*transfer.state.borrow(), State::Failed(_));
            let is_ending = has_failed || transfer.stop.is_cancelled() || transfer.members().is_spoiled;
            return if is_ending { Err(transfer) } else { Ok(self.member(transfer, sources, wish, false)) };
        }
        let transfer = Arc::new(Transfer {
            key,
            state: watch::Sender::new(State::Opening),
            members: Mutex::default(),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            hosts: Mutex::default(),
            activity: Mutex::default(),
            is_durable: false.into(),
        });
        running.insert(key, Arc::clone(&transfer));
        let joined = self.member(Arc::clone(&transfer), sources, wish, true);
        tokio::spawn(self.clone().run(transfer));
        Ok(joined)
    }

    fn member(&self, transfer: Arc<Transfer>, sources: &[Source], wish: &Wish, is_first: bool) -> Joined {
        let number = {
            let mut members = transfer.members();
            let number = members.next;
            members.next += 1;
            members.wishes.insert(number, wish.clone());
            for source in sources {
                // Another image of a registry that is asked already is no reason to ask it anew.
                members.has_newcomer |= !members.sources.iter().any(|known| known.route == source.route);
                if !members.sources.contains(source) {
                    members.sources.push(source.clone());
                }
            }
            number
        };
        transfer.changed.notify_waiters();
        let state = transfer.state.subscribe();
        Joined { transfers: self.clone(), transfer, number, is_first, state }
    }

    /// The task of a transfer: fetches, then waits until nobody wants it any more, and removes the spool if it has served.
    async fn run(self, transfer: Arc<Transfer>) {
        let outcome = download::Download::new(&self, &transfer).run().await;
        if let Err(error) = outcome {
            transfer.state.send_replace(State::Failed(error));
        }
        transfer.stop.cancelled().await;
        let spool = match &*transfer.state.borrow() {
            State::Running { spool, .. } | State::Complete { spool, .. } => Some(Arc::clone(spool)),
            State::Opening | State::Failed(_) => None,
        };
        let is_over = {
            let members = transfer.members();
            members.is_consumed || members.is_spoiled
        };
        if let Some(spool) = spool.filter(|_| is_over) {
            let removed = tokio::task::spawn_blocking(move || spool.remove()).await;
            if let Ok(Err(error)) = removed {
                tracing::warn!(blob = %transfer.key.digest, %error, "cannot remove a spool");
            }
        }
        lock(&self.running).remove(&transfer.key);
        transfer.ended.cancel();
    }

    /// Removes the spools of blobs that nobody fetches now, but those to be kept, to make room; returns their bytes. Blocks.
    pub(super) fn discard_unwanted(&self, keep: &BTreeSet<BlobKey>) -> std::io::Result<u64> {
        let mut bytes = 0;
        for found in spool::list(&self.setup.root)? {
            // Held, so that no transfer of it begins meanwhile.
            let running = lock(&self.running);
            if !running.contains_key(&found.key) && !keep.contains(&found.key) {
                bytes += found.bytes();
                found.remove()?;
            }
        }
        Ok(bytes)
    }

    /// Bytes of blobs that need not be fetched any more. Blocks.
    pub(super) fn spooled(&self) -> HashMap<BlobKey, u64> {
        let found = spool::list(&self.setup.root).unwrap_or_default();
        found.into_iter().map(|found| (found.key, found.bytes())).collect()
    }
}

/// A membership in a transfer, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Joined {
    transfers: Transfers,
    transfer: Arc<Transfer>,
    number: u64,
    is_first: bool,
    state: watch::Receiver<State>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        // Under the lock of all transfers: nobody joins one that is about to end.
        let _running = lock(&self.transfers.running);
        let mut members = self.transfer.members();
        members.wishes.remove(&self.number);
        if members.wishes.is_empty() {
            self.transfer.stop.cancel();
        }
        drop(members);
        self.transfer.changed.notify_waiters();
    }
}

impl Joined {
    /// Waits until the blob can be unpacked: it is complete, or arrives quickly.
    pub(super) async fn ready(&mut self) -> Result<(), TransferError> {
        loop {
            match &*self.state.borrow_and_update() {
                State::Complete { .. } | State::Running { pace: Pace::Near, .. } => return Ok(()),
                State::Failed(error) => return Err(error.clone()),
                State::Opening | State::Running { pace: Pace::Far, .. } => {}
            }
            // The sender lives as long as this membership.
            let _changed = self.state.changed().await;
        }
    }

    /// Returns true if unpacking may go on: the transfer has not become far.
    pub(super) fn is_ready(&self) -> bool {
        matches!(&*self.transfer.state.borrow(), State::Complete { .. } | State::Running { pace: Pace::Near, .. })
    }

    /// The reason why the transfer failed, if it did.
    pub(super) fn failure(&self) -> Option<TransferError> {
        match &*self.transfer.state.borrow() {
            State::Failed(error) => Some(error.clone()),
            State::Opening | State::Running { .. } | State::Complete { .. } => None,
        }
    }

    /// Returns true if the transfer began with this member, so that its registry was asked.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Progress so far, and whether all bytes are here.
    pub(super) fn counts(&self) -> (Counts, bool) {
        match &*self.transfer.state.borrow() {
            State::Running { counts, .. } => (*counts, false),
            State::Complete { counts, .. } => (*counts, true),
            State::Opening | State::Failed(_) => (Counts::default(), false),
        }
    }

    /// Progress so far, for those who look.
    pub(super) fn shown(&self) -> PulledLayer {
        let (Counts { have, resumed, fetched, again, rate }, _) = self.counts();
        let (host, waiting, cause) = match &*lock(&self.transfer.activity) {
            Activity::Idle => (None, None, None),
            Activity::Queued(host) => (None, Some(format!("other downloads from {host} come first")), Some(WaitCause::Queue)),
            Activity::From(host) => (Some(host.clone()), None, None),
            Activity::Paused(failure, cause) => (None, Some(failure.clone()), Some(*cause)),
        };
        PulledLayer {
            digest: self.transfer.key.digest.to_string(),
            size_bytes: self.transfer.key.size,
            present_bytes: have,
            resumed_bytes: resumed,
            fetched_bytes: fetched,
            repeated_bytes: again,
            bytes_per_second: rate,
            host,
            waiting,
            cause,
            complete: false,
        }
    }

    /// Waits while another member makes the same layer of the blob, so that it is unpacked once; but not longer than [`YIELD`] after the last
    /// byte, for that member's image may never be complete.
    pub(super) async fn turn(&self) {
        let is_second = || {
            let members = self.transfer.members();
            let Some(Wish { chain, order, .. }) = members.wishes.get(&self.number) else { return false };
            members.wishes.values().any(|other| other.chain == *chain && other.order < *order)
        };
        let is_over = async {
            let mut state = self.transfer.state.subscribe();
            while !matches!(&*state.borrow_and_update(), State::Complete { .. } | State::Failed(_)) {
                let _changed = state.changed().await;
            }
            tokio::time::sleep(YIELD).await;
        };
        let is_first = async {
            loop {
                let changed = self.transfer.changed.notified();
                let mut changed = std::pin::pin!(changed);
                changed.as_mut().enable();
                if !is_second() {
                    return;
                }
                changed.await;
            }
        };
        tokio::select! {
            () = is_over => {}
            () = is_first => {}
        }
    }

    /// The blob's bytes from the beginning on, as they come. Reading blocks.
    pub(super) fn follower(&self, stop: CancellationToken) -> Follower {
        Follower::new(self.transfer.state.subscribe(), stop)
    }

    /// Reports that the content is not what its digest says: the spool goes when all have left. Returns the hosts that it came from.
    pub(super) fn spoil(self) -> Vec<String> {
        let hosts: Vec<String> = lock(&self.transfer.hosts).iter().cloned().collect();
        self.transfer.members().is_spoiled = true;
        self.transfers.hosts.delivered_wrong(self.transfer.key, &hosts);
        hosts
    }

    /// The spool is of no use: it goes when all have left.
    pub(super) fn discard(self) {
        self.transfer.members().is_spoiled = true;
    }

    /// Returns true if a power cut would not lose all of it.
    pub(super) fn is_durable(&self) -> bool {
        self.transfer.is_durable.load(Ordering::Relaxed)
    }

    /// The blob has served: its spool goes when the last member leaves. Waits for that if this was the last.
    pub(super) async fn finish(self) {
        let transfer = Arc::clone(&self.transfer);
        transfer.members().is_consumed = true;
        drop(self);
        if transfer.stop.is_cancelled() {
            transfer.ended.cancelled().await;
        }
    }
}
