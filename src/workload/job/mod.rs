//! Jobs (W50 to W67): attempts that end, and a verdict.
//!
//! [`step`] decides on one Job. In this order it turns to another run if the Job asks for one (`run`), counts attempts that ended
//! (`counting`), asks for a verdict (`verdict`), and begins or withdraws attempts (`attempts`). It is level-triggered: given the memory that
//! came out and the same pods, it decides nothing more. The caller writes the memory before it sends the pods, so that the end of an attempt
//! is counted before its pod leaves, and an attempt is recorded before its pod starts (W91).

mod attempts;
mod back_off;
mod counting;
pub mod defaults;
mod failure_policy;
mod indexed;
mod lifecycle;
pub mod memory;
mod pods;
#[cfg(test)]
mod properties;
pub mod run;
mod spec;
mod status;
mod success_policy;
#[cfg(test)]
mod tests;
pub mod validate;
pub mod verdict;

pub use pods::CONTROLLER_UID_LABEL;

use crate::event::WorkloadEvent;
use crate::moment::Moment;
use crate::observed::ObservedPod;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use memory::{Attempt, JobMemory, Stage};
use run::Run;
use spec::Spec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use verdict::{FailureReason, Verdict};

/// The time, and what else of the host a decision on a Job asks for.
#[derive(Clone, Copy)]
pub struct JobNow<'a> {
    /// The clock that decides.
    pub moment: Moment,
    /// The clock that is shown.
    pub wall: Timestamp,
    /// All pods of the Job that existed when the daemon started were observed. Until then nothing is decided, and the pods that the memory
    /// wants are wanted (W88, W94).
    pub observed: bool,
    /// All sources delivered: the pods of a run may be taken away for another run (W94).
    pub may_replace: bool,
    /// Returns a template with its defaults filled in and its quantities normalised. Templates are the same if this is (W10).
    pub canonical: &'a dyn Fn(&PodTemplateSpec) -> PodTemplateSpec,
    /// Tells that a pod name is taken by something else than this Job (W9).
    pub is_taken: &'a dyn Fn(&str) -> bool,
}

impl fmt::Debug for JobNow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobNow")
            .field("moment", &self.moment)
            .field("wall", &self.wall)
            .field("observed", &self.observed)
            .field("may_replace", &self.may_replace)
            .finish_non_exhaustive()
    }
}

/// The decision on a Job.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The new memory. It has to be on disk before the pods are sent (W91).
    pub memory: JobMemory,
    /// All pods that are wanted now, those that ended and are kept for their logs included.
    pub pods: BTreeMap<String, Pod>,
    /// Names of pods that may exist and are not wanted.
    pub leaving: BTreeSet<String>,
    /// The status to show.
    pub status: JobStatus,
    /// Events of the Job.
    pub events: Vec<WorkloadEvent>,
    /// The moment at which to look again, if nothing is observed before.
    pub wake: Option<Moment>,
}

/// Decides on a Job with the UID. `pods` are all pods of the Job that exist: pods that the mux was given and that are not gone included.
pub fn step(job: &Job, uid: &str, memory: Option<&JobMemory>, pods: &[ObservedPod], now: &JobNow<'_>) -> Step {
    let spec = Spec::of(job);
    let observed = PodsByName::new(&spec.name, pods);
    let mut turn = Turn {
        memory: memory.cloned().unwrap_or_else(|| JobMemory::new(Run::of(job))),
        spec: &spec,
        pods: &observed,
        now,
        events: Vec::new(),
        wake: Wake::default(),
    };
    if now.observed && run::take_up(&mut turn.memory, job, &spec, &observed, now) {
        turn.decide();
    }
    let Turn { memory, events, wake, .. } = turn;
    let pods = pods::wanted(&spec, &memory, uid);
    let known_leaving = memory.leaving.iter().map(|attempt| pods::name(&spec.name, *attempt));
    let leaving = observed.names().map(str::to_owned).chain(known_leaving).filter(|name| !pods.contains_key(name)).collect();
    let status = status::of(&spec, &memory, &observed);
    Step { memory, pods, leaving, status, events, wake: wake.at }
}

