//! The image store and its sources: preloaded archives and registries.
//!
//! A listed image is a whole image: layers are unpacked into a staging directory, verified, synced and renamed before a reference
//! names them, so that a power cut leaves either all of an image or none of it.

mod access;
mod commit;
pub mod compression;
mod credentials;
pub mod digest;
mod disk;
pub mod document;
mod explain;
mod fetch;
mod image_config;
mod import;
mod in_use;
mod index;
pub mod layer;
mod layout;
pub mod limits;
pub mod platform;
mod preload;
mod pull;
mod pull_secrets;
mod rate;
pub mod reference;
mod registry;
pub mod registry_config;
mod room;
mod slots;
pub mod space;
pub mod stack;
pub mod staging;
pub mod store;
pub mod tar;
pub mod unpack;
mod user;

pub use crate::pod::containers::PullPolicy;
pub use disk::StoreError;
pub use image_config::ImageConfig;
pub use limits::Limits;
pub use pull_secrets::PullSecrets;
pub use registry_config::RegistryConfig;
pub use space::Reserve;
pub use store::{ImageStore, ImageStoreConfig};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// An image that is whole on this host's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedImage {
    /// Digest of the image's manifest (of this platform), `sha256:...`.
    pub digest: String,
    /// Unpacked layers, lowest first, as overlayfs takes them.
    pub layers: Vec<PathBuf>,
    /// Settings of the image for its process.
    pub config: ImageConfig,
}

/// The user that a container's first process runs as, resolved to numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUser {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Supplemental groups.
    pub additional_gids: Vec<u32>,
}

/// Reason why an image cannot be used; each becomes a waiting reason (kubelet rule D8).
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// `InvalidImageName`.
    #[error("invalid image reference {reference:?}: {reason}")]
    InvalidName {
        /// As written.
        reference: String,
        /// The reason.
        reason: String,
    },
    /// `ErrImageNeverPull`.
    #[error("image {0:?} is not present and its pull policy is Never")]
    NeverPull(String),
    /// `ErrImageNeverPull`: it is there, for pods with other Secrets.
    #[error("image {0:?} was pulled with a Secret that this pod does not have, and its pull policy is Never")]
    NotAllowed(String),
    /// `ErrImagePull`; retried with `ImagePullBackOff` (kubelet rule D10).
    #[error("pull image {reference:?}: {reason}")]
    Pull {
        /// As written.
        reference: String,
        /// The error of the registry, the network or the content.
        reason: String,
    },
    /// An archive cannot be imported.
    #[error("import {path:?}: {reason}")]
    Import {
        /// The archive.
        path: PathBuf,
        /// The error in the archive, or of the disk.
        reason: String,
    },
    /// `ImageInspectError`: the store cannot be read.
    #[error("read image {reference:?}: {reason}")]
    Inspect {
        /// As written.
        reference: String,
        /// The error of the disk.
        reason: String,
    },
    /// `CreateContainerConfigError`: the user named by image or pod cannot be resolved.
    #[error("image {reference:?} has no user {user:?}")]
    NoUser {
        /// As written.
        reference: String,
        /// The name that `/etc/passwd` or `/etc/group` of the image does not have.
        user: String,
    },
}

/// Progress of a pull.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullProgress {
    /// The image reference as written.
    pub reference: String,
    /// The layer's digest.
    pub layer: String,
    /// Bytes fetched.
    pub fetched: u64,
    /// Bytes in all, when known.
    pub total: Option<u64>,
    /// The layer is unpacked and verified.
    pub complete: bool,
}

/// An image in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    /// All references that name it, fully qualified (`docker.io/library/nginx:1.27`).
    pub references: Vec<String>,
    /// Digest of its manifest.
    pub digest: String,
    /// Bytes of its layers on disk.
    pub size_bytes: u64,
    /// When it became whole.
    pub created_at: jiff::Timestamp,
}

/// The images as workers and the API use them.
#[async_trait]
pub trait ImageService: Send + Sync + fmt::Debug + 'static {
    /// Makes the image present by `policy` and resolves it, for a pod with these Secrets. Pulls of one image with the same credentials
    /// asked for at once are one pull. An image that was pulled with a Secret is not given to a pod without it before the registry was
    /// asked.
    async fn ensure(&self, reference: &str, policy: PullPolicy, secrets: &PullSecrets) -> Result<ResolvedImage, ImageError>;

    /// Looks up user, primary and supplemental groups by the image's `/etc/passwd` and `/etc/group`.
    /// `user` is the image's `User` or a number from `runAsUser`; empty means root.
    async fn resolve_user(&self, image: &ResolvedImage, user: &str) -> Result<ProcessUser, ImageError>;

    /// All whole images.
    async fn list(&self) -> Result<Vec<ImageRecord>, ImageError>;

    /// Imports an OCI layout or docker-archive file; returns the references that it brought.
    async fn import(&self, path: PathBuf) -> Result<Vec<String>, ImageError>;

    /// Removes a reference; layers go when nothing refers to them.
    async fn remove(&self, reference: &str) -> Result<(), ImageError>;

    /// Counts the images that became present, by whichever way; told after the image can be used.
    fn arrivals(&self) -> tokio::sync::watch::Receiver<u64>;

    /// Pulls under way, layer by layer, as they change.
    fn progress(&self) -> tokio::sync::broadcast::Receiver<PullProgress>;
}
