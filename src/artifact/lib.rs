//! The artifact of a source: all its files at one revision, and the channel on which sources report them.
//!
//! The sources produce [`SourceReport`]s, the store consumes them. Both depend on this module and not on each other.

mod file_bytes;
pub mod layers;
mod surroundings;
pub mod wake;

pub use file_bytes::FileBytes;
pub use layers::Layers;
pub use surroundings::Surroundings;
pub use wake::{Inquiry, Wakers, Wishes};

use podstead_pod::Revision;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
pub type FileContent = Result<FileBytes, String>;

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
    /// The other files below the source's root, which a kustomization may read and which are no manifests of the source. Empty where the
    /// source reads no file for which [`is_kustomization`] holds.
    pub beside: BTreeMap<String, FileContent>,
    /// The files outside of the source's root that its kustomizations refer to, where the source reads a part of a larger tree.
    pub around: Surroundings,
}

impl Artifact {
    /// Content of the file that problems name so: a manifest, a file beside them, or with `..` one around the source.
    pub fn content(&self, name: &str) -> Option<&FileContent> {
        let here = self.files.get(name).or_else(|| self.beside.get(name));
        here.or_else(|| self.around.files.get(&self.around.path_of(name)))
    }
}

/// Names of the files that make their directory a kustomization. They count among the files of a source, as manifests do.
pub const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Reports whether a file of that name makes its directory a kustomization.
pub fn is_kustomization(file_name: &str) -> bool {
    KUSTOMIZATIONS.contains(&file_name)
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
