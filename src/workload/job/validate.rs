//! Rules for a Job beside those for its pod template, which is judged as a Pod (W2, W3, W50, W62, W63, W64).

use super::defaults;
use crate::indexes::IndexSet;
use crate::problem::{Problem, Problems};
use crate::selector::{is_empty, matches};
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
    SuccessPolicyRule,
};
use std::collections::{BTreeMap, BTreeSet};

/// Pods at once that a Job may ask for: one line of a source must not cost the host its memory (W2).
const MOST_PODS: i32 = 500;
/// Completions above which limits per index need a limit of failed indexes.
const MANY_COMPLETIONS: i32 = 100_000;
/// Failed indexes that may be allowed with more completions than [`MANY_COMPLETIONS`].
const MOST_FAILED_OF_MANY: i32 = 10_000;
/// Failed indexes that may be allowed at all.
const MOST_FAILED_INDEXES: i32 = 100_000;
/// Rules in a policy, and conditions in a rule.
const MOST_RULES: usize = 20;
/// Exit codes in a rule.
const MOST_EXIT_CODES: usize = 255;
/// Bytes in the indexes of a rule.
const LONGEST_INDEXES: usize = 64 * 1024;
/// Bytes in a DNS label, and in the value of a label.
const LONGEST_LABEL: usize = 63;
/// The value of `managedBy` for a Job that nobody else runs.
const OWN_CONTROLLER: &str = "kubernetes.io/job-controller";

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// All problems of a Job. Fields are judged with their defaults.
pub fn problems(job: &Job) -> Vec<Problem> {
    let mut found = Problems::default();
    let mut spec = job.spec.clone().unwrap_or_default();
    defaults::fill_in_spec(&mut spec);
    check_name(job.metadata.name.as_deref().unwrap_or_default(), &spec, &mut found);
    check_selector(&spec, "spec", &mut found);
    check_spec(&spec, "spec", &mut found);
    found.into_vec()
}

/// All problems of the specification of a CronJob's Jobs, which stands at `path` (W68).
pub fn template_problems(spec: &JobSpec, path: &str) -> Vec<Problem> {
    let mut found = Problems::default();
    let mut filled = spec.clone();
    defaults::fill_in_spec(&mut filled);
    if filled.selector.is_some() {
        found.invalid(format!("{path}.selector"), "a selector", "`selector` will be auto-generated");
    }
    if filled.manual_selector == Some(true) {
        found.not_one_of(format!("{path}.manualSelector"), "true", &["false"]);
    }
    check_spec(&filled, path, &mut found);
    found.into_vec()
}

fn check_name(name: &str, spec: &JobSpec, found: &mut Problems) {
    if name.len() > LONGEST_LABEL {
        found.invalid("metadata.name", name, format_args!("must be no more than {LONGEST_LABEL} characters"));
        return;
    }
    if let (Some("Indexed"), Some(completions @ 1..)) = (spec.completion_mode.as_deref(), spec.completions) {
        let hostname = format!("{name}-{}", completions - 1);
        if !is_dns_label(&hostname) {
            let rule = format_args!("will not able to create pod with invalid DNS label: {hostname}");
            found.invalid("metadata.name", name, rule);
        }
    }
}

fn check_selector(spec: &JobSpec, path: &str, found: &mut Problems) {
    let field = format!("{path}.selector");
    match (&spec.selector, spec.manual_selector == Some(true)) {
        (None, false) => {}
        (None, true) => found.required(field, "with manualSelector"),
        (Some(_), false) => {
            found.invalid(field, "a selector", "`selector` not auto-generated");
            found.hint("leave the selector out: podstead finds the pods of a Job by their owner");
        }
        (Some(selector), true) => {
            let metadata = spec.template.metadata.as_ref();
            let none = BTreeMap::new();
            let labels = metadata.and_then(|metadata| metadata.labels.as_ref()).unwrap_or(&none);
            if is_empty(selector) {
                found.invalid(field, "{}", "empty selector is invalid for job");
            } else if !matches(selector, labels) {
                let field = format!("{path}.template.metadata.labels");
                found.invalid(field, labels, "`selector` does not match template `labels`");
            }
        }
    }
}

