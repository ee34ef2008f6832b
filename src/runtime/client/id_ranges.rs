//! Assignment of host ID ranges to pods: ranges that do not overlap.
//!
//! A range belongs to a living sandbox; its spec, which the sandbox's record and its shim know, says which it is. On disk no file has an id
//! of it: root file systems and volumes are mapped when they are mounted, and writable layers go with their containers.

use super::Inner;
use crate::RuntimeError;
use podstead_container::{SandboxSpec, SandboxState};
use podstead_pod::PodUid;
use podstead_settings::IdRange;
use podstead_sys::user_namespace::IDS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Ranges by pod.
#[derive(Debug)]
pub(super) struct IdRanges {
    /// The configured range that new ranges are cut from. A pod that is found keeps what it has, also elsewhere.
    from: IdRange,
    by_pod: Mutex<BTreeMap<PodUid, u32>>,
}

impl IdRanges {
    /// None is taken.
    pub(super) fn new(from: IdRange) -> Self {
        Self { from, by_pod: Mutex::default() }
    }

    /// The pod's range: the one that it has, or the first that is free.
    pub(super) fn take(&self, uid: &PodUid) -> Option<u32> {
        let mut by_pod = self.by_pod.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = by_pod.get(uid) {
            return Some(*first);
        }
        let taken: BTreeSet<u32> = by_pod.values().copied().collect();
        let IdRange { first, pods } = self.from;
        let free = (0..pods).map(|number| first + number * IDS).find(|first| !taken.contains(first))?;
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
    let first = inner.id_ranges.take(&spec.uid).ok_or_else(|| {
        let reason = format!("all {} ID ranges are in use: raise userNamespaces.maxPods", inner.options.id_range.pods);
        RuntimeError::failed("allocate a user ID range for the pod", reason)
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

    const FIRST: u32 = 1_879_048_192;

    #[test]
    fn ranges_do_not_overlap_and_come_back() {
        let ranges = IdRanges::new(IdRange::default());
        let [a, b, c] = ["a", "b", "c"].map(PodUid::new);
        ranges.keep(&b, FIRST);
        assert_eq!(ranges.take(&a), Some(FIRST + IDS), "what an earlier daemon gave away is taken");
        assert_eq!(ranges.take(&a), Some(FIRST + IDS), "a pod keeps its range");
        ranges.give_back(&b);
        assert_eq!((ranges.take(&c), ranges.take(&b)), (Some(FIRST), Some(FIRST + 2 * IDS)));
    }

    #[test]
    fn there_is_an_end_to_them() {
        let IdRange { first, pods } = IdRange::default();
        let ranges = IdRanges::new(IdRange::default());
        for number in 0..pods {
            ranges.keep(&PodUid::new(number.to_string()), first + number * IDS);
        }
        assert_eq!(ranges.take(&PodUid::new("one more")), None);
    }

    #[test]
    fn a_pod_that_is_found_keeps_its_range_when_the_configuration_names_another() {
        let ranges = IdRanges::new(IdRange { first: 65_536, pods: 2 });
        let [old, a, b, c] = ["old", "a", "b", "c"].map(PodUid::new);
        ranges.keep(&old, FIRST);
        assert_eq!([&old, &a, &b].map(|uid| ranges.take(uid)), [Some(FIRST), Some(65_536), Some(131_072)]);
        assert_eq!(ranges.take(&c), None);
    }
}
