//! Runs that an operator starts.

use super::job::{job_name, minute};
use super::memory::{CronMemory, Run, RunStage, Trigger};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;

/// Starts a run now, whatever the schedule, `suspend` and the concurrency policy say, as `kubectl create job --from` does. Returns the new memory
/// and the name of the Job. On failure, the name of the Job of this minute, which exists (W75).
pub fn run_now(
    cron_job: &CronJob,
    memory: Option<&CronMemory>,
    wall: Timestamp,
    fresh_uid: &dyn Fn() -> String,
) -> Result<(CronMemory, String), String> {
    let mut memory = memory.cloned().unwrap_or_default();
    let job = job_name(cron_job, minute(wall));
    if memory.runs.contains_key(&minute(wall)) {
        return Err(job);
    }
    memory.starts += 1;
    let run = Run {
        number: memory.starts,
        uid: fresh_uid(),
        scheduled: wall,
        trigger: Trigger::Operator,
        started: wall,
        template: cron_job.spec.clone().unwrap_or_default().job_template,
        stage: RunStage::Active,
    };
    memory.runs.insert(minute(wall), run);
    Ok((memory, job))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_by_hand_in_a_minute() {
        let cron_job: CronJob = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "dump"},
            "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {}}
        }))
        .unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let uid = || "u".to_owned();
        let (memory, job) = run_now(&cron_job, None, at("2026-01-01T00:00:10Z"), &uid).unwrap();
        assert_eq!(job, "dump-29453760");
        assert_eq!(run_now(&cron_job, Some(&memory), at("2026-01-01T00:00:50Z"), &uid), Err(job));
        let (memory, _) = run_now(&cron_job, Some(&memory), at("2026-01-01T00:01:00Z"), &uid).unwrap();
        assert_eq!(memory.runs.len(), 2);
        assert_eq!(memory.last_scheduled, None);
    }
}
