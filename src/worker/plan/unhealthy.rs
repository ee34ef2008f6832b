//! Containers that their liveness or startup probe wants stopped (kubelet rules D12, D15). What follows their end, the restart policy says.

use super::stop::{Grace, stop_one};
use super::{PlanInput, PodActions, StopReason};
use podstead_pod::containers;
use podstead_probe::{ProbeKind, probe_grace};

/// Takes the next step in stopping each of them.
pub(super) fn stop_unhealthy(out: &mut PodActions, input: &PlanInput<'_>) {
    for run in input.running() {
        let Some(kind) = input.state.runs.failed_probe(&run.id) else { continue };
        // One that is stopped for another reason goes that way.
        if input.state.runs.is_exit_ignored(&run.id) {
            continue;
        }
        let own = containers::find(&input.definition.desired.pod, run.name.as_str())
            .and_then(|(_, container)| probe_grace(container, kind));
        let container = input.definition.container(&run.name).filter(|container| container.kind == run.kind);
        let restarts = container.is_some_and(|container| container.exits.restarts_when_stopped());
        let why = match (kind, restarts) {
            (ProbeKind::Startup, true) => StopReason::StartupFailedRestarts,
            (ProbeKind::Startup, false) => StopReason::StartupFailed,
            (ProbeKind::Liveness | ProbeKind::Readiness, true) => StopReason::LivenessFailedRestarts,
            (ProbeKind::Liveness | ProbeKind::Readiness, false) => StopReason::LivenessFailed,
        };
        stop_one(out, input, run, Grace::Each(own.unwrap_or(input.definition.grace)), why);
    }
}
