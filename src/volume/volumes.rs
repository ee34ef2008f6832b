//! The volume store on this host's disk and in its mount namespace.

use super::host_policy::HostPathPolicy;
use super::mount_list::Request;
use super::nfs::{self, NfsMounts};
use super::usage::{self, UsageRequest};
use super::{
    ContainerMounts, Giving, NodeFiles, VolumeContents, VolumeError, VolumeService, claim_store, claims, empty_dir, env_file,
    host_path, image_volume, projected, removal, trim,
};
use async_trait::async_trait;
use podstead_pod::claims::{ClaimName, ClaimedVolume};
use podstead_pod::env::EnvFiles;
use podstead_pod::files::is_projected;
use podstead_pod::host_files::NetworkDns;
use podstead_pod::nfs::NfsVolume;
use podstead_pod::objects::Objects;
use podstead_pod::storage::StorageUsage;
use podstead_pod::{ContainerName, DesiredPod, PodUid, containers};
use podstead_sys::layout::Paths;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore};

/// [`VolumeService`] on the real host. All work is done on blocking threads: a disk, or a hung network mount, may take its time.
#[derive(Clone, Debug)]
pub struct Volumes {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) paths: Paths,
    node: NodeFiles,
    policy: Arc<HostPathPolicy>,
    /// Memory that all pods may use.
    memory_bytes: u64,
    /// Serialises measurements.
    pub(super) measuring: Semaphore,
    /// Serialises taking and deleting a claim's data: unused data must not be taken while they are deleted.
    pub(super) claims: Mutex<()>,
    /// Serialises emptying the trash.
    pub(super) trash: Mutex<()>,
    /// Data of a claim were deleted.
    pub(super) deleted: Notify,
    /// Mounts of NFS volumes under way.
    nfs: NfsMounts,
}

/// An NFS volume that is not mounted.
struct Unmounted {
    name: String,
    volume: NfsVolume,
    place: PathBuf,
}

impl Volumes {
    /// A store under `paths`, for pods of the sources in `policy`. Nothing is made yet. `memory_bytes` is what all pods may use; 0 if that is not known.
    pub fn new(paths: Paths, node: NodeFiles, policy: Arc<HostPathPolicy>, memory_bytes: u64) -> Self {
        let (claims, trash, deleted) = Default::default();
        Self {
            shared: Arc::new(Shared {
                paths,
                node,
                policy,
                memory_bytes,
                measuring: Semaphore::new(1),
                claims,
                trash,
                deleted,
                nfs: NfsMounts::new(),
            }),
        }
    }

    /// Returns true if data of the claim are on disk that are deleted when no source has it.
    pub fn is_disposable(&self, claim: &ClaimName) -> bool {
        claims::is_disposable(&self.shared.paths, claim)
    }

    /// Waits until data of a claim were deleted. Cancel-safe.
    pub async fn deleted(&self) {
        self.shared.deleted.notified().await;
    }

    async fn mount(&self, uid: &PodUid, unmounted: Vec<Unmounted>) -> Result<(), VolumeError> {
        for Unmounted { name, volume, place } in unmounted {
            let mounted = self.shared.nfs.ensure(uid, &name, &volume, &place).await;
            mounted.map_err(|reason| VolumeError::not_ready(name, reason))?;
        }
        Ok(())
    }

    /// Mounts the exports of a container that are not mounted any more: somebody may have unmounted one by hand.
    async fn mount_again(&self, pod: &DesiredPod, container: &ContainerName) -> Result<(), VolumeError> {
        let volumes = pod.pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        if volumes.iter().all(|volume| volume.nfs.is_none()) {
            return Ok(());
        }
        let (owner, name) = (pod.clone(), container.clone());
        let unmounted = self.blocking(move |shared| shared.unmounted_of(&owner, &name)).await?;
        self.mount(&pod.uid, unmounted).await
    }

    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let shared = Arc::clone(&self.shared);
        match tokio::task::spawn_blocking(move || work(&shared)).await {
            Ok(result) => result,
            Err(error) => Err(VolumeError::not_ready("all volumes", format!("the operation was interrupted: {error}"))),
        }
    }
}

#[async_trait]
impl VolumeService for Volumes {
    async fn prepare(&self, pod: &DesiredPod, contents: VolumeContents) -> Result<(), VolumeError> {
        let (uid, pod) = (pod.uid.clone(), pod.clone());
        let unmounted = self.blocking(move |shared| shared.prepare(&pod, &contents)).await?;
        self.mount(&uid, unmounted).await
    }

