//! Collection: images that nothing needs are removed when the disk gets full, before or after a pull, and by hand.
//!
//! Mark and sweep. The marks come from [`ImageRoots`], which the daemon implements, and from the store itself: preloaded, pinned, given out, fetched by
//! hand within a day. As long as a mark is not known, no image is removed. [`plan()`](plan::plan) decides; [`Disk::collect`] removes the references
//! durably first, then the layers, so that a crash leaves nothing but layers without a name, which the next start removes.
//!
//! One task per store, spawned by the daemon, waits for pulls and for the listing of the preload directory, and reads the file system's counters then.
//! It wakes up by itself only while the disk is full.

mod config;
pub(super) mod plan;
mod pressure;

pub use config::CollectionConfig;

use super::disk::Disk;
use super::explain::explain;
use super::limits::shown_bytes;
use super::live::Live;
use super::space::Free;
use async_trait::async_trait;
use plan::{Amount, Goal, Plan};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_runtime::{Collected, ImageUsage, PruneReport, PrunedImage, Removed, StoreFigures};
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_telemetry::{counted, error_chain};
use pressure::Pressure;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Between looks at a disk that is full.
const LOOK_WHILE_FULL: Duration = Duration::from_secs(10);
/// Between looks that nothing but the clock asked for, as the kubelet's image garbage collection.
const LOOK: Duration = Duration::from_secs(300);
/// An image that was fetched by hand counts as used for so long.
pub(super) const BY_HAND: Duration = Duration::from_secs(24 * 3600);

/// The target of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootTarget {
    /// An image as a pod names it.
    Reference(String),
    /// The image with this manifest.
    Digest(Digest),
}

/// A reason for which an image stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The image.
    pub target: RootTarget,
    /// The reason, for a person: `pod shop/web`.
    pub reason: String,
}

/// Everything outside the store that needs images.
#[async_trait]
pub trait ImageRoots: Send + Sync + fmt::Debug + 'static {
    /// The marks; an error as long as not all of them are known.
    async fn roots(&self) -> Result<Vec<Root>, UnknownRoots>;
}

/// Reason why not all roots are known, in words of whoever has them.
pub type UnknownRoots = Box<dyn Error + Send + Sync>;

/// Archives in the preload directory with the references that they brought; `None` before the first listing was worked off.
pub(super) type PreloadedImages = Arc<Mutex<Option<BTreeMap<String, Vec<String>>>>>;

/// Collects the images of a store.
#[derive(Debug)]
pub(super) struct Collector {
    disk: Arc<Disk>,
    config: Live<CollectionConfig>,
    events: Arc<dyn EventRecorder>,
    roots: OnceLock<Arc<dyn ImageRoots>>,
    preloaded: PreloadedImages,
    /// One collection at a time.
    alone: tokio::sync::Mutex<()>,
    pressure: watch::Sender<Pressure>,
    /// Removed since the start.
    collected: Mutex<Collected>,
    looked: Mutex<Option<Instant>>,
    tick: Notify,
}

/// Reason of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// A mark of the configuration.
    HighMark,
    /// A pull lacks so much.
    Pull,
    /// Somebody asked for it.
    Prune,
}

impl Collector {
    pub(super) fn new(
        disk: Arc<Disk>,
        config: CollectionConfig,
        preloaded: PreloadedImages,
        events: Arc<dyn EventRecorder>,
    ) -> Self {
        Self {
            disk,
            config: Live::new(config),
            events,
            roots: OnceLock::new(),
            preloaded,
            alone: tokio::sync::Mutex::default(),
            pressure: watch::Sender::default(),
            collected: Mutex::default(),
            looked: Mutex::default(),
            tick: Notify::new(),
        }
    }

    /// Sets where marks come from. Without it only the store's own count.
    pub(super) fn set_roots(&self, roots: Arc<dyn ImageRoots>) {
        // Set once, by the daemon.
        drop(self.roots.set(roots));
    }

    /// From now on this counts. The reserve may be another one, too, so that the disk is looked at.
    pub(super) fn set_config(&self, config: CollectionConfig) {
        self.config.set(config);
        self.tick.notify_one();
    }

