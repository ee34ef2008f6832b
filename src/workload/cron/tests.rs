//! CronJobs, step by step.

use super::*;
use crate::moment::Moment;
use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::{CronJobSpec, JobSpec, JobTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::cell::Cell;
use std::time::Duration;

/// A host with one CronJob. Memory goes through JSON in every step.
pub(super) struct Host {
    pub(super) cron_job: CronJob,
    pub(super) memory: Option<CronMemory>,
    pub(super) runs: BTreeMap<String, ObservedRun>,
    pub(super) names_in_sources: BTreeSet<String>,
    pub(super) all_observed: bool,
    pub(super) clocks: Clocks,
    uids: Cell<u32>,
    boots: u32,
}

impl Host {
    pub(super) fn new(schedule: &str, now: &str) -> Self {
        let template = JobTemplateSpec { spec: Some(JobSpec::default()), metadata: None };
        let spec = CronJobSpec { schedule: schedule.to_owned(), job_template: template, ..CronJobSpec::default() };
        let metadata = ObjectMeta {
            name: Some("dump".to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some("cron-uid".to_owned()),
            ..ObjectMeta::default()
        };
        Host {
            cron_job: CronJob { metadata, spec: Some(spec), status: None },
            memory: None,
            runs: BTreeMap::new(),
            names_in_sources: BTreeSet::new(),
            all_observed: true,
            clocks: Clocks {
                wall: at(now),
                moment: Moment::after_boot(Duration::from_secs(3600)),
                boot_id: "boot-0".to_owned(),
                synchronised: Some(true),
                built: at("2025-01-01T00:00:00Z"),
                wait_for_sync: WAIT_FOR_SYNC,
            },
            uids: Cell::new(0),
            boots: 0,
        }
    }

    /// A CronJob whose last run was at `last` and is long gone.
    fn with_last(schedule: &str, last: &str, now: &str) -> Self {
        let mut host = Host::new(schedule, now);
        let last = Some(at(last));
        host.memory = Some(CronMemory { created: last, settled: last, last_scheduled: last, ..CronMemory::default() });
        host
    }

    pub(super) fn spec(&mut self) -> &mut CronJobSpec {
        self.cron_job.spec.as_mut().unwrap()
    }

    /// A step that has no effect, as before a power cut.
    pub(super) fn consider(&self) -> CronStep {
        let fresh_uid = || {
            self.uids.set(self.uids.get() + 1);
            format!("job-{}", self.uids.get())
        };
        let input = CronInput {
            runs: &self.runs,
            all_observed: self.all_observed,
            names_in_sources: &self.names_in_sources,
            clocks: &self.clocks,
            zones: &TimeZoneDatabase::bundled(),
            fresh_uid: &fresh_uid,
        };
        step(&self.cron_job, self.memory.as_ref(), &input)
    }

    /// A step that takes effect: its memory is kept and its Jobs start.
    pub(super) fn look(&mut self) -> CronStep {
        let step = self.consider();
        let written = serde_json::to_string(&step.memory).unwrap();
        let read: CronMemory = serde_json::from_str(&written).unwrap();
        assert_eq!(read, step.memory);
        self.memory = Some(read);
        for job in names(&step) {
            self.runs.entry(job).or_insert(ObservedRun::Active);
        }
        step
    }

    /// A look at that time.
    fn look_at(&mut self, now: &str) -> CronStep {
        self.clocks.wall = at(now);
        self.look()
    }

    /// A new boot, by this clock, which nobody has synchronised yet.
    pub(super) fn boot(&mut self, now: &str) {
        self.boots += 1;
        self.clocks.boot_id = format!("boot-{}", self.boots);
        self.clocks.wall = at(now);
        self.clocks.moment = Moment::after_boot(Duration::from_secs(5));
        self.clocks.synchronised = Some(false);
    }

    fn complete(&mut self, job: &str) {
        let at = Some(self.clocks.wall);
        self.runs.insert(job.to_owned(), ObservedRun::Complete { at });
    }
}

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(super) fn names(step: &CronStep) -> Vec<String> {
    step.jobs.iter().map(|job| job.metadata.name.clone().unwrap()).collect()
}

/// Name of the Job for a time.
fn run(time: &str) -> String {
    format!("dump-{}", at(time).as_second() / 60)
}

fn reasons(step: &CronStep) -> Vec<&'static str> {
    step.events.iter().map(CronEvent::reason).collect()
}

fn messages(step: &CronStep) -> Vec<String> {
    step.events.iter().map(ToString::to_string).collect()
}

// TC1
#[test]
fn latest_missed_time_is_started() {
    let mut host = Host::with_last("30 10,11,12 * * 1-5", "2026-03-05T10:30:00Z", "2026-03-06T16:30:00Z");
    let step = host.look();
    assert_eq!(names(&step), [run("2026-03-06T12:30:00Z")]);
    assert_eq!(step.status.last_schedule_time.unwrap().0, at("2026-03-06T12:30:00Z"));
    assert_eq!(step.wake.wall, Some(at("2026-03-09T10:30:00Z")));
}

// TC2
#[test]
fn hourly_run_starts_when_due() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T10:00:00Z", "2026-03-05T10:59:00Z");
    let step = host.look();
    assert_eq!((names(&step).len(), step.events.len()), (0, 0));
    assert_eq!(step.wake.wall, Some(at("2026-03-05T11:00:00Z")));
    let step = host.look_at("2026-03-05T11:01:00Z");
    assert_eq!(names(&step), [run("2026-03-05T11:00:00Z")]);
    assert_eq!(messages(&step), [format!("Created job {}", run("2026-03-05T11:00:00Z"))]);
}

