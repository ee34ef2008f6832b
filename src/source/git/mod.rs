//! Manifests in a git repository.
//!
//! In: where the repository is and what of it is followed ([`GitOptions`]). Out: an artifact for each commit whose manifests were read
//! completely. A poll asks where the reference points: over HTTP one small request. When it points elsewhere than before, missing objects
//! are fetched into a copy on disk, the commit is checked (signature, descent), and its files are read straight from the object database.
//!
//! ```text
//! select    choice of the reference    pure
//! remote    ssh, http, git's server    protocol: bytes of the conversation, pure
//! bring     fetches missing objects
//! objects   copy on disk, files of a commit, descent
//! job       libgit2 in a process without rights: indexes packs, reads objects
//! format    names of objects, what commits, tags and trees say    pure
//! judge     floor: no older commit     verify: signature
//! follow    poll loop
//! ```
//!
//! * A missing branch or tag, a path that the commit lacks, an unreadable repository: failures, which change nothing
//!   (promise P2). An existing path without manifests is an empty artifact.
//! * A commit that does not descend from the last accepted one is refused, unless the configuration allows it or follows something else
//!   than before.
//! * Submodules, symlinks and pointers of Git LFS are errors of the files that they stand for; other files count.
//! * The copy is a cache. Objects of it that cannot be read are fetched again; a repository on this host is read in place.

mod bring;
mod error;
mod floor;
mod follow;
mod format;
pub mod job;
mod judge;
mod objects;
mod options;
mod protocol;
mod remote;
mod select;
mod verify;
pub mod work_tree;

pub use error::{DamageError, GitError};
pub use options::{BadRepositoryPath, GitLimits, GitOptions, repository_path};
pub use protocol::{NotAnObjectId, ObjectId};
pub use remote::{RemoteUrl, SshOptions, SshUrl, UrlError};
pub use select::Follow;

pub use super::tree_rules::ReadLimits;

use super::PodSource;
use super::polling::poll_forever;
use async_trait::async_trait;
use follow::Follower;
use podstead_artifact::{SourceReport, Wishes};
use podstead_pod::SourceId;
use tokio::sync::mpsc;

/// A source that follows a git repository.
#[derive(Debug)]
pub struct GitSource {
    id: SourceId,
    options: GitOptions,
}

impl GitSource {
    /// Nothing is read or asked before the source runs.
    pub fn new(id: SourceId, options: GitOptions) -> Self {
        Self { id, options }
    }
}

#[async_trait]
impl PodSource for GitSource {
    fn id(&self) -> SourceId {
        self.id.clone()
    }

    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, wishes: Wishes) {
        let interval = self.options.interval;
        poll_forever(self.id, interval, Follower::new(self.options), reports, wishes).await;
    }
}
