//! Hints that bundles came or went: inotify for the directory, and the kernel's table of mounts for media.

use super::options::BundleOptions;
use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use podstead_sys_async::mount_table::MountTable;
use std::path::Path;
use tokio::sync::mpsc;

/// The source of hints.
#[derive(Debug)]
pub(super) struct Watch {
    hint: mpsc::Sender<()>,
    hints: mpsc::Receiver<()>,
    directory: Option<RecommendedWatcher>,
    devices: Option<RecommendedWatcher>,
    mounts: Option<MountTable>,
}

impl Watch {
    /// Gives no hint before it is set.
    pub(super) fn new() -> Self {
        let (hint, hints) = mpsc::channel(1);
        Self { hint, hints, directory: None, devices: None, mounts: None }
    }

    /// Watches anew: what comes from now on gives a hint. The directory may be another one than before.
    pub(super) fn set(&mut self, options: &BundleOptions) {
        drop((self.directory.take(), self.devices.take()));
        while self.hints.try_recv().is_ok() {}
        self.directory = watch(&options.directory, self.hint.clone());
        // The kernel has no directory of labels before the first one is there: then its parent tells.
        let labels = options.labelled.as_deref().and_then(Path::parent);
        self.devices = labels.and_then(|labels| {
            let parent = labels.parent().filter(|_| !labels.is_dir());
            watch(parent.unwrap_or(labels), self.hint.clone())
        });
        if options.removable && self.mounts.is_none() {
            match MountTable::watch() {
                Ok(mounts) => self.mounts = Some(mounts),
                Err(error) => tracing::warn!(%error, "cannot watch for mounts; media are looked for at the interval"),
            }
        }
    }

    /// Waits for a hint. Cancel-safe.
    pub(super) async fn hint(&mut self) {
        let mounted = async {
            match &self.mounts {
                Some(mounts) if mounts.changed().await.is_ok() => {}
                Some(_) | None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender is here: never closed.
            _ = self.hints.recv() => {}
            () = mounted => {}
        }
    }
}

/// A watch that puts something into `hint` when a file was written, moved or made. `None` if that cannot be: then the interval has to do.
fn watch(directory: &Path, hint: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<notify::Event>| {
        let matters = event.map_or(true, |event| match event.kind {
            // Looking raises these.
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            // Every write of a copy raises these; its end is told by the close.
            EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_)),
            EventKind::Any | EventKind::Create(_) | EventKind::Remove(_) | EventKind::Other => true,
        });
        if matters {
            // Full: a hint is waiting already.
            let _waiting = hint.try_send(());
        }
    };
    let watcher = notify::recommended_watcher(on_event).and_then(|mut watcher| {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watcher.inspect_err(|error| tracing::debug!(path = %directory.display(), %error, "cannot watch the directory of bundles")).ok()
}
