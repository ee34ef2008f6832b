//! The Job of a run (W6, W75).

use super::memory::{Run, Trigger};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};

/// The annotation of `kubectl create job --from`.
const INSTANTIATE: &str = "cronjob.kubernetes.io/instantiate";
const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Name of the Job for a minute since 1970 (W75).
pub fn job_name(cron_job: &CronJob, minute: i64) -> String {
    format!("{}-{minute}", cron_job.metadata.name.as_deref().unwrap_or_default())
}

/// The minute since 1970 that a point in time lies in.
pub(super) fn minute(time: Timestamp) -> i64 {
    time.as_second().div_euclid(60)
}

/// The activation in the zone of its schedule, as Go prints RFC 3339.
pub(super) fn in_zone(activation: Timestamp, zone: &TimeZone) -> String {
    let zoned = activation.to_zoned(zone.clone());
    let format = if zoned.offset().is_zero() { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    zoned.strftime(format).to_string()
}

/// The Job of a run, with the CronJob as its owner (W5).
pub(super) fn job(cron_job: &CronJob, minute: i64, run: &Run) -> Job {
    let template = run.template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    match &run.trigger {
        Trigger::Schedule { in_zone } => annotations.insert(SCHEDULED_TIMESTAMP.to_owned(), in_zone.clone()),
        Trigger::Operator => annotations.insert(INSTANTIATE.to_owned(), "manual".to_owned()),
    };
    let owner = OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "CronJob".to_owned(),
        name: cron_job.metadata.name.clone().unwrap_or_default(),
        uid: cron_job.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        name: Some(job_name(cron_job, minute)),
        namespace: cron_job.metadata.namespace.clone(),
        uid: Some(run.uid.clone()),
        creation_timestamp: Some(Time(run.started)),
        labels: template.labels,
        annotations: Some(annotations),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Job { metadata, spec: run.template.spec.clone(), status: None }
}