    async fn give_claims(&self, pod: &DesiredPod, claims: Vec<ClaimedVolume>, giving: Giving) -> Result<(), VolumeError> {
        if claims.is_empty() {
            return Ok(());
        }
        let pod = pod.clone();
        self.blocking(move |shared| {
            let give = |claimed: &ClaimedVolume| {
                let given = claims::give(&shared.paths, &pod, claimed, giving);
                given.map_err(|reason| VolumeError::not_ready(&claimed.volume, reason))
            };
            claims.iter().try_for_each(give)
        })
        .await
    }

    async fn container_mounts(
        &self,
        pod: &DesiredPod,
        container: &ContainerName,
        attempt: u32,
        pod_ips: &[IpAddr],
        dns: Option<&NetworkDns>,
        environment: &[(String, String)],
    ) -> Result<ContainerMounts, VolumeError> {
        let (pod, name) = (pod.clone(), container.clone());
        self.mount_again(&pod, &name).await?;
        let (pod_ips, dns, environment) = (pod_ips.to_vec(), dns.cloned(), environment.to_vec());
        self.blocking(move |shared| {
            let Some((_, container)) = containers::find(&pod.pod, name.as_str()) else {
                return Err(VolumeError::not_ready("all volumes", format!("the pod has no container {name}")));
            };
            let Shared { paths, node, policy, memory_bytes: _, measuring: _, claims: _, trash: _, deleted: _, nfs } = shared;
            let (dns, environment) = (dns.as_ref(), environment.as_slice());
            let request = Request { paths, node, policy, nfs, pod: &pod, container, attempt, pod_ips: &pod_ips, dns, environment };
            request.resolve()
        })
        .await
    }

    async fn remove(&self, uid: &PodUid) -> Result<(), VolumeError> {
        let uid = uid.clone();
        self.blocking(move |shared| shared.remove(uid)).await
    }

    async fn env_files(&self, pod: &DesiredPod, names: BTreeSet<(String, String)>) -> Result<EnvFiles, VolumeError> {
        if names.is_empty() {
            return Ok(EnvFiles::new());
        }
        let uid = pod.uid.clone();
        self.blocking(move |shared| {
            let read =
                |(volume, path): (String, String)| match env_file::read(&shared.paths.empty_dir(&uid, &volume), path.as_ref()) {
                    Ok(content) => Ok(((volume, path), content)),
                    Err(error) => Err(VolumeError::not_ready(volume, format!("read env file {path:?}: {error}"))),
                };
            names.into_iter().map(read).collect()
        })
        .await
    }

    async fn reclaim(&self, objects: &Objects) -> Result<(), VolumeError> {
        let wanted = claims::Wanted::of(objects);
        self.blocking(move |shared| {
            let held = shared.claims.lock().unwrap_or_else(PoisonError::into_inner);
            let reclaimed = claims::reclaim(&shared.paths, &wanted, &|| shared.deleted.notify_one());
            drop(held);
            let emptied = claim_store::empty_trash(shared);
            reclaimed.and(emptied)
        })
        .await
    }

    async fn trim(&self, pod: &DesiredPod) -> Result<(), VolumeError> {
        let pod = pod.clone();
        self.blocking(move |shared| {
            shared.nfs.end(&pod.uid, |name| containers::spec(&pod.pod).volumes.iter().flatten().any(|volume| volume.name == name));
            let left = trim::trim(&shared.paths, &pod);
            if left.is_empty() { Ok(()) } else { Err(VolumeError::Removal { uid: pod.uid, reason: left.join("; ") }) }
        })
        .await
    }

    async fn measure(&self, request: &UsageRequest) -> StorageUsage {
        // Walks compete for the disk with the pods: one after the other. The semaphore is never closed.
        let _permit = self.shared.measuring.acquire().await;
        let (shared, request) = (Arc::clone(&self.shared), request.clone());
        // A panic in there is one of walking: nothing was measured.
        tokio::task::spawn_blocking(move || usage::measure(&shared.paths, &request)).await.unwrap_or_default()
    }

    async fn list(&self) -> Result<Vec<PodUid>, VolumeError> {
        self.blocking(Shared::list).await
    }
}

