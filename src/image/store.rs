//! The image store for other modules: [`ImageService`] over disk and registries.

use super::access::{Means, SecretUse};
use super::check::mend::Mender;
use super::collect::{CollectionConfig, Collector, ImageRoots, PreloadedImages};
use super::disk::{Disk, StoreError};
use super::doubt::Doubts;
use super::explain::{explain, is_for_want_of_space};
use super::fetch::Fetcher;
use super::figures::Figures;
use super::import::{BundledImages, ImportError};
use super::interest::Urgency;
use super::limits::Limits;
use super::link;
use super::live::Live;
use super::policy::{Asker, Gate, Refusal};
use super::preload::{Busy, Preload, Preloading};
use super::pull::{Asked, FailureKind, Puller};
use super::registry::login::{HELPER_DIRECTORIES, Logins};
use super::registry::{LiveRegistries, Registries, Registry};
use super::registry_config::RegistryConfig;
use super::repository::Repositories;
use super::settings::{LiveSettings, StoreSettings, minimum_rate, slot_limits};
use super::slots::Slots;
use super::space::Reserve;
use super::transfer::{Bandwidth, Setup, Transfers};
use super::unpack_job::Unpacker;
use super::user;
use super::windows::{PullWindow, Windows};
use async_trait::async_trait;
use podstead_container::reference::Reference;
use podstead_container::{ProcessUser, ResolvedImage};
use podstead_fetch::Requester;
use podstead_job::launch::{JobSettings, Launcher};
use podstead_pod::containers::PullPolicy;
use podstead_pod::objects::FingerprintKey;
use podstead_runtime::pull_secrets::PullSecrets;
use podstead_runtime::{
    ImageError, ImageRecord, ImageService, ImageUsage, PruneReport, PullFigures, PullProgress, PullState, StoreFigures,
    VerifyReport,
};
use podstead_settings::ImagePolicy;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::JoinHandle;

/// Progress reports kept for a receiver that lags behind.
const PROGRESS_QUEUE: usize = 256;

/// Layers unpacked at once. Each has a job with three threads.
const UNPACKERS: usize = 3;

/// Directories that are looked at when a registry is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryDirectories {
    /// Directories of credential helpers; an earlier one is looked at first.
    pub helpers: Vec<PathBuf>,
    /// containerd's directory of hosts, with a directory for each registry; `None` for no such directory.
    pub hosts: Option<PathBuf>,
}

impl Default for RegistryDirectories {
    fn default() -> Self {
        Self { helpers: HELPER_DIRECTORIES.map(PathBuf::from).to_vec(), hosts: None }
    }
}

/// Configuration of the store.
///
/// One type because it mirrors the settings of images in the configuration, with the paths that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageStoreConfig {
    /// Registries that are not reached the default way.
    pub registries: Vec<RegistryConfig>,
    /// Files with credentials for registries, as `podman login` and `docker login` write them; an earlier one is tried first.
    pub auth_files: Vec<PathBuf>,
    /// Directories that say more about registries.
    pub directories: RegistryDirectories,
    /// Archives in this directory are imported; `None` for no such directory.
    pub preload: Option<PathBuf>,
    /// Images that may run.
    pub policy: ImagePolicy,
    /// Limits of one image.
    pub limits: Limits,
    /// Space on the disk that images must leave free.
    pub reserve: Reserve,
    /// Limits and times of the removal of unused images.
    pub collection: CollectionConfig,
    /// Layers fetched at once, over all pulls, of which a registry has at most three, and one whatever the others do. At most three of them are
    /// unpacked at once, by jobs with some 5 MiB of memory each.
    pub parallel_layers: usize,
    /// Bytes per second below which a connection is made again, at the byte where it was; 0 for no minimum.
    pub minimum_rate: u64,
    /// The rate is that over such a time.
    pub rate_window: Duration,
    /// Most bytes per second of layers.
    pub bandwidth: Bandwidth,
    /// Times outside of which layers are fetched only for pods without a running version, and by hand; none for any time.
    pub windows: Vec<PullWindow>,
    /// Time that a registry may be silent before its connection is closed.
    pub stall_timeout: Duration,
    /// For telling whether an image was pulled with the same credentials.
    pub fingerprint_key: FingerprintKey,
    /// Settings of the jobs that unpack layers.
    pub jobs: JobSettings,
}

