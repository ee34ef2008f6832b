//! Manifests in an artifact of a registry, as `flux push artifact` and `oras push` make them, polled.
//!
//! In: the repository and what of it is followed ([`OciOptions`]), registries as images are pulled from them. Out: an artifact for each
//! digest whose manifests were read completely; its revision is that digest. A poll asks what digest the name has: one small request, two
//! where the highest version is followed. Only when it is another one, the manifest and the layer are fetched.
//!
//! ```text
//! url, select    repository, choice of the tag                    pure
//! manifest       layer of an artifact, revision of its sources    pure
//! order          no older version                                 pure
//! tree           files of a layer, in a job
//! memory         last artifact on disk
//! place          poll
//! ```
//!
//! * A missing tag, an unreachable registry, something that is no artifact, a damaged or hostile archive: failures, which change nothing
//!   (promise P2). An existing path without manifests is an empty artifact; an archive without any entry is a failure.
//! * What was refused for its content is not fetched again until the name means something else.
//! * Where signatures are required, the manifest is verified before the layer is fetched, and again after a start.
//! * Archives are read in memory, by a process without rights ([`super::tree_job`]). Symlinks are errors of the files that they stand for.

mod error;
mod manifest;
mod memory;
pub(crate) mod options;
mod order;
mod place;
mod select;
pub(crate) mod tree;
mod url;

pub use manifest::{ArtifactManifest, ManifestError};
pub use options::OciOptions;
pub use select::OciFollow;
pub use url::OciUrl;

use super::PodSource;
use super::polling::poll_forever;
use async_trait::async_trait;
use place::OciPlace;
use podstead_artifact::{SourceReport, Wishes};
use podstead_pod::SourceId;
use tokio::sync::mpsc;

/// A source that follows an artifact in a registry.
#[derive(Debug)]
pub struct OciSource {
    id: SourceId,
    options: OciOptions,
}

impl OciSource {
    /// Nothing is read or asked before the source runs.
    pub fn new(id: SourceId, options: OciOptions) -> Self {
        Self { id, options }
    }
}

#[async_trait]
impl PodSource for OciSource {
    fn id(&self) -> SourceId {
        self.id.clone()
    }

    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, wishes: Wishes) {
        let Self { id, options } = *self;
        let interval = options.interval;
        poll_forever(id.clone(), interval, OciPlace::new(id, options), reports, wishes).await;
    }
}
