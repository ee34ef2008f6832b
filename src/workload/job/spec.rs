//! A Job's specification with its defaults, in a form that decisions can match on.

use super::defaults;
use k8s_openapi::api::batch::v1::{Job, PodFailurePolicyRule, SuccessPolicyRule};
use std::time::Duration;

/// The condition under which a Job is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// One success, and then the end of all others (`completions` is not written).
    WorkQueue,
    /// So many successes.
    Count(u32),
    /// One success of each index below the number.
    Indexed(u32),
}

/// The time at which the successor of a pod that is being stopped may start (W55).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replacement {
    /// At once.
    TerminatingOrFailed,
    /// Once the pod has ended.
    Failed,
}

/// Limits for each index on its own (W62).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerIndex {
    /// Failures that an index may have.
    pub(super) limit: u32,
    /// Indexes that may fail for good.
    pub(super) most_failed: Option<u32>,
}

/// A Job's specification, read.
///
/// One type because it mirrors the spec of a Job, with its defaults.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    /// The Job's name.
    pub(super) name: String,
    /// The Job's namespace.
    pub(super) namespace: Option<String>,
    /// The condition under which it is complete.
    pub(super) completion: Completion,
    /// Pods that may run at once.
    pub(super) parallelism: u32,
    /// Failures that the Job may have.
    pub(super) backoff_limit: u32,
    /// Limits of an indexed Job for each index.
    pub(super) per_index: Option<PerIndex>,
    /// `activeDeadlineSeconds`.
    pub(super) deadline: Option<Duration>,
    /// `ttlSecondsAfterFinished`.
    pub(super) ttl: Option<Duration>,
    /// No pods are wanted for now.
    pub(super) is_suspended: bool,
    /// Containers restart in their pod (`restartPolicy: OnFailure`).
    pub(super) restarts_in_place: bool,
    /// The time at which a pod is replaced.
    pub(super) replacement: Replacement,
    /// Rules of the podFailurePolicy.
    pub(super) failure_rules: Vec<PodFailurePolicyRule>,
    /// Rules of the successPolicy.
    pub(super) success_rules: Vec<SuccessPolicyRule>,
}

impl Spec {
    /// Reads a Job that [`super::validate::problems`] has nothing against.
    pub(super) fn of(job: &Job) -> Self {
        let mut written = job.spec.clone().unwrap_or_default();
        defaults::fill_in_spec(&mut written);
        let is_indexed = written.completion_mode.as_deref() == Some("Indexed");
        let completion = match written.completions.map(at_least_zero) {
            None => Completion::WorkQueue,
            Some(count) if is_indexed => Completion::Indexed(count),
            Some(count) => Completion::Count(count),
        };
        let limit = written.backoff_limit_per_index.filter(|_| is_indexed).map(at_least_zero);
        let most_failed = written.max_failed_indexes.map(at_least_zero);
        let pod = written.template.spec.as_ref();
        Self {
            name: job.metadata.name.clone().unwrap_or_default(),
            namespace: job.metadata.namespace.clone(),
            completion,
            parallelism: written.parallelism.map_or(1, at_least_zero),
            backoff_limit: written.backoff_limit.map_or(0, at_least_zero),
            per_index: limit.map(|limit| PerIndex { limit, most_failed }),
            deadline: written.active_deadline_seconds.map(seconds),
            ttl: written.ttl_seconds_after_finished.map(|ttl| seconds(ttl.into())),
            is_suspended: written.suspend == Some(true),
            restarts_in_place: pod.and_then(|pod| pod.restart_policy.as_deref()) == Some("OnFailure"),
            replacement: match written.pod_replacement_policy.as_deref() {
                Some("Failed") => Replacement::Failed,
                Some(_) | None => Replacement::TerminatingOrFailed,
            },
            failure_rules: written.pod_failure_policy.map(|policy| policy.rules).unwrap_or_default(),
            success_rules: written.success_policy.map(|policy| policy.rules).unwrap_or_default(),
        }
    }

    /// The number of indexes, of an indexed Job.
    pub(super) fn indexes(&self) -> Option<u32> {
        match self.completion {
            Completion::Indexed(count) => Some(count),
            Completion::WorkQueue | Completion::Count(_) => None,
        }
    }
}

/// The number, or 0 in place of a negative one, which validation refuses.
fn at_least_zero(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or(0))
}