impl Default for ImageStoreConfig {
    fn default() -> Self {
        let (stall_timeout, fingerprint_key) = (Duration::from_secs(30), FingerprintKey::new([0; 32]));
        Self {
            registries: Vec::new(),
            auth_files: Vec::new(),
            directories: RegistryDirectories::default(),
            preload: None,
            policy: ImagePolicy::default(),
            limits: Limits::default(),
            reserve: Reserve::default(),
            collection: CollectionConfig::default(),
            parallel_layers: 6,
            minimum_rate: 1024,
            rate_window: Duration::from_secs(60),
            bandwidth: Bandwidth::default(),
            windows: Vec::new(),
            stall_timeout,
            fingerprint_key,
            jobs: JobSettings::default(),
        }
    }
}

/// The part of the configuration that may change while the store is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySettings {
    /// [`ImageStoreConfig::registries`].
    pub registries: Vec<RegistryConfig>,
    /// [`ImageStoreConfig::auth_files`].
    pub auth_files: Vec<PathBuf>,
    /// [`RegistryDirectories::hosts`].
    pub hosts: Option<PathBuf>,
}

impl ImageStoreConfig {
    fn registry_settings(&self) -> RegistrySettings {
        let (registries, auth_files, hosts) = (self.registries.clone(), self.auth_files.clone(), self.directories.hosts.clone());
        RegistrySettings { registries, auth_files, hosts }
    }
}

fn registries(
    config: &ImageStoreConfig,
    settings: RegistrySettings,
    events: &Arc<dyn EventRecorder>,
    requester: &Requester,
) -> Registries {
    let RegistrySettings { registries, auth_files, hosts } = settings;
    let logins = Logins::new(&auth_files, config.directories.helpers.clone());
    Registries::new(&registries, hosts, config.stall_timeout, logins, Arc::clone(events), requester.clone())
}

/// Images on this host's disk, and the way to get more.
#[derive(Debug)]
pub struct ImageStore {
    disk: Arc<Disk>,
    puller: Arc<Puller>,
    live: LiveSettings,
    config: ImageStoreConfig,
    collector: Arc<Collector>,
    gate: Arc<Gate>,
    doubts: Arc<Doubts>,
    preloaded: PreloadedImages,
    progress: broadcast::Sender<PullProgress>,
    preloading: watch::Sender<Preloading>,
    events: Arc<dyn EventRecorder>,
    launcher: Arc<Launcher>,
}

