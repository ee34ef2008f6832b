//! Traces of a worker's turns: their beginnings and ends, and the spans of its actions.

use super::definition::{PodDefinition, has_same_content};
use super::plan::{Action, PodActions};
use super::queue::Work;
use super::record::PodRecord;
use super::services::Services;
use super::state::{ImageWork, PodState};
use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};
use podstead_container::ObservedPod;
use podstead_pod::DesiredPod;
use podstead_status::reason;
use podstead_sys::tick::Tick;
use podstead_sys_async::clock::Moment;
use podstead_telemetry::trace::{Beginning, Cause, Step};
use std::sync::Arc;

/// Times of a worker that its next turn needs.
#[derive(Debug, Default)]
pub(super) struct Timing {
    /// The pod is new: its first turn begins a trace.
    is_new: bool,
    /// Beginning of the turn.
    began: Tick,
    /// End of the last turn, and what the pod waits for since.
    pause: Option<(Tick, String)>,
}

impl Timing {
    /// Of a pod that was never seen before.
    pub(super) fn of_new() -> Self {
        Self { is_new: true, ..Self::default() }
    }
}

/// The step that an action is in a trace, and what it is about; `None` for what goes on in the background or takes no time.
pub(super) fn step_of(action: &Action) -> Option<(Step, Option<&str>)> {
    match action {
        Action::WriteRecord => Some((Step::Record, None)),
        Action::PrepareVolumes => Some((Step::Volumes, None)),
        Action::CreateSandbox { .. } => Some((Step::Sandbox, None)),
        Action::SetUpNetwork => Some((Step::Network, None)),
        Action::StartContainer { container, .. } => Some((Step::Container, Some(container.as_str()))),
        Action::StopContainer { container, .. }
        | Action::KillContainer { container, .. }
        | Action::RemoveContainer { container, .. } => Some((Step::Stop, Some(container.as_str()))),
        Action::StopSandbox | Action::TrimVolumes => Some((Step::Stop, None)),
        Action::ResizeSandbox(_) => Some((Step::Resize, None)),
        Action::ResizeContainer { container, .. } => Some((Step::Resize, Some(container.as_str()))),
        Action::EnsureImage { .. }
        | Action::EnsureVolumeImage { .. }
        | Action::RunPostStart { .. }
        | Action::RunPreStop { .. }
        | Action::Finish(_)
        | Action::MeasureStorage
        | Action::Recreate
        | Action::RemoveVolumes
        | Action::ForgetPod => None,
    }
}

impl Timing {
    /// Begins a turn of the pod `current`, and a trace if there is a reason. `ordered` is the time of the order for the pod that the turn begins with.
    /// Returns the beginning of the turn.
    pub(super) fn turn(
        &mut self,
        services: &Services,
        current: &DesiredPod,
        work: &Work<Arc<DesiredPod>>,
        ordered: Option<Tick>,
    ) -> Tick {
        let began = Tick::now();
        self.began = began;
        let pause = self.pause.take();
        let is_new = std::mem::take(&mut self.is_new);
        let cause = match work {
            Work::Sync(_) if is_new => Some(Cause::Start),
            Work::Sync(desired) => (!has_same_content(&desired.pod, &current.pod)).then_some(Cause::Change),
            Work::Look | Work::Remove => None,
        };
        let (uid, at) = (&current.uid, ordered.unwrap_or(began));
        if let (Some(cause), Work::Sync(desired)) = (cause, work) {
            let beginning = Beginning { cause, source: &desired.source, revision: &desired.revision, at };
            services.traces.begin(uid, beginning);
            services.traces.add(uid, Step::AwaitTurn, None, at, began);
        } else if let Some((since, reason)) = pause {
            let about = Some(reason.as_str()).filter(|reason| !reason.is_empty());
            services.traces.add(uid, Step::Wait, about, since, began);
        }
        if matches!(work, Work::Remove) {
            services.traces.complete(uid);
        }
        began
    }

