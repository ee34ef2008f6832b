//! A map whose copies share what they have in common, for state that is handed on whole at each change: a copy costs one count, a change the chunk that it
//! is in, and the difference of two copies what was changed between them.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Entries of a chunk, when many are put together at once.
const FILLED: usize = 32;
/// Entries of a chunk above which it becomes two.
const MOST: usize = 48;
/// Entries of a chunk below which it becomes one with its neighbour.
const FEWEST: usize = 8;

type Chunk<K, V> = Arc<[(K, V)]>;

/// A map in the order of its keys. Chunks are never empty.
pub struct SharedMap<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

impl<K, V> SharedMap<K, V> {
    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if nothing was changed since one of both was copied from the other.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.place(key))?;
        let found = chunk.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        chunk.get(found).map(|(_, value)| value)
    }

    /// Returns true if the key is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The chunk that has the key, if any does.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let begins_before = |chunk: &Chunk<K, V>| chunk.first().is_some_and(|(first, _)| first.borrow() <= key);
        self.chunks.partition_point(begins_before).saturating_sub(1)
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Sets the value of a key. Returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let place = self.place(&key);
        let chunk = self.chunks.get(place).map_or(&[][..], |chunk| chunk);
        let (at, before) = match chunk.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => (at, chunk.get(at).map(|(_, value)| value.clone())),
            Err(at) => (at, None),
        };
        let (head, tail) = chunk.split_at(at);
        let tail = if before.is_some() { &tail[1..] } else { tail };
        let entries: Vec<(K, V)> = head.iter().cloned().chain([(key, value)]).chain(tail.iter().cloned()).collect();
        let replaced = usize::from(!chunk.is_empty());
        self.len += usize::from(before.is_none());
        self.replace(place, replaced, &entries);
        before
    }

    /// Removes a key. Returns the value that it had.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key);
        let chunk = self.chunks.get(place)?;
        let at = chunk.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        let (head, tail) = chunk.split_at(at);
        let (gone, tail) = tail.split_first()?;
        let gone = gone.1.clone();
        let mut entries: Vec<(K, V)> = head.iter().chain(tail).cloned().collect();
        let mut replaced = 1;
        if entries.len() < FEWEST
            && let Some(next) = self.chunks.get(place + 1)
        {
            entries.extend(next.iter().cloned());
            replaced = 2;
        }
        self.len -= 1;
        self.replace(place, replaced, &entries);
        Some(gone)
    }

    /// Puts chunks of these entries in the place of some.
    fn replace(&mut self, place: usize, replaced: usize, entries: &[(K, V)]) {
        let most = if entries.len() > MOST { entries.len().div_ceil(2) } else { MOST };
        let new = entries.chunks(most).map(Arc::from);
        Arc::make_mut(&mut self.chunks).splice(place..place + replaced, new);
    }
}

impl<K: Ord, V: PartialEq> SharedMap<K, V> {
    /// The keys whose values differ, in order, with those of `self` and of `other`.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Differences<'a, K, V> {
        Differences { one: Cursor::new(self), other: Cursor::new(other) }
    }
}

/// The differences of two maps.
#[derive(Debug)]
pub struct Differences<'a, K, V> {
    one: Cursor<'a, K, V>,
    other: Cursor<'a, K, V>,
}

impl<'a, K: Ord, V: PartialEq> Iterator for Differences<'a, K, V> {
    type Item = (&'a K, Option<&'a V>, Option<&'a V>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let (Some(one), Some(other)) = (self.one.whole(), self.other.whole())
                && Arc::ptr_eq(one, other)
            {
                self.one.skip();
                self.other.skip();
                continue;
            }
            let (one, other) = (self.one.entry(), self.other.entry());
            let order = match (one, other) {
                (None, None) => return None,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((key, _)), Some((other, _))) => key.cmp(other),
            };
            if order.is_le() {
                self.one.advance();
            }
            if order.is_ge() {
                self.other.advance();
            }
            match (one.filter(|_| order.is_le()), other.filter(|_| order.is_ge())) {
                (Some((_, value)), Some((_, other))) if value == other => {}
                (Some((key, value)), other) => return Some((key, Some(value), other.map(|(_, value)| value))),
                (None, Some((key, value))) => return Some((key, None, Some(value))),
                // One of both is there.
                (None, None) => return None,
            }
        }
    }
}

