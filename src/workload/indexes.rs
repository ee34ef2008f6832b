//! Sets of completion indexes as intervals, in the text form of a Job's status: `0-2,5` (W67).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A set of indexes. Its text lists intervals in increasing order; two neighbours are written `0,1`, three and more `0-2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IndexSet {
    /// First and last index of each interval, increasing, with at least one index between two of them that is not in the set.
    intervals: Vec<(u32, u32)>,
}

/// A text that is not a list of intervals, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// An interval with more than two parts.
    #[error("the fragment {0:?} violates the requirement that an index interval can have at most two parts separated by '-'")]
    Parts(String),
    /// A part that is not a number.
    #[error("cannot convert string to integer for index: {0:?}")]
    Number(String),
    /// An index that the Job does not have.
    #[error("too large index: {0:?}")]
    TooLarge(String),
    /// An index that is not above the one before.
    #[error("non-increasing order, previous: {previous}, current: {current}")]
    Order {
        /// The index before.
        previous: u32,
        /// The index that is not above it.
        current: u32,
    },
}

impl IndexSet {
    /// The set of all indexes below `end`.
    pub fn below(end: u32) -> Self {
        Self { intervals: end.checked_sub(1).map(|last| (0, last)).into_iter().collect() }
    }

    /// Reads the text form. Every index has to be below `completions`.
    pub fn parse(text: &str, completions: u32) -> Result<Self, IndexError> {
        let mut set = Self::default();
        let mut previous = None;
        for fragment in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = interval(fragment, completions)?;
            if let Some(previous) = previous.filter(|previous| *previous >= first) {
                return Err(IndexError::Order { previous, current: first });
            }
            previous = Some(last);
            set.push(first, last);
        }
        Ok(set)
    }

    /// Adds an index.
    pub fn insert(&mut self, index: u32) {
        self.merge(&Self { intervals: vec![(index, index)] });
    }

    /// Adds all indexes of another set.
    pub fn merge(&mut self, other: &Self) {
        let mut all: Vec<(u32, u32)> = self.intervals.iter().chain(&other.intervals).copied().collect();
        all.sort_unstable();
        self.intervals.clear();
        for (first, last) in all {
            self.push(first, last);
        }
    }

    /// True when the index is in the set.
    pub fn contains(&self, index: u32) -> bool {
        let after = self.intervals.partition_point(|(first, _)| *first <= index);
        after > 0 && index <= self.intervals[after - 1].1
    }

    /// True when no index is in the set.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Number of indexes.
    pub fn count(&self) -> u32 {
        self.intervals.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// The indexes of the set that another set has, too.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        let (mut left, mut right) = (self.intervals.iter().peekable(), other.intervals.iter().peekable());
        while let (Some((first, last)), Some((other_first, other_last))) = (left.peek(), right.peek()) {
            let (from, to) = (*first.max(other_first), *last.min(other_last));
            if from <= to {
                both.push(from, to);
            }
            if last < other_last {
                left.next();
            } else {
                right.next();
            }
        }
        both
    }

    /// The lowest indexes below `end` that are not in the set, at most `count` of them.
    pub fn lowest_missing(&self, count: usize, end: u32) -> Vec<u32> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        for (first, last) in &self.intervals {
            missing.extend((candidate..end.min(*first)).take(count - missing.len()));
            candidate = candidate.max(last.saturating_add(1));
        }
        missing.extend((candidate..end).take(count - missing.len()));
        missing
    }

    /// Adds an interval that does not begin before the last one.
    fn push(&mut self, first: u32, last: u32) {
        match self.intervals.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            Some(_) | None => self.intervals.push((first, last)),
        }
    }
}

