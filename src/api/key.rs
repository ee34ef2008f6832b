//! Keys of published objects, and annotations that tell where they are from.

use podstead_pod::PodFullName;

/// Annotation with the name of the source that a pod comes from.
pub const SOURCE_ANNOTATION: &str = "podstead.dev/source";

/// Annotation with the revision that a pod's content was read from.
pub const REVISION_ANNOTATION: &str = "podstead.dev/revision";

/// Annotation with file, line and column where a pod is written.
pub const ORIGIN_ANNOTATION: &str = "podstead.dev/origin";

/// Namespace and name: what the API calls a pod, or another object of one kind, by. Ordered as lists are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// The namespace.
    pub namespace: String,
    /// The name; a pod's with the node suffix.
    pub name: String,
}

impl From<&PodFullName> for PodKey {
    fn from(full_name: &PodFullName) -> Self {
        Self { namespace: full_name.namespace.clone(), name: full_name.name.clone() }
    }
}
