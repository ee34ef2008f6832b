//! A versioned map with a bounded history of its changes, for many watchers.
//!
//! Watchers have no buffer of their own: each keeps a version and reads what came after it from the one shared history. A watcher
//! that falls behind the history learns that it is [`Expired`] and starts again with a list; nobody waits for it, and memory does not
//! grow with the number or the slowness of watchers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Kind of change to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It was there with another value.
    Modified,
    /// It is gone; the change carries its last value.
    Deleted,
}

/// One change of one entry.
#[derive(Debug)]
pub struct Change<V> {
    /// Kind of change.
    pub kind: ChangeKind,
    /// The version that the journal got by it.
    pub version: u64,
    /// The entry after the change; for a deletion its last value.
    pub value: Arc<V>,
    /// The entry before the change; `None` for an addition. Selectors need it: an entry may leave a selection by a change.
    pub before: Option<Arc<V>>,
}

impl<V> Clone for Change<V> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, version: self.version, value: Arc::clone(&self.value), before: self.before.clone() }
    }
}

/// The version asked for is older than the history, or newer than the journal (it is from another life of the daemon): list again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {asked} is outside the recorded history, {oldest} to {latest}")]
pub struct Expired {
    /// The version asked for.
    pub asked: u64,
    /// The oldest version that can be continued from.
    pub oldest: u64,
    /// The present version.
    pub latest: u64,
}

/// The map and its history.
#[derive(Debug)]
pub struct Journal<K, V> {
    inner: Mutex<Inner<K, V>>,
    latest: watch::Sender<u64>,
    capacity: usize,
    /// The weight of an entry.
    weigh: fn(&V) -> usize,
    /// Limit of the weight of the history.
    limit: usize,
}

#[derive(Debug)]
struct Inner<K, V> {
    version: u64,
    /// Every change after this version is in `history`.
    floor: u64,
    live: BTreeMap<K, Arc<V>>,
    history: VecDeque<Change<V>>,
    /// Sum of the weights of `history`.
    weight: usize,
}

impl<K: Ord, V> Journal<K, V> {
    /// An empty journal whose first change gets version `start + 1`, and which remembers `capacity` changes.
    pub fn new(start: u64, capacity: usize) -> Self {
        let inner = Inner { version: start, floor: start, live: BTreeMap::new(), history: VecDeque::new(), weight: 0 };
        Self { inner: Mutex::new(inner), latest: watch::Sender::new(start), capacity, weigh: |_| 0, limit: usize::MAX }
    }

