//! Options of a source of bundles.

use crate::SignatureRequirement;
use crate::tree_job::ArtifactJobs;
use crate::tree_rules::ReadLimits;
use podstead_image::ImageStore;
use podstead_sys::machine_key::MachineKey;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a source of bundles.
///
/// One type because it mirrors `sources[].bundle` of the configuration, with what the source needs from the daemon.
#[derive(Clone, Debug)]
pub struct BundleOptions {
    /// Directory with bundles.
    pub directory: PathBuf,
    /// Bundles in the folder `podstead` of file systems that others mount count, too.
    pub removable: bool,
    /// Device, as named by the label of its file system, that is mounted to look into its folder `podstead`.
    pub labelled: Option<PathBuf>,
    /// Name of the bundles; `None` for that of the last one that was taken, at first any.
    pub name: Option<String>,
    /// Name of this host.
    pub host: String,
    /// Time between two looks without a hint.
    pub interval: Duration,
    /// Required signers; `None` if no signature is required.
    pub signature: Option<SignatureRequirement>,
    /// Bundles with a lower serial than the last one are taken.
    pub allow_rollback: bool,
    /// Images must be named by a digest, so that a bundle cannot replace an image that pods of another source use.
    pub digests_only: bool,
    /// Something was accepted from this source before.
    pub has_last_good: bool,
    /// Limits for reading manifests.
    pub limits: ReadLimits,
    /// Starts the jobs that read archives.
    pub jobs: Arc<ArtifactJobs>,
    /// The store of images.
    pub images: Arc<ImageStore>,
    /// Directory of the source's own state; made when it is needed.
    pub state: PathBuf,
    /// Key that encrypts this state, because manifests may contain Secrets.
    pub machine_key: MachineKey,
}
