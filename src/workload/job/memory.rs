//! The memory of a Job.

use super::pods;
use super::run::Run;
use super::verdict::Verdict;
use crate::indexes::IndexSet;
use crate::moment::Moment;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// One attempt to do a Job's work: one pod. Its text form is the end of the pod's name (W6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Attempt {
    /// The completion index, in an indexed Job.
    pub index: Option<u32>,
    /// The number: it only grows, in an indexed Job for each index.
    pub number: u32,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{index}-{}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

impl From<Attempt> for String {
    fn from(attempt: Attempt) -> Self {
        attempt.to_string()
    }
}

impl TryFrom<String> for Attempt {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (index, number) = match text.split_once('-') {
            Some((index, number)) => (Some(index.parse()?), number),
            None => (None, text.as_str()),
        };
        Ok(Self { index, number: number.parse()? })
    }
}

/// Failures that an index had before an attempt, as its pod's annotations tell (W66). They are kept with the attempt, so that its pod is
/// written alike at every evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailuresBefore {
    /// Those that counted.
    pub counted: u32,
    /// Those that a rule ignored.
    pub ignored: u32,
}

/// An attempt that ended and whose pod is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPod {
    /// The attempt.
    pub attempt: Attempt,
    /// Failures in its annotations.
    pub before: FailuresBefore,
}

/// An index that has had an attempt and is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexMemory {
    /// The number of its next attempt.
    pub next_attempt: u32,
    /// Its failures.
    pub failures: FailuresBefore,
}

/// The stage of a run.
///
/// ```text
/// Clearing -> Running <-> Suspended
///    ^           \            /
///    |            v          v
///    +- edit      Ending -> Ended
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Pods of an earlier run exist. Entered by [`super::run::take_up`], left by [`super::lifecycle::begin`].
    Clearing,
    /// Pods run. Entered by `begin` and [`super::lifecycle::follow_suspension`], left by `follow_suspension` and [`super::lifecycle::conclude`].
    Running {
        /// Time for which it ran before [`JobBoot::counting_since`].
        active: Duration,
    },
    /// `suspend` is set. Entered and left by the functions that enter and leave `Running`.
    Suspended,
    /// The verdict is known and pods are being stopped. Entered by `conclude`, left by [`super::lifecycle::close`].
    Ending {
        /// The verdict.
        verdict: Verdict,
        /// The time at which it was known.
        decided: Timestamp,
    },
    /// The verdict is in the status. Entered by `close`; only an edit that asks for another run leaves it (W57, W60).
    Ended {
        /// The verdict.
        verdict: Verdict,
        /// The time at which it was known.
        decided: Timestamp,
        /// The time at which the last pod had stopped.
        ended: Timestamp,
        /// Time for which it has been over before [`JobBoot::counting_since`].
        age: Duration,
    },
}

/// The condition Suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Its status.
    pub is_suspended: bool,
    /// Since when.
    pub since: Timestamp,
}

/// The memory of a Job: its fields go to disk, except [`JobMemory::boot`], which means nothing after this boot.
///
/// One type because it is plain data of one file, which is replaced as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobMemory {
    /// The parts of the Job that make a run another one (W61).
    pub run: Run,
    /// The stage of the run.
    pub stage: Stage,
    /// `status.startTime`.
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// The condition Suspended, once the Job has been suspended.
    #[serde(default)]
    pub suspension: Option<Suspension>,
    /// The number of the next attempt, of a Job without indexes.
    #[serde(default)]
    pub next_attempt: u32,
    /// Indexes in progress.
    #[serde(default)]
    pub indexes: BTreeMap<u32, IndexMemory>,
    /// Attempts whose end is not counted yet. Their pods are wanted.
    #[serde(default)]
    pub active: BTreeMap<Attempt, FailuresBefore>,
    /// Attempts that are not wanted any more and whose pods may still run.
    #[serde(default)]
    pub leaving: BTreeSet<Attempt>,
    /// The newest attempts that succeeded, oldest first. Their pods are wanted, for their logs.
    #[serde(default)]
    pub kept_succeeded: Vec<KeptPod>,
    /// The newest attempts that failed, oldest first. Their pods are wanted, for their logs.
    #[serde(default)]
    pub kept_failed: Vec<KeptPod>,
    /// Successes of a Job without indexes.
    #[serde(default)]
    pub succeeded: u32,
    /// Failures that counted.
    #[serde(default)]
    pub failed: u32,
    /// Indexes that succeeded.
    #[serde(default)]
    pub completed_indexes: IndexSet,
    /// Indexes that failed for good.
    #[serde(default)]
    pub failed_indexes: IndexSet,
    /// Failures since the last success, those that a rule ignored included (W54).
    #[serde(default)]
    pub failures_in_a_row: u32,
    /// Moments of this boot. They are kept in a file of their own that does not outlive the boot.
    #[serde(skip)]
    pub boot: JobBoot,
}

