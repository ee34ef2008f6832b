//! Services in memory, for tests of workers and of the sync loop.

use super::services::{Incarnations, ServiceVariables};
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use podstead_container::{ImageConfig, ProcessUser, ResolvedImage};
use podstead_pod::claims::ClaimedVolume;
use podstead_pod::containers::PullPolicy;
use podstead_pod::env::EnvFiles;
use podstead_pod::files::VolumeFiles;
use podstead_pod::host_files::NetworkDns;
use podstead_pod::objects::Objects;
use podstead_pod::storage::StorageUsage;
use podstead_pod::{ContainerName, DesiredPod, Pod, PodUid, SourceId};
use podstead_runtime::{
    ImageError, ImageRecord, ImageService, ImageUsage, NetworkError, PodNetwork, PodNetworkStatus, PruneReport, PullProgress,
    PullSecrets, VerifyReport,
};
use podstead_status::PodStatusSink;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_volume::{ContainerMounts, Giving, UsageRequest, VolumeContents, VolumeError, VolumeService};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, watch};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The image that [`FakeImages`] has under a reference.
pub fn fake_image(reference: &str) -> ResolvedImage {
    let config = ImageConfig { entrypoint: vec![format!("/{reference}")], ..ImageConfig::default() };
    ResolvedImage {
        digest: format!("sha256:{reference}"),
        layers: vec![PathBuf::from("/fake/layer")],
        config,
        lease: Default::default(),
    }
}

/// Images that are present, and images that a registry has.
#[derive(Debug)]
pub struct FakeImages {
    present: Mutex<BTreeSet<String>>,
    registry: Mutex<BTreeSet<String>>,
    is_held: watch::Sender<bool>,
    updates_held: watch::Sender<bool>,
    retries: watch::Sender<u64>,
    doubts: Mutex<Vec<String>>,
    arrivals: watch::Sender<u64>,
    progress: broadcast::Sender<PullProgress>,
}

impl Default for FakeImages {
    fn default() -> Self {
        Self {
            present: Mutex::default(),
            registry: Mutex::default(),
            is_held: watch::Sender::new(false),
            updates_held: watch::Sender::new(false),
            retries: watch::Sender::default(),
            doubts: Mutex::default(),
            arrivals: watch::Sender::default(),
            progress: broadcast::Sender::new(1),
        }
    }
}

impl FakeImages {
    /// Makes an image present.
    pub fn put(&self, reference: &str) {
        lock(&self.present).insert(reference.to_owned());
        self.arrivals.send_modify(|count| *count += 1);
    }

    /// Puts an image into the registry.
    pub fn publish(&self, reference: &str) {
        lock(&self.registry).insert(reference.to_owned());
    }

    /// While held, pulls do not end.
    pub fn hold(&self, is_held: bool) {
        self.is_held.send_replace(is_held);
    }

    /// While held, pulls for updates do not begin.
    pub fn hold_updates(&self, is_held: bool) {
        self.updates_held.send_replace(is_held);
    }

    /// The network is back, or something else makes another attempt worth while.
    pub fn try_again(&self) {
        self.retries.send_modify(|count| *count += 1);
        self.arrivals.send_modify(|count| *count += 1);
    }

    /// Images in doubt, by their digests, each as often as it was.
    pub fn doubts(&self) -> Vec<String> {
        lock(&self.doubts).clone()
    }

    /// Number of pulls for updates that wait.
    pub fn waiting_updates(&self) -> usize {
        self.updates_held.receiver_count()
    }
}

#[async_trait]
impl ImageService for FakeImages {
    async fn ensure(&self, reference: &str, policy: PullPolicy, _: &PullSecrets) -> Result<ResolvedImage, ImageError> {
        tokio::task::yield_now().await;
        let is_present = lock(&self.present).contains(reference);
        match policy {
            PullPolicy::Never if !is_present => return Err(ImageError::NeverPull(reference.to_owned())),
            PullPolicy::IfNotPresent | PullPolicy::Never if is_present => return Ok(fake_image(reference)),
            PullPolicy::Always | PullPolicy::IfNotPresent | PullPolicy::Never => {}
        }
        self.is_held.subscribe().wait_for(|is_held| !is_held).await.ok();
        if lock(&self.registry).contains(reference) {
            self.put(reference);
        } else if !is_present {
            return Err(ImageError::Pull { reference: reference.to_owned(), reason: "no such image".to_owned() });
        }
        Ok(fake_image(reference))
    }

    async fn ensure_update(&self, reference: &str, policy: PullPolicy, secrets: &PullSecrets) -> Result<ResolvedImage, ImageError> {
        self.updates_held.subscribe().wait_for(|is_held| !is_held).await.ok();
        self.ensure(reference, policy, secrets).await
    }

    fn retries(&self) -> watch::Receiver<u64> {
        self.retries.subscribe()
    }

    fn doubt(&self, image: &ResolvedImage, _: &str) {
        lock(&self.doubts).push(image.digest.clone());
    }

