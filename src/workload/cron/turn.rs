//! One evaluation of a CronJob.

use super::clock::Credibility;
use super::concurrency::{ConcurrencyPolicy, Decision, Unfinished, decide};
use super::defaults::{FAILED_JOBS_HISTORY_LIMIT, SUCCESSFUL_JOBS_HISTORY_LIMIT};
use super::event::CronEvent;
use super::history::over_limit;
use super::job::{in_zone, job, job_name, minute};
use super::memory::{CronMemory, Run, RunStage, Trigger};
use super::status::status;
use super::{CronInput, CronStep, ObservedRun, Wake};
use crate::schedule::{Schedule, zone};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};
use std::collections::BTreeSet;

/// Number of activations that may be missed without an event (W72).
const MANY: u32 = 100;

/// One evaluation: the memory as it changes, and the events so far.
pub(super) struct Turn<'a> {
    cron_job: &'a CronJob,
    input: &'a CronInput<'a>,
    memory: CronMemory,
    events: Vec<CronEvent>,
    wake: Wake,
}

/// A schedule in its zone.
struct Timetable {
    schedule: Schedule,
    zone: TimeZone,
}

impl<'a> Turn<'a> {
    pub(super) fn new(cron_job: &'a CronJob, memory: Option<&CronMemory>, input: &'a CronInput<'a>) -> Self {
        Self { cron_job, input, memory: memory.cloned().unwrap_or_default(), events: Vec::new(), wake: Wake::default() }
    }

    pub(super) fn run(mut self) -> CronStep {
        self.yield_names();
        self.record_outcomes();
        self.forget_gone();
        if let (Some(spec), true) = (&self.cron_job.spec, self.trusts_clock()) {
            self.follow_schedule(spec);
        }
        self.trim_history();
        self.forget_gone();
        self.finish()
    }

    /// Drops runs of which a source has the name: that Job runs instead (W75).
    fn yield_names(&mut self) {
        let (cron_job, names) = (self.cron_job, self.input.names_in_sources);
        self.memory.runs.retain(|minute, _| !names.contains(&job_name(cron_job, *minute)));
    }

    fn record_outcomes(&mut self) {
        let wall = self.input.clocks.wall;
        for (minute, run) in &mut self.memory.runs {
            let job = job_name(self.cron_job, *minute);
            let (stage, condition) = match (run.stage, self.input.runs.get(&job)) {
                (RunStage::Active, Some(ObservedRun::Complete { at })) => {
                    let at = at.unwrap_or(wall);
                    // A time in the future is of a clock that was wrong.
                    if self.memory.last_successful.is_none_or(|last| at > last || last > wall) {
                        self.memory.last_successful = Some(at);
                    }
                    (RunStage::Complete, "Complete")
                }
                (RunStage::Active, Some(ObservedRun::Failed)) => (RunStage::Failed, "Failed"),
                (RunStage::Active, Some(ObservedRun::Active) | None)
                | (RunStage::Complete | RunStage::Failed | RunStage::Ending | RunStage::Removed, _) => continue,
            };
            run.stage = stage;
            self.events.push(CronEvent::Completed { job, condition });
        }
    }

    /// Forgets runs that are not wanted and of which nothing is left.
    fn forget_gone(&mut self) {
        let (cron_job, input) = (self.cron_job, self.input);
        let exists = |minute: i64| !input.all_observed || input.runs.contains_key(&job_name(cron_job, minute));
        self.memory.runs.retain(|minute, run| run.stage.is_wanted() || exists(*minute));
    }

    /// Tells that schedules go by the wall clock now (W77, W78).
    fn trusts_clock(&mut self) -> bool {
        let clocks = self.input.clocks;
        match clocks.credibility() {
            Credibility::Impossible => {
                if self.memory.told.clock_in_boot.as_ref() != Some(&clocks.boot_id) {
                    self.memory.told.clock_in_boot = Some(clocks.boot_id.clone());
                    self.events.push(CronEvent::ClockNotCredible { wall: clocks.wall });
                }
                self.wake.wall = Some(clocks.built);
                false
            }
            Credibility::Unsettled { until } => {
                self.wake.moment = Some(until);
                false
            }
            Credibility::Trusted => true,
        }
    }

    fn follow_schedule(&mut self, spec: &CronJobSpec) {
        let settled = self.settled();
        if spec.suspend == Some(true) {
            self.memory.replaces_in_boot = None;
            return;
        }
        let Some(timetable) = self.timetable(spec) else { return };
        if let Some(due) = self.due(&timetable, settled) {
            self.act(spec, &timetable, settled, due);
        }
        self.wake.wall = self.next_look(&timetable);
    }

