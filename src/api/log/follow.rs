//! Waiting for more of a log, and knowing when no more will come.

use super::Run;
use crate::Backend;
use crate::published::PublishedPod;
use podstead_container::ContainerState;
use podstead_pod::{ContainerId, PodUid};
use podstead_runtime::Runtime;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

/// Follows the log of one run of a container.
#[derive(Debug)]
pub(super) struct Follower {
    /// Watches the directory of the log: writes and rotations.
    changes: AsyncFd<OwnedFd>,
    /// Ticks when a published pod changes, which is also when a container has ended.
    published: watch::Receiver<u64>,
    runtime: Arc<dyn Runtime>,
    uid: PodUid,
    id: Option<ContainerId>,
}

impl Follower {
    /// Begins to watch; to be called before the log is read first, so that nothing is missed.
    #[expect(
        deprecated,
        reason = "an owned descriptor is always valid; the one in its place asks for a promise that this type keeps"
    )]
    pub(super) fn start(backend: &Backend, pod: &PublishedPod, run: &Run) -> io::Result<Self> {
        let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        if let Some(directory) = run.path.parent() {
            let what =
                WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR;
            inotify::add_watch(&changes, directory, what)?;
        }
        Ok(Self {
            changes: AsyncFd::new(changes)?,
            published: backend.published.pods().subscribe(),
            runtime: Arc::clone(&backend.runtime),
            uid: pod.desired.uid.clone(),
            id: run.id.clone(),
        })
    }

    /// True if no process writes to the log any more.
    pub(super) async fn container_ended(&mut self) -> bool {
        self.published.mark_unchanged();
        let Some(id) = &self.id else { return true };
        match self.runtime.observe(&self.uid).await {
            Ok(Some(pod)) => match pod.containers.iter().find(|container| container.id == *id).map(|container| &container.state) {
                Some(ContainerState::Created | ContainerState::Running { .. }) => false,
                Some(ContainerState::Exited { .. } | ContainerState::Unknown { .. }) | None => true,
            },
            Ok(None) | Err(_) => true,
        }
    }

    /// Returns when there may be more to read, or the container may have ended. Cancel-safe.
    pub(super) async fn wait(&mut self) {
        tokio::select! {
            ready = self.changes.readable() => if let Ok(mut ready) = ready {
                ready.try_io(drain).ok();
            },
            changed = self.published.changed() => if changed.is_err() {
                // The daemon is going down; the connection goes with it.
                std::future::pending::<()>().await;
            },
        }
    }
}

/// Takes all events; what they say does not matter, the log is looked at.
fn drain(changes: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let mut buffer = [0u8; 4096];
    loop {
        // Ends with WouldBlock, so that tokio waits for the descriptor again.
        rustix::io::read(changes, &mut buffer)?;
    }
}