    /// Forgets old changes also when those that are remembered weigh more than `limit`; for entries that may be large.
    pub fn weighing(self, limit: usize, weigh: fn(&V) -> usize) -> Self {
        Self { weigh, limit, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K, V>> {
        // No code that can panic runs with half-made changes: the content is whole even after a panic elsewhere.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the entry of `key` to what `make` returns from its present value and the version that the change will have.
    /// `None` from `make` means that nothing changes, and nothing is recorded.
    pub fn update(&self, key: K, make: impl FnOnce(Option<&V>, u64) -> Option<V>) {
        let mut inner = self.lock();
        let version = inner.version + 1;
        let before = inner.live.get(&key).cloned();
        let Some(value) = make(before.as_deref(), version) else { return };
        let value = Arc::new(value);
        inner.live.insert(key, Arc::clone(&value));
        let kind = if before.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.record(inner, Change { kind, version, value, before });
    }

    /// Removes the entry of `key`; `make` gives its last value the version of the deletion. Without an entry nothing is recorded.
    pub fn remove(&self, key: &K, make: impl FnOnce(&V, u64) -> V) {
        let mut inner = self.lock();
        let version = inner.version + 1;
        let Some(before) = inner.live.remove(key) else { return };
        let value = Arc::new(make(&before, version));
        self.record(inner, Change { kind: ChangeKind::Deleted, version, value, before: Some(before) });
    }

    fn record(&self, mut inner: MutexGuard<'_, Inner<K, V>>, change: Change<V>) {
        let (weigh, limit) = (self.weigh, self.limit);
        inner.version = change.version;
        inner.weight += weigh(&change.value);
        inner.history.push_back(change);
        while inner.history.len() > self.capacity || inner.weight > limit {
            let Some(oldest) = inner.history.pop_front() else { break };
            inner.floor = oldest.version;
            inner.weight -= weigh(&oldest.value);
        }
        let version = inner.version;
        drop(inner);
        // Two writers may get here in the other order: the version must not go back.
        self.latest.send_if_modified(|latest| {
            let newer = version > *latest;
            if newer {
                *latest = version;
            }
            newer
        });
    }

    /// Gives back memory that is left for more entries: a map that is filled in order is half empty, one that is made of another is not.
    pub fn shrink(&self) {
        let mut inner = self.lock();
        inner.live = std::mem::take(&mut inner.live).into_iter().collect();
        inner.history.shrink_to_fit();
    }

    /// The entry of `key`.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.lock().live.get(key).cloned()
    }

    /// All entries by key, and the version at which they were so.
    pub fn list(&self) -> (u64, Vec<Arc<V>>) {
        let inner = self.lock();
        (inner.version, inner.live.values().cloned().collect())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.lock().live.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.lock().live.is_empty()
    }

    /// The present version.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// All changes after `version`, oldest first.
    pub fn since(&self, version: u64) -> Result<Vec<Change<V>>, Expired> {
        let inner = self.lock();
        if version < inner.floor || version > inner.version {
            return Err(Expired { asked: version, oldest: inner.floor, latest: inner.version });
        }
        let first = inner.history.partition_point(|change| change.version <= version);
        Ok(inner.history.range(first..).cloned().collect())
    }

    /// Tells when the version changes.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(journal: &Journal<u8, (u64, u32)>, key: u8, value: u32) {
        journal.update(key, |before, version| (before.map(|entry| entry.1) != Some(value)).then_some((version, value)));
    }

    #[test]
    fn an_update_without_change_makes_no_version() {
        let journal = Journal::new(10, 8);
        put(&journal, 1, 5);
        put(&journal, 1, 5);
        assert_eq!(journal.version(), 11);
        assert_eq!(journal.since(10).unwrap().len(), 1);
    }

    #[test]
    fn a_watcher_behind_the_history_or_from_another_life_is_expired() {
        let journal = Journal::new(0, 2);
        for value in 0..5 {
            put(&journal, 1, value);
        }
        assert_eq!(journal.since(2).unwrap_err(), Expired { asked: 2, oldest: 3, latest: 5 });
        assert_eq!(journal.since(3).unwrap().len(), 2);
        assert_eq!(journal.since(5).unwrap().len(), 0);
        assert!(journal.since(6).is_err(), "a version that was never given out");
    }

    #[test]
    fn heavy_history_is_short() {
        let journal = Journal::new(0, 100).weighing(10, |entry: &(u64, u32)| entry.1 as usize);
        for weight in [4, 5, 6, 2] {
            put(&journal, 1, weight);
        }
        assert_eq!(journal.since(1).unwrap_err().oldest, 2);
        assert_eq!(journal.since(2).unwrap().len(), 2);
        put(&journal, 1, 11);
        assert_eq!(journal.since(4).unwrap_err(), Expired { asked: 4, oldest: 5, latest: 5 });
        assert_eq!(journal.list().1.len(), 1, "what is present stays");
    }

    #[tokio::test]
    async fn a_subscriber_is_woken_by_a_change() {
        let journal = Journal::new(0, 2);
        let mut latest = journal.subscribe();
        put(&journal, 1, 1);
        latest.changed().await.unwrap();
        assert_eq!(*latest.borrow_and_update(), 1);
    }

    proptest! {
        /// The invariant of kubectl and every controller: a list, and the changes since, give the present content.
        #[test]
        fn a_list_and_the_changes_since_are_the_final_list(
            actions in proptest::collection::vec((0u8..6, proptest::option::of(0u32..3)), 0..60),
            listed_after in 0usize..60,
        ) {
            let journal: Journal<u8, (u8, u32, u64)> = Journal::new(100, 1000);
            let mut replica = BTreeMap::new();
            let mut version = journal.version();
            for (index, (key, value)) in actions.into_iter().enumerate() {
                if index == listed_after {
                    // Keys are not in the values: rebuild the replica by key.
                    replica = (0u8..6).filter_map(|key| journal.get(&key).map(|value| (key, value.1))).collect();
                    version = journal.version();
                }
                match value {
                    Some(value) => journal.update(key, |before, version| {
                        (before.map(|entry: &(u8, u32, u64)| entry.1) != Some(value)).then_some((key, value, version))
                    }),
                    None => journal.remove(&key, |last, version| (last.0, last.1, version)),
                }
            }
            let mut previous = version;
            for change in journal.since(version).unwrap() {
                prop_assert!(change.version > previous);
                previous = change.version;
                let (key, value, stamped) = *change.value;
                prop_assert_eq!(stamped, change.version);
                match change.kind {
                    ChangeKind::Added => prop_assert!(replica.insert(key, value).is_none()),
                    ChangeKind::Modified => prop_assert!(replica.insert(key, value).is_some()),
                    ChangeKind::Deleted => prop_assert!(replica.remove(&key).is_some()),
                }
            }
            let content: BTreeMap<u8, u32> = journal.list().1.iter().map(|entry| (entry.0, entry.1)).collect();
            prop_assert_eq!(replica, content);
        }
    }
}
