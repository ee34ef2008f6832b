//! The order in which like pods are removed (W16).

use crate::moment::Moment;
use crate::observed::{ObservedPod, Phase};
use std::cmp::Reverse;

/// A pod among those of which some go.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The number in its name.
    pub slot: u32,
    /// The pod, unless nobody has observed it yet.
    pub pod: Option<&'a ObservedPod>,
}

/// The numbers of all candidates, in the order in which they go: Pending before Running, not ready, lower deletion cost, ready for less time,
/// more restarts, higher number, which is newer.
pub fn first_to_go<'a>(candidates: impl IntoIterator<Item = Candidate<'a>>) -> Vec<u32> {
    let mut all: Vec<Candidate<'_>> = candidates.into_iter().collect();
    all.sort_by_key(|candidate| order(candidate));
    all.into_iter().map(|candidate| candidate.slot).collect()
}

type Order = (u8, bool, i32, Reverse<Option<Moment>>, Reverse<u32>, Reverse<u32>);

fn order(candidate: &Candidate<'_>) -> Order {
    let Some(pod) = candidate.pod else {
        return (0, false, 0, Reverse(None), Reverse(0), Reverse(candidate.slot));
    };
    let stage = match pod.phase {
        _ if pod.is_terminating => 0,
        Phase::Failed | Phase::Succeeded => 0,
        Phase::Pending => 1,
        Phase::Running => 2,
    };
    let cost = pod.deletion_cost;
    (stage, pod.ready_since.is_some(), cost, Reverse(pod.ready_since), Reverse(pod.restarts), Reverse(candidate.slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pod(phase: Phase, ready_after: Option<u64>, restarts: u32, deletion_cost: i32) -> ObservedPod {
        ObservedPod {
            name: String::new(),
            phase,
            ready_since: ready_after.map(|seconds| Moment::after_boot(Duration::from_secs(seconds))),
            is_terminating: false,
            restarts,
            ends: Vec::new(),
            ended_at: None,
            conditions: Vec::new(),
            deletion_cost,
        }
    }

    /// TR1.
    #[test]
    fn pods_go_in_order_of_use() {
        let pods = [
            Some(pod(Phase::Running, Some(10), 0, 0)),
            Some(pod(Phase::Running, Some(20), 0, 0)),
            Some(pod(Phase::Running, Some(10), 3, 0)),
            Some(pod(Phase::Running, Some(20), 0, -5)),
            Some(pod(Phase::Running, None, 0, 0)),
            Some(pod(Phase::Pending, None, 0, 0)),
            Some(pod(Phase::Running, Some(10), 0, 0)),
            None,
        ];
        let candidates = (0..).zip(&pods).map(|(slot, pod)| Candidate { slot, pod: pod.as_ref() });
        assert_eq!(first_to_go(candidates), [7, 5, 4, 3, 1, 2, 6, 0]);
    }
}