impl ImageStore {
    /// Opens the store at `root`, made if missing. What a crash left behind is removed; an image that is not whole is forgotten and
    /// reported. Blocks.
    pub fn open(root: &Path, config: ImageStoreConfig, events: Arc<dyn EventRecorder>) -> Result<Arc<Self>, StoreError> {
        if let Some(problem) = config.registries.iter().find_map(RegistryConfig::problem) {
            return Err(StoreError::Registry(problem));
        }
        let unpacker = Arc::new(Unpacker::new(config.jobs.clone(), Arc::clone(&events)));
        let launcher = Arc::clone(unpacker.launcher());
        let requester = Requester::jobs(Arc::clone(&launcher), Arc::clone(&events));
        let limits = Live::new(config.limits);
        let (disk, problems) = Disk::open(root, limits.clone(), config.reserve, unpacker)?;
        let failed = |operation| move |source| StoreError::Io { operation, root: root.to_owned(), source };
        for problem in problems {
            tracing::error!("{problem}");
            events.record(&Subject::Node, EventType::Warning, "ImageDamaged", &problem);
        }
        let disk = Arc::new(disk);
        let progress = broadcast::Sender::new(PROGRESS_QUEUE);
        let registries = Arc::new(LiveRegistries::new(registries(&config, config.registry_settings(), &events, &requester)));
        let registry: Arc<dyn Registry> = registries.clone();
        let slots = Slots::new(slot_limits(config.parallel_layers));
        let minimum_rate = Live::new(minimum_rate(config.minimum_rate, config.rate_window));
        let figures = Figures::default();
        let setup = Setup {
            registry: Arc::clone(&registry),
            slots: Arc::clone(&slots),
            root: disk.spool(),
            minimum_rate: minimum_rate.clone(),
            bandwidth: config.bandwidth,
            again: disk.again(),
            space: disk.space().clone(),
            boot_id: podstead_sys::boot::boot_id().map_err(failed("read the boot ID for"))?,
            figures: figures.clone(),
            events: Arc::clone(&events),
        };
        let transfers = Transfers::new(setup).map_err(failed("read the partly fetched layers of"))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let unpackers = Arc::new(Semaphore::new(UNPACKERS.min(threads.max(2))));
        let caps = transfers.caps();
        let (staging, progress_of_pulls) = (disk.staging().clone(), progress.clone());
        let fetcher = Fetcher { registry, transfers, staging, limits: limits.clone(), unpackers, progress: progress_of_pulls };
        // Without a preload directory nothing is preloaded.
        let preloaded: PreloadedImages = Arc::new(Mutex::new(config.preload.is_none().then(BTreeMap::new)));
        let (collection, told) = (config.collection.clone(), Arc::clone(&events));
        let collector = Arc::new(Collector::new(Arc::clone(&disk), collection, Arc::clone(&preloaded), told));
        let key = config.fingerprint_key.clone();
        let gate = Arc::new(Gate::new(config.policy.clone()));
        let windows = Windows::new(config.windows.clone());
        let puller = Puller::new(Arc::clone(&disk), fetcher.clone(), Arc::clone(&collector), key, Arc::clone(&gate));
        let puller = Arc::new(puller.with_figures(figures).with_windows(windows.clone()));
        let mender = Arc::new(Mender {
            disk: Arc::clone(&disk),
            fetcher,
            gate: Arc::clone(&gate),
            preload: config.preload.clone(),
            preloaded: Arc::clone(&preloaded),
            collector: Arc::clone(&collector),
            shown: puller.shown(),
            events: Arc::clone(&events),
        });
        Ok(Arc::new(Self {
            disk,
            puller,
            live: LiveSettings { registries, limits, slots, minimum_rate, caps, windows },
            config,
            collector,
            gate,
            doubts: Doubts::new(mender),
            preloaded,
            progress,
            preloading: watch::Sender::default(),
            events,
            launcher,
        }))
    }

    /// The task that imports what is in the preload directory; never ends. From this call on, [`ImageService::ensure`] does not miss an
    /// image before the archives that are there now have been imported.
    pub fn run_preload(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let busy = self.config.preload.is_some().then(|| Busy::begin(self.preloading.clone()));
        let store = Arc::clone(self);
        async move {
            match (&store.config.preload, busy) {
                (Some(directory), Some(busy)) => {
                    let events = Arc::clone(&store.events);
                    let brought = Arc::clone(&store.preloaded);
                    Preload::new(directory.clone(), store.disk.preloaded(), brought, events).run(Arc::clone(&store), busy).await;
                }
                (_, None) | (None, _) => std::future::pending().await,
            }
        }
    }

    /// Sets where marks of needed images come from. No image is collected as long as they are not known.
    pub fn set_roots(&self, roots: Arc<dyn ImageRoots>) {
        self.collector.set_roots(roots);
    }

    /// From now on this policy counts for images that are given out, pulled and imported. Those who wait for an image try again.
    pub fn set_policy(&self, policy: ImagePolicy) {
        self.gate.set(policy);
        self.disk.tell_again();
    }

