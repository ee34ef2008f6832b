//! Manifests at a URL: one or several documents, polled.
//!
//! The body is one file of manifests: a Pod, a List, or documents between `---` lines, YAML or JSON. Rules A11 to A15 of the kubelet,
//! except for promise P2:
//! * Only a complete response with status 200 whose body can hold manifests counts. Everything else (no connection, another status, an
//!   empty or partial body, a login page, another encoding than was requested) is a failure and leaves the last good set in force. To run
//!   nothing, a server sends a `List` without items.
//! * A body without a length, which ends with the connection, counts only if a second response is the same.
//! * Unchanged polls cost one conditional request. Its validators outlive the daemon together with the body that they belong to, so also
//!   the first poll after a start is conditional. They are not used where two changes within a second would look the same.
//! * Where signatures are required, `<url>.sig` (for OpenPGP also `<url>.asc`) must hold one over exactly this body ([`podstead_trust`]).
//! * A body with a serial ([`serial`]) is refused when it is older than the last one, see there.
//!
//! In: [`HttpOptions`], requests to poll. Out: artifacts of one file, [`FILE`]. One task, spawned by whoever runs the source; on disk one
//! file in the source's state directory ([`memory`]).

mod ask;
mod content;
mod error;
mod memory;
mod options;
mod place;
mod serial;
mod signature;

use super::PodSource;
use super::http_client::HttpClient;
use super::polling::poll_forever;
use async_trait::async_trait;
pub use options::{FILE, HttpOptions, MAX_BODY};
use podstead_artifact::{SourceReport, Wishes};
use podstead_pod::SourceId;
use tokio::sync::mpsc;

/// A source that follows a URL.
#[derive(Debug)]
pub struct HttpSource {
    id: SourceId,
    options: HttpOptions,
}

impl HttpSource {
    /// Follows a URL. Nothing is read before it runs.
    pub fn new(id: SourceId, options: HttpOptions) -> Self {
        Self { id, options }
    }
}

#[async_trait]
impl PodSource for HttpSource {
    fn id(&self) -> SourceId {
        self.id.clone()
    }

    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, wishes: Wishes) {
        let Self { id, options } = *self;
        let interval = options.interval;
        let client = HttpClient::new(options.access.clone(), options.requester.clone());
        poll_forever(id.clone(), interval, place::HttpPlace::new(id, options, client), reports, wishes).await;
    }
}
