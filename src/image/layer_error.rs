//! Reasons why a layer cannot be used, and its limits.

use super::limits::{Budget, Exceeded, Limits};
use super::space::{Space, SpaceError};
use super::unpack_job::JobError;
use podstead_container::digest::Digest;
use podstead_job::told::Told;
use std::io;
use std::sync::Arc;

/// Reason why a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// Its bytes do not come.
    #[error("read layer")]
    Read(#[source] io::Error),
    /// It is not what its compression says.
    #[error("decompress layer")]
    Decompress(#[source] Told),
    /// It, or the image that it belongs to, is larger than an image may be.
    #[error(transparent)]
    Limit(#[from] Exceeded),
    /// The archive inside.
    #[error("unpack layer")]
    Unpack(#[source] Told),
    /// The disk is needed for other things.
    #[error("unpack layer: no space for the layer")]
    Space(#[source] SpaceError),
    /// The disk is full.
    #[error("unpack layer: {told}")]
    Full {
        /// The operation.
        told: Told,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// The job itself.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The marks of its directories.
    #[error("mark opaque directories of the layer")]
    Mark(#[source] io::Error),
    /// The bytes are not those that were promised.
    #[error("layer has digest {actual} instead of {expected}: its content was altered or damaged in transit")]
    BlobDigest {
        /// Promised by the manifest.
        expected: Digest,
        /// Seen.
        actual: Digest,
    },
    /// The archive inside is not the one that the image's configuration names.
    #[error("layer has diff ID {actual} instead of {expected}: the image is damaged")]
    DiffId {
        /// In the configuration.
        expected: Digest,
        /// Seen.
        actual: Digest,
    },
    /// The staging directory.
    #[error("open staging directory")]
    Stage(#[source] io::Error),
}

impl LayerError {
    /// Returns true if the layer's content is the reason: another attempt would fail in the same way.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Decompress(_) | Self::Limit(_) | Self::Unpack(_) | Self::Space(_) | Self::Full { .. } | Self::DiffId { .. } => {
                true
            }
            Self::Job(error) => error.is_refusal(),
            Self::Read(_) | Self::BlobDigest { .. } | Self::Stage(_) | Self::Mark(_) => false,
        }
    }
}

/// Limits for a layer.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Of an image.
    pub limits: Limits,
    /// Use by the image's layers so far.
    pub image: Arc<Budget>,
    /// Space that the layer is unpacked to.
    pub space: Space,
}
