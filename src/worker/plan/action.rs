//! The steps that a plan is made of.

use podstead_container::{CgroupResources, ContainerResources};
use podstead_pod::containers::PullPolicy;
use podstead_pod::{ContainerId, ContainerName};
use podstead_status::{PodResult, Waiting};
use podstead_sys_async::clock::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// One step. Displayed, it is a line of `podstead plan`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make the record of the desired pod durable; nothing is started or stopped for it before (promise P3).
    WriteRecord,
    /// Make the image for the container's next start present.
    EnsureImage {
        /// The container.
        container: ContainerName,
        /// Reference as written.
        reference: String,
        /// The pull policy.
        policy: PullPolicy,
    },
    /// Make the image that a volume is made from present.
    EnsureVolumeImage {
        /// The volume.
        volume: String,
        /// Reference as written.
        reference: String,
        /// The pull policy.
        policy: PullPolicy,
    },
    /// Make the pod's volumes.
    PrepareVolumes,
    /// Do a container's postStart hook. Goes on in the background.
    RunPostStart {
        /// The container.
        container: ContainerName,
        /// Its run.
        id: ContainerId,
    },
    /// Do a container's preStop hook; its signal follows. Goes on in the background, for `grace` at most.
    RunPreStop {
        /// The container.
        container: ContainerName,
        /// Its run.
        id: ContainerId,
        /// Time until the signal.
        grace: Duration,
        /// Reason why it is stopped.
        why: StopReason,
    },
    /// Ask a running container to stop. Goes on in the background: a later plan sends SIGKILL when `grace` is over.
    StopContainer {
        /// The container.
        container: ContainerName,
        /// Its run.
        id: ContainerId,
        /// Signal number.
        signal: i32,
        /// Time until SIGKILL.
        grace: Duration,
        /// The reason.
        why: StopReason,
    },
    /// Its grace is over.
    KillContainer {
        /// The container.
        container: ContainerName,
        /// Its run.
        id: ContainerId,
    },
    /// Give the sandbox's network back and remove every trace of the sandbox from the kernel.
    StopSandbox,
    /// Make a sandbox.
    CreateSandbox {
        /// 0 for the pod's first.
        attempt: u32,
        /// The time at which the sandbox before was lost, if it was.
        lost_at: Option<Moment>,
        /// The data of claims are given to the pod's `fsGroup` before, so the volumes have to be there.
        gives_claims: bool,
    },
    /// Change the limits of the pod's cgroup.
    ResizeSandbox(Box<CgroupResources>),
    /// Change what a running container is given.
    ResizeContainer {
        /// The container.
        container: ContainerName,
        /// Its run.
        id: ContainerId,
        /// The new resources.
        resources: Box<ContainerResources>,
    },
    /// Set the sandbox's network up, or learn what it has.
    SetUpNetwork,
    /// Forget a dead run of a container.
    RemoveContainer {
        /// The container.
        container: ContainerName,
        /// The run.
        id: ContainerId,
    },
    /// Create and start a container.
    StartContainer {
        /// The container.
        container: ContainerName,
        /// Its restart count.
        attempt: u32,
        /// Number of times all containers of the sandbox were restarted together.
        round: u32,
        /// The end of the run before, if this start follows the end of a run of the same definition.
        ended_at: Option<Moment>,
    },
    /// The pod is over by itself: what still runs is stopped, and nothing is started again.
    Finish(PodResult),
    /// Remove volumes that only an earlier definition of the pod had; no container of that one runs.
    TrimVolumes,
    /// Measure what the pod uses of the host's disk. Goes on in the background.
    MeasureStorage,
    /// Recreate an evicted pod, under another UID and with empty volumes.
    Recreate,
    /// Remove the volumes of a removed pod.
    RemoveVolumes,
    /// Remove all that is left of a removed pod.
    ForgetPod,
}

