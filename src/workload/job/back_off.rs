//! The pause before an attempt that replaces a failed one (W54).

use super::memory::JobMemory;
use crate::moment::Moment;
use std::time::Duration;

/// The pause after the first failure.
const FIRST: Duration = Duration::from_secs(10);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(600);

/// An end that the back-off knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The time of the failure.
    pub(super) at: Moment,
    /// It was a success.
    pub(super) succeeded: bool,
}

/// Records ends that were counted in one evaluation. A success takes back all failures before it.
pub(super) fn record(memory: &mut JobMemory, ends: &[End]) {
    let last_success = ends.iter().filter(|end| end.succeeded).map(|end| end.at).max();
    if last_success.is_some() {
        memory.failures_in_a_row = 0;
        memory.boot.last_failure = None;
    }
    let later = ends.iter().filter(|end| !end.succeeded && last_success.is_none_or(|success| end.at > success));
    for failure in later {
        memory.failures_in_a_row = memory.failures_in_a_row.saturating_add(1);
        memory.boot.last_failure = memory.boot.last_failure.max(Some(failure.at));
    }
}

/// Begins pauses anew that another boot began: the moments of their failures mean nothing here.
pub(super) fn resume(memory: &mut JobMemory, now: Moment) {
    if memory.failures_in_a_row > 0 {
        memory.boot.last_failure.get_or_insert(now);
    }
    for (index, remembered) in &memory.indexes {
        if remembered.failures.counted + remembered.failures.ignored > 0 {
            memory.boot.index_failures.entry(*index).or_insert(now);
        }
    }
}

/// The end of the Job's pause, if it is not over.
pub(super) fn pause(memory: &JobMemory, now: Moment) -> Option<Moment> {
    end_of_pause(memory.failures_in_a_row, memory.boot.last_failure, now)
}

/// The end of an index's pause, if it is not over.
pub(super) fn pause_of_index(memory: &JobMemory, index: u32, now: Moment) -> Option<Moment> {
    let failures = memory.indexes.get(&index).map_or(0, |remembered| remembered.failures.counted + remembered.failures.ignored);
    end_of_pause(failures, memory.boot.index_failures.get(&index).copied(), now)
}

fn end_of_pause(failures: u32, last: Option<Moment>, now: Moment) -> Option<Moment> {
    let doublings = failures.checked_sub(1)?;
    let pause = FIRST.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(LONGEST);
    Some(last? + pause).filter(|end| *end > now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::{job, memory_of};
    use serde_json::json;

    fn at(seconds: u64) -> Moment {
        Moment::after_boot(Duration::from_secs(seconds))
    }

    /// TJ6.
    #[test]
    fn pause_doubles_up_to_ten_minutes() {
        for (failures, pause) in [(1, Some(10)), (2, Some(20)), (3, Some(40)), (8, Some(600)), (70, Some(600)), (0, None)] {
            assert_eq!(
                end_of_pause(failures, Some(at(1000)), at(1000)),
                pause.map(|pause| at(1000 + pause)),
                "{failures} failures"
            );
        }
        assert_eq!(end_of_pause(1, Some(at(1000)), at(1010)), None);
    }

    /// TJ6.
    #[test]
    fn success_takes_back_failures() {
        let mut memory = memory_of(&job(json!({"template": {}})));
        let end = |at, succeeded| End { at, succeeded };
        record(&mut memory, &[end(at(1), false), end(at(2), false)]);
        assert_eq!((memory.failures_in_a_row, memory.boot.last_failure), (2, Some(at(2))));
        record(&mut memory, &[end(at(5), false), end(at(4), true), end(at(3), false)]);
        assert_eq!((memory.failures_in_a_row, memory.boot.last_failure), (1, Some(at(5))));
        record(&mut memory, &[end(at(6), true)]);
        assert_eq!((memory.failures_in_a_row, pause(&memory, at(6))), (0, None));
    }
}
