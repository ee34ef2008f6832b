//! Status that the loops publish.

use podstead_status::UpstreamStatus;
use std::sync::Arc;
use tokio::sync::watch;

/// The latest status. Clones share it.
#[derive(Clone, Debug)]
pub struct Board(Arc<watch::Sender<UpstreamStatus>>);

impl Board {
    /// Nothing is known; the server is called this until its address is known.
    pub fn new(server: String) -> Self {
        Self(Arc::new(watch::Sender::new(UpstreamStatus { server, ..UpstreamStatus::default() })))
    }

    /// For readers.
    pub fn subscribe(&self) -> watch::Receiver<UpstreamStatus> {
        self.0.subscribe()
    }

    /// Changes it; readers are notified only of a difference.
    pub(super) fn update(&self, change: impl FnOnce(&mut UpstreamStatus)) {
        self.0.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            *status != before
        });
    }

    /// The connection came or went.
    pub(super) fn connected(&self, connected: bool, error: Option<String>, now: jiff::Timestamp) {
        self.update(|status| {
            if status.connected != connected || status.since.is_none() {
                (status.connected, status.since) = (connected, Some(now));
            }
            status.watch_error = error;
        });
    }
}
