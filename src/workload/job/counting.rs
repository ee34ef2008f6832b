//! Counts each attempt's end once (W52).

use super::PodsByName;
use super::back_off::{self, End};
use super::failure_policy::{self, Failure};
use super::indexed;
use super::memory::{Attempt, FailuresBefore, JobMemory, KeptPod};
use super::spec::{Replacement, Spec};
use crate::moment::Moment;
use crate::observed::{ObservedPod, Phase};

/// The newest pods of each outcome that are kept, so that a Job that fails for days does not fill the disk (W60).
const KEPT: usize = 20;

/// The outcome of an attempt.
enum Outcome {
    Succeeded,
    Failed,
}

/// Counts the attempts that ended and moves them to those that are kept. Returns the message of the first failure that fails the Job.
pub(super) fn count_ends(memory: &mut JobMemory, spec: &Spec, pods: &PodsByName<'_>, now: Moment) -> Option<String> {
    let mut fails_job = None;
    let mut ends = Vec::new();
    let active: Vec<(Attempt, FailuresBefore)> = memory.active.iter().map(|(attempt, before)| (*attempt, *before)).collect();
    for (attempt, before) in active {
        let Some((pod, outcome)) = pods.of(attempt).and_then(|pod| Some((pod, outcome(spec, pod)?))) else { continue };
        memory.active.remove(&attempt);
        if indexed::is_out_of_range(spec, attempt) {
            continue;
        }
        let at = pod.ended_at.unwrap_or(now);
        let kept = KeptPod { attempt, before };
        match outcome {
            Outcome::Succeeded => {
                keep(&mut memory.kept_succeeded, kept);
                count_success(memory, attempt);
                ends.push(End { at, succeeded: true });
            }
            Outcome::Failed => {
                keep(&mut memory.kept_failed, kept);
                let failure = failure_policy::classify(spec, pod);
                if count_failure(memory, spec, attempt, &failure, at) {
                    ends.push(End { at, succeeded: false });
                }
                if let Failure::FailsJob(message) = failure {
                    fails_job.get_or_insert(message);
                }
            }
        }
    }
    back_off::record(memory, &ends);
    fails_job
}

/// The outcome of a pod, if it has one. A pod that is being stopped has failed, unless failed pods alone are replaced (W53).
fn outcome(spec: &Spec, pod: &ObservedPod) -> Option<Outcome> {
    match (pod.phase, spec.replacement) {
        (Phase::Succeeded, _) => Some(Outcome::Succeeded),
        (Phase::Failed, _) => Some(Outcome::Failed),
        (Phase::Pending | Phase::Running, Replacement::TerminatingOrFailed) if pod.is_terminating => Some(Outcome::Failed),
        (Phase::Pending | Phase::Running, Replacement::TerminatingOrFailed | Replacement::Failed) => None,
    }
}

fn count_success(memory: &mut JobMemory, attempt: Attempt) {
    match attempt.index {
        Some(index) => indexed::succeed(memory, index),
        None => memory.succeeded = memory.succeeded.saturating_add(1),
    }
}

/// Counts a failure as far as it counts. Returns true if the next attempt pauses for it.
fn count_failure(memory: &mut JobMemory, spec: &Spec, attempt: Attempt, failure: &Failure, at: Moment) -> bool {
    match failure {
        Failure::Counted | Failure::FailsIndex | Failure::FailsJob(_) => memory.failed = memory.failed.saturating_add(1),
        Failure::Ignored => {}
        Failure::PowerLost => return false,
    }
    if let Some(index) = attempt.index {
        indexed::fail(memory, spec, index, failure, at);
    }
    true
}

fn keep(kept: &mut Vec<KeptPod>, pod: KeptPod) {
    kept.push(pod);
    kept.drain(..kept.len().saturating_sub(KEPT));
}
