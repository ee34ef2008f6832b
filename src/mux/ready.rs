//! Tracks whether every source has delivered (kubelet rule B5), for the reader of the operations.

use super::{PodOp, PodUpdate};
use podstead_pod::SourceId;
use std::collections::BTreeSet;

/// Counts the sources whose first SET was *acted on*, not only sent: an operation that still waits in a channel must not let
/// housekeeping take its pod for an orphan. Owned by the sync loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcesReady {
    waiting: BTreeSet<SourceId>,
}

impl SourcesReady {
    /// Waits for all of `configured`.
    pub fn new(configured: impl IntoIterator<Item = SourceId>) -> Self {
        Self { waiting: configured.into_iter().collect() }
    }

    /// Records an operation that was carried out.
    /// Only ADD counts: it holds all new pods of a first SET, while a REMOVE of the same SET goes before it.
    pub fn observe(&mut self, update: &PodUpdate) {
        if update.op == PodOp::Add {
            self.waiting.remove(&update.source);
        }
    }

    /// Reports whether every source has delivered: from then on a pod that no source has is an orphan.
    pub fn all(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The sources that have not delivered yet.
    pub fn waiting(&self) -> impl Iterator<Item = &SourceId> {
        self.waiting.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(source: &str, op: PodOp) -> PodUpdate {
        PodUpdate { source: SourceId::new(source), op, pods: Vec::new(), objects: Vec::new() }
    }

    #[test]
    fn every_source_has_to_add_once() {
        let mut ready = SourcesReady::new([SourceId::new("a"), SourceId::new("b")]);
        ready.observe(&update("a", PodOp::Add));
        ready.observe(&update("b", PodOp::Remove));
        ready.observe(&update("b", PodOp::Update));
        assert!(!ready.all());
        assert_eq!(ready.waiting().collect::<Vec<_>>(), [&SourceId::new("b")]);
        ready.observe(&update("b", PodOp::Add));
        assert!(ready.all());
    }

    #[test]
    fn a_host_without_sources_is_ready() {
        assert!(SourcesReady::new([]).all());
    }
}
