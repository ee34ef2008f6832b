//! How containers stop: signal, grace, SIGKILL; main containers together, then sidecars in reverse order (kubelet rule D12).

use super::{Action, PlanInput, PodActions, StopReason};
use crate::pod::containers::ContainerKind;
use crate::runtime::ContainerStatus;
use crate::sys::clock::Moment;
use std::time::Duration;

/// A process that survives SIGKILL hangs in the kernel; tried again this often.
const KILL_AGAIN: Duration = Duration::from_secs(10);
const SIGKILL: i32 = 9;
/// What a sidecar gets at least when the main containers used up the grace period.
const LEAST_SIDECAR_GRACE: Duration = Duration::from_secs(2);

/// How long containers have.
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
    /// Time between signal and SIGKILL for a container of this role that is signalled now.
    fn left(self, kind: ContainerKind, now: Moment) -> Duration {
        match (self, kind) {
            (Grace::Each(grace), _) => grace,
            (Grace::Nothing, _) => Duration::ZERO,
            (Grace::Until(end), ContainerKind::Sidecar) => end.since(now).max(LEAST_SIDECAR_GRACE),
            (Grace::Until(end), ContainerKind::Init | ContainerKind::Main) => end.since(now),
        }
    }

    /// When a container that was given time until `deadline` is killed. The end of the pod can only come closer.
    fn cut(self, kind: ContainerKind, deadline: Moment) -> Moment {
        match (self, kind) {
            (Grace::Until(end), ContainerKind::Init | ContainerKind::Main) => deadline.min(end),
            (Grace::Each(_) | Grace::Nothing, _) | (Grace::Until(_), ContainerKind::Sidecar) => deadline,
        }
    }
}

/// Takes the next step in stopping one container. Whether that goes on already, that is: whether its end has to be waited for.
pub(super) fn stop_one(out: &mut PodActions, input: &PlanInput<'_>, run: &ContainerStatus, grace: Grace, why: StopReason) -> bool {
    let now = input.now.moment;
    let Some(stop) = input.memory.stops.get(&run.id) else {
        let signal = match grace {
            Grace::Each(_) | Grace::Until(_) => run.stop_signal,
            Grace::Nothing => SIGKILL,
        };
        out.actions.push(Action::StopContainer {
            container: run.name.clone(),
            id: run.id.clone(),
            signal,
            grace: grace.left(run.kind, now),
            why,
        });
        return false;
    };
    let kill_at = match stop.killed {
        Some(killed) => killed + KILL_AGAIN,
        None => grace.cut(run.kind, stop.deadline),
    };
    if now >= kill_at {
        out.actions.push(Action::KillContainer { container: run.name.clone(), id: run.id.clone() });
        out.wake_at(now + KILL_AGAIN);
    } else {
        out.wake_at(kill_at);
    }
    true
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
            return true;
        }
        is_waiting = stop_one(out, input, run, grace, why);
    }
    is_waiting
}
