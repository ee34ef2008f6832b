//! Names of objects that have a namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// A Service or a pod by namespace and name. Ordered by namespace first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectName {
    /// The name of an object that has these metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let namespace = metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
        Self { namespace: namespace.to_owned(), name: metadata.name.clone().unwrap_or_default() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