// TC2
#[test]
fn latest_run_starts_after_week_off() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T10:00:00Z", "2026-03-12T10:30:00Z");
    let step = host.look();
    assert_eq!(names(&step), [run("2026-03-12T10:00:00Z")]);
    assert_eq!(reasons(&step), ["TooManyMissedTimes", "SuccessfulCreate"]);
    assert!(host.look().events.is_empty());
}

// TC3
#[test]
fn late_run_is_missed_once() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T10:00:00Z", "2026-03-05T11:01:01Z");
    host.spec().starting_deadline_seconds = Some(60);
    let step = host.look();
    assert!(step.jobs.is_empty());
    assert_eq!(messages(&step), ["Missed scheduled time to start a job: Thu, 05 Mar 2026 11:00:00 +0000"]);
    assert!(host.look_at("2026-03-05T11:30:00Z").events.is_empty());
    assert_eq!(names(&host.look_at("2026-03-05T12:01:00Z")), [run("2026-03-05T12:00:00Z")]);
}

// TC3
#[test]
fn deadline_lets_last_hour_start() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T10:00:00Z", "2026-03-12T10:30:00Z");
    host.spec().starting_deadline_seconds = Some(7200);
    let step = host.look();
    assert_eq!(names(&step), [run("2026-03-12T10:00:00Z")]);
    assert_eq!(reasons(&step), ["SuccessfulCreate"]);
}

// TC4
#[test]
fn allowed_runs_overlap() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.look();
    let step = host.look_at("2026-03-05T11:00:00Z");
    assert_eq!(names(&step), [run("2026-03-05T10:00:00Z"), run("2026-03-05T11:00:00Z")]);
    assert_eq!(step.status.active.unwrap().len(), 2);
}

// TC4
#[test]
fn forbidden_run_starts_when_other_ends() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().concurrency_policy = Some("Forbid".to_owned());
    host.look();
    let step = host.look_at("2026-03-05T11:00:00Z");
    assert_eq!(names(&step), [run("2026-03-05T10:00:00Z")]);
    let told = "Not starting job because prior execution is running and concurrency policy is Forbid";
    assert_eq!(messages(&step), [told]);
    assert!(host.look_at("2026-03-05T11:10:00Z").events.is_empty());
    host.complete(&run("2026-03-05T10:00:00Z"));
    let step = host.look_at("2026-03-05T11:20:00Z");
    assert_eq!(reasons(&step), ["SawCompletedJob", "SuccessfulCreate"]);
    assert_eq!(names(&step), [run("2026-03-05T10:00:00Z"), run("2026-03-05T11:00:00Z")]);
}