/// The memory of a Job of which the file was lost: it is failed, since running twice may destroy and not running can be seen (W97).
pub fn lost_memory(job: &Job, wall: Timestamp) -> JobMemory {
    let message = "what this Job did before is not known any more, so it is not run again";
    let verdict = Verdict::failed(FailureReason::MemoryLost, message);
    JobMemory { stage: Stage::Ending { verdict, decided: wall }, ..JobMemory::new(Run::of(job)) }
}

/// One evaluation.
struct Turn<'a> {
    memory: JobMemory,
    spec: &'a Spec,
    pods: &'a PodsByName<'a>,
    now: &'a JobNow<'a>,
    events: Vec<WorkloadEvent>,
    wake: Wake,
}

impl Turn<'_> {
    fn decide(&mut self) {
        lifecycle::forget_gone(&mut self.memory, self.pods);
        lifecycle::begin(&mut self.memory, self.spec, self.pods, self.now);
        lifecycle::resume_clocks(&mut self.memory, self.now.moment);
        match self.memory.stage {
            Stage::Clearing | Stage::Ending { .. } | Stage::Ended { .. } => {}
            Stage::Running { .. } | Stage::Suspended => self.advance(),
        }
        lifecycle::close(&mut self.memory, self.pods, self.now, &mut self.events);
        lifecycle::expire(&mut self.memory, self.spec, self.now.moment);
        lifecycle::keep_time(&mut self.memory, self.spec, self.now.moment, &mut self.wake);
    }

    /// Counts, asks for a verdict, and without one makes the number of attempts fit (W57).
    fn advance(&mut self) {
        let moment = self.now.moment;
        let by_policy = counting::count_ends(&mut self.memory, self.spec, self.pods, moment);
        let early = by_policy
            .map(|message| Verdict::failed(FailureReason::PodFailurePolicy, message))
            .or_else(|| verdict::before_pods(self.spec, &self.memory, self.pods, moment));
        if let Some(verdict) = early {
            return lifecycle::conclude(&mut self.memory, self.spec, verdict, self.pods, self.now);
        }
        lifecycle::follow_suspension(&mut self.memory, self.spec, self.now);
        attempts::fit(&mut self.memory, self.spec, self.pods, self.now, &mut self.wake);
        lifecycle::forget_gone(&mut self.memory, self.pods);
        let running = attempts::running(&self.memory, self.pods).len();
        match verdict::completed(self.spec, &self.memory, running) {
            Some(verdict) => lifecycle::conclude(&mut self.memory, self.spec, verdict, self.pods, self.now),
            None => lifecycle::tell_suspension(&mut self.memory, self.now, &mut self.events),
        }
    }
}

/// The pods of a Job that exist.
struct PodsByName<'a> {
    job: &'a str,
    pods: BTreeMap<&'a str, &'a ObservedPod>,
}

impl<'a> PodsByName<'a> {
    fn new(job: &'a str, pods: &'a [ObservedPod]) -> Self {
        Self { job, pods: pods.iter().map(|pod| (pod.name.as_str(), pod)).collect() }
    }

    /// The pod of an attempt.
    fn of(&self, attempt: Attempt) -> Option<&'a ObservedPod> {
        self.pods.get(pods::name(self.job, attempt).as_str()).copied()
    }

    fn has(&self, name: &str) -> bool {
        self.pods.contains_key(name)
    }

    fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.pods.keys().copied()
    }

    /// Pods that have not ended.
    fn alive(&self) -> impl Iterator<Item = &'a ObservedPod> {
        self.pods.values().copied().filter(|pod| !pod.is_terminal())
    }
}

/// The earliest of several moments.
#[derive(Debug, Default)]
struct Wake {
    at: Option<Moment>,
}

impl Wake {
    fn no_later_than(&mut self, moment: Moment) {
        self.at = Some(self.at.map_or(moment, |at| at.min(moment)));
    }
}
