//! The store on disk and its index in memory, kept in step. Everything here blocks.

use super::access::{Access, SecretUse};
use super::commit::{self, CommitError, NewImage};
use super::document::Configuration;
use super::explain::explain;
use super::import::{self, ImportError};
use super::index::{Index, LoadError, Named};
use super::layer::StagedLayer;
use super::layout::{LAYER_RECORD, LayerRecord, Layout, VERSION};
use super::limits::Limits;
use super::space::{Reserve, Space};
use super::staging::{Staging, private_directory};
use podstead_container::ResolvedImage;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_runtime::ImageRecord;
use podstead_sys::atomic_file;
use rustix::fs::{FlockOperation, flock};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
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
#[derive(Debug)]
pub(super) struct Disk {
    layout: Layout,
    staging: Staging,
    limits: Limits,
    space: Space,
    index: Mutex<Index>,
    /// Layers given out since the start: they may be about to be mounted.
    given_out: Mutex<BTreeSet<PathBuf>>,
    /// Number of references named since the start.
    arrivals: watch::Sender<u64>,
    /// Held shared while an image is created, exclusively while unused layers are removed.
    making: RwLock<()>,
    _lock: File,
}

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
    pub(super) fn open(root: &Path, limits: Limits, reserve: Reserve) -> Result<(Self, Vec<String>), StoreError> {
        let failed = |operation| move |source| StoreError::Io { operation, root: root.to_owned(), source };
        let layout = Layout::new(root);
        std::fs::create_dir_all(root).map_err(failed("create directory"))?;
        for directory in [layout.blobs(), layout.layers(), layout.refs()] {
            private_directory(&directory).map_err(failed("create directory"))?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(layout.lock()).map_err(failed("open the lock"))?;
        if !take(&lock).map_err(failed("take the lock"))? {
            return Err(StoreError::Locked(root.to_owned()));
        }
        check_version(&layout)?;
        let staging = Staging::open(layout.staging()).map_err(failed("empty the staging directory"))?;
        let (index, broken) = Index::load(&layout).map_err(failed("read references"))?;
        let (index, given_out, making) = (Mutex::new(index), Mutex::default(), RwLock::default());
        let space = Space::of(staging.path(), reserve);
        let disk =
            Self { layout, staging, limits, space, index, given_out, arrivals: watch::Sender::default(), making, _lock: lock };
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
    /// Its layers stay as long as this process lives.
    pub(super) fn find(&self, reference: &Reference) -> Option<(Digest, ResolvedImage)> {
        let index = self.index();
        let (record, image) = index.find(reference)?;
        let resolved = image.resolved();
        self.given_out.lock().unwrap_or_else(PoisonError::into_inner).extend(resolved.layers.iter().cloned());
        Some((record.target, resolved))
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

    /// `reference`, which still means `target`, may be used also by whom `access` allows; durably.
    pub(super) fn allow(&self, reference: &Reference, target: Digest, access: &Access) -> Result<(), CommitError> {
        Ok(self.index().allow(&self.layout, reference, target, access)?)
    }

    /// Returns true if a pod with these Secrets may use the image that is present.
    pub(super) fn is_allowed(&self, reference: &Reference, secrets: &[SecretUse]) -> bool {
        self.index().records(reference).any(|record| record.access.allows(secrets))
    }

    /// Returns true if a complete image with this manifest is present.
    pub(super) fn has_manifest(&self, manifest: Digest) -> bool {
        self.index().is_whole(manifest)
    }

    pub(super) fn has_layer(&self, chain: Digest) -> bool {
        self.layout.layer(chain).is_dir()
    }

    /// Waits until an image with this layer is here, however it comes.
    pub(super) async fn wait_for_layer(&self, chain: Digest) {
        let mut arrivals = self.arrivals.subscribe();
        // The sender lives as long as the store.
        while !self.has_layer(chain) && arrivals.changed().await.is_ok() {}
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

    pub(super) fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Makes an image durable and names it.
    pub(super) fn commit(&self, image: NewImage, reference: &Reference, target: Digest, access: Access) -> Result<(), CommitError> {
        let _making = self.making();
        let manifest = commit::commit(&self.layout, &self.staging, image)?;
        self.name(reference, target, manifest, access)
    }

    /// Keeps what a failed pull has got whole; returns how many layers.
    pub(super) fn salvage(
        &self,
        configuration: &Configuration,
        staged: BTreeMap<Digest, StagedLayer>,
    ) -> Result<usize, CommitError> {
        let _making = self.making();
        commit::salvage(&self.layout, &self.staging, configuration, staged)
    }

    /// Imports an archive; returns the references that it brought.
    pub(super) fn import(&self, path: &Path) -> Result<Vec<String>, ImportError> {
        let _making = self.making();
        let mut names = Vec::new();
        for image in import::import(&self.layout, &self.staging, &self.limits, &self.space, path)? {
            for reference in image.references {
                self.name(&reference, image.target, image.manifest, Access::open())?;
                names.push(reference.to_string());
            }
        }
        Ok(names)
    }

    /// Forgets a reference and removes what nothing needs any more. `false` if it is not known.
    pub(super) fn remove(&self, reference: &Reference) -> io::Result<bool> {
        let known = self.index().remove(&self.layout, &reference.to_string())?;
        if known {
            self.sweep()?;
        }
        Ok(known)
    }

    /// Removes layers and blobs that no reference needs, nobody was given and nothing has mounted. While an image is being made
    /// nothing is removed: its layers are not named yet. The next call finds them.
    fn sweep(&self) -> io::Result<()> {
        let Ok(_alone) = self.making.try_write() else { return Ok(()) };
        let (chains, blobs) = {
            let index = self.index();
            (index.chains(), index.blobs())
        };
        let given_out = self.given_out.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut layers = unused(&self.layout.layers(), &chains)?;
        layers.retain(|chain| !given_out.contains(&self.layout.tree(*chain)));
        let trees = layers.iter().map(|chain| (*chain, self.layout.tree(*chain))).collect();
        let mounted = super::in_use::mounted(&trees)?;
        for chain in layers.difference(&mounted) {
            tracing::info!(layer = %chain, "removing an unused layer");
            self.staging.discard(&self.layout.layer(*chain))?;
        }
        for blob in unused(&self.layout.blobs(), &blobs)? {
            std::fs::remove_file(self.layout.blob(blob))?;
        }
        Ok(())
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