// TC4
#[test]
fn forbidden_run_is_missed_after_deadline() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().concurrency_policy = Some("Forbid".to_owned());
    host.spec().starting_deadline_seconds = Some(300);
    host.look();
    host.look_at("2026-03-05T11:00:00Z");
    host.complete(&run("2026-03-05T10:00:00Z"));
    assert_eq!(reasons(&host.look_at("2026-03-05T11:20:00Z")), ["SawCompletedJob", "MissSchedule"]);
}

// TC4
#[test]
fn replaced_run_goes_before_next() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().concurrency_policy = Some("Replace".to_owned());
    // The wait for the old one does not count as late.
    host.spec().starting_deadline_seconds = Some(10);
    let (old, new) = (run("2026-03-05T10:00:00Z"), run("2026-03-05T11:00:00Z"));
    host.look();
    let step = host.look_at("2026-03-05T11:00:00Z");
    assert!(step.jobs.is_empty());
    assert_eq!(step.ending, BTreeSet::from([old.clone()]));
    assert_eq!(messages(&step), [format!("Deleted job {old}")]);
    assert!(host.look_at("2026-03-05T11:00:25Z").events.is_empty());
    host.runs.remove(&old);
    let step = host.look_at("2026-03-05T11:00:30Z");
    assert_eq!(names(&step), [new]);
    assert!(step.ending.is_empty());
}

#[test]
fn replaced_run_without_pods_goes_at_once() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().concurrency_policy = Some("Replace".to_owned());
    host.look();
    host.runs.clear();
    let step = host.look_at("2026-03-05T11:00:00Z");
    assert_eq!(reasons(&step), ["SuccessfulDelete", "SuccessfulCreate"]);
    assert_eq!(names(&step), [run("2026-03-05T11:00:00Z")]);
}

#[test]
fn unobserved_run_is_not_taken_for_gone() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().concurrency_policy = Some("Replace".to_owned());
    host.look();
    host.boot("2026-03-05T11:00:00Z");
    host.clocks.synchronised = Some(true);
    host.runs.clear();
    host.all_observed = false;
    assert!(host.look().jobs.is_empty());
    assert_eq!(host.look().ending, BTreeSet::from([run("2026-03-05T10:00:00Z")]));
    host.all_observed = true;
    assert_eq!(names(&host.look()), [run("2026-03-05T11:00:00Z")]);
}

// TC5
#[test]
fn recorded_run_survives_power_cut() {
    let mut host = Host::with_last("0 3 * * *", "2026-03-04T03:00:00Z", "2026-03-05T03:00:00Z");
    let first = host.look();
    host.runs.clear();
    host.boot("2026-03-05T03:05:00Z");
    host.all_observed = false;
    let again = host.look();
    assert_eq!(again.jobs, first.jobs);
    host.all_observed = true;
    host.clocks.synchronised = Some(true);
    let later = host.look();
    assert_eq!(later.jobs, first.jobs);
    assert!(later.events.is_empty());
}

// TC5
#[test]
fn unrecorded_run_starts_after_power_cut() {
    let mut host = Host::with_last("0 3 * * *", "2026-03-04T03:00:00Z", "2026-03-05T03:00:00Z");
    let lost = host.consider();
    host.boot("2026-03-05T03:05:00Z");
    host.clocks.synchronised = Some(true);
    assert_eq!(names(&host.look()), names(&lost));
    assert_eq!(host.look().jobs.len(), 1);
}

// TC6
#[test]
fn impossible_clock_starts_nothing() {
    let mut host = Host::new("0 * * * *", "1970-01-01T00:00:20Z");
    host.clocks.synchronised = None;
    let step = host.look();
    assert_eq!(reasons(&step), ["ClockNotCredible"]);
    assert!(step.jobs.is_empty());
    assert_eq!(step.memory.created, None);
    assert!(host.look_at("1970-01-01T01:00:20Z").events.is_empty());
    let step = host.look_at("2026-03-05T10:20:00Z");
    assert_eq!((step.jobs.len(), step.memory.created), (0, Some(at("2026-03-05T10:20:00Z"))));
    assert_eq!(step.wake.wall, Some(at("2026-03-05T11:00:00Z")));
    assert_eq!(names(&host.look_at("2026-03-05T11:00:00Z")), [run("2026-03-05T11:00:00Z")]);
}

