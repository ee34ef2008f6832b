//! The store on disk and its index in memory, kept in step. Everything here blocks.

use super::access::{Access, Means};
use super::collect::plan::{self, Amount, Candidate, Content, Goal, Plan};
use super::collect::{Root, RootTarget};
use super::commit::{self, CommitError, NewImage};
use super::document::{Configuration, ImageManifest};
use super::explain::explain;
use super::import::{self, BundledImages, ImportError, Imported};
use super::index::{Index, LoadError, Named};
use super::layer::StagedLayer;
use super::layout::{EXCHANGED, LAYER_RECORD, LayerRecord, Layout, VERSION};
use super::lease::Leases;
use super::limits::Limits;
use super::live::Live;
use super::names::NamedLayer;
use super::policy::record::{SignatureRecord, Subject};
use super::policy::{Gate, Refusal, Wanted};
use super::space::{Reserve, Space};
use super::staging::{Staging, private_directory};
use super::transfer::FORGOTTEN;
use super::unpack_job::Unpacker;
use jiff::Timestamp;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_container::{ImageLease, ResolvedImage};
use podstead_runtime::{ImageRecord, ImageUsage, StoreFigures};
use podstead_sys::atomic_file;
use rustix::fs::{FlockOperation, flock};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Reason why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A directory or file of it.
    #[error("{operation} of image store {root:?}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// The store.
        root: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// Another process has it open.
    #[error("image store {0:?} is in use by another podstead process")]
    Locked(PathBuf),
    /// Made by a newer podstead.
    #[error("image store {root:?} has layout version {version:?}, but this version of podstead supports only {VERSION}")]
    Version {
        /// The store.
        root: PathBuf,
        /// As written.
        version: String,
    },
    /// A registry's entry in the configuration.
    #[error("{0}")]
    Registry(String),
}

/// An opened store.
///
/// One type because it is all that an open store holds while its lock is held; its records own their state.
#[derive(Debug)]
pub(super) struct Disk {
    layout: Layout,
    staging: Staging,
    limits: Live<Limits>,
    space: Space,
    index: Mutex<Index>,
    /// Layers that stay, although nothing may have mounted them yet.
    leases: Leases,
    /// Moment at which an image was last given out.
    used: Mutex<BTreeMap<Digest, Instant>>,
    /// Moment at which a registry last answered a pull.
    answered: Mutex<BTreeMap<String, Instant>>,
    opened: Instant,
    /// A removal of layers that waits until nothing is being made.
    due: Mutex<BTreeSet<Digest>>,
    /// Number of references named since the start.
    arrivals: watch::Sender<u64>,
    /// Occasions to try again before a pause is over.
    again: watch::Sender<u64>,
    /// Number of times that layers were published without a reference.
    published: watch::Sender<u64>,
    /// Held shared while an image is created, exclusively while unused layers are removed.
    making: RwLock<()>,
    _lock: File,
}

/// An image, its names, and its layers, which stay as long as this.
#[derive(Debug)]
pub(super) struct NamedImage {
    pub(super) digest: Digest,
    pub(super) references: Vec<String>,
    /// Lowest first.
    pub(super) layers: Vec<Digest>,
    _lease: ImageLease,
}

/// A registry that answered so lately can deliver an image again.
const REPLACEABLE: Duration = Duration::from_secs(3600);
/// The layers of a pull that failed stay for so long, for its next attempt.
const SALVAGED: Duration = Duration::from_secs(600);

/// Time for which a lock may be held by a child of a daemon that is gone: from its `fork` to its `exec`, which closes the file.
const FORKED_CHILD: Duration = Duration::from_secs(2);

