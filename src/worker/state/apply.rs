//! The change of a pod's state by the outcome of a step. **Pure**.

use super::work::Measuring;
use super::{CleanupStage, ImageWork, PodState, PostStart, PreStop, Step, Stop, StorageWork};
use crate::backoff::{Backoff, BackoffPolicy, Failure};
use crate::definition::PodDefinition;
use crate::phase::WorkPhase;
use crate::plan::{Action, LEAST_GRACE};
use podstead_container::{ResolvedImage, SandboxStatus};
use podstead_pod::storage::StorageUsage;
use podstead_pod::{ContainerId, ContainerName};
use podstead_runtime::PodNetworkStatus;
use podstead_status::{PodResult, reason};
use podstead_sys_async::clock::{Moment, Now};
use podstead_telemetry::error_chain;
use std::error::Error;
use std::time::Duration;

/// Time between two measurements of a pod, at least.
const MEASURE_PAUSE: Duration = Duration::from_secs(20);
/// And so many times the time that the last one took: walking a large volume takes no more than a hundredth of the disk's time.
const MEASURE_SHARE: u32 = 100;

/// Result of a step.
#[derive(Debug)]
pub enum Outcome {
    /// Taken.
    Done,
    /// Goes on in the background; what needs it has to wait.
    Pending,
    /// The container runs.
    Started {
        /// Its run.
        id: ContainerId,
        /// Its postStart hook must run; later containers have to wait.
        owes_hook: bool,
    },
    /// The image is present.
    Image(ResolvedImage),
    /// The sandbox lives.
    Sandbox(SandboxStatus),
    /// The pod has this network.
    Network(PodNetworkStatus),
    /// Not taken.
    Failed {
        /// In the kubelet's words.
        reason: &'static str,
        /// The error.
        message: String,
    },
}

impl Outcome {
    pub(crate) fn failed(reason: &'static str, error: &(dyn Error + 'static)) -> Self {
        Outcome::Failed { reason, message: error_chain(error).to_string() }
    }

    /// Returns true if the plan that the step belongs to still holds.
    pub(crate) const fn is_as_planned(&self) -> bool {
        match self {
            Outcome::Done
            | Outcome::Started { owes_hook: false, .. }
            | Outcome::Image(_)
            | Outcome::Sandbox(_)
            | Outcome::Network(_) => true,
            Outcome::Pending | Outcome::Started { owes_hook: true, .. } | Outcome::Failed { .. } => false,
        }
    }
}

impl PodState {
    /// Applies what came of `action`.
    pub(crate) fn apply(
        &mut self,
        action: &Action,
        outcome: Outcome,
        definition: &PodDefinition,
        phase: &mut WorkPhase,
        crash_loop: &BackoffPolicy,
        now: Now,
    ) {
        let moment = now.moment;
        match action {
            Action::WriteRecord => self.record.apply(outcome, moment),
            Action::PrepareVolumes => {
                self.volumes.step.apply(outcome, moment);
                self.volumes.were_prepared |= self.volumes.step == Step::Done;
            }
            Action::SetUpNetwork => self.network_set_up(outcome, moment),
            Action::EnsureImage { container, .. } => self.image_looked_up(container, outcome, moment),
            Action::EnsureVolumeImage { volume, .. } => self.volume_image_looked_up(volume, outcome, moment),
            Action::RunPostStart { id, .. } => self.runs.set_post_start(id, PostStart::Running),
            Action::RunPreStop { id, grace, why, .. } => {
                let deadline = moment + *grace;
                let stop = Stop { deadline, not_before: moment, pre_stop: PreStop::Running, killed: None, why: *why };
                self.runs.begin_stop(id, stop);
            }
            Action::StopContainer { id, grace, why, .. } => {
                let had_hook = self.runs.stop(id).is_some_and(|stop| stop.pre_stop != PreStop::None);
                let pre_stop = if had_hook { PreStop::Over } else { PreStop::None };
                let not_before = moment + LEAST_GRACE.min(*grace);
                self.runs.begin_stop(id, Stop { deadline: moment + *grace, not_before, pre_stop, killed: None, why: *why });
            }
            Action::KillContainer { id, .. } => self.runs.killed(id, moment),
            Action::CreateSandbox { lost_at, .. } => self.sandbox_made(*lost_at, outcome, moment),
            Action::ResizeSandbox(_) => self.sandbox.failure = failure(self.sandbox.failure.as_ref(), outcome, moment),
            Action::ResizeContainer { container, .. } => {
                let work = self.container_mut(container);
                work.resize = failure(work.resize.as_ref(), outcome, moment);
            }
            Action::StartContainer { container, ended_at, .. } => {
                if let Outcome::Started { id, owes_hook: true } = &outcome {
                    self.runs.set_post_start(id, PostStart::Owed);
                }
                let work = self.container_mut(container);
                if let Some(definition) = definition.container(container) {
                    work.restarting(definition, *ended_at, crash_loop, moment);
                }
                work.failure = failure(work.failure.as_ref(), outcome, moment);
                if work.failure.is_none() {
                    work.image = ImageWork::Open;
                }
            }
            Action::Finish(result) => {
                phase.finish(result.clone(), grace_of(result, definition), moment);
                self.record = Step::Open;
            }
            Action::MeasureStorage => self.storage.next = Measuring::UnderWay,
            Action::Recreate => self.cleanup.stage = CleanupStage::RecreationRequested,
            Action::StopSandbox | Action::RemoveContainer { .. } => {
                self.cleaned_up(outcome, moment);
            }
            Action::TrimVolumes => self.volumes.has_surplus = !self.cleaned_up(outcome, moment),
            Action::RemoveVolumes => {
                if self.cleaned_up(outcome, moment) {
                    self.cleanup.stage = CleanupStage::VolumesRemoved;
                }
            }
            Action::ForgetPod => {
                if self.cleaned_up(outcome, moment) {
                    self.cleanup.stage = CleanupStage::Forgotten;
                }
            }
        }
    }

