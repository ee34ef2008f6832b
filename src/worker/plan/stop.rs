//! Stop of containers: signal, grace period, SIGKILL; main containers together, then sidecars in reverse order (kubelet rule D12).

use super::{Action, PlanInput, PodActions, StopReason};
use crate::state::{PreStop, Stop};
use podstead_container::ContainerStatus;
use podstead_pod::containers::ContainerKind;
use podstead_sys_async::clock::Moment;
use std::time::Duration;

/// A process that survives SIGKILL hangs in the kernel; tried again this often.
const KILL_AGAIN: Duration = Duration::from_secs(10);
const SIGKILL: i32 = 9;
/// Minimum time between signal and SIGKILL, also when a preStop hook or, for a sidecar, the main containers used up the grace period.
pub(crate) const LEAST_GRACE: Duration = Duration::from_secs(2);

/// Grace period of containers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grace {
    /// Each this long from its signal.
    Each(Duration),
    /// All of them until then.
    Until(Moment),
    /// None: killed at once.
    Nothing,
}

impl Grace {
    /// Complete grace period of a container that begins to stop now.
    fn whole(self, now: Moment) -> Duration {
        match self {
            Grace::Each(grace) => grace,
            Grace::Until(end) => end.since(now),
            Grace::Nothing => Duration::ZERO,
        }
    }

    /// Time between signal and SIGKILL for a container that is signalled now, and whose preStop hook used up what was left until `begun`.
    fn left(self, begun: Option<&Stop>, now: Moment) -> Duration {
        let left = match begun {
            Some(stop) => self.cut(stop).since(now),
            None => self.whole(now),
        };
        match self {
            Grace::Each(_) | Grace::Until(_) => left.max(LEAST_GRACE),
            Grace::Nothing => Duration::ZERO,
        }
    }

    /// The end of a container that was given time until a deadline. The end of the pod can only come closer.
    fn cut(self, stop: &Stop) -> Moment {
        match self {
            Grace::Until(end) => stop.deadline.min(end.max(stop.not_before)),
            Grace::Each(_) => stop.deadline,
            Grace::Nothing => stop.not_before.min(stop.deadline),
        }
    }
}

/// Takes the next step in stopping one container. Whether that goes on already, that is: whether its end has to be waited for.
pub(super) fn stop_one(out: &mut PodActions, input: &PlanInput<'_>, run: &ContainerStatus, grace: Grace, why: StopReason) -> bool {
    let now = input.now.moment;
    let stop = match input.state.runs.stop(&run.id) {
        None => {
            begin_pre_stop(out, input, run, grace, why);
            signal(out, input, run, grace, why);
            return false;
        }
        Some(stop) => stop,
    };
    let kill_at = match (stop.pre_stop, stop.killed) {
        (PreStop::Running, _) if now < grace.cut(stop) => {
            out.wake_at(grace.cut(stop));
            return true;
        }
        (PreStop::Running | PreStop::Ended, _) => {
            signal(out, input, run, grace, why);
            return false;
        }
        (PreStop::None | PreStop::Over, Some(killed)) => killed + KILL_AGAIN,
        (PreStop::None | PreStop::Over, None) => grace.cut(stop),
    };
    if now >= kill_at {
        out.actions.push(Action::KillContainer { container: run.name.clone(), id: run.id.clone() });
        out.wake_at(now + KILL_AGAIN);
    } else {
        out.wake_at(kill_at);
    }
    true
}

/// Plans the container's preStop hook, if it has one that was not begun and there is time for it.
fn begin_pre_stop(out: &mut PodActions, input: &PlanInput<'_>, run: &ContainerStatus, grace: Grace, why: StopReason) {
    let container = input.definition.container(&run.name).filter(|container| container.kind == run.kind);
    let has_hook = container.is_some_and(|container| container.pre_stop.is_some());
    let is_begun = input.state.runs.is_pre_stop_begun(&run.id);
    let grace = grace.whole(input.now.moment);
    if has_hook && !is_begun && !grace.is_zero() {
        out.actions.push(Action::RunPreStop { container: run.name.clone(), id: run.id.clone(), grace, why });
    }
}

fn signal(out: &mut PodActions, input: &PlanInput<'_>, run: &ContainerStatus, grace: Grace, why: StopReason) {
    let signal = match grace {
        Grace::Each(_) | Grace::Until(_) => run.stop_signal,
        Grace::Nothing => SIGKILL,
    };
    let left = grace.left(input.state.runs.stop(&run.id), input.now.moment);
    out.actions.push(Action::StopContainer { container: run.name.clone(), id: run.id.clone(), signal, grace: left, why });
}

/// Reason to stop an outdated run: its definition changed, or its resources did and that needs a restart.
pub(super) fn reason_of_change(input: &PlanInput<'_>, run: &ContainerStatus) -> StopReason {
    let container = input.definition.container(&run.name).filter(|container| container.kind == run.kind);
    let begun = input.state.runs.stop(&run.id).map(|stop| stop.why);
    let is_resize = container.is_some_and(|container| container.hash.is(&run.hash));
    if is_resize && begun.is_none_or(|why| why == StopReason::ResizeRestarts) {
        StopReason::ResizeRestarts
    } else {
        StopReason::DefinitionChanged
    }
}

/// Takes the next steps in stopping all of `runs`. Whether an end has to be waited for.
pub(super) fn stop_in_order(
    out: &mut PodActions,
    input: &PlanInput<'_>,
    runs: &[&ContainerStatus],
    grace: Grace,
    why: StopReason,
) -> bool {
    let (mut sidecars, others): (Vec<_>, Vec<_>) = runs.iter().copied().partition(|run| run.kind == ContainerKind::Sidecar);
    let mut is_waiting = false;
    for run in others {
        is_waiting |= stop_one(out, input, run, grace, why);
    }
    // One that is no longer in the pod goes first.
    let place = |run: &ContainerStatus| input.definition.containers.iter().position(|container| container.name == run.name);
    sidecars.sort_by_key(|run| std::cmp::Reverse(place(run).unwrap_or(usize::MAX)));
    for run in sidecars {
        if is_waiting {
            // Only its signal waits for its turn.
            begin_pre_stop(out, input, run, grace, why);
            continue;
        }
        is_waiting = stop_one(out, input, run, grace, why);
    }
    is_waiting
}