// TC6
#[test]
fn impossible_clock_is_told_each_boot() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T10:00:00Z", "1970-01-01T00:00:20Z");
    assert_eq!(reasons(&host.look()), ["ClockNotCredible"]);
    host.boot("1970-01-01T00:00:20Z");
    assert_eq!(reasons(&host.look()), ["ClockNotCredible"]);
    assert_eq!(names(&host.look_at("2026-03-05T12:30:00Z")), [""; 0], "not synchronised yet");
    host.clocks.synchronised = Some(true);
    assert_eq!(names(&host.look()), [run("2026-03-05T12:00:00Z")]);
}

// TC7
#[test]
fn clock_of_last_shutdown_starts_nothing() {
    let mut host = Host::with_last("0 3 * * *", "2026-03-04T03:00:00Z", "2026-03-05T02:00:00Z");
    host.look();
    host.boot("2026-03-05T02:59:30Z");
    let step = host.look();
    assert_eq!(step.wake, Wake { wall: None, moment: Some(Moment::after_boot(WAIT_FOR_SYNC)) });
    host.clocks.moment = Moment::after_boot(Duration::from_secs(40));
    assert!(host.look_at("2026-03-05T03:00:05Z").jobs.is_empty());
    host.clocks.moment = Moment::after_boot(Duration::from_secs(60));
    host.clocks.synchronised = Some(true);
    let step = host.look_at("2026-03-06T09:00:00Z");
    assert_eq!(names(&step), [run("2026-03-06T03:00:00Z")]);
    assert_eq!(host.look_at("2026-03-06T09:01:00Z").jobs.len(), 1);
}

// TC7
#[test]
fn clock_is_trusted_after_wait() {
    let mut host = Host::with_last("0 3 * * *", "2026-03-04T03:00:00Z", "2026-03-05T02:00:00Z");
    host.boot("2026-03-05T03:00:10Z");
    host.clocks.synchronised = None;
    assert!(host.look().jobs.is_empty());
    host.clocks.moment = Moment::after_boot(WAIT_FOR_SYNC);
    assert_eq!(names(&host.look()), [run("2026-03-05T03:00:00Z")]);
}

// TC8
#[test]
fn clock_set_back_little_repeats_nothing() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T12:00:00Z", "2026-03-05T10:30:00Z");
    let step = host.look();
    assert!(step.events.is_empty());
    assert_eq!(step.wake.wall, Some(at("2026-03-05T13:00:00Z")));
    assert!(host.look_at("2026-03-05T11:00:00Z").jobs.is_empty());
    assert!(host.look_at("2026-03-05T12:00:00Z").jobs.is_empty());
    assert_eq!(names(&host.look_at("2026-03-05T13:00:00Z")), [run("2026-03-05T13:00:00Z")]);
}

// TC8
#[test]
fn clock_set_back_far_goes_on() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T12:00:00Z", "2025-03-05T10:30:00Z");
    let step = host.look();
    let told = "Clock went back from 2026-03-05T12:00:00Z or later to 2025-03-05T10:30:00Z: the schedule goes on from there";
    assert_eq!(messages(&step), [told]);
    assert_eq!(step.wake.wall, Some(at("2025-03-05T11:00:00Z")));
    assert!(host.look().events.is_empty());
    assert_eq!(names(&host.look_at("2025-03-05T11:00:00Z")), [run("2025-03-05T11:00:00Z")]);
}

// TC9
#[test]
fn time_in_gap_starts_once() {
    let mut host = Host::with_last("30 2 * * *", "2026-03-28T01:30:00Z", "2026-03-28T12:00:00Z");
    host.spec().time_zone = Some("Europe/Berlin".to_owned());
    let step = host.look();
    assert_eq!(step.wake.wall, Some(at("2026-03-29T01:00:00Z")));
    let step = host.look_at("2026-03-29T01:00:00Z");
    let annotations = step.jobs[0].metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"], "2026-03-29T03:00:00+02:00");
    assert_eq!(host.look_at("2026-03-29T23:00:00Z").jobs.len(), 1);
}