    fn network_set_up(&mut self, outcome: Outcome, now: Moment) {
        if let Outcome::Network(PodNetworkStatus { ips, report, dns }) = &outcome {
            self.network.ips.clone_from(ips);
            self.network.report.clone_from(report);
            self.network.dns.clone_from(dns);
        }
        self.network.step.apply(outcome, now);
    }

    fn sandbox_made(&mut self, lost_at: Option<Moment>, outcome: Outcome, now: Moment) {
        self.sandbox.failure = failure(self.sandbox.failure.as_ref(), outcome, now);
        if self.sandbox.failure.is_none() {
            self.network.step = Step::Open;
            self.sandbox.losses = lost_at.map(|lost_at| next_loss(self.sandbox.losses.as_ref(), lost_at, now));
        }
    }

    /// Applies the outcome of a step of cleaning up. Returns true if it succeeded.
    fn cleaned_up(&mut self, outcome: Outcome, now: Moment) -> bool {
        self.cleanup.failure = failure(self.cleanup.failure.as_ref(), outcome, now);
        self.cleanup.failure.is_none()
    }

    /// A measurement ended that took so long.
    pub(crate) fn storage_measured(&mut self, usage: StorageUsage, took: Duration, now: Moment) {
        let pause = MEASURE_PAUSE.max(took.saturating_mul(MEASURE_SHARE));
        self.storage = StorageWork { next: Measuring::At(now + pause), usage: Some(usage) };
    }

    /// An image was looked up, or the fetching of one ended.
    pub(crate) fn image_looked_up(&mut self, container: &ContainerName, outcome: Outcome, now: Moment) {
        let work = self.container_mut(container);
        work.image = looked_up(&work.image, outcome, now);
    }

    /// The same for the image of a volume. What is there now has to be mounted.
    pub(crate) fn volume_image_looked_up(&mut self, volume: &str, outcome: Outcome, now: Moment) {
        let image = looked_up(self.volumes.image(volume), outcome, now);
        if matches!(image, ImageWork::Present(_)) {
            self.volumes.step = Step::Open;
        }
        self.volumes.images.insert(volume.to_owned(), image);
    }

    /// The fetching of an image went on.
    pub(crate) fn image_progressed(&mut self, container: &ContainerName, progress: String) {
        self.container_mut(container).image.progressed(progress);
    }

    /// The same for the image of a volume.
    pub(crate) fn volume_image_progressed(&mut self, volume: &str, progress: String) {
        if let Some(image) = self.volumes.images.get_mut(volume) {
            image.progressed(progress);
        }
    }
}

fn looked_up(image: &ImageWork, outcome: Outcome, now: Moment) -> ImageWork {
    let previous = match image {
        ImageWork::Failed(failure) => Some(failure.clone()),
        ImageWork::Pulling { previous, .. } => previous.clone(),
        ImageWork::Open | ImageWork::Present(_) => None,
    };
    match outcome {
        Outcome::Image(image) => ImageWork::Present(Box::new(image)),
        Outcome::Failed { reason, message } => {
            let policy = BackoffPolicy::image_pull();
            ImageWork::Failed(Failure::again(previous.as_ref(), &policy, reason, message, now))
        }
        Outcome::Pending | Outcome::Done | Outcome::Started { .. } | Outcome::Sandbox(_) | Outcome::Network(_) => {
            ImageWork::Pulling { previous, progress: None }
        }
    }
}

/// An evicted pod goes at once: every second it writes on (the kubelet evicts with no grace; rule C7 makes that one second).
fn grace_of(result: &PodResult, definition: &PodDefinition) -> Duration {
    if result.reason.as_deref() == Some(reason::EVICTED) { Duration::from_secs(1) } else { definition.grace }
}

impl Step {
    fn apply(&mut self, outcome: Outcome, now: Moment) {
        let previous = match self {
            Step::Failed(failure) => Some(&*failure),
            Step::Open | Step::Done => None,
        };
        *self = match failure(previous, outcome, now) {
            Some(failure) => Step::Failed(failure),
            None => Step::Done,
        };
    }
}

fn failure(previous: Option<&Failure>, outcome: Outcome, now: Moment) -> Option<Failure> {
    match outcome {
        Outcome::Failed { reason, message } => Some(Failure::again(previous, &BackoffPolicy::retry(), reason, message, now)),
        Outcome::Done
        | Outcome::Started { .. }
        | Outcome::Pending
        | Outcome::Image(_)
        | Outcome::Sandbox(_)
        | Outcome::Network(_) => None,
    }
}

fn next_loss(losses: Option<&Backoff>, lost_at: Moment, now: Moment) -> Backoff {
    BackoffPolicy::retry().next(losses, lost_at, now)
}
