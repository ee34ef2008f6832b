//! Options of a source in a registry.

use super::select::OciFollow;
use super::url::OciUrl;
use crate::tree_job::ArtifactJobs;
use crate::tree_rules::ReadLimits;
use podstead_image::Repositories;
use podstead_sys::machine_key::MachineKey;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The largest layer as it comes from the registry.
pub(crate) const MAX_LAYER: u64 = 32 << 20;

/// Options of a source in a registry.
///
/// One type because it mirrors `sources[].oci` of the configuration, with what the source needs from the daemon.
#[derive(Clone, Debug)]
pub struct OciOptions {
    /// Registries, with their mirrors and credentials.
    pub repositories: Repositories,
    /// The repository.
    pub url: OciUrl,
    /// The artifact to follow.
    pub follow: OciFollow,
    /// Directory or file in the artifact, without a slash at either end; empty for all of it.
    pub path: String,
    /// Time between polls.
    pub interval: Duration,
    /// For one poll as a whole.
    pub timeout: Duration,
    /// Starts the jobs that read archives.
    pub jobs: Arc<ArtifactJobs>,
    /// Limits for reading an artifact.
    pub limits: ReadLimits,
    /// Files of the public keys of which one must have signed; empty if no signature is required.
    pub keys: Vec<PathBuf>,
    /// Artifacts that are older than the last delivered one are accepted.
    pub allow_rollback: bool,
    /// Directory of the source's own state; made when it is needed.
    pub state: PathBuf,
    /// Key that encrypts this state, because artifacts may contain Secrets.
    pub machine_key: MachineKey,
}
