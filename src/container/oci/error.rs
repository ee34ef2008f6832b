//! Reasons why a spec cannot be generated.

use oci_spec::OciSpecError;
use oci_spec::runtime::LinuxNamespaceType;
use std::path::PathBuf;

/// Reason why a spec cannot be generated. All are lasting: they become `CreateContainerError`.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// The sandbox lacks a namespace that the container needs.
    #[error("the sandbox has no {0} namespace")]
    NoNamespace(LinuxNamespaceType),
    /// The capability does not exist.
    #[error("unknown capability {0:?}")]
    UnknownCapability(String),
    /// The requested capability is not available in the kernel or to podstead.
    #[error("capability {0} is not available on this host")]
    CapabilityUnavailable(String),
    /// A profile was asked for by name.
    #[error("AppArmor profile {0:?} cannot be used: AppArmor is not enabled on this host")]
    AppArmorUnavailable(String),
    /// A localhost profile was not handed over.
    #[error("seccomp profile {0:?} was not loaded")]
    SeccompNotLoaded(PathBuf),
    /// The container's mounts below `/dev` would appear on the host.
    #[error("mounting {0:?} on /dev with mountPropagation: Bidirectional would hide the host's own terminals")]
    DevShared(PathBuf),
    /// The container has its own there.
    #[error("cannot mount a volume on {} itself: choose a path below it or another path", _0.display())]
    PlaceTaken(PathBuf),
    /// libcontainer would write into it.
    #[error("a CDI device mounts over /dev, which is not supported")]
    DevOfDevice,
    /// A field that the OCI types refuse.
    #[error("build OCI {part}")]
    Build {
        /// The part.
        part: &'static str,
        /// The error of the OCI types.
        #[source]
        source: OciSpecError,
    },
}

/// Attaches the part's name to a builder's error.
pub(super) trait BuildExt<T> {
    fn part(self, part: &'static str) -> Result<T, OciError>;
}

impl<T> BuildExt<T> for Result<T, OciSpecError> {
    fn part(self, part: &'static str) -> Result<T, OciError> {
        self.map_err(|source| OciError::Build { part, source })
    }
}