    /// Time up to which activations need nothing: the creation at first, and the present if the clock went back too far (W77, W79).
    fn settled(&mut self) -> Timestamp {
        let wall = self.input.clocks.wall;
        self.memory.created.get_or_insert(wall);
        let settled = *self.memory.settled.get_or_insert(wall);
        if !self.input.clocks.disproves(settled) {
            return settled;
        }
        self.events.push(CronEvent::ClockWentBack { from: settled, to: wall });
        self.memory.settled = Some(wall);
        self.memory.created = self.memory.created.min(Some(wall));
        self.memory.last_scheduled = self.memory.last_scheduled.min(Some(wall));
        self.memory.replaces_in_boot = None;
        wall
    }

    /// The schedule and its zone. Validation refuses others; a zone may leave the database of the host later.
    fn timetable(&mut self, spec: &CronJobSpec) -> Option<Timetable> {
        let zone = zone(spec.time_zone.as_deref(), self.input.zones).map_err(|error| CronEvent::UnknownTimeZone {
            zone: spec.time_zone.clone().unwrap_or_default(),
            problem: error.to_string(),
        });
        let timetable = zone.and_then(|zone| match Schedule::parse(&spec.schedule) {
            Ok(schedule) => Ok(Timetable { schedule, zone }),
            Err(error) => Err(CronEvent::UnparseableSchedule { schedule: spec.schedule.clone(), problem: error.to_string() }),
        });
        match timetable {
            Ok(timetable) => {
                self.memory.told.unusable = None;
                Some(timetable)
            }
            Err(event) => {
                let message = event.to_string();
                if self.memory.told.unusable.as_ref() != Some(&message) {
                    self.memory.told.unusable = Some(message);
                    self.events.push(event);
                }
                None
            }
        }
    }

    /// The latest activation that is not settled (W72). Two in one minute are one run, and a minute of which a Job exists has had its run (W75).
    fn due(&mut self, timetable: &Timetable, settled: Timestamp) -> Option<Timestamp> {
        let due = timetable.schedule.latest(settled, self.input.clocks.wall, &timetable.zone)?;
        let due_minute = minute(due);
        if self.memory.last_scheduled.map(minute) == Some(due_minute) {
            return None;
        }
        let exists =
            self.memory.runs.contains_key(&due_minute) || self.input.runs.contains_key(&job_name(self.cron_job, due_minute));
        if exists && !self.input.names_in_sources.contains(&job_name(self.cron_job, due_minute)) {
            self.memory.settled = Some(due);
            self.memory.replaces_in_boot = None;
            return None;
        }
        Some(due)
    }

    fn act(&mut self, spec: &CronJobSpec, timetable: &Timetable, settled: Timestamp, due: Timestamp) {
        let Some(policy) = ConcurrencyPolicy::parse(spec.concurrency_policy.as_deref()) else { return };
        let clocks = self.input.clocks;
        let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
        let is_late = deadline.is_some_and(|deadline| clocks.wall.duration_since(due) > deadline);
        let others_were_ended = self.memory.replaces_in_boot.as_ref() == Some(&clocks.boot_id);
        // As upstream, activations before the window do not count as missed.
        let window = deadline.and_then(|deadline| clocks.wall.checked_sub(deadline).ok()).unwrap_or(settled);
        let is_many = || timetable.schedule.count(settled.max(window), clocks.wall, &timetable.zone, MANY + 1) > MANY;
        match decide(policy, self.unfinished(), is_late, others_were_ended) {
            Decision::Missed if self.was_told(self.memory.told.missed, due) => {}
            Decision::Missed => {
                self.memory.told.missed = Some(due);
                self.events.extend(is_many().then_some(CronEvent::TooManyMissed));
                self.events.push(CronEvent::Missed { scheduled: due });
            }
            Decision::Blocked if self.was_told(self.memory.told.blocked, due) => {}
            Decision::Blocked => {
                self.memory.told.blocked = Some(due);
                self.events.push(CronEvent::AlreadyActive);
            }
            Decision::EndOthers => {
                self.end_others();
                self.forget_gone();
                // Nothing may have existed of them: then no observation would ask for the start.
                if self.unfinished() == Unfinished::default() {
                    self.start(spec, due, &timetable.zone);
                }
            }
            Decision::WaitForOthers => {}
            Decision::Start => {
                self.events.extend(is_many().then_some(CronEvent::TooManyMissed));
                self.start(spec, due, &timetable.zone);
            }
        }
    }

    /// Tells that an event was recorded for this due time, or for a later one that a correction of the clock has taken back.
    fn was_told(&self, told: Option<Timestamp>, due: Timestamp) -> bool {
        told.is_some_and(|told| told >= due && !self.input.clocks.disproves(told))
    }

