//! The number of attempts at once, and which begin or are withdrawn (W51, W54, W55, W65).

use super::memory::{Attempt, FailuresBefore, JobMemory, Stage};
use super::spec::{Completion, Replacement, Spec};
use super::{JobNow, PodsByName, Wake, back_off, indexed, pods};
use crate::rank::{self, Candidate};

/// Attempts that are not counted and whose pods are not being stopped.
pub(super) fn running(memory: &JobMemory, pods: &PodsByName<'_>) -> Vec<Attempt> {
    memory.active.keys().copied().filter(|attempt| !pods.of(*attempt).is_some_and(|pod| pod.is_terminating)).collect()
}

/// Begins or withdraws attempts, never both at once.
pub(super) fn fit(memory: &mut JobMemory, spec: &Spec, pods: &PodsByName<'_>, now: &JobNow<'_>, wake: &mut Wake) {
    let running = running(memory, pods);
    let wanted = match memory.stage {
        Stage::Running { .. } => wanted(memory, spec, running.len()),
        Stage::Clearing | Stage::Suspended | Stage::Ending { .. } | Stage::Ended { .. } => 0,
    };
    for attempt in surplus(spec, pods, &running, wanted) {
        memory.withdraw(attempt);
    }
    // Until it is seen that a withdrawn pod stops, nothing takes its place: removal takes precedence over creation.
    let is_leaving = |attempt: &Attempt| pods.of(*attempt).is_some_and(|pod| !pod.is_terminal() && !pod.is_terminating);
    if memory.leaving.iter().any(is_leaving) {
        return;
    }
    let running = self::running(memory, pods);
    let stopping: Vec<Attempt> = match spec.replacement {
        Replacement::TerminatingOrFailed => Vec::new(),
        Replacement::Failed => stopping(memory, pods, &running),
    };
    let missing = wanted.saturating_sub(running.len() + stopping.len());
    begin(memory, spec, missing, &[running, stopping].concat(), now, pods, wake);
}

/// The number of attempts that should run.
fn wanted(memory: &JobMemory, spec: &Spec, running: usize) -> usize {
    let successes = memory.successes(spec.indexes());
    match spec.completion {
        Completion::WorkQueue if successes > 0 => running,
        Completion::WorkQueue => spec.parallelism as usize,
        Completion::Count(count) | Completion::Indexed(count) => count.saturating_sub(successes).min(spec.parallelism) as usize,
    }
}

/// Attempts of indexes that the Job has not any more, and as many others as are too many (W16).
fn surplus(spec: &Spec, pods: &PodsByName<'_>, running: &[Attempt], wanted: usize) -> Vec<Attempt> {
    let (mut going, staying): (Vec<Attempt>, Vec<Attempt>) =
        running.iter().partition(|attempt| indexed::is_out_of_range(spec, **attempt));
    let more = running.len().saturating_sub(wanted).saturating_sub(going.len());
    let candidates = (0..).zip(&staying).map(|(slot, attempt)| Candidate { slot, pod: pods.of(*attempt) });
    let order = rank::first_to_go(candidates);
    going.extend(order.iter().take(more).filter_map(|position| staying.get(*position as usize)));
    going
}

/// Attempts whose pods exist and are being stopped.
fn stopping(memory: &JobMemory, pods: &PodsByName<'_>, running: &[Attempt]) -> Vec<Attempt> {
    let active = memory.active.keys().copied().filter(|attempt| !running.contains(attempt));
    let leaving = memory.leaving.iter().copied().filter(|attempt| pods.of(*attempt).is_some_and(|pod| !pod.is_terminal()));
    active.chain(leaving).collect()
}

/// Begins so many attempts, as far as no pause holds them.
fn begin(
    memory: &mut JobMemory,
    spec: &Spec,
    missing: usize,
    busy: &[Attempt],
    now: &JobNow<'_>,
    pods: &PodsByName<'_>,
    wake: &mut Wake,
) {
    if missing == 0 {
        return;
    }
    if spec.per_index.is_none()
        && let Some(end) = back_off::pause(memory, now.moment)
    {
        return wake.no_later_than(end);
    }
    let Some(indexes) = spec.indexes() else {
        for _ in 0..missing {
            let number = free_number(memory.next_attempt, None, pods, now);
            memory.next_attempt = number.saturating_add(1);
            memory.active.insert(Attempt { index: None, number }, FailuresBefore::default());
        }
        return;
    };
    for index in indexed::next(memory, indexes, busy.iter().copied(), missing) {
        let pause = spec.per_index.and_then(|_| back_off::pause_of_index(memory, index, now.moment));
        match pause {
            Some(end) => wake.no_later_than(end),
            None => begin_index(memory, index, pods, now),
        }
    }
}

fn begin_index(memory: &mut JobMemory, index: u32, pods: &PodsByName<'_>, now: &JobNow<'_>) {
    let remembered = memory.indexes.entry(index).or_default();
    let number = free_number(remembered.next_attempt, Some(index), pods, now);
    remembered.next_attempt = number.saturating_add(1);
    let before = remembered.failures;
    memory.active.insert(Attempt { index: Some(index), number }, before);
}

/// The first number from `next` on whose name nothing has (W9).
fn free_number(next: u32, index: Option<u32>, pods: &PodsByName<'_>, now: &JobNow<'_>) -> u32 {
    let is_free = |number: &u32| {
        let name = pods::name(pods.job, Attempt { index, number: *number });
        !pods.has(&name) && !(now.is_taken)(&name)
    };
    (next..).find(is_free).unwrap_or(next)
}
