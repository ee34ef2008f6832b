//! Volumes and the files that every pod gets (`/etc/hosts`, `/etc/resolv.conf`, `/etc/hostname`, the termination log).
//!
//! In: a pod. Out: bind mounts for each container. Everything lives under the pod's state directory:
//!
//! ```text
//! volumes/empty-dir/<volume>            data of an emptyDir; a tmpfs is mounted there for `medium: Memory`. That it has its owner and mode,
//!                                       and that these are the containers' from now on, is in <volume>.ready
//! volumes/projected/<volume>/           files from ConfigMaps, Secrets and the pod itself, on a tmpfs that is mounted at `volumes/projected`
//! volumes/image/<volume>                an image, mounted read-only; which one is in <volume>.digest
//! volumes/nfs/<volume>                  an export of another host; which one is in <volume>.json (see [`nfs`])
//! volumes/claims/<volume>.<claim>       says that the pod uses the data of this claim, which lies elsewhere (see [`claims`])
//! volumes/sub-paths/<container>/<n>     pin (bind mount) of the path below a volume that mount n of the container names
//! etc/{hosts,hostname,resolv.conf}      host files, rewritten in place when a container starts, so that all containers see them
//! etc/termination.<container>.<attempt> termination messages: no directories, each of which would be written as a whole block
//! ```
//!
//! Mounts are made in the host's mount namespace and found again by their place: after a restart of the daemon they are there, after a
//! reboot they are made anew. A pin is what makes `subPath` safe: the path is resolved once, by the kernel, without leaving the volume,
//! and what was found is what the container gets, whatever a container of the pod renames in between.

mod atomic_writer;
mod claim_owners;
mod claim_store;
pub mod claims;
mod empty_dir;
mod env_file;
mod host_files;
mod host_path;
mod host_policy;
mod image_volume;
mod memory;
mod mount_list;
pub mod nfs;
mod ownership;
mod projected;
mod removal;
mod sub_path;
#[cfg(test)]
mod tests;
mod trim;
mod usage;
mod volumes;

pub use claim_store::{ClaimStore, PruneClaimError};
pub use host_files::NodeFiles;
pub use host_policy::HostPathPolicy;
pub use usage::UsageRequest;
pub use volumes::Volumes;

use async_trait::async_trait;
use podstead_container::{Mount, ResolvedImage};
use podstead_pod::claims::ClaimedVolume;
use podstead_pod::env::EnvFiles;
use podstead_pod::files::Projection;
use podstead_pod::host_files::NetworkDns;
use podstead_pod::objects::Objects;
use podstead_pod::storage::StorageUsage;
use podstead_pod::{ContainerName, DesiredPod, PodUid};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// Reason why a pod's volumes are not ready; becomes `FailedMount` and keeps the container in `ContainerCreating`, or
/// `CreateContainerConfigError` where a mount can never work.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// May work later (e.g. a hostPath that is not there yet).
    #[error("volume {volume:?}: {reason}")]
    NotReady {
        /// Name in `spec.volumes`.
        volume: String,
        /// The missing part.
        reason: String,
    },
    /// Will not work until the manifest or the host changes (e.g. a subPath that leaves its volume).
    #[error("volume mount {mount:?} of container {container}: {reason}")]
    BadMount {
        /// The container.
        container: ContainerName,
        /// Name in `volumeMounts`.
        mount: String,
        /// The problem.
        reason: String,
    },
    /// Something of a pod that is gone could not be unmounted or deleted; the rest was. Tried again by housekeeping.
    #[error("remove volumes of pod {uid}: {reason}")]
    Removal {
        /// The pod.
        uid: PodUid,
        /// The remains, with the reasons.
        reason: String,
    },
    /// Persistent volumes could not be read or deleted; the rest was.
    #[error("persistent volumes: {0}")]
    Claims(String),
    /// The disk does not do what is wanted with persistent volumes.
    #[error("persistent volumes{}", if *is_deletion { ": delete" } else { "" })]
    ClaimsOnDisk {
        /// Data were to be deleted.
        is_deletion: bool,
        /// The error of the disk.
        #[source]
        source: std::io::Error,
    },
    /// The pods on disk could not be listed.
    #[error("list pods in {path:?}")]
    List {
        /// The directory.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: std::io::Error,
    },
}

