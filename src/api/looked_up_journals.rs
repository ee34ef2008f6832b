//! Journals of the kinds that are looked up.

use super::key::PodKey;
use super::kinds::LookedUpKind;
use super::published_objects::PublishedObject;
use podstead_pod::objects::Objects;
use podstead_telemetry::journal::Journal;
use std::sync::Weak;
use tokio::sync::Mutex;

/// Changes of one kind that are remembered for watchers.
pub(super) const HISTORY: usize = 256;

/// Bytes of them; a ConfigMap may have a megabyte.
pub(super) const HISTORY_BYTES: usize = 16 << 20;

/// Journal of one kind.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) journal: Journal<PodKey, PublishedObject>,
    /// The view that the journal was last made from. Locked while it is made, so that an older view does not replace a newer one.
    pub(super) seen: Mutex<Weak<Objects>>,
}

/// Journals of all kinds that are looked up.
#[derive(Debug)]
pub(super) struct LookedUpJournals(pub(super) [Shelf; LookedUpKind::ALL.len()]);

impl LookedUpJournals {
    /// Empty journals. Versions start after `start`.
    pub(super) fn new(start: u64) -> Self {
        let journal = || Journal::new(start, HISTORY).weighing(HISTORY_BYTES, PublishedObject::weight);
        Self(LookedUpKind::ALL.map(|_| Shelf { journal: journal(), seen: Mutex::default() }))
    }
}
