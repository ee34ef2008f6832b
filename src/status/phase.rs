//! The pod's phase (kubelet rule D14).

use super::input::PodResult;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};
use podstead_pod::restart::{AfterExit, ExitPolicy};

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

/// A container that counts: what is shown of it, and what follows its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a> {
    pub(super) status: &'a ContainerStatus,
    pub(super) exits: &'a ExitPolicy,
}

impl Counted<'_> {
    /// Reaction to the exit of its latest run; `None` before its first start and while it runs.
    fn after_exit(&self) -> Option<AfterExit> {
        ended(self.status).map(|ended| self.exits.after_exit(ended.exit_code))
    }
}

/// The phase of a pod with these containers. `inits` are init containers without sidecars. A `result` that was decided stays, whatever is
/// seen later. `is_initialized`: a main container was started in the present sandbox; init containers that run in a new one, after a reboot
/// for one, make the pod pending again. A pod of which something runs is not over, as for the kubelet's status manager: who sees that it is may take what it had.
/// Without a `result`, one that `shall_run` is not over either, whatever its exit codes say: the plan may start again what was stopped by
/// an edit, a probe or the end of another container. Only of one that is being removed do they tell how it ended.
pub(super) fn pod_phase(
    inits: &[Counted<'_>],
    sidecars: &[Counted<'_>],
    mains: &[Counted<'_>],
    is_initialized: bool,
    result: Option<&PodResult>,
    shall_run: bool,
) -> PodPhase {
    let runs = |containers: &[Counted<'_>]| containers.iter().any(|container| is_running(container.status));
    let is_alive = runs(inits) || runs(sidecars) || runs(mains);
    if let Some(result) = result.filter(|_| !is_alive) {
        return if result.succeeded { PodPhase::Succeeded } else { PodPhase::Failed };
    }
    let init_pending = inits.iter().any(|init| terminated(init.status).is_none_or(|terminated| terminated.exit_code != 0));
    if !is_alive && !shall_run && inits.iter().any(|init| init.after_exit() == Some(AfterExit::Failed)) {
        return PodPhase::Failed;
    }
    if init_pending && !is_initialized {
        return PodPhase::Pending;
    }
    if mains.iter().any(|main| !is_running(main.status) && ended(main.status).is_none()) {
        return PodPhase::Pending;
    }
    if is_alive {
        return PodPhase::Running;
    }
    let ends = |wanted: &[AfterExit]| mains.iter().filter_map(Counted::after_exit).any(|after| wanted.contains(&after));
    if shall_run || ends(&[AfterExit::Restart, AfterExit::RestartAll]) {
        PodPhase::Running
    } else if ends(&[AfterExit::Failed]) {
        PodPhase::Failed
    } else {
        PodPhase::Succeeded
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
    use k8s_openapi::api::core::v1::{ContainerState, ContainerStateRunning, ContainerStateWaiting};
    use podstead_pod::Pod;
    use podstead_pod::containers::{self, ContainerKind};

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

    /// The phase of a pod whose init and main containers all have these fields.
    fn phase_with(policy: &str, fields: &str, inits: &str, mains: &str) -> PodPhase {
        let containers = |list: &str| -> Vec<String> { list.chars().map(|_| format!("{{name: c, {fields}}}")).collect() };
        let (init, main) = (containers(inits).join(", "), containers(mains).join(", "));
        let yaml = format!("{{spec: {{restartPolicy: {policy}, containers: [{main}], initContainers: [{init}]}}}}");
        let pod: Pod = serde_yaml::from_str(&yaml).unwrap();
        let exits: Vec<ExitPolicy> = containers::all(&pod).map(|(kind, container)| ExitPolicy::of(&pod, kind, container)).collect();
        let statuses: Vec<ContainerStatus> = inits.chars().chain(mains.chars()).map(status).collect();
        let counted: Vec<Counted<'_>> = statuses.iter().zip(&exits).map(|(status, exits)| Counted { status, exits }).collect();
        let (inits, mains) = counted.split_at(inits.len());
        let is_initialized = mains.iter().any(|main| is_running(main.status) || ended(main.status).is_some());
        pod_phase(inits, &[], mains, is_initialized, None, false)
    }

    /// The phase of a pod with a sidecar.
    fn phase_with_sidecar(policy: &str, sidecar: char, main: char) -> PodPhase {
        let yaml = format!(
            "{{spec: {{restartPolicy: {policy}, containers: [{{name: c}}], initContainers: [{{name: s, restartPolicy: Always}}]}}}}"
        );
        let pod: Pod = serde_yaml::from_str(&yaml).unwrap();
        let exits: Vec<ExitPolicy> = containers::all(&pod).map(|(kind, container)| ExitPolicy::of(&pod, kind, container)).collect();
        let (sidecar, main) = (status(sidecar), status(main));
        let counted = |status, exits| [Counted { status, exits }];
        pod_phase(&[], &counted(&sidecar, &exits[0]), &counted(&main, &exits[1]), false, None, false)
    }

    fn phase(policy: &str, inits: &str, mains: &str) -> PodPhase {
        phase_with(policy, "", inits, mains)
    }

    /// TestPodPhaseWithRestartAlways, ...OnFailure and ...Never.
    #[test]
    fn d14_the_phase_follows_containers_and_restart_policy() {
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
            assert_eq!(phase("Always", "", mains), always, "Always {mains}");
            assert_eq!(phase("OnFailure", "", mains), on_failure, "OnFailure {mains}");
            assert_eq!(phase("Never", "", mains), never, "Never {mains}");
        }
    }

    /// TestPodPhaseWithRestartAlwaysInitContainers, ...OnFailureInitContainers and ...NeverInitContainers.
    #[test]
    fn d14_init_containers_keep_the_pod_pending_and_fail_it_only_with_policy_never() {
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
            assert_eq!(phase("Always", inits, mains), always, "Always {inits} {mains}");
            assert_eq!(phase("OnFailure", inits, mains), always, "OnFailure {inits} {mains}");
            assert_eq!(phase("Never", inits, mains), never, "Never {inits} {mains}");
        }
    }

    /// TestPodPhaseWithRestartAlwaysRestartableInitContainers, ...OnFailure and ...Never, and ...AndPodHasRun.
    #[test]
    fn d14_a_sidecar_that_runs_keeps_the_pod_running_and_its_own_end_does_not_matter() {
        use PodPhase::{Failed, Pending, Running, Succeeded};
        for (sidecar, main, always, on_failure, never) in [
            ('w', 'w', Pending, Pending, Pending),
            ('r', 'w', Pending, Pending, Pending),
            ('b', 'w', Pending, Pending, Pending),
            ('0', 'w', Pending, Pending, Pending),
            ('r', 'r', Running, Running, Running),
            ('1', 'r', Running, Running, Running),
            ('b', 'r', Running, Running, Running),
            ('r', '0', Running, Running, Running),
            ('r', '1', Running, Running, Running),
            ('0', '0', Running, Succeeded, Succeeded),
            ('1', '0', Running, Succeeded, Succeeded),
            ('b', '0', Running, Succeeded, Succeeded),
            ('0', '1', Running, Running, Failed),
            ('1', 'b', Running, Running, Failed),
        ] {
            assert_eq!(phase_with_sidecar("Always", sidecar, main), always, "Always {sidecar} {main}");
            assert_eq!(phase_with_sidecar("OnFailure", sidecar, main), on_failure, "OnFailure {sidecar} {main}");
            assert_eq!(phase_with_sidecar("Never", sidecar, main), never, "Never {sidecar} {main}");
        }
    }

    /// TestPodPhaseWithContainerRestartPolicy.
    #[test]
    fn d14_a_containers_own_policy_and_rules_count() {
        use PodPhase::{Failed, Running, Succeeded};
        let rule = "restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]";
        for (pod, fields, mains, expected) in [
            ("Never", "restartPolicy: Always", "0", Running),
            ("Never", "restartPolicy: OnFailure", "1", Running),
            ("Never", "restartPolicy: OnFailure", "0", Succeeded),
            ("Always", "restartPolicy: Never", "0", Succeeded),
            ("Always", "restartPolicy: Never", "01", Failed),
            ("OnFailure", "restartPolicy: Never", "1", Failed),
            ("Never", rule, "1", Running),
            ("Always", rule, "0", Succeeded),
        ] {
            assert_eq!(phase_with(pod, fields, "", mains), expected, "{pod} {fields} {mains}");
        }
        assert_eq!(phase_with("Never", "restartPolicy: OnFailure", "1", "w"), PodPhase::Pending, "the init container runs again");
        assert_eq!(phase_with("Always", "restartPolicy: Never", "1", "w"), Failed, "the init container does not");
    }

    #[test]
    fn a_decided_result_stays_and_is_told_when_nothing_runs_any_more() {
        let pod: Pod = serde_yaml::from_str("{spec: {containers: [{name: c}]}}").unwrap();
        let exits = ExitPolicy::of(&pod, ContainerKind::Main, &pod.spec.as_ref().unwrap().containers[0]);
        let phase = |letter, result| {
            let status = status(letter);
            pod_phase(&[], &[], &[Counted { status: &status, exits: &exits }], true, Some(&result), true)
        };
        assert_eq!(phase('r', PodResult::failed()), PodPhase::Running);
        assert_eq!(phase('w', PodResult::failed()), PodPhase::Failed);
        assert_eq!(phase('1', PodResult::succeeded()), PodPhase::Succeeded);
    }

    #[test]
    fn d14_a_pod_that_shall_run_is_over_only_when_that_was_decided() {
        let phase = |policy: &str, init: Option<char>, main: char| {
            let pod: Pod =
                serde_yaml::from_str(&format!("{{spec: {{restartPolicy: {policy}, containers: [{{name: c}}]}}}}")).unwrap();
            let exits = ExitPolicy::of(&pod, ContainerKind::Main, &pod.spec.as_ref().unwrap().containers[0]);
            let (init, main) = (init.map(status), status(main));
            let inits: Vec<Counted<'_>> = init.iter().map(|status| Counted { status, exits: &exits }).collect();
            pod_phase(&inits, &[], &[Counted { status: &main, exits: &exits }], ended(&main).is_some(), None, true)
        };
        // Stopped by its probe, and in the pause before its restart.
        assert_eq!(phase("OnFailure", None, '0'), PodPhase::Running);
        // Stopped for an edit: the new image is being looked for, the new hook goes on.
        assert_eq!(phase("Never", None, '1'), PodPhase::Running);
        assert_eq!(phase("Never", None, 'b'), PodPhase::Running);
        assert_eq!(phase("Never", Some('1'), 'w'), PodPhase::Pending);
    }
}