    fn unfinished(&self) -> Unfinished {
        let has = |stage| self.memory.runs.values().any(|run| run.stage == stage);
        let is_stranger_active = self.strangers().any(|(_, observed)| observed == ObservedRun::Active);
        Unfinished { is_active: has(RunStage::Active), is_ending: has(RunStage::Ending) || is_stranger_active }
    }

    /// Jobs that exist and that the memory does not know, as after its loss (W97).
    fn strangers(&self) -> impl Iterator<Item = (&'a String, ObservedRun)> {
        let known: BTreeSet<String> = self.memory.runs.keys().map(|minute| job_name(self.cron_job, *minute)).collect();
        let in_sources = self.input.names_in_sources;
        let observed = self.input.runs.iter().map(|(name, observed)| (name, *observed));
        observed.filter(move |(name, _)| !known.contains(*name) && !in_sources.contains(*name))
    }

    fn end_others(&mut self) {
        for (minute, run) in self.memory.runs.iter_mut().filter(|(_, run)| run.stage == RunStage::Active) {
            run.stage = RunStage::Ending;
            self.events.push(CronEvent::Deleted { job: job_name(self.cron_job, *minute) });
        }
        self.memory.replaces_in_boot = Some(self.input.clocks.boot_id.clone());
    }

    fn start(&mut self, spec: &CronJobSpec, due: Timestamp, zone: &TimeZone) {
        let job = job_name(self.cron_job, minute(due));
        self.memory.settled = Some(due);
        self.memory.replaces_in_boot = None;
        if self.input.names_in_sources.contains(&job) {
            self.events.push(CronEvent::NameTaken { job });
            return;
        }
        if self.memory.runs.contains_key(&minute(due)) {
            // An operator started a run in this minute (W75).
            self.memory.last_scheduled = Some(due);
            return;
        }
        self.memory.starts += 1;
        let run = Run {
            number: self.memory.starts,
            uid: (self.input.fresh_uid)(),
            scheduled: due,
            trigger: Trigger::Schedule { in_zone: in_zone(due, zone) },
            started: self.input.clocks.wall,
            template: spec.job_template.clone(),
            stage: RunStage::Active,
        };
        self.memory.last_scheduled = Some(due);
        self.memory.runs.insert(minute(due), run);
        self.events.push(CronEvent::Created { job });
    }

    /// The next activation outside the minute of the last run (W75).
    fn next_look(&self, timetable: &Timetable) -> Option<Timestamp> {
        let wall = self.input.clocks.wall;
        let settled = self.memory.settled.unwrap_or(wall);
        let last_minute = self.memory.last_scheduled.map(minute);
        let end_of_last_minute = last_minute.and_then(|minute| Timestamp::from_millisecond((minute + 1) * 60_000 - 1).ok());
        let after = end_of_last_minute.map_or(wall, |end| end.max(wall));
        timetable.schedule.next(settled, after, &timetable.zone)
    }

    fn trim_history(&mut self) {
        let Some(spec) = &self.cron_job.spec else { return };
        let limits = [
            (RunStage::Complete, spec.successful_jobs_history_limit.unwrap_or(SUCCESSFUL_JOBS_HISTORY_LIMIT)),
            (RunStage::Failed, spec.failed_jobs_history_limit.unwrap_or(FAILED_JOBS_HISTORY_LIMIT)),
        ];
        for (outcome, limit) in limits {
            for minute in over_limit(&self.memory.runs, outcome, usize::try_from(limit).unwrap_or(0)) {
                if let Some(run) = self.memory.runs.get_mut(&minute) {
                    run.stage = RunStage::Removed;
                    self.events.push(CronEvent::Deleted { job: job_name(self.cron_job, minute) });
                }
            }
        }
    }

    fn finish(self) -> CronStep {
        let is_wanted = |run: &Run| run.stage.is_wanted();
        let mut wanted: Vec<(&i64, &Run)> = self.memory.runs.iter().filter(|(_, run)| is_wanted(run)).collect();
        wanted.sort_unstable_by_key(|(_, run)| run.number);
        let jobs = wanted.into_iter().map(|(minute, run)| job(self.cron_job, *minute, run)).collect();
        let unwanted = self.memory.runs.iter().filter(|(_, run)| !is_wanted(run));
        let mut ending: BTreeSet<String> = unwanted.map(|(minute, _)| job_name(self.cron_job, *minute)).collect();
        ending.extend(self.strangers().map(|(name, _)| name.clone()));
        let status = status(self.cron_job, &self.memory);
        CronStep { jobs, ending, status, events: self.events, wake: self.wake, memory: self.memory }
    }
}
