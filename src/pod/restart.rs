//! Whether a container that ended runs again, as far as the pod's spec alone decides it (kubelet rules D3, D6, D7).

use super::Pod;
use super::containers::{ContainerKind, spec, text};
use serde::{Deserialize, Serialize};

/// `spec.restartPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// After every end.
    Always,
    /// After a failure.
    OnFailure,
    /// Not at all.
    Never,
}

/// The pod's restart policy; `Always` where it says nothing.
pub fn restart_policy(pod: &Pod) -> RestartPolicy {
    match text(&spec(pod).restart_policy) {
        "Never" => RestartPolicy::Never,
        "OnFailure" => RestartPolicy::OnFailure,
        _ => RestartPolicy::Always,
    }
}

/// What follows the end of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterExit {
    /// It runs again, after its back-off.
    Restart,
    /// It is done, and did what it was for.
    Succeeded,
    /// It is done, and failed. For an init container: the pod has failed.
    Failed,
}

/// What follows when a container of role `kind` ended with `exit_code`. An init container that succeeded is never run again, a
/// sidecar always is (while main containers may run); for all others the pod's policy decides.
pub fn after_exit(policy: RestartPolicy, kind: ContainerKind, exit_code: i32) -> AfterExit {
    let succeeded = exit_code == 0;
    match (kind, policy) {
        (ContainerKind::Sidecar, _) | (ContainerKind::Main, RestartPolicy::Always) => AfterExit::Restart,
        (ContainerKind::Init, RestartPolicy::Always | RestartPolicy::OnFailure)
        | (ContainerKind::Main, RestartPolicy::OnFailure)
            if !succeeded =>
        {
            AfterExit::Restart
        }
        (ContainerKind::Init, _) | (ContainerKind::Main, RestartPolicy::OnFailure | RestartPolicy::Never) => {
            if succeeded {
                AfterExit::Succeeded
            } else {
                AfterExit::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_policy_and_exit_code_decide_what_follows() {
        use AfterExit::{Failed, Restart, Succeeded};
        use ContainerKind::{Init, Main, Sidecar};
        use RestartPolicy::{Always, Never, OnFailure};
        for (kind, policy, after_success, after_failure) in [
            (Main, Always, Restart, Restart),
            (Main, OnFailure, Succeeded, Restart),
            (Main, Never, Succeeded, Failed),
            (Init, Always, Succeeded, Restart),
            (Init, OnFailure, Succeeded, Restart),
            (Init, Never, Succeeded, Failed),
            (Sidecar, Always, Restart, Restart),
            (Sidecar, OnFailure, Restart, Restart),
            (Sidecar, Never, Restart, Restart),
        ] {
            assert_eq!(after_exit(policy, kind, 0), after_success, "{kind:?} {policy:?} success");
            assert_eq!(after_exit(policy, kind, 137), after_failure, "{kind:?} {policy:?} failure");
        }
    }

    #[test]
    fn the_policy_is_always_unless_written() {
        for (written, expected) in
            [("", RestartPolicy::Always), ("OnFailure", RestartPolicy::OnFailure), ("Never", RestartPolicy::Never)]
        {
            let pod: Pod = serde_yaml::from_str(&format!("{{spec: {{containers: [], restartPolicy: '{written}'}}}}")).unwrap();
            assert_eq!(restart_policy(&pod), expected);
        }
    }
}
