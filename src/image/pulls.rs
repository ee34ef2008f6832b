//! Pulls under way, for those who look.

use super::document::Descriptor;
use super::interest::{Interest, Urgency};
use jiff::Timestamp;
use podstead_container::reference::Reference;
use podstead_runtime::{PullHold, PullPhase, PullState, PulledLayer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// States of all pulls, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulls(Arc<Mutex<States>>);

#[derive(Debug, Default)]
struct States {
    last: u64,
    pulls: BTreeMap<u64, PullState>,
}

impl Pulls {
    fn states(&self) -> MutexGuard<'_, States> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a pull that mends what runs. `written` is its reference as it was written.
    pub(super) fn begin(&self, reference: &Reference, written: String) -> Pull {
        self.begin_for(reference, written, Interest::of(Urgency::Update))
    }

    /// Takes note of a pull that begins, with the interest of those who wait for it.
    pub(super) fn begin_for(&self, reference: &Reference, written: String, interest: Arc<Interest>) -> Pull {
        let mut states = self.states();
        states.last += 1;
        let number = states.last;
        let (reference, began_at, phase) = (reference.to_string(), Timestamp::now(), PullPhase::Resolving);
        states.pulls.insert(number, PullState { number, reference, began_at, phase, layers: Vec::new(), hold: None });
        Pull { pulls: self.clone(), number, written, interest }
    }

    /// All pulls, the oldest first.
    pub(super) fn list(&self) -> Vec<PullState> {
        self.states().pulls.values().cloned().collect()
    }
}

/// A pull under way, which is over when this is dropped.
#[derive(Debug)]
pub(super) struct Pull {
    pulls: Pulls,
    number: u64,
    /// The reference as it was written.
    pub(super) written: String,
    /// Those who wait for it.
    pub(super) interest: Arc<Interest>,
}

impl Drop for Pull {
    fn drop(&mut self) {
        self.pulls.states().pulls.remove(&self.number);
    }
}

impl Pull {
    fn change(&self, change: impl FnOnce(&mut PullState)) {
        if let Some(state) = self.pulls.states().pulls.get_mut(&self.number) {
            change(state);
        }
    }

    /// It begins, with other credentials or once more.
    pub(super) fn resolving(&self) {
        self.change(|state| (state.phase, state.layers, state.hold) = (PullPhase::Resolving, Vec::new(), None));
    }

    /// It fetches these layers.
    pub(super) fn downloading<'a>(&self, layers: impl Iterator<Item = &'a Descriptor>) {
        let layer =
            |layer: &Descriptor| PulledLayer { digest: layer.digest.to_string(), size_bytes: layer.size, ..PulledLayer::default() };
        let layers = layers.map(layer).collect();
        self.change(|state| (state.phase, state.layers) = (PullPhase::Downloading, layers));
    }

    /// It waits before it fetches layers.
    pub(super) fn waits(&self, hold: PullHold) {
        self.change(|state| (state.phase, state.hold) = (PullPhase::Waiting, Some(hold)));
    }

    /// It has all layers.
    pub(super) fn storing(&self) {
        self.change(|state| state.phase = PullPhase::Storing);
    }

    /// A layer went on.
    pub(super) fn layer(&self, layer: PulledLayer) {
        self.change(|state| {
            if let Some(known) = state.layers.iter_mut().find(|known| known.digest == layer.digest) {
                *known = layer;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_is_listed_until_it_ends() {
        let pulls = Pulls::default();
        let reference: Reference = "r.lan/app:1".parse().unwrap();
        let begin = || pulls.begin(&reference, "r.lan/app:1".into());
        let (first, second) = (begin(), begin());
        let numbers = || pulls.list().iter().map(|pull| pull.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [1, 2]);
        drop(first);
        assert_eq!(numbers(), [2]);
        second.storing();
        assert_eq!(pulls.list()[0].phase, PullPhase::Storing);
        second.layer(PulledLayer { digest: "of another pull".into(), ..PulledLayer::default() });
        assert!(pulls.list()[0].layers.is_empty());
        drop(second);
        assert!(pulls.list().is_empty());
    }
}