/// Reason why a container is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Its definition changed.
    DefinitionChanged,
    /// Its resources changed, and it has them only after a restart.
    ResizeRestarts,
    /// The pod's sandbox, or an init container, changed.
    PodChanged,
    /// It is no longer in the pod.
    NotInPod,
    /// All containers of the pod are restarted.
    AllRestart,
    /// Its postStart hook failed.
    PostStartFailed,
    /// The pod ends.
    PodEnds,
    /// Its liveness probe failed, and it is not restarted.
    LivenessFailed,
    /// Its liveness probe failed; it is restarted.
    LivenessFailedRestarts,
    /// Its startup probe failed, and it is not restarted.
    StartupFailed,
    /// Its startup probe failed; it is restarted.
    StartupFailedRestarts,
}

impl StopReason {
    /// Returns true if an edit of the pod is the reason, so that another edit can take it away.
    pub const fn is_edit(self) -> bool {
        match self {
            StopReason::DefinitionChanged | StopReason::ResizeRestarts | StopReason::PodChanged | StopReason::NotInPod => true,
            StopReason::AllRestart
            | StopReason::PostStartFailed
            | StopReason::PodEnds
            | StopReason::LivenessFailed
            | StopReason::LivenessFailedRestarts
            | StopReason::StartupFailed
            | StopReason::StartupFailedRestarts => false,
        }
    }

    /// For the event.
    pub const fn as_sentence(self) -> &'static str {
        match self {
            StopReason::DefinitionChanged => "its definition changed",
            StopReason::ResizeRestarts => "its resources changed",
            StopReason::PodChanged => "the definition of its pod changed",
            StopReason::NotInPod => "it is no longer in its pod",
            StopReason::AllRestart => "all containers of its pod are restarted",
            StopReason::PostStartFailed => "its postStart hook failed",
            StopReason::PodEnds => "its pod is terminating",
            StopReason::LivenessFailed => "it failed its liveness probe",
            StopReason::LivenessFailedRestarts => "it failed its liveness probe and will be restarted",
            StopReason::StartupFailed => "it failed its startup probe",
            StopReason::StartupFailedRestarts => "it failed its startup probe and will be restarted",
        }
    }

    /// The event about it, with the kubelet's words where it has some.
    pub fn message(self, container: &ContainerName) -> String {
        match self {
            StopReason::DefinitionChanged => format!("Container {container} definition changed, will be restarted"),
            StopReason::ResizeRestarts => format!("Container {container} resize requires restart"),
            StopReason::PodEnds => format!("Stopping container {container}"),
            // The kubelet has no such stops, or no text for them.
            StopReason::PodChanged | StopReason::AllRestart | StopReason::NotInPod | StopReason::PostStartFailed => {
                format!("Stopping container {container}: {}", self.as_sentence())
            }
            StopReason::LivenessFailed => format!("Container {container} failed liveness probe"),
            StopReason::LivenessFailedRestarts => format!("Container {container} failed liveness probe, will be restarted"),
            StopReason::StartupFailed => format!("Container {container} failed startup probe"),
            StopReason::StartupFailedRestarts => format!("Container {container} failed startup probe, will be restarted"),
        }
    }

    /// Returns true if the container's own state is the reason: its exit then counts like any exit of its own.
    pub const fn is_of_container(self) -> bool {
        match self {
            StopReason::DefinitionChanged
            | StopReason::ResizeRestarts
            | StopReason::PodChanged
            | StopReason::AllRestart
            | StopReason::NotInPod
            | StopReason::PodEnds => false,
            StopReason::PostStartFailed
            | StopReason::LivenessFailed
            | StopReason::LivenessFailedRestarts
            | StopReason::StartupFailed
            | StopReason::StartupFailedRestarts => true,
        }
    }
}

