//! Reasons why an environment variable has no value.

use super::field::FieldRefError;
use super::resource::ResourceFieldError;
use crate::objects::ObjectError;

/// Reason why an environment variable has no value; becomes `CreateContainerConfigError`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// `valueFrom.fieldRef`.
    #[error("resolve environment variable {name}")]
    Field {
        /// The variable.
        name: String,
        /// The error in the reference.
        #[source]
        source: FieldRefError,
    },
    /// `valueFrom.resourceFieldRef`.
    #[error("resolve environment variable {name}")]
    Resource {
        /// The variable.
        name: String,
        /// The error in the reference.
        #[source]
        source: ResourceFieldError,
    },
    /// `valueFrom.configMapKeyRef` or `valueFrom.secretKeyRef`, or an object of `envFrom`. Said as the kubelet does, without the variable.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A file of `valueFrom.fileKeyRef` cannot be used.
    #[error("couldn't parse env file {path:?} of volume {volume:?}: {reason}")]
    File {
        /// In the volume.
        path: String,
        /// In `spec.volumes`.
        volume: String,
        /// The error.
        reason: String,
    },
    /// It has no such key.
    #[error("environment variable key {key:?} not found in file {path:?}")]
    FileKey {
        /// The missing key.
        key: String,
        /// In the volume.
        path: String,
    },
    /// `valueFrom` with a kind of reference that podstead does not resolve.
    #[error("resolve environment variable {0}: its kind of reference is not supported")]
    Unsupported(String),
}
