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
mod place;
mod serial;
mod signature;

use super::http_client::{HttpAccess, HttpClient};
use super::polling::poll_forever;
use super::{PodSource, SignatureRequirement};
use async_trait::async_trait;
use podstead_artifact::{SourceReport, Wishes};
use podstead_pod::SourceId;
use podstead_sys::machine_key::MachineKey;
use reqwest::Url;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// The name of the one file of the artifact. It does not depend on the URL: a source that is pointed elsewhere keeps the last good
/// versions of its objects until the other place has good ones.
pub const FILE: &str = "body";

/// The largest body, on the wire and unpacked (kubelet rule A11).
pub const MAX_BODY: u64 = 10 << 20;

/// Options for following a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// http or https.
    pub url: Url,
    /// Time between polls.
    pub interval: Duration,
    /// For one request as a whole.
    pub timeout: Duration,
    /// Credentials, proxy, TLS.
    pub access: HttpAccess,
    /// Required signers; `None` if no signature is required.
    pub signature: Option<SignatureRequirement>,
    /// Bodies with an older serial, or without the serial that they had, are accepted.
    pub allow_rollback: bool,
    /// Directory of the source's own state; made when it is needed.
    pub state: PathBuf,
    /// Key that encrypts this state, because bodies may contain Secrets.
    pub machine_key: MachineKey,
}

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
        let client = HttpClient::new(options.access.clone());
        poll_forever(id.clone(), interval, place::HttpPlace::new(id, options, client), reports, wishes).await;
    }
}
