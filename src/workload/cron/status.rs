//! The status of a CronJob (W81).

use super::job::job_name;
use super::memory::{CronMemory, Run, RunStage};
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The status.
pub(super) fn status(cron_job: &CronJob, memory: &CronMemory) -> CronJobStatus {
    let mut active: Vec<(&i64, &Run)> = memory.runs.iter().filter(|(_, run)| run.stage == RunStage::Active).collect();
    active.sort_unstable_by_key(|(_, run)| run.number);
    let active: Vec<ObjectReference> = active.into_iter().map(|(minute, run)| reference(cron_job, *minute, run)).collect();
    CronJobStatus {
        active: (!active.is_empty()).then_some(active),
        last_schedule_time: memory.last_scheduled.map(Time),
        last_successful_time: memory.last_successful.map(Time),
    }
}

fn reference(cron_job: &CronJob, minute: i64, run: &Run) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: Some(job_name(cron_job, minute)),
        namespace: cron_job.metadata.namespace.clone(),
        uid: Some(run.uid.clone()),
        ..ObjectReference::default()
    }
}
