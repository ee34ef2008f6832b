//! Progress of what a pod needs before and beside its containers: record, sandbox, network, volumes, images, storage, removal. **Pure**.

use crate::backoff::{Backoff, BackoffPolicy, Failure};
use crate::definition::ContainerDefinition;
use jiff::Timestamp;
use podstead_container::ResolvedImage;
use podstead_pod::host_files::NetworkDns;
use podstead_pod::storage::StorageUsage;
use podstead_sys_async::clock::Moment;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One step of preparing a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// To be taken.
    #[default]
    Open,
    /// Taken, for the present definition and sandbox.
    Done,
    /// Failed; to be tried again.
    Failed(Failure),
}

/// State of the image for a container's next start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImageWork {
    /// Not looked up yet.
    #[default]
    Open,
    /// Being fetched.
    Pulling {
        /// The failures before.
        previous: Option<Failure>,
        /// Its progress in words, of a pull that takes long.
        progress: Option<String>,
    },
    /// Present; used up by the next start, since `imagePullPolicy` counts for every start.
    Present(Box<ResolvedImage>),
    /// Unavailable; to be retried.
    Failed(Failure),
}

impl ImageWork {
    /// Takes note of the progress of fetching.
    pub(super) fn progressed(&mut self, words: String) {
        if let Self::Pulling { progress, .. } = self {
            *progress = Some(words);
        }
    }

    /// Skips the pause after a failure.
    pub(super) fn retry_now(&mut self) {
        if let ImageWork::Failed(_) = self {
            *self = ImageWork::Open;
        }
    }
}

/// Back-off of one definition of a container (kubelet rule D9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashLoop {
    /// The definition's hash; another definition starts afresh.
    pub hash: String,
    /// Its state.
    pub backoff: Backoff,
}

/// Progress towards the next start of one container name, over all its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerWork {
    /// The image for the next start.
    pub image: ImageWork,
    /// Reason why the last attempt to start it failed.
    pub failure: Option<Failure>,
    /// Its restarts.
    pub crash_loop: Option<CrashLoop>,
    /// Reason why its resources could not be changed.
    pub resize: Option<Failure>,
}

impl ContainerWork {
    /// Forgets what the definition `before` brought about and `now` may not.
    pub(super) fn redefine(&mut self, before: Option<&ContainerDefinition>, now: &ContainerDefinition) {
        self.failure = None;
        self.resize = None;
        // With other resources it may do better (kubelet rule D9).
        if before.is_none_or(|before| !before.resources.agrees(&now.resources)) {
            self.crash_loop = None;
        }
        if before.is_none_or(|before| before.image != now.image || before.pull_policy != now.pull_policy) {
            self.image = ImageWork::Open;
        }
    }

    /// Takes the back-off one step further, since the container is started after a run that ended at `ended`.
    pub(super) fn restarting(
        &mut self,
        container: &ContainerDefinition,
        ended: Option<Moment>,
        policy: &BackoffPolicy,
        now: Moment,
    ) {
        let state = self.crash_loop.take().filter(|crash_loop| container.hash.is(&crash_loop.hash));
        self.crash_loop = match ended {
            Some(ended) => {
                let backoff = policy.next(state.as_ref().map(|crash_loop| &crash_loop.backoff), ended, now);
                Some(CrashLoop { hash: container.hash.to_string(), backoff })
            }
            None => state,
        };
    }
}

/// Time for which the pod has been there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveTimes {
    /// `status.startTime`.
    pub started_at: Option<Timestamp>,
    /// The same on the clock that counts.
    pub since: Option<Moment>,
    /// The time at which the active time of the pod is written to disk, if that matters.
    pub record_at: Option<Moment>,
}

/// Progress of the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxWork {
    /// Reason why it could not be made or changed.
    pub failure: Option<Failure>,
    /// Number of losses so far, and the time of the last one.
    pub losses: Option<Backoff>,
    /// The time at which the loss of the present sandbox was seen.
    pub lost_at: Option<Moment>,
}

/// Progress of the sandbox's network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkWork {
    /// Its setup, in the present sandbox.
    pub step: Step,
    /// Addresses of the pod, primary first.
    pub ips: Vec<IpAddr>,
    /// All interfaces of the pod, where there is more to report than addresses.
    pub report: Option<String>,
    /// DNS settings from the pod's network, where plugins made it.
    pub dns: Option<NetworkDns>,
}

/// Progress of the volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeWork {
    /// Their preparation, for the present definition.
    pub step: Step,
    /// Those of this or an earlier definition were prepared: unchanged containers can be restarted.
    pub were_prepared: bool,
    /// Some of an earlier definition may be left on disk.
    pub has_surplus: bool,
    /// Images of volumes, by the volume's name.
    pub images: BTreeMap<String, ImageWork>,
}

impl VolumeWork {
    /// The image of a volume.
    pub fn image(&self, volume: &str) -> &ImageWork {
        self.images.get(volume).unwrap_or(&ImageWork::Open)
    }
}

/// Measuring of the host's disk that a pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageWork {
    /// The next measurement.
    pub next: Measuring,
    /// The last measurement, for the present definition.
    pub usage: Option<StorageUsage>,
}

/// The next measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measuring {
    /// Due now.
    #[default]
    Due,
    /// Due then.
    At(Moment),
    /// Under way.
    UnderWay,
}

impl StorageWork {
    /// Another definition has other limits: what was measured counts no more.
    pub(super) fn redefine(&mut self) {
        self.usage = None;
        self.next = match self.next {
            Measuring::UnderWay => Measuring::UnderWay,
            Measuring::Due | Measuring::At(_) => Measuring::Due,
        };
    }
}

/// Removal of what a pod leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Reason why the last step failed.
    pub failure: Option<Failure>,
    /// Steps that are done.
    pub stage: CleanupStage,
}

/// Steps of a removal that are done, each after the ones before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CleanupStage {
    /// None that concerns the whole pod.
    #[default]
    Open,
    /// The pod ended by itself, and its recreation was requested.
    RecreationRequested,
    /// Its volumes are removed.
    VolumesRemoved,
    /// Nothing of it is left.
    Forgotten,
}
