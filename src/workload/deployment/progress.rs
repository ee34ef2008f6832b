//! The condition Progressing of a Deployment (W28).

use crate::moment::Moment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The deadline that stands for none.
const NO_DEADLINE: i32 = i32::MAX;

/// Numbers of a rollout: it goes on when one of the first three grows or the last one shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Pods of the newest revision.
    pub updated: u32,
    /// Ready pods.
    pub ready: u32,
    /// Available pods.
    pub available: u32,
    /// Pods of old revisions.
    pub old: u32,
}

impl Counters {
    fn is_ahead_of(&self, before: &Self) -> bool {
        self.updated > before.updated || self.ready > before.ready || self.available > before.available || self.old < before.old
    }
}

/// The stage of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The newest revision is a new one.
    NewReplicaSetCreated,
    /// The newest revision is an earlier one.
    FoundNewReplicaSet,
    /// Pods are being replaced.
    ReplicaSetUpdated,
    /// All pods are of the newest revision and available.
    NewReplicaSetAvailable,
    /// Nothing went on for as long as the deadline says.
    ProgressDeadlineExceeded,
    /// The Deployment is paused.
    DeploymentPaused,
    /// The Deployment was paused and is not any more.
    DeploymentResumed,
}

/// Time that is counted while the host is on and nothing but pods holds the rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveTime {
    spent: Duration,
    /// Not kept across a restart: moments of an earlier boot mean nothing.
    #[serde(skip)]
    since: Option<Moment>,
}

impl ActiveTime {
    /// Lets the time run.
    pub fn run(&mut self, now: Moment) {
        self.since.get_or_insert(now);
    }

    /// Stops the time and keeps what was counted. To be called before the memory is written for the last time, too.
    pub fn stop(&mut self, now: Moment) {
        if let Some(since) = self.since.take() {
            self.spent += now.since(since);
        }
    }

    /// The time counted so far.
    pub fn spent(&self, now: Moment) -> Duration {
        self.spent + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }
}

/// The memory of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Its stage.
    pub stage: Stage,
    /// Its numbers when it last went on.
    pub counters: Counters,
    /// Time since then.
    pub idle: ActiveTime,
}

/// A rollout as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// Its numbers.
    pub counters: Counters,
    /// All pods are of the newest revision and available.
    pub is_complete: bool,
    /// A pod may not be taken away yet, for images or sources are waited for: the deadline stands still (W14, W28).
    pub is_held: bool,
}

impl Progress {
    /// The beginning of a rollout.
    pub fn begin(stage: Stage, counters: Counters) -> Self {
        Self { stage, counters, idle: ActiveTime::default() }
    }

    /// Updates the stage from the rollout as it is now. Returns the moment at which the deadline passes, if nothing goes on until then.
    pub fn observe(&mut self, sight: &Sight, deadline_seconds: i32, now: Moment) -> Option<Moment> {
        if sight.is_complete {
            (self.stage, self.counters, self.idle) = (Stage::NewReplicaSetAvailable, sight.counters, ActiveTime::default());
            return None;
        }
        if self.stage == Stage::NewReplicaSetAvailable {
            // A complete rollout stays complete when a pod fails later.
            self.counters = sight.counters;
            return None;
        }
        if sight.counters.is_ahead_of(&self.counters) {
            self.stage = Stage::ReplicaSetUpdated;
            self.idle = ActiveTime::default();
        }
        self.counters = sight.counters;
        if self.stage == Stage::ProgressDeadlineExceeded || deadline_seconds == NO_DEADLINE {
            return None;
        }
        if sight.is_held {
            self.idle.stop(now);
            return None;
        }
        self.idle.run(now);
        let deadline = Duration::from_secs(u64::try_from(deadline_seconds).unwrap_or(0));
        let left = deadline.saturating_sub(self.idle.spent(now));
        if left.is_zero() {
            (self.stage, self.idle) = (Stage::ProgressDeadlineExceeded, ActiveTime::default());
            return None;
        }
        Some(now + left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_boot(Duration::from_secs(seconds))
    }

    fn stuck() -> Sight {
        Sight { counters: Counters { updated: 1, ..Counters::default() }, is_complete: false, is_held: false }
    }

    /// TD13.
    #[test]
    fn deadline_counts_time_that_host_is_on() {
        let mut progress = Progress::begin(Stage::ReplicaSetUpdated, stuck().counters);
        assert_eq!(progress.observe(&stuck(), 60, at(100)), Some(at(160)));
        progress.idle.stop(at(140));
        let mut after_boot: Progress = serde_json::from_str(&serde_json::to_string(&progress).unwrap()).unwrap();
        assert_eq!(after_boot.observe(&stuck(), 60, at(5)), Some(at(25)));
        assert_eq!(after_boot.observe(&stuck(), 60, at(24)), Some(at(25)));
        assert_eq!(after_boot.observe(&stuck(), 60, at(25)), None);
        assert_eq!(after_boot.stage, Stage::ProgressDeadlineExceeded);
    }

    #[test]
    fn deadline_stands_still_while_rollout_is_held() {
        let mut progress = Progress::begin(Stage::NewReplicaSetCreated, stuck().counters);
        assert_eq!(progress.observe(&stuck(), 60, at(0)), Some(at(60)));
        assert_eq!(progress.observe(&Sight { is_held: true, ..stuck() }, 60, at(10)), None);
        assert_eq!(progress.observe(&stuck(), 60, at(1000)), Some(at(1050)));
    }

    #[test]
    fn progress_restarts_deadline() {
        let mut progress = Progress::begin(Stage::NewReplicaSetCreated, Counters::default());
        progress.observe(&Sight { counters: Counters::default(), ..stuck() }, 60, at(0));
        assert_eq!(progress.observe(&stuck(), 60, at(50)), Some(at(110)));
        assert_eq!(progress.stage, Stage::ReplicaSetUpdated);
        assert_eq!(progress.observe(&Sight { is_complete: true, ..stuck() }, 60, at(55)), None);
        assert_eq!(progress.stage, Stage::NewReplicaSetAvailable);
    }
}
