//! Hooks of containers that run: right after their start (kubelet rule D8). Those before a stop are [`super::stop`]'s.

use super::stop::{Grace, stop_one};
use super::{Action, PlanInput, PodActions, StopReason};
use crate::state::{PostStart, Step};
use podstead_pod::containers::ContainerKind;
use podstead_status::{Waiting, reason};

/// Plans what is due, and stops what failed. A container whose hook is not done is not shown as running.
pub(super) fn tend_post_starts(out: &mut PodActions, input: &PlanInput<'_>) {
    for run in input.running() {
        let Some(state) = input.state.runs.post_start(&run.id) else { continue };
        let (reason, message) = match state {
            PostStart::Owed | PostStart::Running => {
                let reason = match run.kind {
                    ContainerKind::Init | ContainerKind::Sidecar => reason::POD_INITIALIZING,
                    ContainerKind::Main => reason::CONTAINER_CREATING,
                };
                (reason, String::new())
            }
            PostStart::Failed(message) => (reason::POST_START_HOOK_ERROR, message.clone()),
        };
        out.starting.insert(run.name.clone(), Waiting { reason, message });
        let is_stopping = input.state.runs.is_stopping(&run.id);
        match state {
            PostStart::Owed if !is_stopping && input.state.network.step == Step::Done => {
                out.actions.push(Action::RunPostStart { container: run.name.clone(), id: run.id.clone() });
            }
            PostStart::Failed(_) => {
                let grace = Grace::Each(input.definition.grace);
                stop_one(out, input, run, grace, StopReason::PostStartFailed);
            }
            PostStart::Owed | PostStart::Running => {}
        }
    }
}