    async fn resolve_user(&self, image: &ResolvedImage, user: &str) -> Result<ProcessUser, ImageError> {
        let uid = if user.is_empty() { Ok(0) } else { user.parse() };
        match uid {
            Ok(uid) => Ok(ProcessUser { uid, gid: uid, additional_gids: Vec::new() }),
            Err(_) => Err(ImageError::NoUser { reference: image.digest.clone(), user: user.to_owned() }),
        }
    }

    async fn list(&self) -> Result<Vec<ImageRecord>, ImageError> {
        Ok(Vec::new())
    }

    async fn import(&self, _: PathBuf) -> Result<Vec<String>, ImageError> {
        Ok(Vec::new())
    }

    async fn remove(&self, reference: &str, _: bool) -> Result<(), ImageError> {
        lock(&self.present).remove(reference);
        Ok(())
    }

    async fn prune(&self, _: bool, _: bool) -> Result<PruneReport, ImageError> {
        Ok(PruneReport::default())
    }

    async fn pin(&self, _: &str, _: bool) -> Result<(), ImageError> {
        Ok(())
    }

    async fn verify(&self, _: &[String], _: bool) -> Result<VerifyReport, ImageError> {
        Ok(VerifyReport::default())
    }

    async fn usage(&self) -> Result<ImageUsage, ImageError> {
        Ok(ImageUsage::default())
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    fn progress(&self) -> broadcast::Receiver<PullProgress> {
        self.progress.subscribe()
    }
}

/// Volumes: which pods have some, and what fails.
#[derive(Debug, Default)]
pub struct FakeVolumes {
    pods: Mutex<BTreeSet<PodUid>>,
    failures: Mutex<VecDeque<String>>,
    removal_failures: Mutex<VecDeque<String>>,
    dns_exceeded: Mutex<Vec<String>>,
    files: Mutex<BTreeMap<(PodUid, String), VolumeFiles>>,
    usage: Mutex<StorageUsage>,
    trimmed: Mutex<Vec<PodUid>>,
    givings: Mutex<Vec<Giving>>,
    reclaims: Mutex<usize>,
}

impl FakeVolumes {
    /// Ownership changes of claims since the last call.
    pub fn take_givings(&self) -> Vec<Giving> {
        std::mem::take(&mut lock(&self.givings))
    }

    /// Number of calls to reclaim claims since the last call.
    pub fn take_reclaims(&self) -> usize {
        std::mem::take(&mut lock(&self.reclaims))
    }

    /// The content of a file of a volume.
    pub fn file(&self, uid: &PodUid, volume: &str, path: &str) -> Option<String> {
        let files = lock(&self.files);
        let file = files.get(&(uid.clone(), volume.to_owned()))?.get(path)?;
        Some(String::from_utf8_lossy(&file.content).into_owned())
    }

    /// Sets the result of every measurement.
    pub fn set_usage(&self, usage: StorageUsage) {
        *lock(&self.usage) = usage;
    }

    /// Pods whose volumes were trimmed since the last call.
    pub fn take_trimmed(&self) -> Vec<PodUid> {
        std::mem::take(&mut lock(&self.trimmed))
    }

    /// The next preparation fails.
    pub fn fail(&self, reason: &str) {
        lock(&self.failures).push_back(reason.to_owned());
    }

    /// Sets the message about resolver settings that exceed their limits.
    pub fn set_dns_exceeded(&self, told: &str) {
        *lock(&self.dns_exceeded) = vec![told.to_owned()];
    }

    /// The next removal fails.
    pub fn fail_removal(&self, reason: &str) {
        lock(&self.removal_failures).push_back(reason.to_owned());
    }

    /// Pods with volumes.
    pub fn pods(&self) -> Vec<PodUid> {
        lock(&self.pods).iter().cloned().collect()
    }
}

#[async_trait]
impl VolumeService for FakeVolumes {
    async fn prepare(&self, pod: &DesiredPod, VolumeContents { files, .. }: VolumeContents) -> Result<(), VolumeError> {
        // It takes some time: other steps come in between.
        tokio::task::yield_now().await;
        match lock(&self.failures).pop_front() {
            Some(reason) => Err(VolumeError::NotReady { volume: "fake".to_owned(), reason }),
            None => {
                lock(&self.pods).insert(pod.uid.clone());
                let files = files.into_iter().map(|projection| ((pod.uid.clone(), projection.volume), projection.files));
                lock(&self.files).extend(files);
                Ok(())
            }
        }
    }

    async fn give_claims(&self, pod: &DesiredPod, claims: Vec<ClaimedVolume>, giving: Giving) -> Result<(), VolumeError> {
        if !claims.is_empty() && !lock(&self.pods).contains(&pod.uid) {
            return Err(VolumeError::NotReady { volume: "fake".to_owned(), reason: "the claims are not there yet".to_owned() });
        }
        lock(&self.givings).push(giving);
        Ok(())
    }