    /// From now on these settings count. A pull that waits for a window, for space or for a slot looks again.
    pub fn set_settings(&self, settings: StoreSettings) {
        let StoreSettings { limits, reserve, collection, parallel_layers, minimum_rate: rate, bandwidth, windows } = settings;
        self.live.limits.set(limits);
        self.live.slots.set_limits(slot_limits(parallel_layers));
        self.live.minimum_rate.set(minimum_rate(rate, self.config.rate_window));
        self.live.caps.set(bandwidth);
        self.live.windows.set(windows);
        self.disk.space().set_reserve(reserve);
        self.collector.set_config(collection);
        self.disk.tell_again();
    }

    /// The launcher of the jobs of this store: two launchers would remove each other's groups.
    pub fn launcher(&self) -> &Arc<Launcher> {
        &self.launcher
    }

    /// Sends requests to servers that are not trusted.
    pub fn requester(&self) -> Requester {
        Requester::jobs(Arc::clone(&self.launcher), Arc::clone(&self.events))
    }

    /// Takes what an operator has to know of.
    pub fn events(&self) -> &Arc<dyn EventRecorder> {
        &self.events
    }

    /// Repositories of registries, reached as for images, also after a change of the configuration.
    pub fn repositories(&self) -> Repositories {
        Repositories::of(self.live.registries.clone())
    }

    /// From now on registries are reached this way.
    pub fn set_registries(&self, settings: RegistrySettings) {
        self.live.registries.set(registries(&self.config, settings, &self.events, &self.requester()));
    }

