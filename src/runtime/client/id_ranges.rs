//! Which ids of the host the users of which pod are: ranges that do not overlap.
//!
//! A range belongs to a living sandbox; its spec, which the sandbox's record and its shim know, says which it is. On disk no file has an id
//! of it: root file systems and volumes are mapped when they are mounted, and writable layers go with their containers.

use super::Inner;
use crate::pod::PodUid;
use crate::runtime::{RuntimeError, SandboxSpec, SandboxState};
use crate::sys::user_namespace::IDS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The first id of the first range: above those that distributions and systemd give to users and containers.
pub(super) const FIRST: u32 = 1_879_048_192;
/// Ranges that there are.
const COUNT: u32 = 4000;

/// Ranges by pod.
#[derive(Debug, Default)]
pub(super) struct IdRanges {
    by_pod: Mutex<BTreeMap<PodUid, u32>>,
}

impl IdRanges {
    /// The pod's range: the one that it has, or the first that is free.
    pub(super) fn take(&self, uid: &PodUid) -> Option<u32> {
        let mut by_pod = self.by_pod.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = by_pod.get(uid) {
            return Some(*first);
        }
        let taken: BTreeSet<u32> = by_pod.values().copied().collect();
        let free = (0..COUNT).map(|number| FIRST + number * IDS).find(|first| !taken.contains(first))?;
        by_pod.insert(uid.clone(), free);
        Some(free)
    }

    /// A pod of an earlier daemon has this range.
    pub(super) fn keep(&self, uid: &PodUid, first: u32) {
        self.by_pod.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.clone(), first);
    }

    /// Nothing of the pod lives any more.
    pub(super) fn give_back(&self, uid: &PodUid) {
        self.by_pod.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// The spec with a range if the pod has users of its own.
pub(super) fn assigned(inner: &Inner, spec: &SandboxSpec) -> Result<SandboxSpec, RuntimeError> {
    if !spec.own_users {
        return Ok(spec.clone());
    }
    let first = inner.id_ranges.take(&spec.uid).ok_or_else(|| RuntimeError::Failed {
        operation: "give the pod users of its own".to_owned(),
        reason: format!("all {COUNT} ranges of ids are in use"),
    })?;
    Ok(SandboxSpec { first_host_id: Some(first), ..spec.clone() })
}

/// Takes note of the range of a pod that was found at start.
pub(super) fn found(inner: &Inner, uid: &PodUid) {
    let first = inner.pods().get(uid).and_then(|pod| {
        let sandbox = pod.sandbox.as_ref().filter(|sandbox| sandbox.state != SandboxState::Stopped)?;
        sandbox.spec.first_host_id
    });
    if let Some(first) = first {
        inner.id_ranges.keep(uid, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_overlap_and_come_back() {
        let ranges = IdRanges::default();
        let [a, b, c] = ["a", "b", "c"].map(PodUid::new);
        ranges.keep(&b, FIRST);
        assert_eq!(ranges.take(&a), Some(FIRST + IDS), "what an earlier daemon gave away is taken");
        assert_eq!(ranges.take(&a), Some(FIRST + IDS), "a pod keeps its range");
        ranges.give_back(&b);
        assert_eq!((ranges.take(&c), ranges.take(&b)), (Some(FIRST), Some(FIRST + 2 * IDS)));
    }

    #[test]
    fn there_is_an_end_to_them() {
        let ranges = IdRanges::default();
        for number in 0..COUNT {
            ranges.keep(&PodUid::new(number.to_string()), FIRST + number * IDS);
        }
        assert_eq!(ranges.take(&PodUid::new("one more")), None);
        assert!(u64::from(FIRST) + u64::from(COUNT) * u64::from(IDS) < 1 << 31, "ids stay positive for who takes them as signed");
    }
}