impl Action {
    /// Returns true if the step prepares something without touching running containers. Neighbours of this kind may be taken at the same
    /// time.
    pub const fn is_preparation(&self) -> bool {
        match self {
            Action::WriteRecord
            | Action::EnsureImage { .. }
            | Action::EnsureVolumeImage { .. }
            | Action::PrepareVolumes
            | Action::CreateSandbox { gives_claims: false, .. } => true,
            Action::CreateSandbox { gives_claims: true, .. } => false,
            Action::RunPostStart { .. }
            | Action::RunPreStop { .. }
            | Action::StopContainer { .. }
            | Action::KillContainer { .. }
            | Action::StopSandbox
            | Action::ResizeSandbox(_)
            | Action::ResizeContainer { .. }
            | Action::SetUpNetwork
            | Action::RemoveContainer { .. }
            | Action::StartContainer { .. }
            | Action::Finish(_)
            | Action::TrimVolumes
            | Action::MeasureStorage
            | Action::Recreate
            | Action::RemoveVolumes
            | Action::ForgetPod => false,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::WriteRecord => f.write_str("write record"),
            Action::EnsureImage { container, reference, policy } => {
                write!(f, "ensure image {reference} for {container} ({policy:?})")
            }
            Action::EnsureVolumeImage { volume, reference, policy } => {
                write!(f, "ensure image {reference} for volume {volume} ({policy:?})")
            }
            Action::PrepareVolumes => f.write_str("prepare volumes"),
            Action::RunPostStart { container, .. } => write!(f, "run postStart hook of {container}"),
            Action::RunPreStop { container, grace, why, .. } => {
                write!(f, "run preStop hook of {container} (grace {}s): {}", grace.as_secs(), why.as_sentence())
            }
            Action::StopContainer { container, signal, grace, why, .. } => {
                write!(f, "stop container {container} (signal {signal}, grace {}s): {}", grace.as_secs(), why.as_sentence())
            }
            Action::KillContainer { container, .. } => write!(f, "kill container {container}"),
            Action::StopSandbox => f.write_str("stop sandbox"),
            Action::CreateSandbox { attempt, .. } => write!(f, "create sandbox {attempt}"),
            Action::ResizeSandbox(_) => f.write_str("resize sandbox"),
            Action::ResizeContainer { container, .. } => write!(f, "resize container {container}"),
            Action::SetUpNetwork => f.write_str("set up network"),
            Action::RemoveContainer { container, id } => write!(f, "remove dead container {container} {id}"),
            Action::StartContainer { container, attempt, .. } => write!(f, "start container {container} (restarts {attempt})"),
            Action::Finish(result) => {
                write!(f, "finish pod: {}", if result.succeeded { "Succeeded" } else { "Failed" })?;
                match &result.reason {
                    Some(reason) => write!(f, " ({reason})"),
                    None => Ok(()),
                }
            }
            Action::TrimVolumes => f.write_str("remove volumes no longer in the pod"),
            Action::MeasureStorage => f.write_str("measure storage"),
            Action::Recreate => f.write_str("recreate the evicted pod"),
            Action::RemoveVolumes => f.write_str("remove volumes"),
            Action::ForgetPod => f.write_str("forget pod"),
        }
    }
}

/// A plan: actions to do now, and events to record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodActions {
    /// In this order. They assume that each one succeeds; when one does not, or goes on in the background, a new plan is due.
    pub actions: Vec<Action>,
    /// The time of the next plan, if nothing happens before.
    pub wake: Option<Moment>,
    /// Reason why containers wait, where the reason is a particular one.
    pub waiting: BTreeMap<ContainerName, Waiting>,
    /// Containers whose process runs but whose start is not done, and what is shown of them.
    pub starting: BTreeMap<ContainerName, Waiting>,
    /// Images for containers and volumes of a version that replaces a running one. Others are more urgent.
    pub ahead: Ahead,
}

/// Images that nothing waits for but an update: what they replace runs until they are here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Containers with such an image.
    pub containers: BTreeSet<ContainerName>,
    /// True if the images of volumes are such ones.
    pub volumes: bool,
}

impl PodActions {
    /// Plans again at `moment` at the latest.
    pub(super) fn wake_at(&mut self, moment: Moment) {
        self.wake = Some(self.wake.map_or(moment, |wake| wake.min(moment)));
    }
}
