//! The preload directory: archives in it are imported, at start and when they appear.
//!
//! One task. inotify is a hint; the listing is the truth. A file is imported once it has a known ending and nobody has it open for
//! writing, and again only when it has become another file. What was imported is remembered across restarts, what failed is not:
//! a broken archive is reported once per start and left alone until it changes.

use super::collect::PreloadedImages;
use super::policy::archive::BESIDE;
use super::store::ImageStore;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use podstead_runtime::ImageError;
use podstead_sys::{atomic_file, file_lease};
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Between listings that nothing asked for: inotify misses what a network file system's other clients do, and directories are replaced.
const RELIST: Duration = Duration::from_secs(60);
/// Between looks at a file that is being written.
const WRITING: Duration = Duration::from_secs(1);
/// Before an archive is tried again that failed for want of space.
const RETRY: Duration = Duration::from_secs(300);
/// Suffixes of archive names.
const ENDINGS: [&str; 6] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.zstd", ".tzst"];
const MEMORY_VERSION: u32 = 2;

/// Identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    mtime: i64,
    mtime_nsec: i64,
}

/// Imported archives, by file name; saved on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    version: u32,
    imported: BTreeMap<String, Imported>,
}

/// An archive that was imported.
#[derive(Debug, Serialize, Deserialize)]
struct Imported {
    stamp: Stamp,
    /// References that it brought: their images stay as long as the archive lies there.
    references: Vec<String>,
}

/// State of the task, for those who miss an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preloading {
    /// An archive that is not imported yet may bring the image.
    pub(super) busy: bool,
    /// Imports done or failed so far.
    imports: u64,
}

/// Publishes the state of the task; a task that is gone is not busy.
#[derive(Debug)]
pub(super) struct Busy(watch::Sender<Preloading>);

impl Busy {
    /// From now on until the first listing is worked off.
    pub(super) fn begin(state: watch::Sender<Preloading>) -> Self {
        state.send_modify(|state| state.busy = true);
        Self(state)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.busy = false);
    }
}

/// The task's state.
pub(super) struct Preload {
    directory: PathBuf,
    memory_file: PathBuf,
    memory: Memory,
    /// Images that the archives brought, for the collection of images.
    brought: PreloadedImages,
    /// Files that failed, and when they may be tried again, if ever.
    failed: BTreeMap<String, (Stamp, Option<tokio::time::Instant>)>,
    /// Files whose name is no archive's, told once.
    strangers: BTreeMap<String, Stamp>,
    events: Arc<dyn EventRecorder>,
}

/// Result of listing the directory.
#[derive(Debug, Default)]
struct Looked {
    ready: Vec<(String, Stamp)>,
    /// A file is being written.
    writing: bool,
}

impl Preload {
    /// `memory_file` is where imports are remembered.
    pub(super) fn new(directory: PathBuf, memory_file: PathBuf, brought: PreloadedImages, events: Arc<dyn EventRecorder>) -> Self {
        let memory = std::fs::read(&memory_file).ok().and_then(|content| serde_json::from_slice(&content).ok());
        // Forgetting costs an import that finds all layers present.
        let memory = memory.filter(|memory: &Memory| memory.version == MEMORY_VERSION);
        let memory = memory.unwrap_or(Memory { version: MEMORY_VERSION, ..Memory::default() });
        Self { directory, memory_file, memory, brought, failed: BTreeMap::new(), strangers: BTreeMap::new(), events }
    }

