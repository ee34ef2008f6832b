//! Names that are due, each at most once. **Pure**.

use podstead_pod::PodFullName;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// A queue by time.
#[derive(Debug, Default)]
pub(super) struct Queue {
    by_time: BTreeSet<(Instant, PodFullName)>,
    times: BTreeMap<PodFullName, Instant>,
}

impl Queue {
    /// Schedules a name at `at`, unless it is due earlier.
    pub(super) fn schedule(&mut self, name: &PodFullName, at: Instant) {
        match self.times.get(name) {
            Some(before) if *before <= at => return,
            Some(before) => {
                self.by_time.remove(&(*before, name.clone()));
            }
            None => {}
        }
        self.times.insert(name.clone(), at);
        self.by_time.insert((at, name.clone()));
    }

    /// Removes and returns the name that has been due for longest.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<PodFullName> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, name) = self.by_time.pop_first()?;
        self.times.remove(&name);
        Some(name)
    }

    /// Removes a name.
    pub(super) fn remove(&mut self, name: &PodFullName) {
        if let Some(at) = self.times.remove(name) {
            self.by_time.remove(&(at, name.clone()));
        }
    }

    /// Number of scheduled names.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Time at which the next name is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_name_is_due_once_and_at_the_earliest_time_that_was_asked_for() {
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let name = |name: &str| PodFullName { name: name.into(), namespace: "default".into() };
        let mut queue = Queue::default();
        queue.schedule(&name("a"), at(5));
        queue.schedule(&name("b"), at(3));
        queue.schedule(&name("a"), at(1));
        queue.schedule(&name("a"), at(9));
        assert_eq!(queue.next(), Some(at(1)));
        assert_eq!(queue.take_due(at(0)), None);
        assert_eq!(queue.take_due(at(9)), Some(name("a")));
        assert_eq!(queue.take_due(at(9)), Some(name("b")));
        assert_eq!((queue.take_due(at(9)), queue.next()), (None, None));
        queue.schedule(&name("a"), at(1));
        queue.remove(&name("a"));
        queue.remove(&name("b"));
        assert_eq!((queue.take_due(at(9)), queue.next()), (None, None));
    }
}
