//! The image store, as the workers and the API use it.

use super::{PullFigures, PullSecrets, PullState};
use async_trait::async_trait;
use podstead_container::{ProcessUser, ResolvedImage};
use podstead_pod::containers::PullPolicy;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

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
    /// `SignatureValidationFailed`: the policy of images refuses it; retried with `ImagePullBackOff`.
    #[error("image {reference:?} is refused: {reason}")]
    Refused {
        /// As written.
        reference: String,
        /// The rule, and what was found.
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
    /// The image is needed, or it is not known yet whether it is.
    #[error("image {reference:?} is not removed: {reason}; podstead image rm --force removes its name")]
    Needed {
        /// As written.
        reference: String,
        /// The user of the image.
        reason: String,
    },
    /// Unused images cannot be removed.
    #[error("cannot remove unused images: {0}")]
    Prune(String),
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
    /// Bytes that its layers take on disk, those included that other images have, too.
    pub size_bytes: u64,
    /// Bytes that only this image takes.
    pub unique_bytes: u64,
    /// Bytes of content of all files.
    pub content_bytes: u64,
    /// Digests of its layers as they were fetched, lowest first.
    pub layers: Vec<String>,
    /// Kept by `podstead image pin`.
    pub pinned: bool,
    /// The time at which it became whole.
    pub created_at: jiff::Timestamp,
}

/// Space that images take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageUsage {
    /// Number of images.
    pub images: usize,
    /// Bytes of all layers and documents, each counted once.
    pub disk_bytes: u64,
    /// Bytes of it that nothing needs.
    pub unused_bytes: u64,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Bytes of the file system.
    pub all_bytes: u64,
    /// Images removed since the start of the daemon, because nothing needed them.
    pub collected_images: u64,
    /// Bytes that these took.
    pub collected_bytes: u64,
    /// State and remedy, while the disk is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<String>,
}

/// Figures of the store, as far as they are known without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Number of images.
    pub images: usize,
    /// Bytes of the layers of all images, each counted once.
    pub layer_bytes: u64,
    /// Bytes of them that are layers of a pinned image.
    pub pinned_bytes: u64,
    /// Bytes of partly fetched layers.
    pub partial_bytes: u64,
    /// Images removed since the start of the daemon, because nothing needed them.
    pub collected: Collected,
}

/// Images that were removed because nothing needed them, by the reason to remove any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The disk was used beyond the high mark.
    pub disk: Removed,
    /// A pull needed space.
    pub pull: Removed,
    /// `podstead image prune`.
    pub prune: Removed,
}

/// Images that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Their number.
    pub images: u64,
    /// Bytes that they took.
    pub bytes: u64,
}

impl Collected {
    /// All of them.
    pub fn all(&self) -> Removed {
        let Self { disk, pull, prune } = *self;
        [disk, pull, prune].into_iter().fold(Removed::default(), Removed::and)
    }
}

impl Removed {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { images: self.images.saturating_add(other.images), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// An image that a removal of unused images looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunedImage {
    /// Its names.
    pub references: Vec<String>,
    /// Digest of its manifest.
    pub digest: String,
    /// The reason for which it stays; none for one that is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// Result of removing unused images, or of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneReport {
    /// Removed images first, in their order.
    pub images: Vec<PrunedImage>,
    /// Bytes freed on disk.
    pub freed_bytes: u64,
    /// Layers removed that no image had.
    pub layers: usize,
}

/// End of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Repair {
    /// The image is whole again.
    Done {
        /// The archive or the hosts that had what was damaged.
        from: String,
    },
    /// It is still damaged.
    Failed {
        /// The need, and the attempts.
        reason: String,
    },
}

/// An image that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedImage {
    /// Its names.
    pub references: Vec<String>,
    /// Digest of its manifest.
    pub digest: String,
    /// Damaged parts with their files, for people; none of a whole image.
    pub damage: Vec<String>,
    /// Layers that an earlier version stored, without checksums of their files.
    pub unlisted_layers: usize,
    /// End of the repair, if something was damaged and to be repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

impl VerifiedImage {
    /// Returns true if the image is damaged, and was not repaired.
    pub fn is_damaged(&self) -> bool {
        !self.damage.is_empty() && !matches!(self.repair, Some(Repair::Done { .. }))
    }
}