/// Takes the lock of a store. `false` if another process keeps it for longer than [`FORKED_CHILD`].
fn take(lock: &File) -> io::Result<bool> {
    let deadline = Instant::now() + FORKED_CHILD;
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            // A blocking `flock` knows no deadline.
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Disk {
    /// Opens the store at `root`, made if missing. What a crash left behind is removed; what is not whole is forgotten, its reference
    /// set aside, and told in the list returned.
    pub(super) fn open(
        root: &Path,
        limits: Live<Limits>,
        reserve: Reserve,
        unpacker: Arc<Unpacker>,
    ) -> Result<(Self, Vec<String>), StoreError> {
        let failed = |operation| move |source| StoreError::Io { operation, root: root.to_owned(), source };
        let layout = Layout::new(root, &podstead_sys::boot::boot_id().map_err(failed("read the boot ID for"))?);
        std::fs::create_dir_all(root).map_err(failed("create directory"))?;
        for directory in [layout.blobs(), layout.layers(), layout.refs(), layout.signatures()] {
            private_directory(&directory).map_err(failed("create directory"))?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(layout.lock()).map_err(failed("open the lock"))?;
        if !take(&lock).map_err(failed("take the lock"))? {
            return Err(StoreError::Locked(root.to_owned()));
        }
        check_version(&layout)?;
        let staging = Staging::open(layout.staging(), unpacker).map_err(failed("empty the staging directory"))?;
        let (index, broken) = Index::load(&layout).map_err(failed("read references"))?;
        let (index, making) = (Mutex::new(index), RwLock::default());
        let space = Space::of(staging.path(), reserve);
        let disk = Self {
            layout,
            staging,
            limits,
            space,
            index,
            leases: Leases::default(),
            used: Mutex::default(),
            answered: Mutex::default(),
            opened: Instant::now(),
            due: Mutex::default(),
            arrivals: watch::Sender::default(),
            again: watch::Sender::default(),
            published: watch::Sender::default(),
            making,
            _lock: lock,
        };
        // A reference that cannot even be read may name anything: nothing is unused then.
        let understood = broken.iter().all(|(path, error)| error.path().is_none_or(|at| at != path));
        if !broken.is_empty() {
            // An archive may have what is damaged: let it be imported again.
            atomic_file::remove_durable(&disk.layout.preloaded()).map_err(failed("remove the list of imports"))?;
        }
        let mut problems: Vec<String> = broken.into_iter().map(|(path, error)| set_aside(&path, &error)).collect();
        if understood && let Err(error) = disk.sweep() {
            problems.push(format!("cannot remove unused layers: {error}"));
        }
        Ok((disk, problems))
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn making(&self) -> RwLockReadGuard<'_, ()> {
        self.making.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The image that `reference` names, if it is whole, with what the registry once said that the reference is.
    /// Its layers stay as long as its lease.
    pub(super) fn find(&self, reference: &Reference) -> Option<(Digest, ResolvedImage)> {
        let index = self.index();
        let (record, image) = index.find(reference)?;
        let resolved = image.resolved(&self.leases);
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(image.digest, Instant::now());
        Some((record.target, resolved))
    }

    /// The layers of an image that is being fetched, lowest first, and a lease on them: those that are here stay until it is whole.
    pub(super) fn hold(&self, manifest: &ImageManifest, configuration: &Configuration) -> (Vec<NamedLayer>, ImageLease) {
        // Nothing is removed between the look and the lease.
        let _making = self.making();
        let layers = self.layout.layers_of(manifest, configuration);
        let lease = self.leases.give(layers.iter().map(|layer| layer.name).collect());
        (layers, lease)
    }

    /// A registry delivered what was asked for.
    pub(super) fn registry_answered(&self, host: &str) {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), Instant::now());
    }

    /// Those who wait after a failure may try again.
    pub(super) fn tell_again(&self) {
        self.again.send_modify(|count| *count += 1);
        // Which makes them look.
        self.arrivals.send_modify(|count| *count += 1);
    }

    /// Counts the occasions to try again.
    pub(super) fn again(&self) -> watch::Receiver<u64> {
        self.again.subscribe()
    }

    pub(super) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    pub(super) fn list(&self) -> Vec<ImageRecord> {
        self.index().list()
    }

    /// Makes `reference` name a committed image, durably.
    pub(super) fn name(&self, reference: &Reference, target: Digest, manifest: Digest, access: Access) -> Result<(), CommitError> {
        self.index().name(&self.layout, reference, Named { target, manifest, access })?;
        self.arrivals.send_modify(|count| *count += 1);
        Ok(())
    }

    /// As [`Disk::name`], with signatures of the image.
    pub(super) fn name_signed(
        &self,
        reference: &Reference,
        target: Digest,
        manifest: Digest,
        access: Access,
        signatures: &[Subject],
    ) -> Result<(), CommitError> {
        let named = || {
            let _making = self.making();
            self.keep_signatures(manifest, signatures)?;
            self.name(reference, target, manifest, access)
        };
        let result = named();
        self.sweep_due();
        result
    }

    /// Keeps signatures of an image beside those that are there.
    fn keep_signatures(&self, manifest: Digest, new: &[Subject]) -> Result<(), CommitError> {
        let Some(record) = SignatureRecord::merged(new, self.signatures(manifest)) else { return Ok(()) };
        let failed = |source| CommitError::Io { operation: "write the signatures", source };
        let text = serde_json::to_vec(&record).map_err(|error| failed(error.into()))?;
        atomic_file::write_durable(&self.layout.signatures_of(manifest), &text, 0o600).map_err(failed)
    }

    /// Signatures that are kept of an image: of its manifest, and of indexes that lead to it. Nothing if it cannot be read.
    pub(super) fn signatures(&self, manifest: Digest) -> Vec<Subject> {
        let content = std::fs::read(self.layout.signatures_of(manifest)).unwrap_or_default();
        SignatureRecord::subjects(&content, manifest)
    }

    /// The verdict on an image by what is kept of its signatures.
    pub(super) fn judge_stored(&self, manifest: &str, wanted: Wanted) -> Result<(), Refusal> {
        let subjects = manifest.parse().map(|manifest| self.signatures(manifest)).unwrap_or_default();
        wanted.judge_stored(&subjects, &[])
    }

    /// `reference`, which still means `target`, may be used also by whom `access` allows; durably.
    pub(super) fn allow(&self, reference: &Reference, target: Digest, access: &Access) -> Result<(), CommitError> {
        Ok(self.index().allow(&self.layout, reference, target, access)?)
    }

    /// Returns true if a pod with these means may use the image that is present.
    pub(super) fn is_allowed(&self, reference: &Reference, means: &Means) -> bool {
        self.index().records(reference).any(|record| record.access.allows(means))
    }

    /// Returns true if a complete image with this manifest is present.
    pub(super) fn has_manifest(&self, manifest: Digest) -> bool {
        self.index().is_whole(manifest)
    }

    pub(super) fn has_layer(&self, chain: Digest) -> bool {
        self.layout.layer(chain).is_dir()
    }

    /// Waits until this layer is here, however it comes.
    pub(super) async fn wait_for_layer(&self, chain: Digest) {
        let (mut arrivals, mut published) = (self.arrivals.subscribe(), self.published.subscribe());
        while !self.has_layer(chain) {
            // The senders live as long as the store.
            tokio::select! {
                _ = arrivals.changed() => {}
                _ = published.changed() => {}
            }
        }
    }

    /// Record of a layer that is present; `None` too if the record cannot be read, which is reported when the image is used.
    pub(super) fn layer_record(&self, chain: Digest) -> Option<LayerRecord> {
        let text = std::fs::read(self.layout.layer(chain).join(LAYER_RECORD)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The file system of the store.
    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    /// File in which the preload task saves its memory.
    pub(super) fn preloaded(&self) -> PathBuf {
        self.layout.preloaded()
    }

    /// Directory of the layers that are being fetched.
    pub(super) fn spool(&self) -> PathBuf {
        self.layout.spool()
    }

    pub(super) fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Makes an image durable and names it. Its signatures come first, so that no image has a name without them.
    pub(super) fn commit(&self, image: NewImage, reference: &Reference, target: Digest, access: Access) -> Result<(), CommitError> {
        let made = || {
            let _making = self.making();
            self.keep_signatures(Digest::of(&image.manifest), &image.signatures)?;
            let manifest = commit::commit(&self.layout, &self.staging, image)?;
            self.name(reference, target, manifest, access)
        };
        let result = made();
        self.sweep_due();
        result
    }

    /// Publishes layers of an image that is not complete, so that they need not be made again; returns how many.
    pub(super) fn salvage(&self, layers: &[NamedLayer], staged: BTreeMap<Digest, StagedLayer>) -> Result<usize, CommitError> {
        let salvaged = {
            let _making = self.making();
            commit::salvage(&self.layout, &self.staging, layers, staged)
        };
        self.sweep_due();
        let count = salvaged?;
        self.published.send_modify(|times| *times += 1);
        Ok(count)
    }

    /// Imports an archive; returns the references that it brought.
    pub(super) fn import(&self, path: &Path, gate: &Gate) -> Result<Vec<String>, ImportError> {
        let imported = self.import_alone(path, gate);
        self.sweep_due();
        imported
    }

    fn import_alone(&self, path: &Path, gate: &Gate) -> Result<Vec<String>, ImportError> {
        let _making = self.making();
        let images = import::import(&self.layout, &self.staging, &self.limits.get(), &self.space, path, gate)?;
        self.name_imported(images)
    }

    /// Makes damaged layers anew from an archive that has their images.
    pub(super) fn mend_from(&self, path: &Path, gate: &Gate, damaged: BTreeSet<Digest>) -> Result<(), ImportError> {
        let layout = self.layout.without(damaged);
        let mended = {
            let _making = self.making();
            import::import(&layout, &self.staging, &self.limits.get(), &self.space, path, gate).map(drop)
        };
        self.sweep_due();
        self.sweep_exchanged();
        mended
    }

    /// Puts layers that were made anew into the place of damaged ones.
    pub(super) fn exchange(&self, layers: &[NamedLayer], staged: BTreeMap<Digest, StagedLayer>) -> Result<(), CommitError> {
        let layout = self.layout.without(staged.keys().copied().collect());
        let exchanged = {
            let _making = self.making();
            commit::replace(&layout, &self.staging, layers, staged)
        };
        self.sweep_due();
        self.sweep_exchanged();
        exchanged
    }

    /// Writes documents of an image that were damaged.
    pub(super) fn write_documents(&self, documents: [&[u8]; 2]) -> Result<(), CommitError> {
        let failed = |source| CommitError::Io { operation: "write manifest and configuration", source };
        let _making = self.making();
        documents.iter().try_for_each(|content| {
            atomic_file::write_durable(&self.layout.blob(Digest::of(content)), content, 0o600).map_err(failed)
        })
    }

    /// Paths of the store.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The images that these references name, or all, each with its names, its layers, and a lease on them.
    pub(super) fn images_of(&self, references: &[Reference]) -> Vec<NamedImage> {
        let index = self.index();
        let wanted: Option<BTreeSet<Digest>> =
            (!references.is_empty()).then(|| references.iter().flat_map(|reference| index.manifests(reference)).collect());
        let digests = index.images().into_iter().filter(|digest| wanted.as_ref().is_none_or(|wanted| wanted.contains(digest)));
        digests
            .map(|digest| NamedImage {
                digest,
                references: index.references(digest),
                layers: index.layers_of(digest),
                _lease: self.leases.give(index.layers_of(digest)),
            })
            .collect()
    }

    /// Layers of images that were published in an earlier boot and not verified since.
    pub(super) fn unverified(&self) -> BTreeSet<Digest> {
        let chains = self.index().chains();
        let is_due = |chain: &Digest| {
            let boot_id = self.layer_record(*chain).filter(|record| record.files.is_some()).and_then(|record| record.boot_id);
            boot_id.is_some_and(|boot_id| boot_id != self.layout.boot_id())
        };
        chains.into_iter().filter(is_due).collect()
    }

    /// Takes note that a layer of an earlier boot is whole.
    pub(super) fn verified(&self, chain: Digest) -> io::Result<()> {
        // First, so that the record is not that of a tree which another one has replaced.
        let _making = self.making();
        let Some(record) = self.layer_record(chain) else { return Ok(()) };
        let text = serde_json::to_vec(&LayerRecord { boot_id: None, ..record })?;
        atomic_file::write_durable(&self.layout.layer(chain).join(LAYER_RECORD), &text, 0o600)
    }

    /// Removes layers that were replaced and that no container has mounted any more.
    fn sweep_exchanged(&self) {
        let sweep = || -> io::Result<()> {
            let mut replaced: BTreeMap<Digest, Vec<PathBuf>> = BTreeMap::new();
            for entry in std::fs::read_dir(self.layout.layers())? {
                let path = entry?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                if let Some(chain) = name.split_once(EXCHANGED).and_then(|(chain, _)| Digest::from_hex(chain).ok()) {
                    replaced.entry(chain).or_default().push(path);
                }
            }
            // The table of mounts has the path at which a layer was when it was mounted.
            let trees = replaced.keys().map(|chain| (*chain, self.layout.tree(*chain))).collect();
            let mounted = super::in_use::mounted(&trees)?;
            let unused = replaced.into_iter().filter(|(chain, _)| !mounted.contains(chain)).flat_map(|(_, paths)| paths);
            unused.into_iter().try_for_each(|path| self.staging.discard(&path))
        };
        if let Err(error) = sweep() {
            tracing::warn!(%error, "cannot remove layers that were replaced");
        }
    }

    /// Imports images of a bundle; returns their references.
    pub(super) fn import_bundle(&self, path: &Path, wanted: &BundledImages, gate: &Gate) -> Result<Vec<String>, ImportError> {
        let import = || {
            let _making = self.making();
            let (layout, staging, space) = (&self.layout, &self.staging, &self.space);
            let images = import::import_bundle(layout, staging, &self.limits.get(), space, path, wanted, gate)?;
            self.name_imported(images)
        };
        let imported = import();
        self.sweep_due();
        self.published.send_modify(|times| *times += 1);
        imported
    }

    fn name_imported(&self, images: Vec<Imported>) -> Result<Vec<String>, ImportError> {
        let mut names = Vec::new();
        for image in images {
            self.keep_signatures(image.manifest, &image.signatures)?;
            for reference in image.references {
                self.name(&reference, image.target, image.manifest, Access::open())?;
                names.push(reference.to_string());
            }
        }
        Ok(names)
    }

    /// Forgets a reference and removes at once what nothing needs any more. `false` if it is not known.
    pub(super) fn remove(&self, reference: &Reference) -> io::Result<bool> {
        let chains = self.index().chains();
        let known = self.index().remove(&self.layout, &reference.to_string())?;
        if known {
            self.sweep_layers(&chains)?;
        }
        Ok(known)
    }

    /// Keeps what a reference names, or ends that. `false` if it is not known.
    pub(super) fn pin(&self, reference: &Reference, pinned: bool) -> Result<bool, CommitError> {
        Ok(self.index().pin(&self.layout, reference, pinned)?)
    }

    /// Somebody asked for this image by hand.
    pub(super) fn fetched_by_hand(&self, reference: &Reference) -> Result<(), CommitError> {
        Ok(self.index().fetched_by_hand(&self.layout, reference)?)
    }

    /// Content of the disk, for [`plan`](super::collect::plan::plan). Without marks every image has one.
    pub(super) fn content(&self, marks: Option<&[Root]>) -> io::Result<Content> {
        let now = Timestamp::now();
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let opened = self.opened.elapsed();
        // The clock may have been set since: what was not used while this process lives is at least as old as that.
        let idle = |digest: Digest, created: Timestamp| match used.get(&digest) {
            Some(used) => used.elapsed(),
            None => Duration::try_from(now.duration_since(created)).unwrap_or_default().max(opened),
        };
        let (mut images, mut layers) = {
            let index = self.index();
            (index.candidates(idle, now), index.layer_sizes())
        };
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answered_lately = |reference: &String| {
            let host = reference.parse::<Reference>().ok().map(|reference| reference.host().to_owned());
            host.and_then(|host| answered.get(&host)).is_some_and(|at| at.elapsed() < REPLACEABLE)
        };
        for image in &mut images {
            image.replaceable = image.references.iter().any(answered_lately);
        }
        match marks {
            Some(marks) => self.mark(&mut images, marks),
            None => images.iter_mut().for_each(|image| image.mark = Some("it is not known yet which images are needed".to_owned())),
        }
        let loose = unused(&self.layout.layers(), &layers.keys().copied().collect())?;
        let mut held = self.leases.layers();
        let trees = layers.keys().chain(&loose).map(|chain| (*chain, self.layout.tree(*chain))).collect();
        held.extend(super::in_use::mounted(&trees)?);
        for chain in loose {
            // What a pull that failed has got may be of use to the next attempt.
            if self.is_young(chain) {
                held.insert(chain);
            }
            let amount = self.layer_record(chain).map(|record| record.amount()).unwrap_or_default();
            layers.insert(chain, amount);
        }
        Ok(Content { images, layers, held })
    }

    fn is_young(&self, chain: Digest) -> bool {
        self.layer_age(chain).is_ok_and(|age| age < SALVAGED)
    }

    /// Time since a layer was published. A clock that was set back makes nothing old.
    fn layer_age(&self, chain: Digest) -> io::Result<Duration> {
        let modified = std::fs::symlink_metadata(self.layout.layer(chain))?.modified()?;
        Ok(modified.elapsed().unwrap_or_default())
    }

    /// Returns true if a pull that a crash interrupted may go on with this layer: what it was made of is not in the spool any more.
    fn is_of_interrupted_pull(&self, chain: Digest) -> bool {
        self.layer_record(chain).is_some_and(|record| record.ahead) && self.layer_age(chain).is_ok_and(|age| age < FORGOTTEN)
    }

    fn mark(&self, images: &mut [Candidate], marks: &[Root]) {
        let mut reasons: BTreeMap<Digest, &str> = BTreeMap::new();
        let index = self.index();
        for Root { target, reason } in marks {
            let manifests = match target {
                RootTarget::Digest(digest) => vec![*digest],
                RootTarget::Reference(text) => text.parse().map(|reference| index.manifests(&reference)).unwrap_or_default(),
            };
            for manifest in manifests {
                reasons.entry(manifest).or_insert(reason);
            }
        }
        for image in images {
            if let Some(reason) = reasons.get(&image.digest) {
                (image.mark, image.by_hand) = (Some((*reason).to_owned()), false);
            }
        }
    }

    /// The reason for which the image of a reference is needed from outside the store.
    pub(super) fn mark_of(&self, reference: &Reference, marks: &[Root]) -> Option<String> {
        let manifests = self.index().manifests(reference);
        let index = self.index();
        let means = |target: &RootTarget| match target {
            RootTarget::Digest(digest) => manifests.contains(digest),
            RootTarget::Reference(text) => {
                text.parse().is_ok_and(|wanted| index.manifests(&wanted).iter().any(|manifest| manifests.contains(manifest)))
            }
        };
        marks.iter().find(|root| means(&root.target)).map(|root| root.reason.clone())
    }

    /// Removes what a plan says, except what was used or named since `began`; returns what was removed and how much that was.
    pub(super) fn collect(&self, plan: Plan, began: Instant) -> io::Result<Plan> {
        let before: BTreeSet<Digest> = self.index().chains().into_iter().chain(plan.loose.iter().copied()).collect();
        let mut done = Plan { loose: plan.loose, ..Plan::default() };
        for image in plan.images {
            let mut index = self.index();
            let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).get(&image.digest).is_some_and(|at| *at >= began);
            if used || index.references(image.digest) != image.references {
                continue;
            }
            for reference in &image.references {
                index.remove(&self.layout, reference)?;
            }
            done.images.push(image);
        }
        done.frees = self.sweep_layers(&before)?;
        self.sweep_exchanged();
        Ok(done)
    }

    /// Space that images take, and the part of it that nothing needs.
    pub(super) fn usage(&self, marks: Option<&[Root]>) -> io::Result<ImageUsage> {
        let content = self.content(marks)?;
        let blobs = std::fs::read_dir(self.layout.blobs())?.filter_map(|entry| entry.ok()?.metadata().ok());
        let documents = blobs.fold(0, |sum: u64, metadata| sum.saturating_add(metadata.blocks().saturating_mul(512)));
        let layers = content.layers.values().fold(0, |sum: u64, amount| sum.saturating_add(amount.bytes));
        let unused = plan::plan(&content, Goal::All, Duration::ZERO).frees.bytes;
        let images = content.images.len();
        Ok(ImageUsage { images, disk_bytes: layers.saturating_add(documents), unused_bytes: unused, ..ImageUsage::default() })
    }

    /// Figures that are in memory. `names` are pinned in the configuration.
    pub(super) fn figures(&self, names: &[String]) -> StoreFigures {
        let (layers, pinned, images) = {
            let index = self.index();
            (index.layer_sizes(), index.pinned_layers(names), index.images().len())
        };
        let sum = |is_counted: &dyn Fn(&Digest) -> bool| {
            let counted = layers.iter().filter(|(chain, _)| is_counted(chain));
            counted.fold(0, |sum: u64, (_, amount)| sum.saturating_add(amount.bytes))
        };
        let (layer_bytes, pinned_bytes) = (sum(&|_| true), sum(&|chain| pinned.contains(chain)));
        StoreFigures { images, layer_bytes, pinned_bytes, ..StoreFigures::default() }
    }

    /// Removes layers and blobs that no reference needs, nobody was given and nothing has mounted, at the start. Layers of a pull that was interrupted
    /// stay as long as its partly fetched ones.
    fn sweep(&self) -> io::Result<Amount> {
        self.sweep_exchanged();
        let mut layers = unused(&self.layout.layers(), &self.index().chains().into_iter().collect())?;
        layers.retain(|chain| !self.is_of_interrupted_pull(*chain));
        self.sweep_layers(&layers)
    }

    /// Removes those of the layers that nothing needs, with blobs that nothing needs; returns the space that they took. While an image is being made
    /// nothing is removed, since its layers are not named yet: whoever ends making it does that.
    fn sweep_layers(&self, candidates: &BTreeSet<Digest>) -> io::Result<Amount> {
        let Ok(_alone) = self.making.try_write() else {
            self.due.lock().unwrap_or_else(PoisonError::into_inner).extend(candidates);
            return Ok(Amount::default());
        };
        let (chains, blobs, images) = {
            let index = self.index();
            (index.chains(), index.blobs(), index.images())
        };
        let leased = self.leases.layers();
        let layers: BTreeSet<Digest> =
            candidates.iter().filter(|chain| !chains.contains(*chain) && !leased.contains(*chain)).copied().collect();
        let trees = layers.iter().map(|chain| (*chain, self.layout.tree(*chain))).collect();
        let mounted = super::in_use::mounted(&trees)?;
        let mut freed = Amount::default();
        for chain in layers.difference(&mounted) {
            tracing::info!(layer = %chain, "removing an unused layer");
            let amount = self.layer_record(*chain).map(|record| record.amount()).unwrap_or_default();
            self.staging.discard(&self.layout.layer(*chain))?;
            freed = freed.plus(amount);
        }
        for blob in unused(&self.layout.blobs(), &blobs)? {
            std::fs::remove_file(self.layout.blob(blob))?;
        }
        for manifest in unused(&self.layout.signatures(), &images)? {
            std::fs::remove_file(self.layout.signatures_of(manifest))?;
        }
        Ok(freed)
    }

    /// Removes what could not be removed while an image was being made.
    fn sweep_due(&self) {
        let due = std::mem::take(&mut *self.due.lock().unwrap_or_else(PoisonError::into_inner));
        if !due.is_empty()
            && let Err(error) = self.sweep_layers(&due)
        {
            tracing::warn!(%error, "cannot remove unused layers");
        }
    }
}

fn unused(directory: &Path, used: &BTreeSet<Digest>) -> io::Result<BTreeSet<Digest>> {
    let names = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let digests = names.iter().filter_map(|name| Digest::from_hex(name.to_str()?).ok());
    Ok(digests.filter(|digest| !used.contains(digest)).collect())
}

/// Takes an unusable reference out of the way; says so.
fn set_aside(path: &Path, error: &LoadError) -> String {
    let message = format!("image reference {} is unusable and set aside: {}", path.display(), explain(error));
    match std::fs::rename(path, path.with_extension("broken")) {
        Ok(()) => message,
        Err(error) => format!("{message}; cannot rename it: {error}"),
    }
}

fn check_version(layout: &Layout) -> Result<(), StoreError> {
    let failed = |operation| move |source| StoreError::Io { operation, root: layout.root().to_owned(), source };
    match std::fs::read_to_string(layout.version()) {
        Ok(text) if text.trim() == VERSION.to_string() => Ok(()),
        Ok(text) => Err(StoreError::Version { root: layout.root().to_owned(), version: text.trim().to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            atomic_file::write_durable(&layout.version(), format!("{VERSION}\n").as_bytes(), 0o644)
                .map_err(failed("write the version"))
        }
        Err(error) => Err(failed("read the version")(error)),
    }
}