    /// The task that verifies, once, layers that were stored before this host was started, and mends them, and images after errors of the file system;
    /// and lets pulls be tried again when the network comes back. Never ends. A disk that lost its power may not have written what it said.
    pub fn run_check(&self) -> impl Future<Output = Infallible> + Send + 'static {
        let (doubts, disk, mut preloading) = (Arc::clone(&self.doubts), Arc::clone(&self.disk), self.preloading.subscribe());
        async move {
            let root = disk.spool();
            let earlier = async {
                // An archive may have what is damaged. The sender lives as long as the store.
                drop(preloading.wait_for(|preloading| !preloading.busy).await.map(drop));
                doubts.mender.verify_earlier().await;
            };
            let (_earlier, never, _) = tokio::join!(earlier, doubts.watch(&root), link::watch(&disk));
            never
        }
    }

    /// The task that removes unused images when the disk gets full; never ends.
    pub fn run_collection(&self) -> impl Future<Output = ()> + Send + 'static {
        Arc::clone(&self.collector).run()
    }

    /// Something else woke up: the disk may be looked at.
    pub(super) fn tick(&self) {
        self.collector.tick();
    }

    /// Imports images of a bundle, of which `file` is open and `path` is its name for people. They stay for a day, as images do that were
    /// fetched by hand: until then the pods that want them are known.
    pub async fn import_bundle(&self, file: Arc<File>, path: &Path, images: BundledImages) -> Result<Vec<String>, ImageError> {
        let images = Arc::new(images);
        let import = || {
            let (disk, gate, file, images) =
                (Arc::clone(&self.disk), Arc::clone(&self.gate), Arc::clone(&file), Arc::clone(&images));
            // Opened anew, with a position of its own: whatever is at the path by now.
            let opened = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            tokio::task::spawn_blocking(move || {
                let imported = disk.import_bundle(&opened, &images, &gate);
                drop(file);
                imported
            })
        };
        let references = self.import_with(path, import).await?;
        self.fetched_by_hand(references.clone()).await;
        Ok(references)
    }

    /// Imports an archive; returns the references that it brought.
    pub(super) async fn import_archive(&self, path: PathBuf) -> Result<Vec<String>, ImageError> {
        let import = || {
            let (disk, path, gate) = (Arc::clone(&self.disk), path.clone(), Arc::clone(&self.gate));
            tokio::task::spawn_blocking(move || disk.import(&path, &gate))
        };
        self.import_with(&path, import).await
    }

    /// Imports, and once more if a job was killed, or after images were collected if there was no space.
    async fn import_with(
        &self,
        path: &Path,
        import: impl Fn() -> JoinHandle<Result<Vec<String>, ImportError>> + Send + Sync,
    ) -> Result<Vec<String>, ImageError> {
        let failed = |reason| ImageError::Import { path: path.to_owned(), reason };
        let mut imported = import().await.map_err(|error| failed(error.to_string()))?;
        if imported.as_ref().is_err_and(ImportError::is_crash) {
            imported = import().await.map_err(|error| failed(error.to_string()))?;
        }
        if imported.as_ref().is_err_and(|error| is_for_want_of_space(error)) && self.collector.recover().await {
            imported = import().await.map_err(|error| failed(error.to_string()))?;
        }
        imported.map_err(|error| match error {
            ImportError::Refused { name, source } => {
                ImageError::Refused { reference: name, reason: format!("{source} (in {})", path.display()) }
            }
            error => failed(explain(&error)),
        })
    }

    /// Takes note that an image was asked for by hand. It is of no consequence beyond a day, so that a failure is only logged.
    async fn fetched_by_hand(&self, references: Vec<String>) {
        let disk = Arc::clone(&self.disk);
        let noted = tokio::task::spawn_blocking(move || {
            for reference in references.iter().filter_map(|reference| reference.parse().ok()) {
                if let Err(error) = disk.fetched_by_hand(&reference) {
                    tracing::warn!(image = %reference, error = %explain(&error), "cannot record that an image was fetched by hand");
                }
            }
        });
        drop(noted.await);
    }

    /// Pulls; `present` is used if the registry is unreachable.
    async fn pull(
        &self,
        written: &str,
        reference: &Reference,
        secrets: &PullSecrets,
        present: Option<ResolvedImage>,
        urgency: Urgency,
    ) -> Result<ResolvedImage, ImageError> {
        let failed = |reason: String| ImageError::Pull { reference: written.to_owned(), reason };
        if let Some(problem) = secrets.problem() {
            return Err(failed(problem.to_owned()));
        }
        let logins = secrets.logins(reference);
        let no_login = if logins.is_empty() { secrets.explain_no_login(reference) } else { None };
        let asked = Asked { reference: reference.to_string(), logins, of_host: secrets.may_use_host_credentials() };
        match (self.puller.pull(reference, written, asked, urgency).await, present) {
            (Ok(()), _) => {
                let (_, image) = self.disk.find(reference).ok_or_else(|| failed("it was removed during the pull".into()))?;
                // Policy and image may have changed meanwhile.
                self.judge(reference, &image).await.map_err(|refusal| refused(written, refusal.to_string()))?;
                Ok(image)
            }
            (Err(failure), Some(image)) if failure.kind == FailureKind::Unreachable => {
                let message =
                    format!("cannot check image {reference} with its registry, using the one that is present: {}", failure.reason);
                tracing::warn!("{message}");
                self.events.record(&Subject::Node, EventType::Warning, "RegistryUnreachable", &message);
                Ok(image)
            }
            (Err(failure), _) if failure.kind == FailureKind::Refused => Err(refused(written, failure.reason)),
            (Err(failure), _) => {
                let hint = no_login.map(|hint| format!("; {hint}")).unwrap_or_default();
                Err(failed(failure.reason + &hint))
            }
        }
    }

    /// The verdict on an image that is present, by the policy in force and what is kept of its signatures.
    async fn judge(&self, reference: &Reference, image: &ResolvedImage) -> Result<(), Refusal> {
        let Some(wanted) = self.gate.wanted(reference, Asker::Pod)? else { return Ok(()) };
        let (disk, digest) = (Arc::clone(&self.disk), image.digest.clone());
        // A panic there is one here.
        match tokio::task::spawn_blocking(move || disk.judge_stored(&digest, wanted)).await {
            Ok(verdict) => verdict,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Returns true if a pod with these Secrets may use the image that is present without asking its registry.
    fn is_allowed(&self, reference: &Reference, secrets: &PullSecrets) -> bool {
        let uses = secrets.uses(reference, |login| SecretUse::of(login, &self.config.fingerprint_key));
        self.disk.is_allowed(reference, &Means { secrets: uses, of_host: secrets.may_use_host_credentials() })
    }

    /// The image, if it is on disk or an archive that is about to be imported brings it.
    async fn find(&self, reference: &Reference) -> Option<ResolvedImage> {
        let mut preloading = self.preloading.subscribe();
        loop {
            let busy = preloading.borrow_and_update().busy;
            let found = self.disk.find(reference).map(|(_, image)| image);
            // The sender lives as long as the store.
            if found.is_some() || !busy || preloading.changed().await.is_err() {
                return found;
            }
        }
    }
}

fn refused(reference: &str, reason: String) -> ImageError {
    ImageError::Refused { reference: reference.to_owned(), reason }
}

fn parse(reference: &str) -> Result<Reference, ImageError> {
    reference.parse().map_err(|reason| ImageError::InvalidName { reference: reference.to_owned(), reason })
}

/// Runs `work` where it may block; `failed` makes an error of a panic.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ImageError> + Send + 'static,
    failed: impl FnOnce(String) -> ImageError,
) -> Result<T, ImageError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error.to_string())))
}