/// Result of verifying images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifyReport {
    /// All images that were verified.
    pub images: Vec<VerifiedImage>,
    /// Bytes of content that were read.
    pub read_bytes: u64,
}

/// The images as workers and the API use them.
#[async_trait]
pub trait ImageService: Send + Sync + fmt::Debug + 'static {
    /// Makes the image present by `policy` and resolves it, for a pod with these Secrets. Pulls of one image with the same credentials
    /// asked for at once are one pull. An image that was pulled with a Secret is not given to a pod without it before the registry was
    /// asked.
    async fn ensure(&self, reference: &str, policy: PullPolicy, secrets: &PullSecrets) -> Result<ResolvedImage, ImageError>;

    /// Does the same for a version of a pod that replaces a running one, which runs until then: a pull waits for its turn, and for its window if there
    /// are windows. Asking with [`ImageService::ensure`] meanwhile ends that wait.
    async fn ensure_update(&self, reference: &str, policy: PullPolicy, secrets: &PullSecrets) -> Result<ResolvedImage, ImageError> {
        self.ensure(reference, policy, secrets).await
    }

    /// Looks up user, primary and supplemental groups by the image's `/etc/passwd` and `/etc/group`.
    /// `user` is the image's `User` or a number from `runAsUser`; empty means root.
    async fn resolve_user(&self, image: &ResolvedImage, user: &str) -> Result<ProcessUser, ImageError>;

    /// All whole images.
    async fn list(&self) -> Result<Vec<ImageRecord>, ImageError>;

    /// Imports an OCI layout or docker-archive file; returns the references that it brought.
    async fn import(&self, path: PathBuf) -> Result<Vec<String>, ImageError>;

    /// Pulls an image, even if it is present, for somebody who asked for it by hand.
    async fn pull_by_hand(&self, reference: &str) -> Result<ResolvedImage, ImageError> {
        self.ensure(reference, PullPolicy::Always, &PullSecrets::none()).await
    }

    /// Removes a reference; layers go at once when nothing refers to them. An image that is needed is refused unless `force`; layers that are mounted
    /// stay in any case.
    async fn remove(&self, reference: &str, force: bool) -> Result<(), ImageError>;

    /// Removes all images that nothing needs; with `all` also those fetched or used lately. `dry_run`: only tells.
    async fn prune(&self, all: bool, dry_run: bool) -> Result<PruneReport, ImageError>;

    /// Keeps an image whatever else needs it, or ends that.
    async fn pin(&self, reference: &str, pinned: bool) -> Result<(), ImageError>;

    /// Reads these images from the disk, or all, and compares them with their checksums. With `repair`, what is damaged is fetched again.
    async fn verify(&self, references: &[String], repair: bool) -> Result<VerifyReport, ImageError>;

    /// Takes note that a container of the image failed as if files of the image were damaged: it is verified and repaired, once an hour at most. Does not
    /// wait for that.
    fn doubt(&self, _image: &ResolvedImage, _why: &str) {}

    /// Space that images take.
    async fn usage(&self) -> Result<ImageUsage, ImageError>;

    /// Counts the occasions to ask again before a pause after a failure is over: the network or space is back, or other rules count. Each is also told as
    /// one of [`ImageService::arrivals`], later.
    fn retries(&self) -> tokio::sync::watch::Receiver<u64> {
        // Nothing comes of it.
        tokio::sync::watch::channel(0).1
    }

    /// Figures of the store. Cheap: nothing is read that grows with the files of images.
    async fn figures(&self) -> StoreFigures {
        StoreFigures::default()
    }

    /// Counts the images that became present, by whichever way; told after the image can be used.
    fn arrivals(&self) -> tokio::sync::watch::Receiver<u64>;

    /// Pulls under way, the oldest first.
    fn pulls(&self) -> Vec<PullState> {
        Vec::new()
    }

    /// Figures of pulls since the start.
    fn pull_figures(&self) -> PullFigures {
        PullFigures::default()
    }

    /// Pulls under way, layer by layer, as they change.
    fn progress(&self) -> tokio::sync::broadcast::Receiver<PullProgress>;
}
