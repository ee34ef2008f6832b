//! A container's own restart policy and its rules (kubelet rule D5).

use crate::containers::{list, text};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};

const MAX_RULES: usize = 20;
const MAX_CODES: usize = 255;

/// `restartPolicy` and `restartPolicyRules` of one container, init containers included.
pub(super) fn check(container: &Container, path: &FieldPath, problems: &mut Problems) {
    let (policy, rules) = (text(&container.restart_policy), list(&container.restart_policy_rules));
    let at = path.child("restartPolicy");
    if policy.is_empty() {
        if !rules.is_empty() {
            problems.required(&at, "a container with restartPolicyRules must set its own restartPolicy");
        }
        return;
    }
    problems.one_of(&at, policy, &["Always", "OnFailure", "Never"]);
    let path = path.child("restartPolicyRules");
    if rules.len() > MAX_RULES {
        problems.too_long(&path, MAX_RULES, "rules");
    }
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, &path.index(index), problems);
    }
}

fn check_rule(rule: &ContainerRestartRule, path: &FieldPath, problems: &mut Problems) {
    let ContainerRestartRule { action, exit_codes } = rule;
    problems.one_of(&path.child("action"), action, &["Restart", "RestartAllContainers"]);
    let path = path.child("exitCodes");
    let Some(exit_codes) = exit_codes else { return problems.required(&path, "") };
    problems.one_of(&path.child("operator"), &exit_codes.operator, &["In", "NotIn"]);
    let (codes, path) = (list(&exit_codes.values), path.child("values"));
    if codes.len() > MAX_CODES {
        problems.too_long(&path, MAX_CODES, "values");
    }
    for (index, code) in codes.iter().enumerate().filter(|(_, code)| !(0..=255).contains(*code)) {
        problems.invalid(&path.index(index), code, "must be between 0 and 255");
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::{check_container, check_spec};

    #[test]
    fn rules_come_with_a_policy() {
        let rule = "restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]";
        check_container(&format!("restartPolicy: Never, {rule}"), "", &[]);
        check_container(
            rule,
            "",
            &["{P}.restartPolicy: is required: a container with restartPolicyRules must set its own restartPolicy"],
        );
        check_container(
            "restartPolicy: Sometimes",
            "",
            &["{P}.restartPolicy: invalid value \"Sometimes\": must be one of \"Always\", \"OnFailure\", \"Never\""],
        );
    }

    #[test]
    fn init_containers_have_policies_and_rules_too() {
        let rule = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: NotIn, values: [0]}}]";
        for policy in ["Always", "OnFailure", "Never"] {
            check_spec(
                &format!(
                    "containers: [{{name: a, image: x}}], initContainers: [{{name: b, image: x, restartPolicy: {policy}, {rule}}}]"
                ),
                &[],
            );
        }
    }

    #[test]
    fn rules_are_complete_and_known() {
        check_container(
            "restartPolicy: Never, restartPolicyRules: [{action: Stop}, {action: Restart, exitCodes: {operator: Equals, values: [256]}}]",
            "",
            &[
                "{P}.restartPolicyRules[0].action: invalid value \"Stop\": must be one of \"Restart\", \"RestartAllContainers\"",
                "{P}.restartPolicyRules[0].exitCodes: is required",
                "{P}.restartPolicyRules[1].exitCodes.operator: invalid value \"Equals\": must be one of \"In\", \"NotIn\"",
                "{P}.restartPolicyRules[1].exitCodes.values[0]: invalid value 256: must be between 0 and 255",
            ],
        );
    }

    #[test]
    fn there_is_an_end_to_rules_and_codes() {
        let rule = |codes: usize| {
            let codes = vec!["1"; codes].join(", ");
            format!("{{action: Restart, exitCodes: {{operator: In, values: [{codes}]}}}}")
        };
        let rules = |count: usize| format!("restartPolicy: Never, restartPolicyRules: [{}]", vec![rule(255); count].join(", "));
        check_container(&rules(20), "", &[]);
        check_container(&rules(21), "", &["{P}.restartPolicyRules: too long: must be at most 20 rules"]);
        check_container(
            &format!("restartPolicy: Never, restartPolicyRules: [{}]", rule(256)),
            "",
            &["{P}.restartPolicyRules[0].exitCodes.values: too long: must be at most 255 values"],
        );
    }
}