fn check_spec(spec: &JobSpec, path: &str, found: &mut Problems) {
    let at = |field: &str| format!("{path}.{field}");
    for (field, number) in [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished.map(i64::from)),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.map(i64::from)),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ] {
        found.not_negative(at(field), number);
    }
    if let Some(parallelism) = spec.parallelism.filter(|parallelism| *parallelism > MOST_PODS) {
        found.invalid(at("parallelism"), parallelism, format_args!("must be less than or equal to {MOST_PODS}"));
        found.hint("one host runs all pods of the Job");
    }
    if let Some(manager) = spec.managed_by.as_deref().filter(|manager| *manager != OWN_CONTROLLER) {
        found.invalid(at("managedBy"), manager, "no other controller runs Jobs here");
        found.hint("leave managedBy out");
    }
    check_indexes(spec, path, found);
    check_restart_policy(spec, path, found);
    check_policies(spec, path, found);
}

fn check_indexes(spec: &JobSpec, path: &str, found: &mut Problems) {
    let at = |field: &str| format!("{path}.{field}");
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        found.required(at("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    match spec.completion_mode.as_deref() {
        Some("Indexed") => check_indexed(spec, path, found),
        Some("NonIndexed") | None => {
            for (field, number) in
                [("backoffLimitPerIndex", spec.backoff_limit_per_index), ("maxFailedIndexes", spec.max_failed_indexes)]
            {
                if let Some(number) = number {
                    found.invalid(at(field), number, "requires indexed completion mode");
                }
            }
        }
        Some(mode) => found.not_one_of(at("completionMode"), mode, &["NonIndexed", "Indexed"]),
    }
}

fn check_indexed(spec: &JobSpec, path: &str, found: &mut Problems) {
    let at = |field: &str| format!("{path}.{field}");
    let Some(completions) = spec.completions else {
        return found.required(at("completions"), "when completion mode is Indexed");
    };
    let most_failed = spec.max_failed_indexes;
    if let Some(most_failed) = most_failed.filter(|most| *most > completions) {
        found.invalid(at("maxFailedIndexes"), most_failed, "must be less than or equal to completions");
    }
    if let Some(most_failed) = most_failed.filter(|most| *most > MOST_FAILED_INDEXES) {
        let rule = format_args!("must be less than or equal to {MOST_FAILED_INDEXES}");
        found.invalid(at("maxFailedIndexes"), most_failed, rule);
    }
    if completions <= MANY_COMPLETIONS || spec.backoff_limit_per_index.is_none() {
        return;
    }
    match most_failed {
        None => {
            let when = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            found.required(at("maxFailedIndexes"), &when);
        }
        Some(most_failed) if most_failed > MOST_FAILED_OF_MANY => {
            let rule = format_args!(
                "must be less than or equal to {MOST_FAILED_OF_MANY} when completions are above {MANY_COMPLETIONS} and used with \
                 backoff limit per index"
            );
            found.invalid(at("maxFailedIndexes"), most_failed, rule);
        }
        Some(_) => {}
    }
}

/// The policy has to be written, since the default of a Pod is none for a Job (W3).
fn check_restart_policy(spec: &JobSpec, path: &str, found: &mut Problems) {
    let field = format!("{path}.template.spec.restartPolicy");
    match spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref()) {
        None | Some("" | "Always") => found.required(field, r#"valid values: "OnFailure", "Never""#),
        Some("OnFailure") if spec.pod_failure_policy.is_some() => {
            found.invalid(field, "OnFailure", r#"only "Never" is supported when podFailurePolicy is specified"#);
        }
        Some("OnFailure" | "Never") => {}
        Some(policy) => found.not_one_of(field, policy, &["OnFailure", "Never"]),
    }
}

fn check_policies(spec: &JobSpec, path: &str, found: &mut Problems) {
    let replacement = spec.pod_replacement_policy.as_deref().unwrap_or_default();
    let allowed: &[&str] = if spec.pod_failure_policy.is_some() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    if !allowed.contains(&replacement) {
        found.not_one_of(format!("{path}.podReplacementPolicy"), replacement, allowed);
    }
    if let Some(policy) = &spec.pod_failure_policy {
        let rules = format!("{path}.podFailurePolicy.rules");
        found.at_most(rules.as_str(), policy.rules.len(), MOST_RULES);
        for (position, rule) in policy.rules.iter().enumerate() {
            check_failure_rule(rule, spec, &format!("{rules}[{position}]"), found);
        }
    }
    let Some(policy) = &spec.success_policy else { return };
    if spec.completion_mode.as_deref() != Some("Indexed") {
        return found.invalid(format!("{path}.successPolicy"), "a policy", "requires indexed completion mode");
    }
    let rules = format!("{path}.successPolicy.rules");
    if policy.rules.is_empty() {
        found.required(rules.as_str(), "at least one rules must be specified when the successPolicy is specified");
    }
    found.at_most(rules.as_str(), policy.rules.len(), MOST_RULES);
    for (position, rule) in policy.rules.iter().enumerate() {
        check_success_rule(rule, spec.completions.unwrap_or(0), &format!("{rules}[{position}]"), found);
    }
}

fn check_failure_rule(rule: &PodFailurePolicyRule, spec: &JobSpec, path: &str, found: &mut Problems) {
    let action = format!("{path}.action");
    match rule.action.as_str() {
        "" => found.required(action, &format!("valid values: {}", listed(&ACTIONS))),
        "FailIndex" if spec.backoff_limit_per_index.is_none() => {
            found.invalid(action, "FailIndex", "requires the backoffLimitPerIndex to be set");
        }
        other if !ACTIONS.contains(&other) => found.not_one_of(action, other, &ACTIONS),
        _ => {}
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    if let Some(requirement) = &rule.on_exit_codes {
        check_exit_codes(requirement, spec, &format!("{path}.onExitCodes"), found);
    }
    check_conditions(patterns, &format!("{path}.onPodConditions"), found);
    match (rule.on_exit_codes.is_some(), patterns.is_empty()) {
        (true, false) => found.add(path, "specifying both OnExitCodes and OnPodConditions is not supported"),
        (false, true) => found.add(path, "specifying one of OnExitCodes and OnPodConditions is required"),
        (true, true) | (false, false) => {}
    }
}

fn check_conditions(patterns: &[PodFailurePolicyOnPodConditionsPattern], path: &str, found: &mut Problems) {
    found.at_most(path, patterns.len(), MOST_RULES);
    for (position, pattern) in patterns.iter().enumerate() {
        if !is_qualified_name(&pattern.type_) {
            found.invalid(format!("{path}[{position}].type"), &pattern.type_, "must be a qualified name, such as DisruptionTarget");
        }
        if !STATUSES.contains(&pattern.status.as_str()) {
            found.not_one_of(format!("{path}[{position}].status"), &pattern.status, &STATUSES);
        }
    }
}

fn check_exit_codes(requirement: &PodFailurePolicyOnExitCodesRequirement, spec: &JobSpec, path: &str, found: &mut Problems) {
    let operator = requirement.operator.as_str();
    match operator {
        "" => found.required(format!("{path}.operator"), &format!("valid values: {}", listed(&OPERATORS))),
        other if !OPERATORS.contains(&other) => found.not_one_of(format!("{path}.operator"), other, &OPERATORS),
        _ => {}
    }
    let pod = spec.template.spec.as_ref();
    let has = |name: &String| {
        let init = pod.and_then(|pod| pod.init_containers.as_ref());
        pod.into_iter().flat_map(|pod| &pod.containers).chain(init.into_iter().flatten()).any(|container| container.name == *name)
    };
    if let Some(name) = requirement.container_name.as_ref().filter(|name| !has(name)) {
        let rule = "must be one of the container or initContainer names in the pod template";
        found.invalid(format!("{path}.containerName"), name, rule);
    }
    let values = format!("{path}.values");
    if requirement.values.is_empty() {
        found.invalid(values.as_str(), &requirement.values, "at least one value is required");
    }
    found.at_most(values.as_str(), requirement.values.len(), MOST_EXIT_CODES);
    let mut seen = BTreeSet::new();
    for (position, value) in requirement.values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            found.invalid(format!("{values}[{position}]"), value, "must not be 0 for the In operator");
        }
        if !seen.insert(*value) {
            found.add(format!("{values}[{position}]"), format!("duplicate value {value:?}"));
        }
    }
    if !requirement.values.is_sorted() {
        found.invalid(values, &requirement.values, "must be ordered");
    }
}

fn check_success_rule(rule: &SuccessPolicyRule, completions: i32, path: &str, found: &mut Problems) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        found.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut named = None;
    if let Some(text) = &rule.succeeded_indexes {
        let field = format!("{path}.succeededIndexes");
        if text.len() > LONGEST_INDEXES {
            return found.add(field, format!("too long: must be at most {LONGEST_INDEXES} bytes"));
        }
        match IndexSet::parse(text, u32::try_from(completions).unwrap_or(0)) {
            Ok(indexes) => named = Some(i64::from(indexes.count())),
            Err(error) => found.invalid(field, text, format_args!("error parsing succeededIndexes: {error}")),
        }
    }
    let Some(count) = rule.succeeded_count else { return };
    let field = format!("{path}.succeededCount");
    found.not_negative(field.as_str(), Some(count.into()));
    if count > completions {
        let rule = format_args!("must be less than or equal to {completions} (the number of specified completions)");
        found.invalid(field.as_str(), count, rule);
    }
    if let Some(named) = named.filter(|named| i64::from(count) > *named) {
        let rule =
            format_args!("must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)");
        found.invalid(field, count, rule);
    }
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// True for a label of a DNS name, as a hostname has to be one.
fn is_dns_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= LONGEST_LABEL && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

/// True for a name such as `DisruptionTarget` or `example.com/checked`.
fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.rsplit_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends_well =
        name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.ends_with(|last: char| last.is_ascii_alphanumeric());
    let good_prefix = prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_dns_label));
    name.len() <= LONGEST_LABEL && name.bytes().all(allowed) && ends_well && good_prefix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::job;
    use serde_json::{Value, json};

    /// Field and message of all problems of a Job of the specification.
    fn said(spec: Value) -> Vec<String> {
        problems(&job(spec)).into_iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
    }

    fn template(restart_policy: &str) -> Value {
        json!({"spec": {"restartPolicy": restart_policy, "containers": [{"name": "a"}], "initContainers": [{"name": "c"}]}})
    }

    #[test]
    fn ordinary_jobs_are_accepted() {
        for spec in [
            json!({}),
            json!({"parallelism": 500, "template": template("OnFailure")}),
            json!({"completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1, "maxFailedIndexes": 3}),
            json!({"managedBy": "kubernetes.io/job-controller", "suspend": true, "ttlSecondsAfterFinished": 0}),
            json!({"completions": 5, "completionMode": "Indexed", "successPolicy": {"rules": [
                {"succeededIndexes": "0,2-4", "succeededCount": 4}, {"succeededCount": 5},
            ]}}),
            json!({"template": template("Never"), "podFailurePolicy": {"rules": [
                {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1, 3]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "example.com/x", "status": "False"}]},
            ]}}),
        ] {
            assert_eq!(said(spec.clone()), Vec::<String>::new(), "{spec}");
        }
    }

    /// W2, W3, W50.
    #[test]
    fn broken_fields_are_told_apart() {
        for (spec, expected) in [
            (json!({"parallelism": 501}), "spec.parallelism: invalid value 501: must be less than or equal to 500"),
            (json!({"completions": -1}), "spec.completions: invalid value -1: must be greater than or equal to 0"),
            (
                json!({"template": template("Always")}),
                r#"spec.template.spec.restartPolicy: is required: valid values: "OnFailure", "Never""#,
            ),
            (
                json!({"template": {"spec": {"containers": []}}}),
                r#"spec.template.spec.restartPolicy: is required: valid values: "OnFailure", "Never""#,
            ),
            (
                json!({"template": template("never")}),
                r#"spec.template.spec.restartPolicy: invalid value "never": must be one of "OnFailure", "Never""#,
            ),
            (
                json!({"completionMode": "Indexed", "parallelism": 1}),
                "spec.completions: is required: when completion mode is Indexed",
            ),
            (
                json!({"completionMode": "Some"}),
                r#"spec.completionMode: invalid value "Some": must be one of "NonIndexed", "Indexed""#,
            ),
            (
                json!({"managedBy": "example.com/q"}),
                r#"spec.managedBy: invalid value "example.com/q": no other controller runs Jobs here"#,
            ),
            (json!({"backoffLimitPerIndex": 1}), "spec.backoffLimitPerIndex: invalid value 1: requires indexed completion mode"),
            (
                json!({"completionMode": "Indexed", "completions": 2, "maxFailedIndexes": 1}),
                "spec.backoffLimitPerIndex: is required: when maxFailedIndexes is specified",
            ),
            (
                json!({"completionMode": "Indexed", "completions": 100_001, "backoffLimitPerIndex": 1}),
                "spec.maxFailedIndexes: is required: must be specified when completions is above 100000",
            ),
            (json!({"selector": {}}), r#"spec.selector: invalid value "a selector": `selector` not auto-generated"#),
            (json!({"manualSelector": true}), "spec.selector: is required: with manualSelector"),
            (
                json!({"manualSelector": true, "selector": {"matchLabels": {"app": "x"}}}),
                "spec.template.metadata.labels: invalid value {}: `selector` does not match template `labels`",
            ),
            (
                json!({"podReplacementPolicy": "Soon"}),
                r#"spec.podReplacementPolicy: invalid value "Soon": must be one of "Failed", "TerminatingOrFailed""#,
            ),
        ] {
            assert_eq!(said(spec.clone()), [expected], "{spec}");
        }
    }

    /// W50.
    #[test]
    fn hostname_of_last_index_is_dns_label() {
        let mut long = job(json!({"completionMode": "Indexed", "completions": 1000}));
        let name = "a".repeat(60);
        long.metadata.name = Some(name.clone());
        let expected = format!("invalid value {name:?}: will not able to create pod with invalid DNS label: {name}-999");
        assert_eq!(problems(&long)[0].message, expected);
        long.metadata.name = Some("a".repeat(64));
        assert!(problems(&long)[0].message.ends_with("must be no more than 63 characters"));
    }

    fn failure_rule(rule: Value) -> Vec<String> {
        let said = said(json!({"template": template("Never"), "podFailurePolicy": {"rules": [rule]}}));
        said.into_iter().map(|problem| problem.replace("spec.podFailurePolicy.rules[0]", "rule")).collect()
    }

    /// W63.
    #[test]
    fn failure_rules_are_checked() {
        for (rule, expected) in [
            (json!({"action": "FailJob"}), vec!["rule: specifying one of OnExitCodes and OnPodConditions is required"]),
            (
                json!({"action": "Stop", "onExitCodes": {"operator": "In", "values": [1]}}),
                vec![r#"rule.action: invalid value "Stop": must be one of "Count", "FailIndex", "FailJob", "Ignore""#],
            ),
            (
                json!({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}),
                vec![r#"rule.action: invalid value "FailIndex": requires the backoffLimitPerIndex to be set"#],
            ),
            (
                json!({"action": "Count", "onExitCodes": {"containerName": "x", "operator": "In", "values": [2, 0, 2]}}),
                vec![
                    r#"rule.onExitCodes.containerName: invalid value "x": must be one of the container or initContainer names in the pod template"#,
                    "rule.onExitCodes.values[1]: invalid value 0: must not be 0 for the In operator",
                    "rule.onExitCodes.values[2]: duplicate value 2",
                    "rule.onExitCodes.values: invalid value [2, 0, 2]: must be ordered",
                ],
            ),
            (
                json!({"action": "Count", "onPodConditions": [{"type": "-", "status": "Maybe"}]}),
                vec![
                    r#"rule.onPodConditions[0].type: invalid value "-": must be a qualified name, such as DisruptionTarget"#,
                    r#"rule.onPodConditions[0].status: invalid value "Maybe": must be one of "False", "True", "Unknown""#,
                ],
            ),
        ] {
            assert_eq!(failure_rule(rule.clone()), expected, "{rule}");
        }
        let rules = vec![json!({"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}); 21];
        let said = said(json!({"template": template("OnFailure"), "podFailurePolicy": {"rules": rules}}));
        assert_eq!(
            said,
            [
                r#"spec.template.spec.restartPolicy: invalid value "OnFailure": only "Never" is supported when podFailurePolicy is specified"#,
                "spec.podFailurePolicy.rules: too many: 21: must have at most 20 items",
            ]
        );
    }

    /// W64.
    #[test]
    fn success_rules_are_checked() {
        for (rule, expected) in [
            (json!({}), "rule: is required: at least one of succeededCount or succeededIndexes must be specified"),
            (
                json!({"succeededCount": 6}),
                "rule.succeededCount: invalid value 6: must be less than or equal to 5 (the number of specified completions)",
            ),
            (
                json!({"succeededIndexes": "0-5"}),
                r#"rule.succeededIndexes: invalid value "0-5": error parsing succeededIndexes: too large index: "5""#,
            ),
            (
                json!({"succeededIndexes": "0,1", "succeededCount": 3}),
                "rule.succeededCount: invalid value 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)",
            ),
        ] {
            let said = said(json!({"completionMode": "Indexed", "completions": 5, "successPolicy": {"rules": [rule]}}));
            assert_eq!(said, [expected.replace("rule", "spec.successPolicy.rules[0]")], "{rule}");
        }
        let said = said(json!({"successPolicy": {"rules": []}}));
        assert_eq!(said, [r#"spec.successPolicy: invalid value "a policy": requires indexed completion mode"#]);
    }

    /// W68.
    #[test]
    fn job_of_cron_job_has_no_selector() {
        let spec = job(json!({"selector": {}, "manualSelector": true, "parallelism": 501})).spec.unwrap();
        let fields: Vec<String> =
            template_problems(&spec, "spec.jobTemplate.spec").into_iter().map(|problem| problem.field).collect();
        let expected = ["selector", "manualSelector", "parallelism"].map(|field| format!("spec.jobTemplate.spec.{field}"));
        assert_eq!(fields, expected);
    }
}
