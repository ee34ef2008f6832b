//! Updates of the worker's memory by a step's outcome. **Pure**.

use super::backoff::{Backoff, BackoffPolicy, Failure};
use super::definition::PodDefinition;
use super::execute::Outcome;
use super::memory::{ImageWork, PodMemory, PostStart, PreStop, Step, Stop, StorageWork};
use super::phase::WorkPhase;
use super::plan::{Action, LEAST_GRACE, StopReason};
use podstead_pod::storage::StorageUsage;
use podstead_pod::{ContainerId, ContainerName};
use podstead_runtime::PodNetworkStatus;
use podstead_status::{PodResult, reason};
use podstead_sys_async::clock::{Moment, Now};
use std::time::Duration;

/// Time between two measurements of a pod, at least.
const MEASURE_PAUSE: Duration = Duration::from_secs(20);
/// And so many times the time that the last one took: walking a large volume takes no more than a hundredth of the disk's time.
const MEASURE_SHARE: u32 = 100;

impl PodMemory {
    /// Takes note of what came of `action`.
    pub(super) fn take_in(
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
            Action::WriteRecord => self.record.take_in(outcome, moment),
            Action::PrepareVolumes => {
                self.volumes.take_in(outcome, moment);
                self.had_volumes |= self.volumes == Step::Done;
            }
            Action::SetUpNetwork => {
                if let Outcome::Network(PodNetworkStatus { ips, report, dns }) = &outcome {
                    self.pod_ips.clone_from(ips);
                    self.network_report.clone_from(report);
                    self.network_dns.clone_from(dns);
                }
                self.network.take_in(outcome, moment);
            }
            Action::EnsureImage { container, .. } => self.image_looked_up(container, outcome, moment),
            Action::EnsureVolumeImage { volume, .. } => self.volume_image_looked_up(volume, outcome, moment),
            Action::RunPostStart { id, .. } => {
                self.post_starts.insert(id.clone(), PostStart::Running);
            }
            Action::RunPreStop { id, grace, why, .. } => {
                let stop =
                    Stop { deadline: moment + *grace, not_before: moment, pre_stop: PreStop::Running, killed: None, why: *why };
                self.stops.insert(id.clone(), stop);
                self.stopping(id, *why);
            }
            Action::StopContainer { id, grace, why, .. } => {
                let had_hook = self.stops.get(id).is_some_and(|stop| stop.pre_stop != PreStop::None);
                let pre_stop = if had_hook { PreStop::Over } else { PreStop::None };
                let not_before = moment + LEAST_GRACE.min(*grace);
                self.stops.insert(id.clone(), Stop { deadline: moment + *grace, not_before, pre_stop, killed: None, why: *why });
                self.stopping(id, *why);
            }
            Action::KillContainer { id, .. } => {
                if !matches!(self.post_starts.get(id), Some(PostStart::Failed(_))) && self.failed_probe(id).is_none() {
                    self.signalled.insert(id.clone());
                }
                if let Some(stop) = self.stops.get_mut(id) {
                    stop.killed = Some(moment);
                }
            }
            Action::CreateSandbox { lost_at, .. } => {
                self.sandbox = failure(self.sandbox.as_ref(), outcome, moment);
                if self.sandbox.is_none() {
                    self.network = Step::Open;
                    self.losses = lost_at.map(|lost_at| next_loss(self.losses.as_ref(), lost_at, moment));
                }
            }
            Action::ResizeSandbox(_) => self.sandbox = failure(self.sandbox.as_ref(), outcome, moment),
            Action::ResizeContainer { container, .. } => {
                let memory = self.container_mut(container);
                memory.resize = failure(memory.resize.as_ref(), outcome, moment);
            }
            Action::StartContainer { container, ended_at, .. } => {
                if let Outcome::Started { id, owes_hook: true } = &outcome {
                    self.post_starts.insert(id.clone(), PostStart::Owed);
                }
                if let Some(definition) = definition.container(container) {
                    self.restarting(definition, *ended_at, crash_loop, moment);
                }
                let memory = self.container_mut(container);
                memory.failure = failure(memory.failure.as_ref(), outcome, moment);
                if memory.failure.is_none() {
                    memory.image = ImageWork::Open;
                }
            }
            Action::Finish(result) => {
                phase.finish(result.clone(), grace_of(result, definition), moment);
                self.record = Step::Open;
            }
            Action::StopSandbox | Action::RemoveContainer { .. } => {
                self.cleanup = failure(self.cleanup.as_ref(), outcome, moment);
            }
            Action::MeasureStorage => self.storage.is_measuring = true,
            Action::Recreate => self.recreated = true,
            Action::TrimVolumes => {
                self.cleanup = failure(self.cleanup.as_ref(), outcome, moment);
                self.has_surplus_volumes = self.cleanup.is_some();
            }
            Action::RemoveVolumes => {
                self.cleanup = failure(self.cleanup.as_ref(), outcome, moment);
                self.volumes_removed = self.cleanup.is_none();
            }
            Action::ForgetPod => {
                self.cleanup = failure(self.cleanup.as_ref(), outcome, moment);
                self.forgotten = self.cleanup.is_none();
            }
        }
    }

    /// The container's end is podstead's doing, unless it is why itself.
    fn stopping(&mut self, id: &ContainerId, why: StopReason) {
        if !why.is_of_container() {
            self.signalled.insert(id.clone());
        }
    }

    /// A measurement ended that took so long.
    pub(super) fn storage_measured(&mut self, usage: StorageUsage, took: Duration, now: Moment) {
        let pause = MEASURE_PAUSE.max(took.saturating_mul(MEASURE_SHARE));
        self.storage = StorageWork { is_measuring: false, due: Some(now + pause), usage: Some(usage) };
    }

    /// An image was looked up, or the fetching of one ended.
    pub(super) fn image_looked_up(&mut self, container: &ContainerName, outcome: Outcome, now: Moment) {
        let memory = self.container_mut(container);
        memory.image = looked_up(&memory.image, outcome, now);
    }

    /// The same for the image of a volume. What is there now has to be mounted.
    pub(super) fn volume_image_looked_up(&mut self, volume: &str, outcome: Outcome, now: Moment) {
        let image = looked_up(self.volume_image(volume), outcome, now);
        if matches!(image, ImageWork::Present(_)) {
            self.volumes = Step::Open;
        }
        self.volume_images.insert(volume.to_owned(), image);
    }
}

fn looked_up(image: &ImageWork, outcome: Outcome, now: Moment) -> ImageWork {
    let previous = match image {
        ImageWork::Failed(failure) => Some(failure.clone()),
        ImageWork::Pulling(previous) => previous.clone(),
        ImageWork::Open | ImageWork::Present(_) => None,
    };
    match outcome {
        Outcome::Image(image) => ImageWork::Present(Box::new(image)),
        Outcome::Failed { reason, message } => {
            let policy = BackoffPolicy::image_pull();
            ImageWork::Failed(Failure::again(previous.as_ref(), &policy, reason, message, now))
        }
        Outcome::Pending | Outcome::Done | Outcome::Started { .. } | Outcome::Sandbox(_) | Outcome::Network(_) => {
            ImageWork::Pulling(previous)
        }
    }
}

/// An evicted pod goes at once: every second it writes on (the kubelet evicts with no grace; rule C7 makes that one second).
fn grace_of(result: &PodResult, definition: &PodDefinition) -> Duration {
    if result.reason.as_deref() == Some(reason::EVICTED) { Duration::from_secs(1) } else { definition.grace }
}

impl Step {
    fn take_in(&mut self, outcome: Outcome, now: Moment) {
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
