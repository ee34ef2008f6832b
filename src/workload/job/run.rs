//! The parts of a Job that make a run another one (W61).

use super::memory::JobMemory;
pub use super::run_parts::{Fixed, RUN_ANNOTATION, Run};
use super::spec::Spec;
use super::{JobNow, PodsByName};
use k8s_openapi::api::batch::v1::Job;

/// Turns to the run that the Job asks for. The pods of another one are not wanted any more, and none is made before they are gone. Returns
/// false if the other run has to wait: the Job's fields are not those of the run in memory then, and nothing can be decided by them.
pub(super) fn take_up(memory: &mut JobMemory, job: &Job, spec: &Spec, pods: &PodsByName<'_>, now: &JobNow<'_>) -> bool {
    let wanted = Run::of(job);
    if memory.run.continues_as(&wanted, spec, now) {
        memory.run.completions = wanted.completions;
        memory.run.written_completions = wanted.written_completions;
        return true;
    }
    // Old pods are taken away for something else: not before all sources delivered (W94).
    if now.may_replace {
        *memory = after(memory, wanted, pods);
    }
    now.may_replace
}

/// The memory of the next run. Its attempts begin with 0, except that the number of a pod that nobody has observed is not used again: what is
/// observed of it later must not be taken for the new one.
fn after(memory: &JobMemory, run: Run, pods: &PodsByName<'_>) -> JobMemory {
    let leaving = memory.leaving.iter().copied().chain(memory.wanted().map(|(attempt, _)| attempt)).collect();
    let mut next = JobMemory { leaving, ..JobMemory::new(run) };
    for attempt in memory.active.keys().filter(|attempt| pods.of(**attempt).is_none()) {
        let free = match attempt.index {
            Some(index) => &mut next.indexes.entry(index).or_default().next_attempt,
            None => &mut next.next_attempt,
        };
        *free = attempt.number.saturating_add(1).max(*free);
    }
    next
}
