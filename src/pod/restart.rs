//! Restart decision for a container that exited, as far as the pod's spec alone decides it (kubelet rules D3, D5 to D7).

use super::Pod;
use super::containers::{ContainerKind, list, spec, text};
use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};
use serde::{Deserialize, Serialize};

/// `spec.restartPolicy`, or that of a container.
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
    policy(&spec(pod).restart_policy).unwrap_or(RestartPolicy::Always)
}

fn policy(written: &Option<String>) -> Option<RestartPolicy> {
    match text(written) {
        "Always" => Some(RestartPolicy::Always),
        "OnFailure" => Some(RestartPolicy::OnFailure),
        "Never" => Some(RestartPolicy::Never),
        _ => None,
    }
}

/// Reaction to the exit of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterExit {
    /// It runs again, after its back-off.
    Restart,
    /// All containers of the pod run again, from the first init container on, in the same sandbox.
    RestartAll,
    /// It is done, and did what it was for.
    Succeeded,
    /// It is done, and failed. For an init container: the pod has failed.
    Failed,
}

/// Rules of a pod's spec for the exits of one of its containers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExitPolicy {
    kind: ContainerKind,
    /// Its own policy, else that of the pod.
    policy: RestartPolicy,
    /// Asked first, in this order.
    rules: Vec<ExitRule>,
}

/// One of `restartPolicyRules`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ExitRule {
    /// `operator: In`; else `NotIn`.
    is_in: bool,
    codes: Vec<i32>,
    then: AfterExit,
}

impl ExitPolicy {
    /// The rules of `pod` for `container`, which has this role in it.
    pub fn of(pod: &Pod, kind: ContainerKind, container: &Container) -> Self {
        let own = policy(&container.restart_policy);
        // Without a policy of its own a container has no rules: validation says so.
        let rules = own.map_or(&[][..], |_| list(&container.restart_policy_rules));
        let rules = rules.iter().filter_map(ExitRule::of).collect();
        Self { kind, policy: own.unwrap_or_else(|| restart_policy(pod)), rules }
    }

    /// Reaction to an exit with `exit_code`: by the first matching rule, else by the policy. A sidecar always runs again (while main
    /// containers may run), and an init container that succeeded never does by itself.
    pub fn after_exit(&self, exit_code: i32) -> AfterExit {
        let succeeded = exit_code == 0;
        let rule = self.rules.iter().find(|rule| rule.codes.contains(&exit_code) == rule.is_in).map(|rule| rule.then);
        match (rule, self.kind, self.policy) {
            (Some(AfterExit::RestartAll), _, _) => AfterExit::RestartAll,
            (_, ContainerKind::Init, _) if succeeded => AfterExit::Succeeded,
            (Some(AfterExit::Restart), _, _)
            | (_, ContainerKind::Sidecar, _)
            | (_, ContainerKind::Init | ContainerKind::Main, RestartPolicy::Always) => AfterExit::Restart,
            (_, ContainerKind::Init | ContainerKind::Main, RestartPolicy::OnFailure) if !succeeded => AfterExit::Restart,
            (_, ContainerKind::Init | ContainerKind::Main, RestartPolicy::OnFailure | RestartPolicy::Never) => {
                if succeeded {
                    AfterExit::Succeeded
                } else {
                    AfterExit::Failed
                }
            }
        }
    }
}

impl ExitPolicy {
    /// Returns true if it runs again after every exit, alone: nothing depends on how its last run ended.
    pub fn always_restarts(&self) -> bool {
        match (self.kind, self.policy) {
            (ContainerKind::Sidecar, _) | (ContainerKind::Main, RestartPolicy::Always) => self.rules.is_empty(),
            (ContainerKind::Main, RestartPolicy::OnFailure | RestartPolicy::Never) | (ContainerKind::Init, _) => false,
        }
    }

    /// Returns true if it is restarted after a failed probe stopped it, regardless of its exit code.
    pub fn restarts_when_stopped(&self) -> bool {
        match (self.kind, self.policy) {
            (ContainerKind::Sidecar, _) | (_, RestartPolicy::Always | RestartPolicy::OnFailure) => true,
            (ContainerKind::Init | ContainerKind::Main, RestartPolicy::Never) => false,
        }
    }
}

