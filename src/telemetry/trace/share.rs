//! Shares of the steps in the time of a trace. **Pure**.

use super::{Span, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time of a step in which no part of it and no later step was under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// The step; `None` for time in which none is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The time in microseconds.
    pub micros: u64,
}

/// The shares, the largest first. Their sum is `micros`: each moment counts for one step, work before waiting, and parts before the whole.
pub fn shares(spans: &[Span], micros: u64) -> Vec<Share> {
    let mut bounds: Vec<u64> = spans.iter().flat_map(|span| [span.start_micros, span.end_micros()]).chain([0, micros]).collect();
    bounds.retain(|bound| *bound <= micros);
    bounds.sort_unstable();
    bounds.dedup();
    let mut by_step: BTreeMap<Option<Step>, u64> = BTreeMap::new();
    for pair in bounds.windows(2) {
        let &[from, to] = pair else { continue };
        let active = spans.iter().filter(|span| span.start_micros <= from && span.end_micros() >= to && span.micros > 0);
        let innermost = active.max_by_key(|span| (!span.step.is_wait(), span.step.part_of().is_some(), span.start_micros));
        *by_step.entry(innermost.map(|span| span.step)).or_default() += to - from;
    }
    let mut shares: Vec<Share> = by_step.into_iter().map(|(step, micros)| Share { step, micros }).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.micros));
    shares
}
