//! State of one container against its definition.

use super::PlanInput;
use crate::definition::{ContainerDefinition, round_of};
use crate::state::PreStop;
use podstead_container::{ContainerState, ContainerStatus};
use podstead_pod::ContainerId;
use podstead_pod::containers::ContainerKind;
use podstead_pod::restart::AfterExit;
use podstead_status::UNKNOWN_EXIT_CODE;
use podstead_sys_async::clock::Moment;
use std::collections::BTreeSet;

/// State of a container with regard to its definition, the restart policy and the sandbox that it must run in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing<'a> {
    /// Runs as it shall.
    Running(&'a ContainerStatus),
    /// Runs as an earlier definition says.
    Outdated(&'a ContainerStatus),
    /// Runs although all containers of the sandbox are to be restarted.
    Surpassed(&'a ContainerStatus),
    /// A crash left it incomplete: it has to be removed before it is started.
    HalfMade(&'a ContainerStatus),
    /// To be started.
    Due(Due<'a>),
    /// Ended as it shall, and stays so.
    Succeeded,
    /// Ended with a failure, and stays so.
    Failed,
}

/// A container that is to be started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Due<'a> {
    /// Its last run.
    pub(super) previous: Option<&'a ContainerStatus>,
    /// The end of that run, if it was of the same definition and ended by itself: then back-off counts.
    pub(super) ended_at: Option<Moment>,
}

/// Sandbox and round that containers must run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Attempt of the sandbox.
    pub(super) sandbox_attempt: u32,
    /// It has to be made first, so that nothing runs in it.
    pub(super) is_new: bool,
    /// Number of times all containers were restarted in it.
    pub(super) round: u32,
}

impl Place {
    /// This sandbox, in the round that its runs tell of. An end that restarts all containers begins a round; what was started in an
    /// earlier one is over (kubelet rule D5). So the round is known from the records alone, whoever dies in between.
    pub(super) fn of(input: &PlanInput<'_>, sandbox_attempt: u32, is_new: bool) -> Self {
        let begins_round = |run: &ContainerStatus| {
            let container = input.definition.container(&run.name).filter(|container| container.kind == run.kind);
            container.is_some_and(|container| {
                container.hash.is(&run.hash) && !input.state.runs.is_exit_ignored(&run.id) && restarts_all(container, run)
            })
        };
        let runs = input.observed.containers.iter().filter(|run| !is_new && run.sandbox_attempt == sandbox_attempt);
        let rounds = runs.map(|run| round_of(&run.hash).saturating_add(u32::from(begins_round(run))));
        Self { sandbox_attempt, is_new, round: rounds.max().unwrap_or(0) }
    }

    fn has_sandbox_of(&self, run: &ContainerStatus) -> bool {
        !self.is_new && run.sandbox_attempt == self.sandbox_attempt
    }

    /// Returns true if the run is of this sandbox and round.
    pub(super) fn is_of(&self, run: &ContainerStatus) -> bool {
        self.has_sandbox_of(run) && round_of(&run.hash) == self.round
    }

    /// Returns true if the run is of an earlier round.
    pub(super) fn is_after(&self, run: &ContainerStatus) -> bool {
        self.has_sandbox_of(run) && round_of(&run.hash) < self.round
    }
}

/// Runs in the present sandbox from before all containers were last restarted together.
pub(crate) fn surpassed(input: &PlanInput<'_>) -> BTreeSet<ContainerId> {
    let Some(sandbox) = &input.observed.sandbox else { return BTreeSet::new() };
    let place = Place::of(input, sandbox.spec.attempt, false);
    input.observed.containers.iter().filter(|run| place.is_after(run)).map(|run| run.id.clone()).collect()
}

fn restarts_all(container: &ContainerDefinition, run: &ContainerStatus) -> bool {
    match &run.state {
        ContainerState::Exited { exit_code, .. } => container.exits.after_exit(*exit_code) == AfterExit::RestartAll,
        ContainerState::Created | ContainerState::Running { .. } | ContainerState::Unknown { .. } => false,
    }
}

/// The newest run of a container. One of another role is another container.
pub(super) fn latest<'a>(input: &PlanInput<'a>, container: &ContainerDefinition) -> Option<&'a ContainerStatus> {
    input
        .observed
        .containers
        .iter()
        .filter(|run| run.name == container.name && run.kind == container.kind)
        .max_by_key(|run| run.attempt)
}

/// The state of `container` in the given sandbox and round.
pub(super) fn standing<'a>(input: &PlanInput<'a>, container: &ContainerDefinition, place: Place) -> Standing<'a> {
    let Some(run) = latest(input, container) else {
        return Standing::Due(Due { previous: None, ended_at: None });
    };
    let is_current = container.hash.is(&run.hash);
    let exit_code = match &run.state {
        ContainerState::Running { .. } if place.is_after(run) => return Standing::Surpassed(run),
        ContainerState::Running { .. } if place.has_sandbox_of(run) => {
            // Once a preStop hook was begun, the stop goes on, even if its reason is gone.
            let has_hook = input.state.runs.stop(&run.id).is_some_and(|stop| stop.pre_stop != PreStop::None);
            let is_leaving = has_hook && input.state.runs.is_exit_ignored(&run.id);
            let is_current = container.is_run_by(run, input.observed) && !is_leaving;
            return if is_current { Standing::Running(run) } else { Standing::Outdated(run) };
        }
        ContainerState::Created if place.has_sandbox_of(run) => return Standing::HalfMade(run),
        ContainerState::Exited { exit_code, .. } => *exit_code,
        ContainerState::Created | ContainerState::Running { .. } | ContainerState::Unknown { .. } => UNKNOWN_EXIT_CODE,
    };
    if !is_current || input.state.runs.is_exit_ignored(&run.id) {
        return Standing::Due(Due { previous: Some(run), ended_at: None });
    }
    let restart = Standing::Due(Due { previous: Some(run), ended_at: input.state.runs.ended_at(&run.id) });
    let afresh = Standing::Due(Due { previous: Some(run), ended_at: None });
    // Stopped by its probe, it is restarted regardless of its exit code.
    let has_failed = input.state.runs.failed_probe(&run.id).is_some();
    match container.exits.after_exit(exit_code) {
        // The back-off of the container that restarts all keeps the rounds apart.
        AfterExit::RestartAll => restart,
        AfterExit::Restart | AfterExit::Succeeded | AfterExit::Failed if place.is_after(run) => afresh,
        AfterExit::Restart => restart,
        AfterExit::Succeeded | AfterExit::Failed if has_failed && container.exits.restarts_when_stopped() => restart,
        AfterExit::Succeeded => match container.kind {
            // Init containers run once per sandbox.
            ContainerKind::Init if !place.is_of(run) => afresh,
            ContainerKind::Init | ContainerKind::Sidecar | ContainerKind::Main => Standing::Succeeded,
        },
        AfterExit::Failed => Standing::Failed,
    }
}