impl ExitRule {
    /// `None` for a rule of a later Kubernetes, which has no effect; validation refuses it.
    fn of(rule: &ContainerRestartRule) -> Option<Self> {
        let ContainerRestartRule { action, exit_codes } = rule;
        let then = match action.as_str() {
            "Restart" => AfterExit::Restart,
            "RestartAllContainers" => AfterExit::RestartAll,
            _ => return None,
        };
        let exit_codes = exit_codes.as_ref()?;
        let is_in = match exit_codes.operator.as_str() {
            "In" => true,
            "NotIn" => false,
            _ => return None,
        };
        Some(Self { is_in, codes: list(&exit_codes.values).to_vec(), then })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::containers;

    fn exit_policy(pod_policy: &str, kind: ContainerKind, fields: &str) -> ExitPolicy {
        let list = if kind == ContainerKind::Main { "containers" } else { "initContainers" };
        let always = if kind == ContainerKind::Sidecar { "restartPolicy: Always, " } else { "" };
        let yaml = format!("{{spec: {{restartPolicy: {pod_policy}, containers: [], {list}: [{{name: c, {always}{fields}}}]}}}}");
        let pod: Pod = serde_yaml::from_str(&yaml).unwrap();
        let (found, container) = containers::find(&pod, "c").unwrap();
        assert_eq!(found, kind);
        ExitPolicy::of(&pod, kind, container)
    }

    #[test]
    fn role_policy_and_exit_code_decide_what_follows() {
        use AfterExit::{Failed, Restart, Succeeded};
        use ContainerKind::{Init, Main, Sidecar};
        for (kind, policy, after_success, after_failure) in [
            (Main, "Always", Restart, Restart),
            (Main, "OnFailure", Succeeded, Restart),
            (Main, "Never", Succeeded, Failed),
            (Init, "Always", Succeeded, Restart),
            (Init, "OnFailure", Succeeded, Restart),
            (Init, "Never", Succeeded, Failed),
            (Sidecar, "Always", Restart, Restart),
            (Sidecar, "OnFailure", Restart, Restart),
            (Sidecar, "Never", Restart, Restart),
        ] {
            let exits = exit_policy(policy, kind, "");
            assert_eq!(exits.after_exit(0), after_success, "{kind:?} {policy} success");
            assert_eq!(exits.after_exit(137), after_failure, "{kind:?} {policy} failure");
            assert_eq!(exits.always_restarts(), after_success == Restart, "{kind:?} {policy}");
        }
    }

    #[test]
    fn d5_a_containers_own_policy_goes_before_the_pods() {
        use AfterExit::{Failed, Restart, Succeeded};
        use ContainerKind::{Init, Main};
        for (kind, pod, own, after_success, after_failure) in [
            (Main, "Never", "Always", Restart, Restart),
            (Main, "Never", "OnFailure", Succeeded, Restart),
            (Main, "Always", "Never", Succeeded, Failed),
            (Main, "OnFailure", "Never", Succeeded, Failed),
            (Init, "Never", "OnFailure", Succeeded, Restart),
            (Init, "Always", "Never", Succeeded, Failed),
        ] {
            let exits = exit_policy(pod, kind, &format!("restartPolicy: {own}"));
            assert_eq!(exits.after_exit(0), after_success, "{kind:?} {pod} {own} success");
            assert_eq!(exits.after_exit(1), after_failure, "{kind:?} {pod} {own} failure");
        }
    }

    #[test]
    fn d5_the_first_rule_that_matches_decides() {
        use AfterExit::{Failed, Restart, RestartAll, Succeeded};
        let rules = "restartPolicy: Never, restartPolicyRules: [\
            {action: Restart, exitCodes: {operator: In, values: [42, 43]}}, \
            {action: RestartAllContainers, exitCodes: {operator: In, values: [43, 44]}}, \
            {action: Restart, exitCodes: {operator: NotIn, values: [0, 1]}}]";
        let exits = exit_policy("Never", ContainerKind::Main, rules);
        for (code, expected) in [(42, Restart), (43, Restart), (44, RestartAll), (7, Restart), (0, Succeeded), (1, Failed)] {
            assert_eq!(exits.after_exit(code), expected, "{code}");
        }
    }

    #[test]
    fn d5_a_success_of_an_init_container_is_the_end_of_it_unless_all_restart() {
        let rules = |action: &str| {
            let rule = format!("{{action: {action}, exitCodes: {{operator: In, values: [0]}}}}");
            exit_policy("Always", ContainerKind::Init, &format!("restartPolicy: Never, restartPolicyRules: [{rule}]"))
        };
        assert_eq!(rules("Restart").after_exit(0), AfterExit::Succeeded);
        assert_eq!(rules("RestartAllContainers").after_exit(0), AfterExit::RestartAll);
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
