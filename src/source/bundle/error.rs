//! Errors of a look at bundles.

use super::archive::ArchiveError;
use super::order::OrderError;
use crate::SignersError;
use crate::tree_job::ReadError;
use podstead_runtime::ImageError;
use podstead_trust::TrustError;
use std::io;
use std::path::PathBuf;

/// Reason why a bundle is not in force. The same text for the same reason.
#[derive(Debug, thiserror::Error)]
pub(super) enum BundleError {
    /// The directory.
    #[error("list the bundles in {}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// The medium with the label.
    #[error("mount {} to look for bundles", device.display())]
    Mount {
        /// The device.
        device: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The file cannot be opened.
    #[error("open bundle {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// The file itself.
    #[error("bundle {}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: ArchiveError,
    },
    /// The files of the signers.
    #[error(transparent)]
    Signers(#[from] SignersError),
    /// There is no signature.
    #[error("refused: bundle {} is not signed (requireSignature)", .0.display())]
    Unsigned(PathBuf),
    /// The signature does not hold.
    #[error("refused: bundle {}", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: TrustError,
    },
    /// It may not follow the last one.
    #[error("refused: bundle {}", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: OrderError,
    },
    /// The manifests in it.
    #[error("bundle {}", path.display())]
    Tree {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: ReadError,
    },
    /// The images in it.
    #[error(transparent)]
    Images(ImageError),
    /// The record cannot be made durable.
    #[error("record the bundle in {}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
}
