//! Defaults of a CronJob (W68).

use k8s_openapi::api::batch::v1::CronJob;

pub(super) const SUCCESSFUL_JOBS_HISTORY_LIMIT: i32 = 3;
pub(super) const FAILED_JOBS_HISTORY_LIMIT: i32 = 1;

/// Writes the defaults of the CronJob's own fields. Those of the jobTemplate are the Job's.
pub fn fill_defaults(cron_job: &mut CronJob) {
    let Some(spec) = cron_job.spec.as_mut() else { return };
    // The empty text is upstream's unset value.
    spec.concurrency_policy.take_if(|policy| policy.is_empty());
    spec.concurrency_policy.get_or_insert_with(|| "Allow".to_owned());
    spec.suspend.get_or_insert(false);
    spec.successful_jobs_history_limit.get_or_insert(SUCCESSFUL_JOBS_HISTORY_LIMIT);
    spec.failed_jobs_history_limit.get_or_insert(FAILED_JOBS_HISTORY_LIMIT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::batch::v1::CronJobSpec;

    #[test]
    fn defaults_are_those_of_upstream() {
        let mut cron_job = CronJob { spec: Some(CronJobSpec::default()), ..CronJob::default() };
        fill_defaults(&mut cron_job);
        let spec = cron_job.spec.unwrap();
        assert_eq!(spec.concurrency_policy.as_deref(), Some("Allow"));
        assert_eq!((spec.successful_jobs_history_limit, spec.failed_jobs_history_limit), (Some(3), Some(1)));
        assert_eq!((spec.suspend, spec.time_zone, spec.starting_deadline_seconds), (Some(false), None, None));
    }

    #[test]
    fn written_values_are_kept() {
        let written = CronJobSpec {
            concurrency_policy: Some("Forbid".to_owned()),
            suspend: Some(true),
            successful_jobs_history_limit: Some(0),
            failed_jobs_history_limit: Some(7),
            ..CronJobSpec::default()
        };
        let mut cron_job = CronJob { spec: Some(written.clone()), ..CronJob::default() };
        fill_defaults(&mut cron_job);
        assert_eq!(cron_job.spec, Some(written));
    }
}
