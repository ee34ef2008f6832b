//! Names of objects that have a namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_pod::SmolStr;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// A Service or a pod by namespace and name. Ordered by namespace first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    /// Namespace.
    pub namespace: SmolStr,
    /// Name.
    pub name: SmolStr,
}

impl ObjectName {
    /// The name of an object that has these metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let namespace = metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
        Self { namespace: namespace.into(), name: metadata.name.as_deref().unwrap_or_default().into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