/// A place in a map.
#[derive(Debug)]
struct Cursor<'a, K, V> {
    chunks: &'a [Chunk<K, V>],
    at: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    fn new(map: &'a SharedMap<K, V>) -> Self {
        Self { chunks: &map.chunks, at: 0 }
    }

    /// The chunk that begins here.
    fn whole(&self) -> Option<&'a Chunk<K, V>> {
        self.chunks.first().filter(|_| self.at == 0)
    }

    fn skip(&mut self) {
        self.chunks = self.chunks.get(1..).unwrap_or_default();
        self.at = 0;
    }

    fn entry(&self) -> Option<&'a (K, V)> {
        self.chunks.first()?.get(self.at)
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.chunks.first().is_some_and(|chunk| chunk.len() <= self.at) {
            self.skip();
        }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self { chunks: Arc::clone(&self.chunks), len: self.len }
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Arc::default(), len: 0 }
    }
}

impl<K: Ord, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && (self.is_same(other) || self.differences(other).next().is_none())
    }
}

impl<K: Ord, V: Eq> Eq for SharedMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Of two values of one key, the last one counts.
impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut sorted: Vec<(K, V)> = entries.into_iter().collect();
        // Stable: the last one of a key stays the last one.
        sorted.sort_by(|one, other| one.0.cmp(&other.0));
        let mut chunks: Vec<Chunk<K, V>> = Vec::new();
        let (mut filling, mut len): (Vec<(K, V)>, usize) = (Vec::with_capacity(FILLED), 0);
        for entry in sorted {
            match filling.last_mut() {
                Some(last) if last.0 == entry.0 => *last = entry,
                _ => {
                    if filling.len() == FILLED {
                        chunks.push(std::mem::replace(&mut filling, Vec::with_capacity(FILLED)).into());
                    }
                    filling.push(entry);
                    len += 1;
                }
            }
        }
        if !filling.is_empty() {
            chunks.push(filling.into());
        }
        chunks.shrink_to_fit();
        Self { chunks: Arc::new(chunks), len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn edits() -> impl Strategy<Value = Vec<(u16, Option<u8>)>> {
        proptest::collection::vec((0..300_u16, proptest::option::weighted(0.6, 0..3_u8)), 0..400)
    }

    fn edit(map: &mut SharedMap<u16, u8>, model: &mut BTreeMap<u16, u8>, edits: &[(u16, Option<u8>)]) {
        for (key, value) in edits {
            match value {
                Some(value) => assert_eq!(map.insert(*key, *value), model.insert(*key, *value)),
                None => assert_eq!(map.remove(key), model.remove(key)),
            }
        }
    }

    proptest! {
        #[test]
        fn map_is_as_the_one_of_std(start in edits(), first in edits(), second in edits()) {
            let of_start = || start.iter().filter_map(|(key, value)| value.map(|value| (*key, value)));
            let (mut map, mut model): (SharedMap<u16, u8>, BTreeMap<u16, u8>) = (of_start().collect(), of_start().collect());
            edit(&mut map, &mut model, &first);
            let (copy, before) = (map.clone(), model.clone());
            edit(&mut map, &mut model, &second);
            for (map, model) in [(&copy, &before), (&map, &model)] {
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert_eq!(map.len(), model.len());
                prop_assert!((0..300).all(|key| map.get(&key) == model.get(&key)));
                prop_assert!(map.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= MOST));
            }
            let differs = |key: &u16| before.get(key) != model.get(key);
            let expected: Vec<_> = (0..300).filter(differs).map(|key| (key, before.get(&key), model.get(&key))).collect();
            let found: Vec<_> = copy.differences(&map).map(|(key, one, other)| (*key, one, other)).collect();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(copy == map, expected.is_empty());
        }
    }

    #[test]
    fn change_costs_one_chunk() {
        let all: SharedMap<u32, u32> = (0..1000).map(|number| (number, 0)).collect();
        let mut changed = all.clone();
        assert!(changed.is_same(&all));
        changed.insert(500, 1);
        let is_shared = |chunk: &&Chunk<u32, u32>| all.chunks.iter().any(|other| Arc::ptr_eq(chunk, other));
        assert_eq!(changed.chunks.iter().filter(is_shared).count() + 1, all.chunks.len());
        assert_eq!(all.differences(&changed).collect::<Vec<_>>(), [(&500, Some(&0), Some(&1))]);
    }
}