impl ImageStore {
    async fn ensure_urgently(
        &self,
        reference: &str,
        policy: PullPolicy,
        secrets: &PullSecrets,
        urgency: Urgency,
    ) -> Result<ResolvedImage, ImageError> {
        let parsed = parse(reference)?;
        // What no image of this name can meet needs neither an image nor a registry.
        self.gate.wanted(&parsed, Asker::Pod).map_err(|refusal| refused(reference, refusal.to_string()))?;
        let found = self.find(&parsed).await;
        let is_present = found.is_some();
        let mut found = found.filter(|_| self.is_allowed(&parsed, secrets));
        if let Some(image) = &found
            && let Err(refusal) = self.judge(&parsed, image).await
        {
            if policy == PullPolicy::Never {
                return Err(refused(reference, refusal.to_string()));
            }
            // Its registry may have signatures that are not kept here.
            found = None;
        }
        match (found, policy) {
            (Some(image), PullPolicy::Never | PullPolicy::IfNotPresent) => Ok(image),
            (None, PullPolicy::Never) if is_present => Err(ImageError::NotAllowed(reference.to_owned())),
            (None, PullPolicy::Never) => Err(ImageError::NeverPull(reference.to_owned())),
            // Content never changes under its digest: there is nothing to ask.
            (Some(image), PullPolicy::Always) if parsed.digest().is_some() => Ok(image),
            (found, PullPolicy::Always | PullPolicy::IfNotPresent) => self.pull(reference, &parsed, secrets, found, urgency).await,
        }
    }
}

#[async_trait]
impl ImageService for ImageStore {
    async fn ensure(&self, reference: &str, policy: PullPolicy, secrets: &PullSecrets) -> Result<ResolvedImage, ImageError> {
        self.ensure_urgently(reference, policy, secrets, Urgency::Start).await
    }

    async fn ensure_update(&self, reference: &str, policy: PullPolicy, secrets: &PullSecrets) -> Result<ResolvedImage, ImageError> {
        self.ensure_urgently(reference, policy, secrets, Urgency::Update).await
    }

    async fn resolve_user(&self, image: &ResolvedImage, user: &str) -> Result<ProcessUser, ImageError> {
        let (image, user, digest) = (image.clone(), user.to_owned(), image.digest.clone());
        blocking(move || user::resolve(&image, &user), |reason| ImageError::Inspect { reference: digest, reason }).await
    }

    async fn list(&self) -> Result<Vec<ImageRecord>, ImageError> {
        Ok(self.disk.list())
    }

    async fn import(&self, path: PathBuf) -> Result<Vec<String>, ImageError> {
        let references = self.import_archive(path).await?;
        self.fetched_by_hand(references.clone()).await;
        Ok(references)
    }