/// Moments of this boot. After another boot all of them begin anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobBoot {
    /// From when the time of the stage counts that is not in [`Stage`] yet.
    #[serde(default)]
    pub counting_since: Option<Moment>,
    /// End of the last failure (W54).
    #[serde(default)]
    pub last_failure: Option<Moment>,
    /// End of the last failure of each index in progress.
    #[serde(default)]
    pub index_failures: BTreeMap<u32, Moment>,
}

impl JobMemory {
    /// The memory of a run that has no pods yet. Pods of an earlier run, if any, are stopped first.
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            stage: Stage::Clearing,
            started: None,
            suspension: None,
            next_attempt: 0,
            indexes: BTreeMap::new(),
            active: BTreeMap::new(),
            leaving: BTreeSet::new(),
            kept_succeeded: Vec::new(),
            kept_failed: Vec::new(),
            succeeded: 0,
            failed: 0,
            completed_indexes: IndexSet::default(),
            failed_indexes: IndexSet::default(),
            failures_in_a_row: 0,
            boot: JobBoot::default(),
        }
    }

    /// The verdict, once the Job has ended. Until then it is active, for the history of a CronJob as well.
    pub fn ended(&self) -> Option<&Verdict> {
        match &self.stage {
            Stage::Ended { verdict, .. } => Some(verdict),
            Stage::Clearing | Stage::Running { .. } | Stage::Suspended | Stage::Ending { .. } => None,
        }
    }

    /// The time at which it was complete.
    pub fn completed_at(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Ended { verdict: Verdict::Complete { .. }, ended, .. } => Some(*ended),
            Stage::Ended { verdict: Verdict::Failed { .. }, .. }
            | Stage::Clearing
            | Stage::Running { .. }
            | Stage::Suspended
            | Stage::Ending { .. } => None,
        }
    }

    /// Attempts whose pods are wanted, with what their annotations tell.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (Attempt, FailuresBefore)> {
        let kept = self.kept_succeeded.iter().chain(&self.kept_failed).map(|pod| (pod.attempt, pod.before));
        self.active.iter().map(|(attempt, before)| (*attempt, *before)).chain(kept)
    }

    /// Ends the wish for a pod. What becomes of it is not counted.
    pub(super) fn withdraw(&mut self, attempt: Attempt) {
        if self.active.remove(&attempt).is_some() {
            self.leaving.insert(attempt);
        }
    }

    /// Ends the wish for a pod that has ended and is counted. Returns false if `pod` is no such pod of the Job `job`.
    pub fn forget(&mut self, job: &str, pod: &str) -> bool {
        let mut is_found = false;
        for kept in [&mut self.kept_succeeded, &mut self.kept_failed] {
            let before = kept.len();
            kept.retain(|kept| pods::name(job, kept.attempt) != pod);
            is_found |= kept.len() < before;
        }
        is_found
    }

    /// Successes, those of indexes that the Job has not any more left out.
    pub(super) fn successes(&self, indexes: Option<u32>) -> u32 {
        match indexes {
            Some(indexes) => self.completed_indexes.intersection(&IndexSet::below(indexes)).count(),
            None => self.succeeded,
        }
    }

    /// The duration of the stage: for how long the Job has been running, or has been over.
    pub(super) fn time_in_stage(&self, now: Moment) -> Duration {
        let before = match &self.stage {
            Stage::Running { active } => *active,
            Stage::Ended { age, .. } => *age,
            Stage::Clearing | Stage::Suspended | Stage::Ending { .. } => Duration::ZERO,
        };
        before + self.boot.counting_since.map_or(Duration::ZERO, |since| now.since(since))
    }
}
