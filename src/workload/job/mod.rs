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
mod now;
mod outcome;
mod pods;
#[cfg(test)]
mod properties;
pub mod run;
mod run_parts;
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
use k8s_openapi::api::core::v1::Pod;
use memory::{JobMemory, Stage};
pub use now::JobNow;
use now::Wake;
use pods::PodsByName;
use run::Run;
use spec::Spec;
use std::collections::{BTreeMap, BTreeSet};
use verdict::{FailureReason, Verdict};

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