impl VolumeError {
    fn not_ready(volume: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::NotReady { volume: volume.into(), reason: reason.into() }
    }
}

/// Mounts of one container, with the place of its termination message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMounts {
    /// In the order of their making.
    pub mounts: Vec<Mount>,
    /// Host file behind `terminationMessagePath`.
    pub termination_log: PathBuf,
    /// Bytes of `/dev/shm`, if a Memory emptyDir is not mounted there; `None` for the default.
    pub shm_size: Option<u64>,
    /// Entries that did not fit into `/etc/resolv.conf`, in the kubelet's words; for events.
    pub dns_exceeded: Vec<String>,
}

/// Contents of a pod's volumes besides its spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeContents {
    /// Files from objects and from the pod.
    pub files: Vec<Projection>,
    /// Claims that volumes refer to.
    pub claims: Vec<ClaimedVolume>,
    /// Images that are there, by volume.
    pub images: Vec<(String, ResolvedImage)>,
}

/// Extent of setting the `fsGroup` of a pod's persistent volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giving {
    /// All, as `fsGroupChangePolicy` says: the pod is about to start, as when a kubelet mounts.
    All,
    /// Only the part that this pod has not set before: owners and modes of the rest are its containers'.
    Rest,
}

/// The volumes as workers use them.
#[async_trait]
pub trait VolumeService: Send + Sync + fmt::Debug + 'static {
    /// Makes all volumes of the pod. Idempotent; data of an emptyDir survives until [`VolumeService::remove`]. Those with files get these
    /// files, all at once for each volume, also while containers have them mounted; a volume of this kind that is not among them keeps
    /// what it has.
    async fn prepare(&self, pod: &DesiredPod, contents: VolumeContents) -> Result<(), VolumeError>;

    /// Gives the data of claims that were prepared to the pod's `fsGroup`. May take long.
    async fn give_claims(&self, pod: &DesiredPod, claims: Vec<ClaimedVolume>, giving: Giving) -> Result<(), VolumeError>;

    /// Makes the directories of all claims, and deletes the data of those that are gone and asked for it. Only to be called when every
    /// source was heard. Collects errors and goes on.
    async fn reclaim(&self, objects: &Objects) -> Result<(), VolumeError>;

    /// Writes the host files for one container and resolves its mounts (subPath included).
    /// `attempt` numbers the termination log, `pod_ips` go into `/etc/hosts` (kubelet rule D21), `dns` is what the pod's network says of
    /// name servers, if plugins made it (D22).
    /// `environment` is the container's expanded environment, for `subPathExpr`.
    async fn container_mounts(
        &self,
        pod: &DesiredPod,
        container: &ContainerName,
        attempt: u32,
        pod_ips: &[IpAddr],
        dns: Option<&NetworkDns>,
        environment: &[(String, String)],
    ) -> Result<ContainerMounts, VolumeError>;

    /// Unmounts and removes everything of the pod. Collects errors and goes on; NotFound is success.
    async fn remove(&self, uid: &PodUid) -> Result<(), VolumeError>;

    /// Reads files of emptyDir volumes, each named by volume and path.
    async fn env_files(&self, pod: &DesiredPod, names: BTreeSet<(String, String)>) -> Result<EnvFiles, VolumeError>;

    /// Removes what an earlier definition of the pod had and this one has not. Only while no container of an earlier one runs. Collects
    /// errors and goes on.
    async fn trim(&self, pod: &DesiredPod) -> Result<(), VolumeError>;

    /// Measures what the pod uses of the host's disk; one pod at a time. May take long, and is safe to be dropped.
    async fn measure(&self, request: &UsageRequest) -> StorageUsage;

    /// Pods that have volumes on disk: for finding orphans.
    async fn list(&self) -> Result<Vec<PodUid>, VolumeError>;
}
