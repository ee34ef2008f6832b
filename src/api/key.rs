//! Keys of published objects, and annotations that tell where they are from.

pub use podstead_pod::annotations::{ORIGIN as ORIGIN_ANNOTATION, REVISION as REVISION_ANNOTATION, SOURCE as SOURCE_ANNOTATION};
use podstead_pod::{PodFullName, SmolStr};

/// Namespace and name: what the API calls a pod, or another object of one kind, by. Ordered as lists are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// The namespace.
    pub namespace: SmolStr,
    /// The name; a pod's with the node suffix.
    pub name: SmolStr,
}

impl From<&PodFullName> for PodKey {
    fn from(full_name: &PodFullName) -> Self {
        Self { namespace: (&full_name.namespace).into(), name: (&full_name.name).into() }
    }
}
