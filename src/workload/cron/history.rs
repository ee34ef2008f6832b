//! Finished runs over the history limits (W76).

use super::memory::{Run, RunStage};
use std::collections::BTreeMap;

/// Minutes of the runs of one outcome that are over the limit: the oldest by the order of their starts.
pub(super) fn over_limit(runs: &BTreeMap<i64, Run>, outcome: RunStage, limit: usize) -> Vec<i64> {
    let mut finished: Vec<(u64, i64)> =
        runs.iter().filter(|(_, run)| run.stage == outcome).map(|(minute, run)| (run.number, *minute)).collect();
    finished.sort_unstable();
    finished.truncate(finished.len().saturating_sub(limit));
    finished.into_iter().map(|(_, minute)| minute).collect()
}