impl Shared {
    /// Returns the volumes that other hosts have to be asked for.
    fn prepare(&self, pod: &DesiredPod, contents: &VolumeContents) -> Result<Vec<Unmounted>, VolumeError> {
        let VolumeContents { files, claims, images } = contents;
        let mut unmounted = Vec::new();
        let volumes = pod.pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        for volume in volumes {
            if let Some(source) = &volume.empty_dir {
                let directory = self.paths.empty_dir(&pod.uid, &volume.name);
                // Mounts are listed by their real path.
                let real = real_path(&directory).map_err(|error| VolumeError::not_ready(&volume.name, error.to_string()))?;
                empty_dir::prepare(&pod.pod, source, &real, self.memory_bytes)
                    .map_err(|reason| VolumeError::not_ready(&volume.name, reason))?;
            } else if let Some(source) = &volume.host_path {
                // Before anything is stopped for it, as the kubelet does. What has no type is made for the container that mounts it.
                if source.type_.as_deref().is_some_and(|kind| !kind.is_empty()) && containers::has_volume(&pod.pod, &volume.name) {
                    let bounds = self.policy.bounds(&pod.source, Path::new(&source.path));
                    let opened = bounds.and_then(|bounds| host_path::open(source, bounds.as_ref()));
                    opened.map_err(|reason| VolumeError::not_ready(&volume.name, reason))?;
                }
            } else if let Some(export) = NfsVolume::of(&pod.pod, volume) {
                if containers::has_volume(&pod.pod, &volume.name) {
                    unmounted.extend(self.unmounted(pod, &volume.name, export)?);
                }
            } else if volume.persistent_volume_claim.is_none() && volume.image.is_none() && !is_projected(volume) {
                return Err(VolumeError::not_ready(&volume.name, "volumes of this type are not supported"));
            }
        }
        for (volume, image) in images {
            let place = self.paths.image_volume(&pod.uid, volume);
            image_volume::prepare(&place, image).map_err(|reason| VolumeError::not_ready(volume, reason))?;
        }
        for claimed in claims {
            let not_ready = |reason| VolumeError::not_ready(&claimed.volume, reason);
            let held = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            claims::take(&self.paths, pod, claimed).map_err(not_ready)?;
            drop(held);
        }
        projected::write(&pod.pod, &self.paths.projected(&pod.uid), files)?;
        Ok(unmounted)
    }

    /// The NFS volumes that a container mounts and that are not mounted.
    fn unmounted_of(&self, pod: &DesiredPod, container: &ContainerName) -> Result<Vec<Unmounted>, VolumeError> {
        let found = containers::find(&pod.pod, container.as_str());
        let mounts = found.and_then(|(_, container)| container.volume_mounts.as_deref()).unwrap_or_default();
        let volumes = pod.pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let mounted = volumes.iter().filter(|volume| mounts.iter().any(|mount| mount.name == volume.name));
        let exports = mounted.filter_map(|volume| Some((volume.name.as_str(), NfsVolume::of(&pod.pod, volume)?)));
        let unmounted = exports.map(|(name, export)| self.unmounted(pod, name, export));
        unmounted.filter_map(Result::transpose).collect()
    }

    /// An NFS volume that its source may mount, unless it is mounted.
    fn unmounted(&self, pod: &DesiredPod, name: &str, volume: NfsVolume) -> Result<Option<Unmounted>, VolumeError> {
        let not_ready = |reason: String| VolumeError::not_ready(name, reason);
        self.policy.check_export(&pod.source, &volume).map_err(not_ready)?;
        let place = self.paths.nfs_volume(&pod.uid, name);
        // Its parents are made.
        real_path(&place).map_err(|error| not_ready(error.to_string()))?;
        match nfs::is_mounted(&place, &volume) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(Unmounted { name: name.to_owned(), volume, place })),
            Err(error) => Err(not_ready(format!("read mounts: {error}"))),
        }
    }

    fn remove(&self, uid: PodUid) -> Result<(), VolumeError> {
        self.nfs.end(&uid, |_| false);
        let directories = [self.paths.volumes(&uid), self.paths.host_files(&uid)];
        let mut left: Vec<String> = directories.iter().flat_map(|directory| removal::remove(directory)).collect();
        if left.is_empty() {
            match fs::remove_dir(self.paths.pod(&uid)) {
                // The runtime's records may still be there.
                Ok(()) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
                Err(error) => left.push(format!("delete {:?}: {error}", self.paths.pod(&uid))),
            }
        }
        if left.is_empty() { Ok(()) } else { Err(VolumeError::Removal { uid, reason: left.join("; ") }) }
    }

    fn list(&self) -> Result<Vec<PodUid>, VolumeError> {
        let path = self.paths.pods();
        let failed = |source| VolumeError::List { path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let Ok(name) = entry.map_err(failed)?.file_name().into_string() else { continue };
            let uid = PodUid::new(name);
            if [self.paths.volumes(&uid), self.paths.sub_paths(&uid), self.paths.host_files(&uid)].iter().any(|path| path.is_dir())
            {
                found.push(uid);
            }
        }
        Ok(found)
    }
}

/// The directory's path without symlinks; its parents are made, it need not exist itself.
fn real_path(directory: &std::path::Path) -> io::Result<std::path::PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::DirBuilder::new().recursive(true).mode(0o750).create(parent)?;
    Ok(fs::canonicalize(parent)?.join(name))
}
