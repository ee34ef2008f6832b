//! Rules for a CronJob (W68 to W70). The jobTemplate is validated as a Job's specification.

use super::concurrency::ConcurrencyPolicy;
use crate::job::validate::template_problems;
use crate::problem::{Problem, Problems};
use crate::schedule::{Schedule, zone};
use jiff::tz::TimeZoneDatabase;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};

/// Length of a name that leaves room for `-` and the minutes since 1970 in the name of a Job.
const LONGEST_NAME: usize = 52;

/// Lists everything that is wrong with a CronJob's own fields.
pub fn validate(cron_job: &CronJob, zones: &TimeZoneDatabase) -> Vec<Problem> {
    let mut problems = Problems::default();
    let name = cron_job.metadata.name.as_deref().unwrap_or_default();
    if name.len() > LONGEST_NAME {
        let hint = format!("shorten the name by {}: its Jobs add 11 characters", name.len() - LONGEST_NAME);
        problems.invalid("metadata.name", name, "must be no more than 52 characters");
        problems.hint(hint);
    }
    match &cron_job.spec {
        Some(spec) => {
            check_times(spec, zones, &mut problems);
            check_numbers(spec, &mut problems);
            check_policy(spec, &mut problems);
            check_template(spec, &mut problems);
        }
        None => {
            problems.required("spec", "");
            problems.hint("write spec.schedule and spec.jobTemplate");
        }
    }
    problems.into_vec()
}

fn check_times(spec: &CronJobSpec, zones: &TimeZoneDatabase, problems: &mut Problems) {
    if spec.schedule.is_empty() {
        problems.required("spec.schedule", "");
        problems.hint("write five fields, such as \"0 3 * * *\", or @daily");
    } else if let Err(error) = Schedule::parse(&spec.schedule) {
        problems.invalid("spec.schedule", &spec.schedule, &error);
        problems.hint(error.hint());
    }
    if let Err(error) = zone(spec.time_zone.as_deref(), zones) {
        problems.invalid("spec.timeZone", spec.time_zone.as_deref().unwrap_or_default(), &error);
        problems.hint(error.hint());
    }
}

fn check_numbers(spec: &CronJobSpec, problems: &mut Problems) {
    problems.not_negative("spec.startingDeadlineSeconds", spec.starting_deadline_seconds);
    problems.not_negative("spec.successfulJobsHistoryLimit", spec.successful_jobs_history_limit.map(i64::from));
    problems.not_negative("spec.failedJobsHistoryLimit", spec.failed_jobs_history_limit.map(i64::from));
}

fn check_policy(spec: &CronJobSpec, problems: &mut Problems) {
    let policy = spec.concurrency_policy.as_deref();
    if ConcurrencyPolicy::parse(policy).is_none() {
        let written = policy.unwrap_or_default();
        let similar = ConcurrencyPolicy::NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(written));
        problems.not_one_of("spec.concurrencyPolicy", written, &ConcurrencyPolicy::NAMES);
        if let Some(similar) = similar {
            problems.hint(format!("write {similar}"));
        }
    }
}

