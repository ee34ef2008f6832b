//! Where one container of the definition stands.

use super::PlanInput;
use crate::pod::containers::ContainerKind;
use crate::pod::restart::{AfterExit, after_exit};
use crate::runtime::{ContainerState, ContainerStatus};
use crate::status::UNKNOWN_EXIT_CODE;
use crate::sys::clock::Moment;
use crate::worker::definition::ContainerDefinition;

/// Where a container stands with regard to its definition, the restart policy and the sandbox that it shall run in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing<'a> {
    /// Runs as it shall.
    Running(&'a ContainerStatus),
    /// Runs as an earlier definition says.
    Outdated(&'a ContainerStatus),
    /// A crash left it half made: it has to go before it is started.
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
    /// When that ended, if it was of the same definition and ended by itself: then back-off counts.
    pub(super) ended_at: Option<Moment>,
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

/// `sandbox_attempt` is that of the sandbox that containers shall run in; `is_new` tells that it has to be made first, so that nothing runs in it.
pub(super) fn standing<'a>(
    input: &PlanInput<'a>,
    container: &ContainerDefinition,
    sandbox_attempt: u32,
    is_new: bool,
) -> Standing<'a> {
    let Some(run) = latest(input, container) else {
        return Standing::Due(Due { previous: None, ended_at: None });
    };
    let is_current = container.hash.is(&run.hash);
    let is_here = !is_new && run.sandbox_attempt == sandbox_attempt;
    let exit_code = match &run.state {
        ContainerState::Running { .. } if is_here => {
            let is_current = container.is_run_by(run, input.observed);
            return if is_current { Standing::Running(run) } else { Standing::Outdated(run) };
        }
        ContainerState::Created if is_here => return Standing::HalfMade(run),
        ContainerState::Exited { exit_code, .. } => *exit_code,
        ContainerState::Created | ContainerState::Running { .. } | ContainerState::Unknown { .. } => UNKNOWN_EXIT_CODE,
    };
    if !is_current || input.memory.signalled.contains(&run.id) {
        return Standing::Due(Due { previous: Some(run), ended_at: None });
    }
    match after_exit(input.definition.restart_policy, container.kind, exit_code) {
        AfterExit::Restart => Standing::Due(Due { previous: Some(run), ended_at: input.memory.ends.get(&run.id).copied() }),
        AfterExit::Succeeded => match container.kind {
            // Init containers run once per sandbox.
            ContainerKind::Init if !is_here => Standing::Due(Due { previous: Some(run), ended_at: None }),
            ContainerKind::Init | ContainerKind::Sidecar | ContainerKind::Main => Standing::Succeeded,
        },
        AfterExit::Failed => Standing::Failed,
    }
}
