//! Memory of a CronJob between two steps.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobTemplateSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Memory of a CronJob. It goes to disk as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CronMemory {
    /// Its first sight by a credible clock (W77).
    pub created: Option<Timestamp>,
    /// Activations up to here need nothing any more: the last run, or the creation, or the time at which the clock was found to have gone back.
    pub settled: Option<Timestamp>,
    /// The scheduled time of the last run.
    pub last_scheduled: Option<Timestamp>,
    /// The end of the last Job that completed.
    pub last_successful: Option<Timestamp>,
    /// Number of runs so far.
    pub starts: u64,
    /// Runs of which something may exist, by the minute since 1970 of their scheduled time (W75).
    pub runs: BTreeMap<i64, Run>,
    /// The boot in which runs were ended for the next one, which has not started yet (W74).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces_in_boot: Option<String>,
    /// Conditions that an event told already.
    pub told: Told,
}

/// One run: a Job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its place in the order of starts, which no clock changes (W76).
    pub number: u64,
    /// The UID of its Job.
    pub uid: String,
    /// The activation that it is for, or the minute in which it was started by hand.
    pub scheduled: Timestamp,
    /// The trigger of the run.
    pub trigger: Trigger,
    /// Its start.
    pub started: Timestamp,
    /// The jobTemplate at its start: edits concern later runs (W75).
    pub template: JobTemplateSpec,
    /// Its stage.
    pub stage: RunStage,
}

/// Triggers of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trigger {
    /// The schedule.
    Schedule {
        /// The activation in the zone of the schedule, for the annotation.
        in_zone: String,
    },
    /// An operator.
    Operator,
}

/// Stage of a run; the module draws how one follows the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunStage {
    /// Its Job is wanted and has not ended.
    Active,
    /// Its Job completed and is kept.
    Complete,
    /// Its Job failed and is kept.
    Failed,
    /// It was active and is replaced; something of it may still run.
    Ending,
    /// It had ended and is over the limit; its remains may still exist.
    Removed,
}

impl RunStage {
    /// True while the Job is wanted.
    pub fn is_wanted(self) -> bool {
        match self {
            RunStage::Active | RunStage::Complete | RunStage::Failed => true,
            RunStage::Ending | RunStage::Removed => false,
        }
    }
}

/// Conditions that an event told, so that it is told once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// The activation that MissSchedule was told for (W73).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Timestamp>,
    /// The activation that JobAlreadyActive was told for (W74).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Timestamp>,
    /// The boot in which ClockNotCredible was told (W77).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_in_boot: Option<String>,
    /// The message about a zone or a schedule that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}