fn check_template(spec: &CronJobSpec, problems: &mut Problems) {
    match &spec.job_template.spec {
        Some(job) => problems.extend(template_problems(job, "spec.jobTemplate.spec")),
        None => {
            problems.required("spec.jobTemplate.spec", "");
            problems.hint("write the Job's spec, with its template");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::batch::v1::{JobSpec, JobTemplateSpec};
    use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    fn cron_job(name: &str, spec: CronJobSpec) -> CronJob {
        CronJob { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, spec: Some(spec), status: None }
    }

    fn valid() -> CronJobSpec {
        CronJobSpec {
            schedule: "0 3 * * *".to_owned(),
            job_template: JobTemplateSpec { spec: Some(JobSpec { template: template(), ..JobSpec::default() }), metadata: None },
            ..CronJobSpec::default()
        }
    }

    fn template() -> PodTemplateSpec {
        PodTemplateSpec {
            spec: Some(PodSpec { restart_policy: Some("OnFailure".to_owned()), ..PodSpec::default() }),
            metadata: None,
        }
    }

    fn told(cron_job: &CronJob) -> Vec<String> {
        let problems = validate(cron_job, &TimeZoneDatabase::bundled());
        problems
            .into_iter()
            .map(|problem| format!("{}: {}; {}", problem.field, problem.message, problem.hint.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn valid_cron_jobs_are_accepted() {
        assert_eq!(told(&cron_job(&"n".repeat(52), valid())), [""; 0]);
        let full = CronJobSpec {
            schedule: "@every 1h30m".to_owned(),
            time_zone: Some("Europe/Berlin".to_owned()),
            concurrency_policy: Some("Replace".to_owned()),
            starting_deadline_seconds: Some(0),
            successful_jobs_history_limit: Some(0),
            failed_jobs_history_limit: Some(0),
            ..valid()
        };
        assert_eq!(told(&cron_job("dump", full)), [""; 0]);
    }

    // TC10
    #[test]
    fn refused_schedules_name_field_and_fix() {
        let refused = |schedule: &str| told(&cron_job("dump", CronJobSpec { schedule: schedule.to_owned(), ..valid() }));
        assert_eq!(
            refused("* * * * 7"),
            ["spec.schedule: invalid value \"* * * * 7\": day of week: end of range (7) above maximum (6): 7; Sunday is 0, not 7"]
        );
        assert_eq!(
            refused("TZ=UTC 0 * * * *"),
            ["spec.schedule: invalid value \"TZ=UTC 0 * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field \
              instead; move the zone to spec.timeZone"]
        );
        assert_eq!(refused(""), ["spec.schedule: is required; write five fields, such as \"0 3 * * *\", or @daily"]);
        assert_eq!(refused("59 23 31 2 *").len(), 1);
        assert_eq!(refused("@every 1h30m"), [""; 0]);
        assert_eq!(refused("0 0 ? * MON-FRI"), [""; 0]);
    }

    #[test]
    fn every_problem_is_listed() {
        let wrong = CronJobSpec {
            schedule: "61 * * * *".to_owned(),
            time_zone: Some("Local".to_owned()),
            concurrency_policy: Some("forbid".to_owned()),
            starting_deadline_seconds: Some(-1),
            successful_jobs_history_limit: Some(-1),
            failed_jobs_history_limit: Some(-2),
            job_template: JobTemplateSpec {
                spec: Some(JobSpec {
                    selector: Some(Default::default()),
                    manual_selector: Some(true),
                    template: template(),
                    ..JobSpec::default()
                }),
                metadata: None,
            },
            suspend: None,
        };
        let problems = validate(&cron_job(&"n".repeat(60), wrong), &TimeZoneDatabase::bundled());
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        let expected = [
            "metadata.name",
            "spec.schedule",
            "spec.timeZone",
            "spec.startingDeadlineSeconds",
            "spec.successfulJobsHistoryLimit",
            "spec.failedJobsHistoryLimit",
            "spec.concurrencyPolicy",
            "spec.jobTemplate.spec.selector",
            "spec.jobTemplate.spec.manualSelector",
        ];
        assert_eq!(fields, expected);
        assert_eq!(problems[6].message, "invalid value \"forbid\": must be one of \"Allow\", \"Forbid\", \"Replace\"");
        assert_eq!(problems[6].hint.as_deref(), Some("write Forbid"));
        assert_eq!(problems[5].message, "invalid value -2: must be greater than or equal to 0");
    }

    #[test]
    fn missing_parts_are_required() {
        let empty = CronJob { metadata: ObjectMeta::default(), spec: None, status: None };
        assert_eq!(told(&empty), ["spec: is required; write spec.schedule and spec.jobTemplate"]);
        let no_job = CronJobSpec { job_template: JobTemplateSpec::default(), ..valid() };
        assert_eq!(
            told(&cron_job("dump", no_job)),
            ["spec.jobTemplate.spec: is required; write the Job's spec, with its template"]
        );
    }
}
