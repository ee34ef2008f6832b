//! The status of a Job (W67).

use super::memory::{JobMemory, Stage};
use super::spec::Spec;
use super::verdict::Verdict;
use super::{PodsByName, attempts};
use crate::indexes::IndexSet;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The status that the memory and the pods make.
pub(super) fn of(spec: &Spec, memory: &JobMemory, pods: &PodsByName<'_>) -> JobStatus {
    let running = attempts::running(memory, pods);
    let ready = running.iter().filter(|attempt| pods.of(**attempt).is_some_and(|pod| pod.ready_since.is_some()));
    let alive = pods.alive().count();
    let alive_and_running = running.iter().filter(|attempt| pods.of(**attempt).is_some_and(|pod| !pod.is_terminal()));
    let indexed = spec.indexes().map(IndexSet::below);
    let completed = indexed.as_ref().map(|all| memory.completed_indexes.intersection(all)).filter(|indexes| !indexes.is_empty());
    let failed_indexes = indexed.filter(|_| spec.per_index.is_some()).map(|all| memory.failed_indexes.intersection(&all));
    let conditions = conditions(memory);
    JobStatus {
        active: above_zero(number(running.len())),
        ready: Some(number(ready.count())),
        terminating: Some(number(alive - alive_and_running.count())),
        succeeded: above_zero(i32::try_from(memory.successes(spec.indexes())).unwrap_or(i32::MAX)),
        failed: above_zero(i32::try_from(memory.failed).unwrap_or(i32::MAX)),
        completed_indexes: completed.map(|indexes| indexes.to_string()),
        failed_indexes: failed_indexes.map(|indexes| indexes.to_string()),
        start_time: memory.started.map(Time),
        completion_time: completion_time(memory),
        conditions: (!conditions.is_empty()).then_some(conditions),
        uncounted_terminated_pods: None,
    }
}

fn completion_time(memory: &JobMemory) -> Option<Time> {
    match &memory.stage {
        Stage::Ended { verdict: Verdict::Complete { .. }, ended, .. } => Some(Time(*ended)),
        Stage::Ended { verdict: Verdict::Failed { .. }, .. } => None,
        Stage::Clearing | Stage::Running { .. } | Stage::Suspended | Stage::Ending { .. } => None,
    }
}

fn conditions(memory: &JobMemory) -> Vec<JobCondition> {
    let mut conditions = Vec::new();
    if let Some(suspension) = memory.suspension {
        let (status, reason, message) = if suspension.is_suspended {
            ("True", "JobSuspended", "Job suspended")
        } else {
            ("False", "JobResumed", "Job resumed")
        };
        conditions.push(condition("Suspended", status, reason, message, suspension.since));
    }
    let (verdict, decided, ended) = match &memory.stage {
        Stage::Clearing | Stage::Running { .. } | Stage::Suspended => return conditions,
        Stage::Ending { verdict, decided } => (verdict, *decided, None),
        Stage::Ended { verdict, decided, ended, .. } => (verdict, *decided, Some(*ended)),
    };
    let (early, last, reason, message) = match verdict {
        Verdict::Failed { reason, message } => ("FailureTarget", "Failed", reason.as_str(), message),
        Verdict::Complete { reason, message } => ("SuccessCriteriaMet", "Complete", reason.as_str(), message),
    };
    conditions.push(condition(early, "True", reason, message, decided));
    conditions.extend(ended.map(|ended| condition(last, "True", reason, message, ended)));
    conditions
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, since: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(since)),
        last_transition_time: Some(Time(since)),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Upstream leaves numbers out that are 0.
fn above_zero(number: i32) -> Option<i32> {
    Some(number).filter(|number| *number > 0)
}