    async fn pull_by_hand(&self, reference: &str) -> Result<ResolvedImage, ImageError> {
        let image = self.ensure_urgently(reference, PullPolicy::Always, &PullSecrets::none(), Urgency::ByHand).await?;
        self.fetched_by_hand(vec![reference.to_owned()]).await;
        Ok(image)
    }

    async fn prune(&self, all: bool, dry_run: bool) -> Result<PruneReport, ImageError> {
        self.collector.prune(all, dry_run).await.map_err(ImageError::Prune)
    }

    async fn verify(&self, references: &[String], repair: bool) -> Result<VerifyReport, ImageError> {
        let parsed = references.iter().map(|reference| parse(reference)).collect::<Result<Vec<_>, _>>()?;
        let absent = references.iter().zip(&parsed).find(|(_, reference)| self.disk.find(reference).is_none());
        if let Some((reference, _)) = absent {
            return Err(ImageError::Inspect { reference: reference.clone(), reason: "it is not present".to_owned() });
        }
        let images = self.disk.images_of(&parsed);
        let mender = Arc::clone(&self.doubts.mender);
        // It goes on when its requester goes away.
        let verifying = tokio::spawn(async move { mender.verify(images, repair).await });
        verifying.await.map_err(|error| ImageError::Inspect { reference: "all".to_owned(), reason: error.to_string() })
    }

    async fn usage(&self) -> Result<ImageUsage, ImageError> {
        self.collector.usage().await.map_err(|reason| ImageError::Inspect { reference: "all".to_owned(), reason })
    }

    async fn pin(&self, reference: &str, pinned: bool) -> Result<(), ImageError> {
        let parsed = parse(reference)?;
        let disk = Arc::clone(&self.disk);
        let failed = |reason| ImageError::Inspect { reference: reference.to_owned(), reason };
        match tokio::task::spawn_blocking(move || disk.pin(&parsed, pinned)).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(failed("it is not present".to_owned())),
            Ok(Err(error)) => Err(failed(explain(&error))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn remove(&self, reference: &str, force: bool) -> Result<(), ImageError> {
        let parsed = parse(reference)?;
        if !force {
            let needed = |reason| ImageError::Needed { reference: reference.to_owned(), reason };
            match self.collector.mark_of(&parsed).await {
                Ok(None) => {}
                Ok(Some(reason)) => return Err(needed(format!("it is needed ({reason})"))),
                Err(reason) => return Err(needed(format!("it is not known yet who needs it ({reason})"))),
            }
        }
        let disk = Arc::clone(&self.disk);
        let failed = |reference: &str| {
            let reference = reference.to_owned();
            move |reason| ImageError::Inspect { reference, reason }
        };
        let on_error = failed(reference);
        let work = move || match disk.remove(&parsed) {
            Ok(true) => Ok(()),
            Ok(false) => Err(on_error("it is not present".into())),
            Err(error) => Err(on_error(explain(&error))),
        };
        blocking(work, failed(reference)).await
    }

    fn doubt(&self, image: &ResolvedImage, why: &str) {
        if let Ok(digest) = image.digest.parse() {
            self.doubts.raise(digest, why);
        }
    }

    fn pulls(&self) -> Vec<PullState> {
        self.puller.pulls()
    }

    fn pull_figures(&self) -> PullFigures {
        self.puller.figures()
    }

    fn retries(&self) -> watch::Receiver<u64> {
        self.disk.again()
    }

    async fn figures(&self) -> StoreFigures {
        let (collector, transfers) = (Arc::clone(&self.collector), self.doubts.mender.fetcher.transfers.clone());
        let work = move || {
            let partial_bytes = transfers.spooled().values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
            StoreFigures { partial_bytes, ..collector.figures() }
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.disk.arrivals()
    }

    fn progress(&self) -> broadcast::Receiver<PullProgress> {
        self.progress.subscribe()
    }
}
