//! A pod that shall run: the manifest, its identity and where it comes from.

use super::{Origin, Pod, PodFullName, PodUid, SourceId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Identifier of the content of an artifact: a git commit or a content hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pod that this host shall run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesiredPod {
    /// Identity of this incarnation.
    pub uid: PodUid,
    /// Name and namespace.
    pub full_name: PodFullName,
    /// The source that it comes from.
    pub source: SourceId,
    /// The revision of the source that its present content was read from.
    pub revision: Revision,
    /// File and position of its manifest.
    pub origin: Origin,
    /// The defaulted and validated object; metadata carries the UID and the `kubernetes.io/config.*` annotations.
    pub pod: Arc<Pod>,
}