// TC11
#[test]
fn oldest_finished_runs_go() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().successful_jobs_history_limit = Some(1);
    let hours = ["2026-03-05T10:00:00Z", "2026-03-05T11:00:00Z", "2026-03-05T12:00:00Z"];
    for hour in hours {
        host.look_at(hour);
    }
    for hour in hours {
        host.complete(&run(hour));
    }
    let step = host.look_at("2026-03-05T12:30:00Z");
    assert_eq!(names(&step), [run(hours[2])]);
    assert_eq!(step.ending, BTreeSet::from([run(hours[0]), run(hours[1])]));
    let done = ["SawCompletedJob", "SawCompletedJob", "SawCompletedJob", "SuccessfulDelete", "SuccessfulDelete"];
    assert_eq!(reasons(&step), done);
    assert_eq!(messages(&step)[0], format!("Saw completed job: {}, condition: Complete", run(hours[0])));
    assert_eq!(step.status.last_successful_time.unwrap().0, at("2026-03-05T12:00:00Z"));
    host.runs.remove(&run(hours[0]));
    host.runs.remove(&run(hours[1]));
    let step = host.look();
    assert_eq!((step.memory.runs.len(), step.ending.len(), step.events.len()), (1, 0, 0));
}

// TC11
#[test]
fn failed_runs_have_own_limit() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.look();
    host.runs.insert(run("2026-03-05T10:00:00Z"), ObservedRun::Failed);
    host.look_at("2026-03-05T11:00:00Z");
    host.complete(&run("2026-03-05T11:00:00Z"));
    host.look_at("2026-03-05T12:00:00Z");
    host.runs.insert(run("2026-03-05T12:00:00Z"), ObservedRun::Failed);
    let step = host.look_at("2026-03-05T12:10:00Z");
    assert_eq!(names(&step), [run("2026-03-05T11:00:00Z"), run("2026-03-05T12:00:00Z")]);
    assert_eq!(step.status.active, None);
}

#[test]
fn history_goes_by_order_of_starts() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().successful_jobs_history_limit = Some(1);
    host.look();
    host.complete(&run("2026-03-05T10:00:00Z"));
    host.look_at("2025-06-05T10:30:00Z");
    host.look_at("2025-06-05T11:00:00Z");
    host.complete(&run("2025-06-05T11:00:00Z"));
    assert_eq!(names(&host.look()), [run("2025-06-05T11:00:00Z")]);
}

// TC11
#[test]
fn resumed_schedule_makes_up_one_run() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T09:30:00Z");
    host.spec().suspend = Some(true);
    let step = host.look_at("2026-03-05T11:30:00Z");
    assert_eq!((step.jobs.len(), step.wake), (0, Wake::default()));
    host.spec().suspend = Some(false);
    assert_eq!(names(&host.look_at("2026-03-05T11:31:00Z")), [run("2026-03-05T11:00:00Z")]);
    assert_eq!(host.look_at("2026-03-05T11:40:00Z").jobs.len(), 1);
}

#[test]
fn suspension_lets_active_run_end() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.look();
    host.spec().suspend = Some(true);
    assert_eq!(names(&host.look()), [run("2026-03-05T10:00:00Z")]);
    host.complete(&run("2026-03-05T10:00:00Z"));
    assert_eq!(reasons(&host.look()), ["SawCompletedJob"]);
}

// TC12
#[test]
fn interval_counts_from_last_run() {
    let mut host = Host::with_last("@every 1h", "2026-03-05T10:01:00Z", "2026-03-06T09:01:00Z");
    let step = host.look();
    assert_eq!(names(&step), [run("2026-03-06T09:01:00Z")]);
    assert_eq!(step.wake.wall, Some(at("2026-03-06T10:01:00Z")));
}

#[test]
fn minute_has_one_run() {
    let mut host = Host::with_last("@every 20s", "2026-03-05T09:59:40Z", "2026-03-05T10:00:00Z");
    let step = host.look();
    assert_eq!(names(&step), [run("2026-03-05T10:00:00Z")]);
    assert_eq!(step.wake.wall, Some(at("2026-03-05T10:01:00Z")));
    let before = host.memory.clone();
    assert_eq!(host.look_at("2026-03-05T10:00:45Z").jobs.len(), 1);
    assert_eq!(host.memory, before);
    assert_eq!(host.look_at("2026-03-05T10:01:00Z").jobs.len(), 2);
}