impl FromIterator<u32> for IndexSet {
    fn from_iter<T: IntoIterator<Item = u32>>(indexes: T) -> Self {
        let mut all: Vec<u32> = indexes.into_iter().collect();
        all.sort_unstable();
        let mut set = Self::default();
        for index in all {
            set.push(index, index);
        }
        set
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.intervals.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for IndexSet {
    type Err = IndexError;

    fn from_str(text: &str) -> Result<Self, IndexError> {
        Self::parse(text, u32::MAX)
    }
}

impl TryFrom<String> for IndexSet {
    type Error = IndexError;

    fn try_from(text: String) -> Result<Self, IndexError> {
        text.parse()
    }
}

impl From<IndexSet> for String {
    fn from(set: IndexSet) -> Self {
        set.to_string()
    }
}

/// First and last index of one fragment of the text form.
fn interval(fragment: &str, completions: u32) -> Result<(u32, u32), IndexError> {
    let index = |text: &str| match text.parse::<u32>() {
        Ok(index) if index < completions => Ok(index),
        Ok(_) => Err(IndexError::TooLarge(text.to_owned())),
        Err(_) => Err(IndexError::Number(text.to_owned())),
    };
    let Some((first, last)) = fragment.split_once('-') else {
        return index(fragment).map(|only| (only, only));
    };
    if last.contains('-') {
        return Err(IndexError::Parts(fragment.to_owned()));
    }
    let (first, last) = (index(first)?, index(last)?);
    if first >= last {
        return Err(IndexError::Order { previous: first, current: last });
    }
    Ok((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(text: &str) -> IndexSet {
        text.parse().unwrap()
    }

    #[test]
    fn neighbours_are_written_with_comma() {
        for (indexes, text) in [
            (vec![], ""),
            (vec![0], "0"),
            (vec![1, 0], "0,1"),
            (vec![5, 0, 2, 1], "0-2,5"),
            (vec![0, 1, 3, 4, 5, 6, 9], "0,1,3-6,9"),
        ] {
            let set: IndexSet = indexes.into_iter().collect();
            assert_eq!(set.to_string(), text);
            assert_eq!(text.parse(), Ok(set), "{text}");
        }
    }

    #[test]
    fn broken_text_is_refused() {
        for (text, error) in [
            (
                "1-2-3",
                r#"the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'"#,
            ),
            ("1,a", r#"cannot convert string to integer for index: "a""#),
            ("", ""),
            ("1,", r#"cannot convert string to integer for index: """#),
            ("3-10", r#"too large index: "10""#),
            ("1,3,2", "non-increasing order, previous: 3, current: 2"),
            ("4-4", "non-increasing order, previous: 4, current: 4"),
        ] {
            let said = IndexSet::parse(text, 10).map_or_else(|error| error.to_string(), |_| String::new());
            assert_eq!(said, error, "{text}");
        }
    }

    /// TJ10.
    #[test]
    fn lowest_missing_indexes_are_next() {
        let mut busy = set("2,4,5,7-9");
        busy.merge(&set("0,3"));
        assert_eq!(busy.lowest_missing(6, 20), [1, 6, 10, 11, 12, 13]);
        assert_eq!(busy.lowest_missing(6, 11), [1, 6, 10]);
        assert_eq!(busy.lowest_missing(1, 20), [1]);
        assert_eq!(IndexSet::below(3).lowest_missing(5, 3), Vec::<u32>::new());
    }

    proptest! {
        #[test]
        fn set_behaves_like_a_tree(left in proptest::collection::vec(0_u32..40, 0..30), right in proptest::collection::vec(0_u32..40, 0..30)) {
            let (tree, other): (BTreeSet<u32>, BTreeSet<u32>) = (left.iter().copied().collect(), right.iter().copied().collect());
            let (mut ours, theirs): (IndexSet, IndexSet) = (left.into_iter().collect(), right.into_iter().collect());
            prop_assert_eq!(ours.to_string().parse::<IndexSet>(), Ok(ours.clone()));
            prop_assert_eq!(ours.intersection(&theirs), tree.intersection(&other).copied().collect());
            prop_assert_eq!(ours.count() as usize, tree.len());
            prop_assert!((0..41).all(|index| ours.contains(index) == tree.contains(&index)));
            prop_assert_eq!(ours.lowest_missing(5, 40), (0..40).filter(|index| !tree.contains(index)).take(5).collect::<Vec<_>>());
            ours.merge(&theirs);
            prop_assert_eq!(ours, tree.union(&other).copied().collect());
        }
    }
}
