//! Events of a CronJob, in upstream's words where upstream has the event (W81).

use jiff::Timestamp;
use std::fmt;

/// One event. Its message is its `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CronEvent {
    /// A Job was made.
    Created {
        /// Its name.
        job: String,
    },
    /// A Job of that name is in a source and has precedence (W75).
    NameTaken {
        /// The name.
        job: String,
    },
    /// A Job ended.
    Completed {
        /// Its name.
        job: String,
        /// `Complete` or `Failed`.
        condition: &'static str,
    },
    /// A Job is replaced, or over the history limit.
    Deleted {
        /// Its name.
        job: String,
    },
    /// A due time is older than startingDeadlineSeconds (W73).
    Missed {
        /// The due time.
        scheduled: Timestamp,
    },
    /// Over 100 activations were not started (W72).
    TooManyMissed,
    /// The policy is Forbid and a Job has not ended (W74).
    AlreadyActive,
    /// The clock shows a time before podstead was built (W77).
    ClockNotCredible {
        /// The time that it shows.
        wall: Timestamp,
    },
    /// The clock was set back by more than a correction (W79).
    ClockWentBack {
        /// The time up to which runs were settled.
        from: Timestamp,
        /// The time that it shows now.
        to: Timestamp,
    },
    /// The zone is not in the database any more.
    UnknownTimeZone {
        /// The name.
        zone: String,
        /// The error.
        problem: String,
    },
    /// The schedule cannot be parsed. Validation refuses it before.
    UnparseableSchedule {
        /// The schedule.
        schedule: String,
        /// The error.
        problem: String,
    },
}

impl CronEvent {
    /// The reason.
    pub fn reason(&self) -> &'static str {
        match self {
            CronEvent::Created { .. } => "SuccessfulCreate",
            CronEvent::NameTaken { .. } => "FailedCreate",
            CronEvent::Completed { .. } => "SawCompletedJob",
            CronEvent::Deleted { .. } => "SuccessfulDelete",
            CronEvent::Missed { .. } => "MissSchedule",
            CronEvent::TooManyMissed => "TooManyMissedTimes",
            CronEvent::AlreadyActive => "JobAlreadyActive",
            CronEvent::ClockNotCredible { .. } => "ClockNotCredible",
            CronEvent::ClockWentBack { .. } => "ClockWentBack",
            CronEvent::UnknownTimeZone { .. } => "UnknownTimeZone",
            CronEvent::UnparseableSchedule { .. } => "UnparseableSchedule",
        }
    }

    /// True for the type Warning, false for Normal.
    pub fn is_warning(&self) -> bool {
        match self {
            CronEvent::Created { .. } | CronEvent::Completed { .. } | CronEvent::Deleted { .. } | CronEvent::AlreadyActive => false,
            CronEvent::NameTaken { .. }
            | CronEvent::Missed { .. }
            | CronEvent::TooManyMissed
            | CronEvent::ClockNotCredible { .. }
            | CronEvent::ClockWentBack { .. }
            | CronEvent::UnknownTimeZone { .. }
            | CronEvent::UnparseableSchedule { .. } => true,
        }
    }
}

impl fmt::Display for CronEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CronEvent::Created { job } => write!(f, "Created job {job}"),
            CronEvent::NameTaken { job } => write!(f, "Error creating job: jobs.batch {job:?} already exists"),
            CronEvent::Completed { job, condition } => write!(f, "Saw completed job: {job}, condition: {condition}"),
            CronEvent::Deleted { job } => write!(f, "Deleted job {job}"),
            CronEvent::Missed { scheduled } => {
                let scheduled = scheduled.strftime("%a, %d %b %Y %H:%M:%S +0000");
                write!(f, "Missed scheduled time to start a job: {scheduled}")
            }
            CronEvent::TooManyMissed => {
                f.write_str("too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
            }
            CronEvent::AlreadyActive => {
                f.write_str("Not starting job because prior execution is running and concurrency policy is Forbid")
            }
            CronEvent::ClockNotCredible { wall } => {
                write!(f, "Not starting jobs because the clock shows {wall:.0}, a time before this podstead was built")
            }
            CronEvent::ClockWentBack { from, to } => {
                write!(f, "Clock went back from {from:.0} or later to {to:.0}: the schedule goes on from there")
            }
            CronEvent::UnknownTimeZone { zone, problem } => write!(f, "invalid timeZone: {zone:?}: {problem}"),
            CronEvent::UnparseableSchedule { schedule, problem } => {
                write!(f, "unparseable schedule: {schedule:?} : {problem}")
            }
        }
    }
}