#[test]
fn job_has_owner_and_template_metadata() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    let labels = BTreeMap::from([("app".to_owned(), "dump".to_owned())]);
    let metadata = ObjectMeta { labels: Some(labels.clone()), name: Some("ignored".to_owned()), ..ObjectMeta::default() };
    host.spec().job_template.metadata = Some(metadata);
    let job = host.look().jobs.remove(0);
    assert_eq!(job.metadata.labels, Some(labels));
    assert_eq!(job.metadata.namespace.as_deref(), Some("shop"));
    assert_eq!(job.metadata.uid.as_deref(), Some("job-1"));
    let annotations = job.metadata.annotations.unwrap();
    assert_eq!(annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"], "2026-03-05T10:00:00Z");
    let owner = &job.metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.uid.as_str()), ("CronJob", "dump", "cron-uid"));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
}

#[test]
fn edited_template_concerns_later_runs() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.look();
    host.spec().job_template.spec.as_mut().unwrap().backoff_limit = Some(2);
    let jobs = host.look_at("2026-03-05T11:00:00Z").jobs;
    let limits: Vec<_> = jobs.iter().map(|job| job.spec.as_ref().unwrap().backoff_limit).collect();
    assert_eq!(limits, [None, Some(2)]);
}

#[test]
fn job_of_source_has_precedence() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.names_in_sources.insert(run("2026-03-05T10:00:00Z"));
    let step = host.look();
    assert!(step.jobs.is_empty());
    let told = format!("Error creating job: jobs.batch \"{}\" already exists", run("2026-03-05T10:00:00Z"));
    assert_eq!(messages(&step), [told]);
    assert!(host.look().events.is_empty());
    host.look_at("2026-03-05T11:00:00Z");
    host.names_in_sources.insert(run("2026-03-05T11:00:00Z"));
    let step = host.look();
    assert!(step.jobs.is_empty() && step.ending.is_empty());
}

// W97
#[test]
fn lost_memory_starts_anew() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().concurrency_policy = Some("Forbid".to_owned());
    host.look();
    host.memory = None;
    let step = host.look_at("2026-03-05T10:30:00Z");
    assert_eq!((step.jobs.len(), step.ending.clone()), (0, BTreeSet::from([run("2026-03-05T10:00:00Z")])));
    assert_eq!(reasons(&host.look_at("2026-03-05T11:00:00Z")), ["JobAlreadyActive"]);
    host.runs.clear();
    assert_eq!(names(&host.look_at("2026-03-05T11:05:00Z")), [run("2026-03-05T11:00:00Z")]);
}

#[test]
fn unusable_zone_is_told_once() {
    let mut host = Host::with_last("0 * * * *", "2026-03-05T09:00:00Z", "2026-03-05T10:00:00Z");
    host.spec().time_zone = Some("Europe/Bonn".to_owned());
    let step = host.look();
    assert_eq!(messages(&step), ["invalid timeZone: \"Europe/Bonn\": unknown time zone Europe/Bonn"]);
    assert!(step.jobs.is_empty());
    assert!(host.look().events.is_empty());
    host.spec().time_zone = None;
    assert_eq!(host.look().jobs.len(), 1);
}

#[test]
fn old_memory_is_read() {
    let memory: CronMemory = serde_json::from_str(r#"{"settled":"2026-03-05T09:00:00Z"}"#).unwrap();
    assert_eq!(memory.settled, Some(at("2026-03-05T09:00:00Z")));
    assert_eq!(serde_json::from_str::<CronMemory>("{}").unwrap(), CronMemory::default());
}

#[test]
fn set_forward_clock_gives_one_run() {
    let mut host = Host::with_last("*/5 * * * *", "2026-03-05T10:00:00Z", "2026-03-05T10:01:00Z");
    host.look();
    assert_eq!(names(&host.look_at("2026-03-06T10:02:00Z")), [run("2026-03-06T10:00:00Z")]);
    let next = at("2026-03-06T10:02:00Z") + SignedDuration::from_mins(3);
    assert_eq!(host.look().wake.wall, Some(next));
}
