//! Sources of manifests. A source fetches bytes and names their revision; it never interprets them.
//!
//! Each source is one task. Out: [`SourceReport`]s on a bounded channel, whole artifacts only. A failure is a report of its own and
//! never looks like an empty artifact (promise P2): whoever reads the channel keeps the last good set.

mod control;
pub mod credentials;
pub mod dir;
pub mod git;
pub mod history;
pub mod http;
pub mod http_client;
pub mod layers;
pub mod poll;
pub mod polling;
mod revision;
mod signers;
pub mod wake;
pub mod webhook;

pub use control::{PruneError, SourceControl};
pub use layers::Layers;
pub use signers::{SignatureRequirement, SignersError};
pub use wake::{Inquiry, Wakers, Wishes};

use crate::pod::SourceId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Identifier of the content of an artifact: a git commit or a content hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of the location that a source was read from, even if another one appears at the same path: for a directory its device, inode
/// and time of birth. Compared, never interpreted.
///
/// It decides what emptiness means: the same place listed empty was emptied, another place that is empty (a mount that is missing, a
/// newly created directory) says nothing about what shall run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Place(pub String);

/// The subject and the author of a commit, for people. Anybody who may push writes what they like here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitSummary {
    /// The first line of the message.
    pub subject: String,
    /// `Name <address>`.
    pub author: String,
}

/// One file of an artifact: its bytes, or why it could not be read (then its objects keep their last good version).
pub type FileContent = Result<Arc<[u8]>, String>;

/// All files that a source holds at one moment, by path relative to the source's root, in lexical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Identifier of this content.
    pub revision: Revision,
    /// Location that it was read from; `None` if the source itself decides whether it is empty.
    pub place: Option<Place>,
    /// The commit's own words, where the revision is one.
    pub commit: Option<CommitSummary>,
    /// The files. Empty is a statement (the source was read completely and holds nothing): it removes the source's pods, unless `place` is
    /// another one than that of the last good set.
    pub files: BTreeMap<String, FileContent>,
}

/// Report of a source.
#[derive(Clone, Debug)]
pub enum SourceReport {
    /// Read successfully and completely, and different from the last artifact.
    Artifact(Artifact),
    /// Could not be read; said once per distinct message, not per poll. The last good set stays.
    Failed(String),
    /// Works again after a failure, with unchanged content.
    Recovered,
    /// Is read, but worse than it should be (e.g. changes are seen late); said once. `None`: as it should be again.
    Degraded(Option<String>),
    /// Somebody waits for what came of all reports before this one.
    Inquiry(Inquiry),
}

/// A place that manifests come from.
#[async_trait]
pub trait PodSource: Send + 'static {
    /// The configured name.
    fn id(&self) -> SourceId;

    /// Fetches now, on every change and on every wish, until the receiver of `reports` is dropped. Never returns on a failure of the
    /// place. The future may be dropped at any await.
    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, wishes: Wishes);
}
