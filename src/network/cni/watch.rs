//! Watches the directory of network configurations: pods that wait for a network are retried at once.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The watch, set up again when its directory came or went.
#[derive(Debug, Default)]
pub(super) struct Watch {
    watcher: Mutex<Option<RecommendedWatcher>>,
    is_stale: Arc<AtomicBool>,
}

impl Watch {
    /// Watches the directory, or the closest one above it that is there, from now on, and calls `tell` at each change. What cannot be watched is looked at when pods try
    /// again.
    pub(super) fn set(&self, directory: &Path, tell: impl Fn() + Send + 'static) {
        let stale = Arc::clone(&self.is_stale);
        stale.store(false, Ordering::Relaxed);
        let target = directory.to_owned();
        let created = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let tells = match &event {
                Ok(event) => match event.kind {
                    // Reading raises these.
                    EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
                    EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
                },
                Err(_) => true,
            };
            if !tells {
                return;
            }
            let is_inside = |event: &notify::Event| event.paths.iter().all(|path| path.parent() == Some(&target));
            if !event.as_ref().is_ok_and(is_inside) {
                stale.store(true, Ordering::Relaxed);
            }
            tell();
        });
        let mut watcher = match created {
            Ok(watcher) => watcher,
            Err(error) => return tracing::warn!(%error, "cannot watch the CNI configuration directory"),
        };
        let is_watched =
            directory.ancestors().any(|path| path.is_dir() && watcher.watch(path, RecursiveMode::NonRecursive).is_ok());
        if !is_watched {
            tracing::warn!(directory = %directory.display(), "cannot watch the CNI configuration directory");
        }
        // Its parent tells of its own going.
        if let Some(parent) = directory.parent().filter(|_| directory.is_dir()) {
            watcher.watch(parent, RecursiveMode::NonRecursive).ok();
        }
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    }

    /// Returns true if it must be set up again.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }
}
