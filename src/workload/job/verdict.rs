//! The verdict on a Job and the order in which reasons for one are asked for (W57).

use super::memory::{JobMemory, Stage};
pub use super::outcome::{FailureReason, SuccessReason, Verdict};
use super::spec::{Completion, Spec};
use super::{PodsByName, success_policy};
use crate::indexes::IndexSet;
use crate::moment::Moment;
use crate::observed::Phase;

/// The verdict that can be told before pods are made or removed: limits, deadline, indexes, successPolicy, in this order.
pub(super) fn before_pods(spec: &Spec, memory: &JobMemory, pods: &PodsByName<'_>, now: Moment) -> Option<Verdict> {
    over_backoff_limit(spec, memory, pods)
        .or_else(|| over_deadline(spec, memory, now))
        .or_else(|| failed_indexes(spec, memory))
        .or_else(|| success_policy::met(spec, memory))
}

/// The verdict of a Job whose pods are all there, or none any more: enough successes and nothing active (W51).
pub(super) fn completed(spec: &Spec, memory: &JobMemory, running: usize) -> Option<Verdict> {
    let successes = memory.successes(spec.indexes());
    let enough = match spec.completion {
        Completion::WorkQueue => successes > 0,
        Completion::Count(completions) | Completion::Indexed(completions) => successes >= completions,
    };
    (enough && running == 0).then(Verdict::completions_reached)
}

fn over_backoff_limit(spec: &Spec, memory: &JobMemory, pods: &PodsByName<'_>) -> Option<Verdict> {
    let is_over = memory.failed > spec.backoff_limit || restarts_are_over_limit(spec, memory, pods);
    is_over.then(|| Verdict::failed(FailureReason::BackoffLimitExceeded, "Job has reached the specified backoff limit"))
}

/// True when containers that restart in their pods did so too often (W52). With the limit 0, the first restart is one too many.
fn restarts_are_over_limit(spec: &Spec, memory: &JobMemory, pods: &PodsByName<'_>) -> bool {
    if !spec.restarts_in_place {
        return false;
    }
    let active = memory.active.keys().filter_map(|attempt| pods.of(*attempt));
    let running = active.filter(|pod| matches!(pod.phase, Phase::Pending | Phase::Running));
    let restarts = running.fold(0_u32, |sum, pod| sum.saturating_add(pod.restarts));
    restarts >= spec.backoff_limit.max(1)
}

fn over_deadline(spec: &Spec, memory: &JobMemory, now: Moment) -> Option<Verdict> {
    let is_running = matches!(memory.stage, Stage::Running { .. });
    let is_over = is_running && spec.deadline.is_some_and(|deadline| memory.time_in_stage(now) >= deadline);
    is_over.then(|| Verdict::failed(FailureReason::DeadlineExceeded, "Job was active longer than specified deadline"))
}

fn failed_indexes(spec: &Spec, memory: &JobMemory) -> Option<Verdict> {
    let (indexes, limits) = (spec.indexes()?, spec.per_index?);
    let failed = memory.failed_indexes.intersection(&IndexSet::below(indexes)).count();
    if limits.most_failed.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Verdict::failed(FailureReason::MaxFailedIndexesExceeded, message));
    }
    let all_done = failed > 0 && failed + memory.successes(spec.indexes()) >= indexes;
    all_done.then(|| Verdict::failed(FailureReason::FailedIndexes, "Job has failed indexes"))
}
