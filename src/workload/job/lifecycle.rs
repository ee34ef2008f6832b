//! The stages of a run, from the first attempt to the end of the time for which an ended Job keeps its pods.

use super::memory::{Attempt, JobMemory, Stage, Suspension};
use super::spec::Spec;
use super::verdict::Verdict;
use super::{JobNow, PodsByName, Wake, back_off, indexed};
use crate::event::WorkloadEvent;
use crate::moment::Moment;
use std::time::Duration;

/// So many times in a limit of time the part that is over is put into the memory, so that a power cut takes no more than that (W56).
const PARTS: u32 = 8;
/// But not more often, for the sake of the disk.
const LEAST_PAUSE: Duration = Duration::from_secs(60);

/// Forgets withdrawn attempts whose pods have ended or are gone.
pub(super) fn forget_gone(memory: &mut JobMemory, pods: &PodsByName<'_>) {
    memory.leaving.retain(|attempt| pods.of(*attempt).is_some_and(|pod| !pod.is_terminal()));
}

/// Begins the run once no pod of an earlier one exists.
pub(super) fn begin(memory: &mut JobMemory, spec: &Spec, pods: &PodsByName<'_>, now: &JobNow<'_>) {
    if memory.stage == Stage::Clearing && memory.leaving.is_empty() && pods.is_empty() {
        if spec.is_suspended {
            memory.stage = Stage::Suspended;
        } else {
            start(memory, now);
        }
    }
}

/// Lets the time of the stage and the pauses of failures go on after a boot, on the clock that never jumps.
pub(super) fn resume_clocks(memory: &mut JobMemory, now: Moment) {
    back_off::resume(memory, now);
    match &memory.stage {
        Stage::Running { .. } | Stage::Ended { .. } => {
            memory.boot.counting_since.get_or_insert(now);
        }
        Stage::Clearing | Stage::Suspended | Stage::Ending { .. } => memory.boot.counting_since = None,
    }
}

/// Puts the time of the stage into the memory now and then, where a limit asks for it, and wakes when the limit is reached.
pub(super) fn keep_time(memory: &mut JobMemory, spec: &Spec, now: Moment, wake: &mut Wake) {
    let limit = match &memory.stage {
        Stage::Running { .. } => spec.deadline,
        // Without kept pods there is nothing whose time could be over.
        Stage::Ended { .. } => spec.ttl.filter(|_| memory.wanted().next().is_some()),
        Stage::Clearing | Stage::Suspended | Stage::Ending { .. } => None,
    };
    let over = memory.time_in_stage(now);
    let (Some(limit), Some(since)) = (limit.filter(|limit| over < *limit), memory.boot.counting_since) else { return };
    let pause = (limit / PARTS).max(LEAST_PAUSE);
    let mut keep_at = since + pause;
    if keep_at <= now
        && let Stage::Running { active: counted } | Stage::Ended { age: counted, .. } = &mut memory.stage
    {
        *counted = over;
        memory.boot.counting_since = Some(now);
        keep_at = now + pause;
    }
    wake.no_later_than(keep_at.min(now + (limit - over)));
}

/// Follows an edit of `suspend` (W58). The time begins anew with each start.
pub(super) fn follow_suspension(memory: &mut JobMemory, spec: &Spec, now: &JobNow<'_>) {
    match (&memory.stage, spec.is_suspended) {
        (Stage::Running { .. }, true) => {
            memory.stage = Stage::Suspended;
            memory.started = None;
            memory.boot.counting_since = None;
        }
        (Stage::Suspended, false) => start(memory, now),
        (Stage::Clearing | Stage::Ending { .. } | Stage::Ended { .. }, _)
        | (Stage::Running { .. }, false)
        | (Stage::Suspended, true) => {}
    }
}

/// Brings the condition Suspended up to the stage. A Job that was never suspended does not get it.
pub(super) fn tell_suspension(memory: &mut JobMemory, now: &JobNow<'_>, events: &mut Vec<WorkloadEvent>) {
    let is_suspended = memory.stage == Stage::Suspended;
    let was_suspended = memory.suspension.is_some_and(|suspension| suspension.is_suspended);
    if is_suspended == was_suspended {
        return;
    }
    memory.suspension = Some(Suspension { is_suspended, since: now.wall });
    events.push(match is_suspended {
        true => WorkloadEvent::normal("Suspended", "Job suspended"),
        false => WorkloadEvent::normal("Resumed", "Job resumed"),
    });
}

/// Takes a verdict: all attempts are withdrawn, and after a failure they count as failed (W57).
pub(super) fn conclude(memory: &mut JobMemory, spec: &Spec, verdict: Verdict, pods: &PodsByName<'_>, now: &JobNow<'_>) {
    let active: Vec<Attempt> = memory.active.keys().copied().collect();
    for attempt in active {
        let counts = matches!(verdict, Verdict::Failed { .. }) && !indexed::is_out_of_range(spec, attempt);
        memory.failed = memory.failed.saturating_add(counts.into());
        memory.withdraw(attempt);
    }
    memory.started.get_or_insert(now.wall);
    memory.stage = Stage::Ending { verdict, decided: now.wall };
    memory.boot.counting_since = None;
    forget_gone(memory, pods);
}

/// Ends a Job that has its verdict once no pod of it runs.
pub(super) fn close(memory: &mut JobMemory, pods: &PodsByName<'_>, now: &JobNow<'_>, events: &mut Vec<WorkloadEvent>) {
    let Stage::Ending { verdict, decided } = &memory.stage else { return };
    if pods.alive().next().is_some() {
        return;
    }
    events.push(match verdict {
        Verdict::Failed { reason, message } => WorkloadEvent::warning(reason.as_str(), message.clone()),
        Verdict::Complete { .. } => WorkloadEvent::normal("Completed", "Job completed"),
    });
    memory.stage = Stage::Ended { verdict: verdict.clone(), decided: *decided, ended: now.wall, age: Duration::ZERO };
    memory.leaving.clear();
    memory.boot.counting_since = Some(now.moment);
}

/// Withdraws the pods of a Job that ended `ttlSecondsAfterFinished` ago. That it ran stays in the memory (W59).
pub(super) fn expire(memory: &mut JobMemory, spec: &Spec, now: Moment) {
    let is_over = matches!(memory.stage, Stage::Ended { .. }) && spec.ttl.is_some_and(|ttl| memory.time_in_stage(now) >= ttl);
    if is_over {
        memory.kept_succeeded.clear();
        memory.kept_failed.clear();
    }
}

fn start(memory: &mut JobMemory, now: &JobNow<'_>) {
    memory.stage = Stage::Running { active: Duration::ZERO };
    memory.started = Some(now.wall);
    memory.boot.counting_since = Some(now.moment);
}
