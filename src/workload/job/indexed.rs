//! Indexes of an indexed Job: which are next, which are done, which failed for good (W62, W65).

use super::failure_policy::Failure;
use super::memory::{Attempt, JobMemory};
use super::spec::Spec;
use crate::indexes::IndexSet;
use crate::moment::Moment;

/// True when the attempt's index is none that the Job has. Completions were lowered since it began (W61).
pub(super) fn is_out_of_range(spec: &Spec, attempt: Attempt) -> bool {
    match (spec.indexes(), attempt.index) {
        (Some(indexes), Some(index)) => index >= indexes,
        (Some(_), None) | (None, Some(_)) => true,
        (None, None) => false,
    }
}

/// Records that an index is done.
pub(super) fn succeed(memory: &mut JobMemory, index: u32) {
    memory.completed_indexes.insert(index);
    forget(memory, index);
}

/// Records the failure of an index's attempt. Beyond its limit the index fails for good.
pub(super) fn fail(memory: &mut JobMemory, spec: &Spec, index: u32, failure: &Failure, at: Moment) {
    let remembered = memory.indexes.entry(index).or_default();
    let failures_before = remembered.failures.counted;
    let counts = match failure {
        Failure::Counted | Failure::FailsIndex | Failure::FailsJob(_) => true,
        Failure::Ignored | Failure::PowerLost => false,
    };
    let number = if counts { &mut remembered.failures.counted } else { &mut remembered.failures.ignored };
    *number = number.saturating_add(1);
    memory.boot.index_failures.insert(index, at);
    let Some(limits) = spec.per_index else { return };
    if *failure == Failure::FailsIndex || (counts && failures_before >= limits.limit) {
        memory.failed_indexes.insert(index);
        forget(memory, index);
    }
}

/// The lowest indexes that are neither done nor failed nor busy, at most `count` of them.
pub(super) fn next(memory: &JobMemory, indexes: u32, busy: impl Iterator<Item = Attempt>, count: usize) -> Vec<u32> {
    let mut not_pending: IndexSet = busy.filter_map(|attempt| attempt.index).collect();
    not_pending.merge(&memory.completed_indexes);
    not_pending.merge(&memory.failed_indexes);
    not_pending.lowest_missing(count, indexes)
}

fn forget(memory: &mut JobMemory, index: u32) {
    memory.indexes.remove(&index);
    memory.boot.index_failures.remove(&index);
}