    /// Imports into `store` for ever.
    pub(super) async fn run(mut self, store: Arc<ImageStore>, busy: Busy) {
        let (hint, mut hints) = mpsc::channel(1);
        let mut watcher = None;
        loop {
            if let Err(error) = std::fs::create_dir_all(&self.directory) {
                tracing::warn!(path = %self.directory.display(), %error, "cannot create the preload directory");
            }
            // Set before the listing: what comes after it is told. Anew each time: the directory may be another one.
            drop(watcher.take());
            while hints.try_recv().is_ok() {}
            watcher = watch(&self.directory, hint.clone());
            let writing = self.turn(&store, &busy).await;
            self.tell_brought();
            store.tick();
            busy.0.send_modify(|state| state.busy = false);
            let pause = if writing { WRITING } else { RELIST };
            tokio::select! {
                // Both arms lose nothing when the other one wins: the listing follows in any case.
                _ = hints.recv() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Looks and imports until there is nothing to import. `true` if a file is being written.
    async fn turn(&mut self, store: &Arc<ImageStore>, busy: &Busy) -> bool {
        loop {
            let looked = match self.look() {
                Ok(looked) => looked,
                Err(error) => {
                    tracing::warn!(path = %self.directory.display(), %error, "cannot list the preload directory");
                    return false;
                }
            };
            let Some((name, stamp)) = looked.ready.into_iter().next() else { return looked.writing };
            busy.0.send_modify(|state| state.busy = true);
            self.import(store, name, stamp).await;
            busy.0.send_modify(|state| state.imports += 1);
        }
    }

    async fn import(&mut self, store: &Arc<ImageStore>, name: String, stamp: Stamp) {
        let path = self.directory.join(&name);
        match store.import_archive(path.clone()).await {
            Ok(references) => {
                let message = format!("imported {} from {}", references.join(", "), path.display());
                tracing::info!("{message}");
                self.events.record(&Subject::Node, EventType::Normal, "ImageImported", &message);
                self.failed.remove(&name);
                self.memory.imported.insert(name, Imported { stamp, references });
                self.tell_brought();
                if let Err(error) = self.remember() {
                    tracing::warn!(%error, "cannot save the list of imported archives");
                }
            }
            Err(error) => {
                let message = error.to_string();
                tracing::error!("{message}");
                self.events.record(&Subject::Node, EventType::Warning, "ImageImportFailed", &message);
                let again = may_work_later(&error).then(|| tokio::time::Instant::now() + RETRY);
                self.failed.insert(name, (stamp, again));
            }
        }
    }

    fn look(&mut self) -> io::Result<Looked> {
        let mut looked = Looked::default();
        let mut present = BTreeMap::new();
        let mut entries: Vec<_> = std::fs::read_dir(&self.directory)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Symlinks are followed. What vanishes meanwhile is not there.
            let Ok(metadata) = std::fs::metadata(entry.path()) else { continue };
            if name.starts_with('.') || !metadata.is_file() {
                continue;
            }
            let stamp = Stamp {
                device: metadata.dev(),
                inode: metadata.ino(),
                size: metadata.size(),
                mtime: metadata.mtime(),
                mtime_nsec: metadata.mtime_nsec(),
            };
            present.insert(name.clone(), stamp);
            if archive_of(&name).is_some_and(|archive| ENDINGS.iter().any(|ending| archive.ends_with(ending))) {
                continue;
            }
            if !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                self.tell_stranger(&entry.path(), name, stamp);
                continue;
            }
            let done = self.memory.imported.get(&name).is_some_and(|known| known.stamp == stamp);
            let failed = self
                .failed
                .get(&name)
                .is_some_and(|(known, again)| *known == stamp && again.is_none_or(|at| at > tokio::time::Instant::now()));
            if done || failed {
                continue;
            }
            match is_written(&entry.path()) {
                true => looked.writing = true,
                false => looked.ready.push((name, stamp)),
            }
        }
        self.forget_removed(&present);
        self.failed.retain(|name, _| present.contains_key(name));
        self.strangers.retain(|name, _| present.contains_key(name));
        Ok(looked)
    }

    /// Tells of imported archives that are gone: what they brought is kept like any other image from now on.
    fn forget_removed(&mut self, present: &BTreeMap<String, Stamp>) {
        let gone: Vec<(String, Imported)> = self.memory.imported.extract_if(.., |name, _| !present.contains_key(name)).collect();
        if gone.is_empty() {
            return;
        }
        for (name, Imported { references, .. }) in gone {
            let path = self.directory.join(name);
            let message =
                format!("{} was removed: {} now stay only while something needs them", path.display(), references.join(", "));
            tracing::info!("{message}");
            self.events.record(&Subject::Node, EventType::Normal, "PreloadRemoved", &message);
        }
        // Or it would be told again after a restart.
        if let Err(error) = self.remember() {
            tracing::warn!(%error, "cannot save the list of imported archives");
        }
    }

    fn tell_stranger(&mut self, path: &Path, name: String, stamp: Stamp) {
        // By name alone: a log file that grows is told once.
        if self.strangers.insert(name, stamp).is_none() {
            let message = format!("{} is not imported: the file name must end in {}", path.display(), ENDINGS.join(" or "));
            tracing::warn!("{message}");
            self.events.record(&Subject::Node, EventType::Warning, "ImageImportFailed", &message);
        }
    }

    fn tell_brought(&self) {
        let brought = self.memory.imported.iter().map(|(name, imported)| (name.clone(), imported.references.clone())).collect();
        *self.brought.lock().unwrap_or_else(PoisonError::into_inner) = Some(brought);
    }

    fn remember(&self) -> io::Result<()> {
        atomic_file::write_durable(&self.memory_file, &serde_json::to_vec(&self.memory)?, 0o600)
    }
}

/// The archive that a file holds signatures of.
fn archive_of(name: &str) -> Option<&str> {
    BESIDE.iter().find_map(|ending| name.strip_suffix(ending))
}

/// Returns true if the file is still being written. One that cannot be opened is left to the import, which has the words for it.
fn is_written(path: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path);
    file.and_then(|file| file_lease::is_open_for_writing(&file)).unwrap_or(false)
}

fn may_work_later(error: &ImageError) -> bool {
    match error {
        ImageError::Import { reason, .. } => reason.contains("disk of the image store is full"),
        // Rules and keys may change, and a file with its signatures may come.
        ImageError::Refused { .. } => true,
        ImageError::InvalidName { .. }
        | ImageError::NeverPull(_)
        | ImageError::NotAllowed(_)
        | ImageError::Pull { .. }
        | ImageError::Inspect { .. }
        | ImageError::NoUser { .. }
        | ImageError::Needed { .. }
        | ImageError::Prune(_) => false,
    }
}

/// A watch that puts something into `hint` when a file was written or moved. `None` if that cannot be: then the relisting has to do.
fn watch(directory: &Path, hint: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<notify::Event>| {
        let matters = match event {
            Ok(event) => match event.kind {
                // Reading raises these, and importing reads.
                EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
                // Every write of a copy raises these; its end is told by the close.
                EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_)),
                EventKind::Any | EventKind::Create(_) | EventKind::Remove(_) | EventKind::Other => true,
            },
            Err(_) => true,
        };
        if matters {
            // Full: a hint is waiting already.
            let _waiting = hint.try_send(());
        }
    };
    let watcher = notify::recommended_watcher(on_event).and_then(|mut watcher| {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    match watcher {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(path = %directory.display(), %error, "cannot watch the preload directory, checking it once a minute");
            None
        }
    }
}
