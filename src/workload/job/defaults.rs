//! Values of fields that a Job does not write (W50).

use k8s_openapi::api::batch::v1::{Job, JobSpec};

/// The limit of failures if `backoffLimit` is not written.
const BACKOFF_LIMIT: i32 = 6;

/// Fills in the fields of a Job that upstream fills in. The pod template is left as written: its defaults are those of a Pod.
pub fn fill_in(job: &mut Job) {
    if let Some(spec) = &mut job.spec {
        fill_in_spec(spec);
    }
}

/// Fills in the fields of a Job's specification, also of one in a CronJob.
pub fn fill_in_spec(spec: &mut JobSpec) {
    // A Job with parallelism and without completions is a work queue, so completions have a default only where both are absent.
    if spec.completions.is_none() && spec.parallelism.is_none() {
        spec.completions = Some(1);
    }
    spec.parallelism.get_or_insert(1);
    let limit = if spec.backoff_limit_per_index.is_some() { i32::MAX } else { BACKOFF_LIMIT };
    spec.backoff_limit.get_or_insert(limit);
    spec.completion_mode.get_or_insert_with(|| "NonIndexed".to_owned());
    spec.suspend.get_or_insert(false);
    spec.manual_selector.get_or_insert(false);
    let replacement = if spec.pod_failure_policy.is_some() { "Failed" } else { "TerminatingOrFailed" };
    spec.pod_replacement_policy.get_or_insert_with(|| replacement.to_owned());
    let rules = spec.pod_failure_policy.iter_mut().flat_map(|policy| &mut policy.rules);
    for pattern in rules.flat_map(|rule| rule.on_pod_conditions.iter_mut().flatten()) {
        if pattern.status.is_empty() {
            pattern.status.push_str("True");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(spec: serde_json::Value) -> JobSpec {
        let mut spec: JobSpec = serde_json::from_value(spec).unwrap();
        fill_in_spec(&mut spec);
        spec
    }

    #[test]
    fn completions_default_without_parallelism_only() {
        let plain = filled(json!({"template": {}}));
        assert_eq!((plain.completions, plain.parallelism, plain.backoff_limit), (Some(1), Some(1), Some(6)));
        assert_eq!(plain.pod_replacement_policy.as_deref(), Some("TerminatingOrFailed"));
        let queue = filled(json!({"template": {}, "parallelism": 3}));
        assert_eq!((queue.completions, queue.parallelism), (None, Some(3)));
        let fixed = filled(json!({"template": {}, "completions": 3}));
        assert_eq!((fixed.completions, fixed.parallelism), (Some(3), Some(1)));
    }

    #[test]
    fn limit_per_index_lifts_backoff_limit() {
        let spec = filled(json!({"template": {}, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1}));
        assert_eq!(spec.backoff_limit, Some(i32::MAX));
    }

    #[test]
    fn failure_policy_waits_for_failed_pods() {
        let spec = filled(json!({"template": {}, "podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        ]}}));
        assert_eq!(spec.pod_replacement_policy.as_deref(), Some("Failed"));
        let rules = spec.pod_failure_policy.unwrap().rules;
        assert_eq!(rules[0].on_pod_conditions.as_ref().unwrap()[0].status, "True");
    }
}