    /// Something else woke up: a look costs little now.
    pub(super) fn tick(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            *looked = Some(Instant::now());
            self.tick.notify_one();
        }
    }

    /// Looks for ever.
    pub(super) async fn run(self: Arc<Self>) {
        let mut arrivals = self.disk.arrivals();
        let mut pressure = self.pressure.subscribe();
        loop {
            let is_full = pressure.borrow_and_update().is_full();
            // No arm loses anything when another one wins: the look reads everything anew.
            tokio::select! {
                arrived = arrivals.changed() => if arrived.is_err() { return },
                () = self.tick.notified() => {}
                // A pull found the disk full: from now on the clock counts. The sender lives as long as this.
                _ = pressure.changed() => continue,
                () = tokio::time::sleep(LOOK_WHILE_FULL), if is_full => {}
            }
            self.look().await;
        }
    }

    /// Collects down to the low mark, if the high one is passed.
    async fn look(&self) {
        let Some(free) = self.free() else { return };
        let surplus = self.config.get().surplus(&free);
        if surplus != Amount::default() {
            self.collect(Occasion::HighMark, surplus).await;
        }
        self.judge().await;
    }

    /// Makes room for an image of which so much is still to be fetched and which is likely to need three times of it on disk, if that can be.
    /// The caller checks whether it fits.
    pub(super) async fn prepare(&self, compressed: u64, layers: u64) {
        let lacking = self.lacking(compressed.saturating_mul(3), layers);
        if lacking != Amount::default() {
            self.collect(Occasion::Pull, lacking).await;
        }
    }

    /// A pull failed for want of space. Returns true if some was freed, so that it may be tried again.
    pub(super) async fn recover(&self) -> bool {
        let Some(free) = self.free() else { return false };
        let wanted = self.lacking(0, 0).most(self.config.get().surplus(&free)).most(Amount { bytes: 1, inodes: 0 });
        let freed = self.collect(Occasion::Pull, wanted).await;
        self.judge().await;
        freed.bytes > 0 && self.lacking(0, 0) == Amount::default()
    }

    fn free(&self) -> Option<Free> {
        self.disk.space().free().inspect_err(|error| tracing::warn!(%error, "cannot read the free space of the image store")).ok()
    }

    fn lacking(&self, bytes: u64, inodes: u64) -> Amount {
        self.free().map(|free| self.disk.space().lacking(&free, bytes, inodes)).unwrap_or_default()
    }

    /// All marks with their reasons; an error as long as one is not known.
    async fn marks(&self) -> Result<Vec<Root>, UnknownRoots> {
        let mut marks = match self.roots.get() {
            Some(roots) => roots.roots().await?,
            None => Vec::new(),
        };
        let reference = |reference: &String, reason: String| Root { target: RootTarget::Reference(reference.clone()), reason };
        {
            let preloaded = self.preloaded.lock().unwrap_or_else(PoisonError::into_inner);
            let preloaded = preloaded.as_ref().ok_or("the preload directory has not been read yet")?;
            for (archive, references) in preloaded {
                marks.extend(references.iter().map(|image| reference(image, format!("preloaded from {archive}"))));
            }
        }
        let pinned = self.config.get().pinned;
        marks.extend(pinned.iter().map(|image| reference(image, "pinned in the configuration".to_owned())));
        Ok(marks)
    }

    async fn collect(&self, occasion: Occasion, wanted: Amount) -> Amount {
        let _alone = self.alone.lock().await;
        let began = Instant::now();
        let marks = self.marks().await;
        if let Err(reason) = &marks {
            tracing::info!(reason = %error_chain(reason.as_ref()), "images are not collected: it is not known yet which are needed");
        }
        let (disk, age) = (Arc::clone(&self.disk), self.config.get().minimum_age);
        let work = move || -> std::io::Result<Plan> {
            let content = disk.content(marks.ok().as_deref())?;
            let plan = plan::plan(&content, Goal::Free(wanted), age);
            disk.collect(plan, began)
        };
        let done = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                tracing::warn!(error = %explain(&error), "cannot collect images");
                Plan::default()
            }
            Err(error) => {
                tracing::warn!(%error, "cannot collect images");
                Plan::default()
            }
        };
        self.told(occasion, &done);
        done.frees
    }

    fn told(&self, occasion: Occasion, done: &Plan) {
        self.count(occasion, done);
        if done.images.is_empty() {
            return;
        }
        let names: Vec<&str> = done.images.iter().flat_map(|image| &image.references).map(String::as_str).collect();
        let why = match occasion {
            Occasion::HighMark => "the disk was used beyond images.collection.highPercent",
            Occasion::Pull => "a new image needed space",
            Occasion::Prune => "somebody asked for it",
        };
        let (count, freed) = (counted(done.images.len(), "unused image"), shown_bytes(done.frees.bytes));
        let message = format!("removed {count} ({freed}), because {why}: {}", names.join(", "));
        tracing::info!("{message}");
        self.events.record(&Subject::Node, EventType::Normal, "ImagesCollected", &message);
    }

    fn count(&self, occasion: Occasion, done: &Plan) {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = match occasion {
            Occasion::HighMark => &mut collected.disk,
            Occasion::Pull => &mut collected.pull,
            Occasion::Prune => &mut collected.prune,
        };
        *removed = removed.and(Removed { images: done.images.len() as u64, bytes: done.frees.bytes });
    }

    fn collected(&self) -> Collected {
        *self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what nothing needs, whatever the marks of the configuration say; `all`: also what was used or fetched lately.
    pub(super) async fn prune(&self, all: bool, dry_run: bool) -> Result<PruneReport, String> {
        let _alone = self.alone.lock().await;
        let began = Instant::now();
        let marks = self
            .marks()
            .await
            .map_err(|reason| format!("it is not known yet which images are needed: {}", error_chain(reason.as_ref())))?;
        let (disk, age) = (Arc::clone(&self.disk), if all { Duration::ZERO } else { self.config.get().minimum_age });
        let work = move || -> std::io::Result<(Plan, Vec<PrunedImage>)> {
            let mut content = disk.content(Some(&marks))?;
            if all {
                content.images.iter_mut().filter(|image| image.by_hand).for_each(|image| image.mark = None);
            }
            let plan = plan::plan(&content, Goal::All, age);
            let kept = content.images.iter().filter(|image| !plan.images.contains(image)).map(|image| PrunedImage {
                references: image.references.clone(),
                digest: image.digest.to_string(),
                kept: Some(image.mark.clone().unwrap_or_else(|| "used within images.collection.minimumAgeSeconds".to_owned())),
            });
            let kept = kept.collect();
            Ok((if dry_run { plan } else { disk.collect(plan, began)? }, kept))
        };
        let done = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?;
        let (done, mut images) = done.map_err(|error| explain(&error))?;
        if !dry_run {
            self.count(Occasion::Prune, &done);
        }
        let removed = |image: &plan::Candidate| PrunedImage {
            references: image.references.clone(),
            digest: image.digest.to_string(),
            kept: None,
        };
        images.splice(0..0, done.images.iter().map(removed));
        Ok(PruneReport { images, freed_bytes: done.frees.bytes, layers: done.loose.len() })
    }

    /// The reason for which an image stays, if there is one; an error if that is not known yet.
    pub(super) async fn mark_of(&self, reference: &Reference) -> Result<Option<String>, String> {
        let marks = self.marks().await.map_err(|reason| error_chain(reason.as_ref()).to_string())?;
        Ok(self.disk.mark_of(reference, &marks))
    }

    /// Space that images take, and what was removed so far. Marks that are not known are left out.
    pub(super) async fn usage(&self) -> Result<ImageUsage, String> {
        let marks = self.marks().await;
        let (disk, free) = (Arc::clone(&self.disk), self.free());
        let usage = tokio::task::spawn_blocking(move || disk.usage(marks.ok().as_deref()));
        let mut usage = usage.await.map_err(|error| error.to_string())?.map_err(|error| explain(&error))?;
        Removed { images: usage.collected_images, bytes: usage.collected_bytes } = self.collected().all();
        (usage.free_bytes, usage.all_bytes) = free.map(|free| (free.bytes, free.all_bytes)).unwrap_or_default();
        usage.pressure = self.pressure.borrow().message().map(ToOwned::to_owned);
        Ok(usage)
    }

    /// Figures of the store and of what was removed from it.
    pub(super) fn figures(&self) -> StoreFigures {
        let pinned = self.config.get().pinned;
        let named = pinned.iter().filter_map(|image| image.parse::<Reference>().ok());
        let names: Vec<String> = named.map(|reference| reference.to_string()).collect();
        StoreFigures { collected: self.collected(), ..self.disk.figures(&names) }
    }

    /// Tells when the disk becomes full and when it is not any more.
    async fn judge(&self) {
        let Some(free) = self.free() else { return };
        let lacking = self.disk.space().lacking(&free, 0, 0);
        let was_full = self.pressure.borrow().is_full();
        if !was_full && lacking != Amount::default() {
            let usage = self.usage().await.unwrap_or_default();
            let message = pressure::message(&free, lacking, &usage);
            tracing::warn!("{message}");
            self.events.record(&Subject::Node, EventType::Warning, "DiskPressure", &message);
            self.pressure.send_replace(Pressure::Full(message));
        } else if was_full && self.disk.space().lacking(&free, pressure::margin(&free), 0) == Amount::default() {
            let message = format!("{} of {} free again: images are pulled", shown_bytes(free.bytes), shown_bytes(free.all_bytes));
            tracing::info!("{message}");
            self.events.record(&Subject::Node, EventType::Normal, "DiskRecovered", &message);
            self.pressure.send_replace(Pressure::Fine);
            self.disk.tell_again();
        }
    }
}