    async fn container_mounts(
        &self,
        pod: &DesiredPod,
        container: &ContainerName,
        attempt: u32,
        _: &[IpAddr],
        _: Option<&NetworkDns>,
        _: &[(String, String)],
    ) -> Result<ContainerMounts, VolumeError> {
        if !lock(&self.pods).contains(&pod.uid) {
            return Err(VolumeError::NotReady { volume: "fake".to_owned(), reason: "not prepared".to_owned() });
        }
        let termination_log = PathBuf::from(format!("/fake/{container}/{attempt}"));
        let dns_exceeded = lock(&self.dns_exceeded).clone();
        Ok(ContainerMounts { mounts: Vec::new(), termination_log, shm_size: None, dns_exceeded })
    }

    async fn remove(&self, uid: &PodUid) -> Result<(), VolumeError> {
        if let Some(reason) = lock(&self.removal_failures).pop_front() {
            return Err(VolumeError::Removal { uid: uid.clone(), reason });
        }
        lock(&self.pods).remove(uid);
        Ok(())
    }

    async fn env_files(&self, _: &DesiredPod, _: BTreeSet<(String, String)>) -> Result<EnvFiles, VolumeError> {
        Ok(EnvFiles::new())
    }

    async fn reclaim(&self, _: &Objects) -> Result<(), VolumeError> {
        *lock(&self.reclaims) += 1;
        Ok(())
    }

    async fn trim(&self, pod: &DesiredPod) -> Result<(), VolumeError> {
        lock(&self.trimmed).push(pod.uid.clone());
        Ok(())
    }

    async fn measure(&self, _: &UsageRequest) -> StorageUsage {
        lock(&self.usage).clone()
    }

    async fn list(&self) -> Result<Vec<PodUid>, VolumeError> {
        Ok(self.pods())
    }
}

/// A network that gives every pod the same address.
#[derive(Debug, Default)]
pub struct FakeNetwork {
    pods: Mutex<BTreeSet<PodUid>>,
}

impl FakeNetwork {
    /// Pods that have a network.
    pub fn pods(&self) -> Vec<PodUid> {
        lock(&self.pods).iter().cloned().collect()
    }
}

#[async_trait]
impl PodNetwork for FakeNetwork {
    async fn setup(&self, uid: &PodUid, _: &Pod, _: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        lock(&self.pods).insert(uid.clone());
        Ok(PodNetworkStatus { ips: vec![IpAddr::from([10, 0, 0, 7])], ..PodNetworkStatus::default() })
    }

    async fn teardown(&self, uid: &PodUid) -> Result<(), NetworkError> {
        lock(&self.pods).remove(uid);
        Ok(())
    }

    async fn status(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        self.setup(uid, pod, netns).await
    }
}

/// Keeps the last status of each pod, and how often it changed.
#[derive(Debug, Default)]
pub struct ShownStatuses {
    shown: Mutex<BTreeMap<PodUid, (PodStatus, usize)>>,
    deleted: Mutex<BTreeMap<PodUid, Timestamp>>,
}

impl ShownStatuses {
    /// The published status of a pod.
    pub fn get(&self, uid: &PodUid) -> Option<PodStatus> {
        lock(&self.shown).get(uid).map(|(status, _)| status.clone())
    }

    /// `metadata.deletionTimestamp` of a pod.
    pub fn deleted(&self, uid: &PodUid) -> Option<Timestamp> {
        lock(&self.deleted).get(uid).copied()
    }

    /// Number of changes of the published status of a pod.
    pub fn changes(&self, uid: &PodUid) -> usize {
        lock(&self.shown).get(uid).map_or(0, |(_, changes)| *changes)
    }
}

impl PodStatusSink for ShownStatuses {
    fn publish(&self, desired: &Arc<DesiredPod>, status: PodStatus) {
        if let Some(deleted) = &desired.pod.metadata.deletion_timestamp {
            lock(&self.deleted).insert(desired.uid.clone(), deleted.0);
        }
        let mut shown = lock(&self.shown);
        let entry = shown.entry(desired.uid.clone()).or_default();
        if entry.0 != status {
            *entry = (status, entry.1 + 1);
        }
    }

    fn withdraw(&self, uid: &PodUid) {
        lock(&self.shown).remove(uid);
    }
}

/// Keeps events as `Reason: message`.
#[derive(Debug, Default)]
pub struct ToldEvents {
    told: Mutex<Vec<String>>,
}

impl ToldEvents {
    /// The events since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.told))
    }
}

impl EventRecorder for ToldEvents {
    fn record(&self, _: &Subject, _: EventType, reason: &str, message: &str) {
        lock(&self.told).push(format!("{reason}: {message}"));
    }
}

/// Records the pods to be recreated.
#[derive(Debug, Default)]
pub struct AskedIncarnations {
    asked: Mutex<Vec<PodUid>>,
}

impl AskedIncarnations {
    /// The pods that were poked since the last call.
    pub fn take(&self) -> Vec<PodUid> {
        std::mem::take(&mut lock(&self.asked))
    }
}

#[async_trait]
impl Incarnations for AskedIncarnations {
    async fn recreate(&self, uid: PodUid) {
        lock(&self.asked).push(uid);
    }
}

/// A host without Services.
#[derive(Debug)]
pub struct NoServices;

#[async_trait]
impl ServiceVariables for NoServices {
    async fn of_pod(&self, _pod: &Pod, _source: &SourceId) -> Vec<(String, String)> {
        Vec::new()
    }
}