    /// Begins the trace of a change of objects that the pod uses.
    pub(super) fn change(&self, services: &Services, desired: &DesiredPod) {
        let DesiredPod { uid, source, revision, .. } = desired;
        services.traces.begin(uid, Beginning { cause: Cause::Change, source, revision, at: self.began });
    }

    /// Begins the trace of a restart if the actions begin one outside of another trace.
    pub(super) fn restart(&self, services: &Services, record: &PodRecord, actions: &[Action]) {
        let DesiredPod { uid, source, revision, .. } = &record.desired;
        let now = services.clock.now();
        let Some((container, ended_at)) = actions.iter().find_map(restarted) else { return };
        if services.traces.is_open(uid) {
            return;
        }
        // What an operator stopped waited for the operator.
        let resumed = record.halt.as_ref().and_then(|halt| halt.until).map(|until| now.moment_of(until));
        let since = ended_at.map(|ended_at| resumed.map_or(ended_at, |resumed| ended_at.max(resumed)));
        let at = since.map_or(self.began, |since| Tick::now().before(now.moment.since(since)).min(self.began));
        services.traces.begin(uid, Beginning { cause: Cause::Restart, source, revision, at });
        services.traces.add(uid, Step::Wait, container, at, self.began);
    }

    /// Ends a turn in the trace: it is complete, or the pod waits from now on. `status` is what the turn published.
    pub(super) fn pause(
        &mut self,
        services: &Services,
        definition: &PodDefinition,
        state: &PodState,
        status: Option<&PodStatus>,
        plan: &PodActions,
        observed: &ObservedPod,
    ) {
        let uid = &definition.desired.uid;
        if !services.traces.is_open(uid) {
            return;
        }
        let mut reasons: Vec<String> = Vec::new();
        let waiting = plan.waiting.iter().chain(&plan.starting);
        let waiting = waiting.filter(|(_, waiting)| waiting.reason != reason::CRASH_LOOP_BACK_OFF);
        reasons.extend(waiting.map(|(container, waiting)| format!("{container}: {}", waiting.reason)));
        let stopping = observed.containers.iter().filter(|run| state.runs.is_stopping(&run.id));
        reasons.extend(stopping.map(|run| format!("{} stops", run.name)));
        let pulls = definition.containers.iter().map(|container| &state.container(&container.name).image);
        let volumes = definition.volume_images.iter().map(|image| state.volumes.image(&image.volume));
        let is_pulling = pulls.chain(volumes).any(|image| matches!(image, ImageWork::Pulling { .. }));
        if reasons.is_empty() && !is_pulling && !status.is_some_and(shows_waiting) {
            services.traces.complete(uid);
        } else {
            self.pause = Some((Tick::now(), reasons.join(", ")));
        }
    }
}

/// The container that an action starts, and the end of its last run; of a sandbox, the end of that.
fn restarted(action: &Action) -> Option<(Option<&str>, Option<Moment>)> {
    match action {
        Action::StartContainer { container, ended_at, .. } => Some((Some(container.as_str()), *ended_at)),
        Action::CreateSandbox { lost_at, .. } => Some((None, *lost_at)),
        Action::WriteRecord
        | Action::EnsureImage { .. }
        | Action::EnsureVolumeImage { .. }
        | Action::PrepareVolumes
        | Action::RunPostStart { .. }
        | Action::RunPreStop { .. }
        | Action::StopContainer { .. }
        | Action::KillContainer { .. }
        | Action::StopSandbox
        | Action::ResizeSandbox(_)
        | Action::ResizeContainer { .. }
        | Action::SetUpNetwork
        | Action::RemoveContainer { .. }
        | Action::Finish(_)
        | Action::TrimVolumes
        | Action::MeasureStorage
        | Action::Recreate
        | Action::RemoveVolumes
        | Action::ForgetPod => None,
    }
}

/// Returns true if a status shows a container that was not started yet.
fn shows_waiting(status: &PodStatus) -> bool {
    let is_waiting = |status: &ContainerStatus| {
        let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.reason.as_deref() != Some(reason::CRASH_LOOP_BACK_OFF))
    };
    status.init_container_statuses.iter().chain(&status.container_statuses).flatten().any(is_waiting)
}
