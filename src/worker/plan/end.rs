//! A pod that ends, has ended or was stopped by an operator.

use super::stop::{Grace, stop_in_order};
use super::{Action, PlanInput, PodActions, StopReason};
use crate::phase::{Cause, Termination};
use crate::state::{CleanupStage, Step};
use podstead_container::SandboxState;
use podstead_pod::containers::ContainerKind;
use podstead_pod::restart::RestartPolicy;
use podstead_status::{Waiting, reason};
use std::time::Duration;

/// Stops what runs, then the sandbox.
pub(super) fn plan_terminating(input: PlanInput<'_>, termination: &Termination) -> PodActions {
    let mut out = PodActions::default();
    write_record(&mut out, &input);
    let running: Vec<_> = input.running().collect();
    let grace = Grace::Until(termination.began + termination.grace);
    if stop_in_order(&mut out, &input, &running, grace, StopReason::PodEnds) {
        return out;
    }
    if plan_cleanup(&mut out, &input, has_sandbox(&input).then_some(Action::StopSandbox)) {
        plan_removal(&mut out, &input, &termination.cause);
    }
    out
}

/// Stops what runs, then the sandbox. Volumes stay, and so does the pod.
pub(super) fn plan_halted(input: PlanInput<'_>) -> PodActions {
    let mut out = PodActions::default();
    write_record(&mut out, &input);
    for container in input.definition.containers.iter().filter(|container| container.kind != ContainerKind::Init) {
        let message = "stopped by an operator; podstead start starts it".to_owned();
        out.waiting.insert(container.name.clone(), Waiting { reason: reason::STOPPED, message });
    }
    let running: Vec<_> = input.running().collect();
    if !stop_in_order(&mut out, &input, &running, Grace::Each(input.definition.grace), StopReason::PodEnds) {
        plan_cleanup(&mut out, &input, has_sandbox(&input).then_some(Action::StopSandbox));
    }
    out
}

fn write_record(out: &mut PodActions, input: &PlanInput<'_>) {
    match &input.state.record {
        Step::Done => {}
        Step::Open => out.actions.push(Action::WriteRecord),
        // A pod must be able to end when the disk is full.
        Step::Failed(failure) if failure.is_due(input.now.moment) => out.actions.push(Action::WriteRecord),
        Step::Failed(failure) => out.wake_at(failure.retry_at),
    }
}

/// Removes what a removed pod left.
pub(super) fn plan_terminated(input: PlanInput<'_>, cause: &Cause) -> PodActions {
    let mut out = PodActions::default();
    plan_removal(&mut out, &input, cause);
    plan_recreation(&mut out, &input, cause);
    out
}

/// Recreates a pod that must always run after an eviction, as a controller in a cluster would do: at once if it had lived for long,
/// else after the longest pause of crashing containers. One that shall end by itself stays as it is.
fn plan_recreation(out: &mut PodActions, input: &PlanInput<'_>, cause: &Cause) {
    let is_evicted = match cause {
        Cause::Finished(result) => result.reason.as_deref() == Some(reason::EVICTED),
        Cause::Removed(_) => false,
    };
    let comes_back = is_evicted
        && input.definition.restart_policy == RestartPolicy::Always
        && input.state.cleanup.stage < CleanupStage::RecreationRequested;
    let (Some(ended), true) = (input.state.runs.last_end(), comes_back) else { return };
    let lived = ended.since(input.state.active.since.unwrap_or(ended));
    let pause = if lived > input.crash_loop.reset_after { Duration::ZERO } else { input.crash_loop.cap };
    if ended + pause > input.now.moment {
        out.wake_at(ended + pause);
    } else {
        out.actions.push(Action::Recreate);
    }
}

/// Returns true if nothing of the pod runs and its sandbox is gone.
pub(crate) fn is_stopped(input: &PlanInput<'_>) -> bool {
    !has_sandbox(input)
}

fn has_sandbox(input: &PlanInput<'_>) -> bool {
    input.observed.sandbox.as_ref().is_some_and(|sandbox| match sandbox.state {
        SandboxState::Ready | SandboxState::Lost => true,
        SandboxState::Stopped => false,
    })
}

fn plan_removal(out: &mut PodActions, input: &PlanInput<'_>, cause: &Cause) {
    match cause {
        Cause::Finished(_) => {}
        Cause::Removed(_) => {
            let volumes = (input.state.cleanup.stage < CleanupStage::VolumesRemoved).then_some(Action::RemoveVolumes);
            if plan_cleanup(out, input, volumes) {
                plan_cleanup(out, input, (input.state.cleanup.stage < CleanupStage::Forgotten).then_some(Action::ForgetPod));
            }
        }
    }
}

/// Takes a step of cleaning up, unless one failed just now. Whether what follows may be planned too.
fn plan_cleanup(out: &mut PodActions, input: &PlanInput<'_>, action: Option<Action>) -> bool {
    match (&input.state.cleanup.failure, action) {
        (_, None) => true,
        (Some(failure), Some(_)) if !failure.is_due(input.now.moment) => {
            out.wake_at(failure.retry_at);
            false
        }
        (Some(_) | None, Some(action)) => {
            out.actions.push(action);
            true
        }
    }
}
