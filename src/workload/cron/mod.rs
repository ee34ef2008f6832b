//! CronJobs: the Jobs that a schedule wants now (W68 to W81).
//!
//! **Pure.** [`step`] takes the CronJob, the memory of the last step, the Jobs that were observed and both clocks. It returns the new memory, the
//! Jobs that are wanted from now on, those that are to go, the status, the events and the time of the next look. A run is in the memory before its
//! Job is wanted anywhere, so that a crash in between starts it once (W91).
//!
//! ```text
//!             due, and the concurrency policy agrees
//!  (nothing) ---------------------------------------> Active ---> Complete, Failed ---> Removed ---> (nothing)
//!                                                        |      the Job ended    over the limit   nothing of it is left
//!                                                        +--> Ending ---> (nothing)
//!                                                     replaced     nothing of it is left
//! ```

mod by_hand;
mod clock;
mod concurrency;
mod defaults;
mod event;
mod history;
mod job;
mod memory;
#[cfg(test)]
mod properties;
mod status;
#[cfg(test)]
mod tests;
mod turn;
mod validate;

pub use by_hand::run_now;
pub use clock::{BUILT, Clocks, WAIT_FOR_SYNC};
pub use concurrency::ConcurrencyPolicy;
pub use defaults::fill_defaults;
pub use event::CronEvent;
pub use job::job_name;
pub use memory::{CronMemory, Run, RunStage, Told, Trigger};
pub use validate::validate;

use crate::moment::Moment;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// State of a Job of this CronJob, of which something exists: pods, or the memory of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedRun {
    /// It has not ended.
    Active,
    /// It has the condition Complete.
    Complete {
        /// Its completionTime.
        at: Option<Timestamp>,
    },
    /// It has the condition Failed.
    Failed,
}

/// Arguments of a step beside the CronJob and its memory.
pub struct CronInput<'a> {
    /// Jobs of this CronJob of which something exists, by name. One that is wanted and not here has not been observed yet, and counts as active
    /// (W94); one that is to go and not here is gone.
    pub runs: &'a BTreeMap<String, ObservedRun>,
    /// All pods were observed by this daemon, so that a Job that is not in `runs` is gone (W94).
    pub all_observed: bool,
    /// Names of Jobs in the sources, in the namespace of the CronJob: they have precedence (W75).
    pub names_in_sources: &'a BTreeSet<String>,
    /// Both clocks.
    pub clocks: &'a Clocks,
    /// The zones.
    pub zones: &'a TimeZoneDatabase,
    /// Returns a UID that no object has.
    pub fresh_uid: &'a dyn Fn() -> String,
}

impl fmt::Debug for CronInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CronInput")
            .field("runs", &self.runs)
            .field("all_observed", &self.all_observed)
            .field("names_in_sources", &self.names_in_sources)
            .field("clocks", &self.clocks)
            .finish_non_exhaustive()
    }
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct CronStep {
    /// The new memory, to be on disk before anything else of the step takes effect (W91).
    pub memory: CronMemory,
    /// Jobs that are wanted from now on, finished ones included, in the order of their starts.
    pub jobs: Vec<Job>,
    /// Names of Jobs of which something may exist and that are not wanted any more.
    pub ending: BTreeSet<String>,
    /// The status (W81).
    pub status: CronJobStatus,
    /// Events, in order.
    pub events: Vec<CronEvent>,
    /// The time of the next look, if nothing is observed and no clock is set before.
    pub wake: Wake,
}

/// The time of the next look (W80). A change of the wall clock, of `synchronised`, of the CronJob or of its Jobs asks for one, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// On the wall clock.
    pub wall: Option<Timestamp>,
    /// On the clock that never jumps.
    pub moment: Option<Moment>,
}

/// Decides what a CronJob wants now.
pub fn step(cron_job: &CronJob, memory: Option<&CronMemory>, input: &CronInput<'_>) -> CronStep {
    turn::Turn::new(cron_job, memory, input).run()
}
