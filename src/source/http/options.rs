//! Options for following a URL.

use crate::SignatureRequirement;
use crate::http_client::HttpAccess;
use podstead_fetch::Requester;
use podstead_sys::machine_key::MachineKey;
use reqwest::Url;
use std::path::PathBuf;
use std::time::Duration;

/// The name of the one file of the artifact. It does not depend on the URL: a source that is pointed elsewhere keeps the last good
/// versions of its objects until the other place has good ones.
pub const FILE: &str = "body";

/// The largest body, on the wire and unpacked (kubelet rule A11).
pub const MAX_BODY: u64 = 10 << 20;

/// Options for following a URL.
#[derive(Clone, Debug)]
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
    /// Sends the requests.
    pub requester: Requester,
}
