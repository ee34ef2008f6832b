//! The pod's phase (kubelet rule D14).

use super::input::PodResult;
use crate::pod::restart::RestartPolicy;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// Something has not started yet.
    Pending,
    /// Something runs or will be restarted.
    Running,
    /// All containers ended with exit code 0 and are not restarted.
    Succeeded,
    /// All containers ended, one of them with another exit code, and are not restarted.
    Failed,
}

impl PodPhase {
    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            PodPhase::Pending => "Pending",
            PodPhase::Running => "Running",
            PodPhase::Succeeded => "Succeeded",
            PodPhase::Failed => "Failed",
        }
    }
}

/// The phase of a pod with these container statuses. `inits` are those of init containers without sidecars. A `result` that was decided
/// stays, whatever is seen later.
pub(super) fn pod_phase(
    policy: RestartPolicy,
    inits: &[&ContainerStatus],
    mains: &[&ContainerStatus],
    result: Option<&PodResult>,
) -> PodPhase {
    if let Some(result) = result {
        return if result.succeeded { PodPhase::Succeeded } else { PodPhase::Failed };
    }
    let main_has_run = mains.iter().any(|status| is_running(status) || ended(status).is_some());
    let init_failed = inits.iter().any(|status| ended(status).is_some_and(|ended| ended.exit_code != 0));
    let init_pending = inits.iter().any(|status| terminated(status).is_none_or(|terminated| terminated.exit_code != 0));
    if init_failed && policy == RestartPolicy::Never {
        return PodPhase::Failed;
    }
    if init_pending && !main_has_run {
        return PodPhase::Pending;
    }
    if mains.iter().any(|status| !is_running(status) && ended(status).is_none()) {
        return PodPhase::Pending;
    }
    if mains.iter().any(|status| is_running(status)) {
        return PodPhase::Running;
    }
    let all_succeeded = mains.iter().all(|status| ended(status).is_some_and(|ended| ended.exit_code == 0));
    match policy {
        RestartPolicy::Always => PodPhase::Running,
        RestartPolicy::OnFailure | RestartPolicy::Never if all_succeeded => PodPhase::Succeeded,
        RestartPolicy::OnFailure => PodPhase::Running,
        RestartPolicy::Never => PodPhase::Failed,
    }
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

fn terminated(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// The end of the latest run: of a container that is over, or that waits to be restarted.
fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let state = status.state.as_ref()?;
    match (&state.terminated, &state.waiting) {
        (Some(terminated), _) => Some(terminated),
        (None, Some(_)) => status.last_state.as_ref()?.terminated.as_ref(),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RestartPolicy::{Always, Never, OnFailure};
    use k8s_openapi::api::core::v1::{ContainerState, ContainerStateRunning, ContainerStateWaiting};

    fn exit(exit_code: i32) -> ContainerState {
        let terminated = ContainerStateTerminated { exit_code, ..ContainerStateTerminated::default() };
        ContainerState { terminated: Some(terminated), ..ContainerState::default() }
    }

    /// `r`unning, `w`aiting, `0` or `1` ended so, `b`acking off after exit code 1.
    fn status(letter: char) -> ContainerStatus {
        let waiting = || ContainerState { waiting: Some(ContainerStateWaiting::default()), ..ContainerState::default() };
        let (state, last_state) = match letter {
            'r' => (ContainerState { running: Some(ContainerStateRunning::default()), ..ContainerState::default() }, None),
            'w' => (waiting(), None),
            '0' => (exit(0), None),
            '1' => (exit(1), None),
            'b' => (waiting(), Some(exit(1))),
            _ => unreachable!("{letter}"),
        };
        ContainerStatus { state: Some(state), last_state, ..ContainerStatus::default() }
    }

    fn phase(policy: RestartPolicy, inits: &str, mains: &str) -> PodPhase {
        let (inits, mains): (Vec<_>, Vec<_>) = (inits.chars().map(status).collect(), mains.chars().map(status).collect());
        pod_phase(policy, &inits.iter().collect::<Vec<_>>(), &mains.iter().collect::<Vec<_>>(), None)
    }

    #[test]
    fn the_phase_follows_containers_and_restart_policy() {
        use PodPhase::{Failed, Pending, Running, Succeeded};
        for (mains, always, on_failure, never) in [
            ("w", Pending, Pending, Pending),
            ("rr", Running, Running, Running),
            ("rw", Pending, Pending, Pending),
            ("r0", Running, Running, Running),
            ("r1", Running, Running, Running),
            ("rb", Running, Running, Running),
            ("00", Running, Succeeded, Succeeded),
            ("01", Running, Running, Failed),
            ("11", Running, Running, Failed),
            ("bb", Running, Running, Failed),
            ("1w", Pending, Pending, Pending),
        ] {
            assert_eq!(phase(Always, "", mains), always, "Always {mains}");
            assert_eq!(phase(OnFailure, "", mains), on_failure, "OnFailure {mains}");
            assert_eq!(phase(Never, "", mains), never, "Never {mains}");
        }
    }

    #[test]
    fn init_containers_keep_the_pod_pending_and_fail_it_only_with_policy_never() {
        for (inits, mains, always, never) in [
            ("w", "w", PodPhase::Pending, PodPhase::Pending),
            ("r", "w", PodPhase::Pending, PodPhase::Pending),
            ("0w", "w", PodPhase::Pending, PodPhase::Pending),
            ("b", "w", PodPhase::Pending, PodPhase::Failed),
            ("1", "w", PodPhase::Pending, PodPhase::Failed),
            ("0", "r", PodPhase::Running, PodPhase::Running),
            ("0", "w", PodPhase::Pending, PodPhase::Pending),
            // The record of an init container may be gone once mains ran.
            ("w", "r", PodPhase::Running, PodPhase::Running),
        ] {
            assert_eq!(phase(Always, inits, mains), always, "Always {inits} {mains}");
            assert_eq!(phase(Never, inits, mains), never, "Never {inits} {mains}");
        }
    }

    #[test]
    fn a_decided_result_stays() {
        assert_eq!(pod_phase(Always, &[], &[&status('r')], Some(&PodResult::failed())), PodPhase::Failed);
        assert_eq!(pod_phase(Always, &[], &[&status('1')], Some(&PodResult::succeeded())), PodPhase::Succeeded);
    }
}
