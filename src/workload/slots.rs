//! The numbers at the end of pod names (W7, W9).

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Numbers of the pods of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Pods that are wanted.
    pub wanted: BTreeSet<u32>,
    /// Pods that are not wanted any more and may still exist.
    #[serde(default)]
    pub leaving: BTreeSet<u32>,
}

impl Slots {
    /// Number of wanted pods.
    pub fn count(&self) -> u32 {
        u32::try_from(self.wanted.len()).unwrap_or(u32::MAX)
    }

    /// No pod is wanted and none is leaving.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.leaving.is_empty()
    }

    /// Forgets leaving pods that do not exist any more.
    pub fn settle(&mut self, exists: impl Fn(u32) -> bool) {
        self.leaving.retain(|slot| exists(*slot));
    }

    /// Withdraws one pod. Returns false if it is not wanted.
    pub fn withdraw(&mut self, slot: u32) -> bool {
        self.wanted.remove(&slot) && self.leaving.insert(slot)
    }

    /// Wants `more` pods, with the smallest numbers that no pod has; a pod that is leaving has its number still.
    pub fn grow(&mut self, more: u32, exists: impl Fn(u32) -> bool) {
        let free = (0..).filter(|slot| !self.wanted.contains(slot) && !self.leaving.contains(slot) && !exists(*slot));
        let chosen: Vec<u32> = free.take(more as usize).collect();
        self.wanted.extend(chosen);
    }

    /// Withdraws `fewer` pods, in the order given.
    pub fn shrink(&mut self, fewer: u32, first_to_go: &[u32]) {
        let going: Vec<u32> = first_to_go.iter().copied().filter(|slot| self.wanted.contains(slot)).take(fewer as usize).collect();
        for slot in going {
            self.wanted.remove(&slot);
            self.leaving.insert(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_free_number_is_taken() {
        let mut slots = Slots::default();
        slots.grow(2, |slot| slot == 0);
        assert_eq!(slots.wanted, BTreeSet::from([1, 2]));
    }

    /// TR2.
    #[test]
    fn number_of_leaving_pod_is_not_reused() {
        let mut slots = Slots { wanted: BTreeSet::from([0, 1, 2]), ..Slots::default() };
        slots.shrink(1, &[1]);
        slots.settle(|_| true);
        slots.grow(1, |slot| slot <= 2);
        assert_eq!(slots.wanted, BTreeSet::from([0, 2, 3]));
    }

    #[test]
    fn number_of_gone_pod_is_reused() {
        let mut slots = Slots { wanted: BTreeSet::from([0]), leaving: BTreeSet::from([1]) };
        slots.settle(|slot| slot == 0);
        slots.grow(1, |slot| slot == 0);
        assert_eq!(slots, Slots { wanted: BTreeSet::from([0, 1]), leaving: BTreeSet::new() });
    }
}
