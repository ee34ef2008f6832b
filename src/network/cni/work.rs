//! Work on pods: one thing at a time on each, and the marks that it leaves for the pod's next turn.

use podstead_pod::PodUid;
use podstead_runtime::NetworkError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{TryLockError, mpsc};
use tokio_util::sync::CancellationToken;

/// Work on all pods.
#[derive(Debug)]
pub(super) struct Works {
    pods: Mutex<BTreeMap<PodUid, Arc<Work>>>,
    /// Pods that want a turn.
    pokes: mpsc::UnboundedSender<PodUid>,
}

/// Work on one pod.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Serialises the work on the pod.
    turn: tokio::sync::Mutex<()>,
    marks: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    /// Breaks off the connecting under way.
    cancel: CancellationToken,
    /// Failure that nobody waited for.
    failure: Option<(Direction, NetworkError)>,
    /// Waits for another configuration.
    is_waiting: bool,
    /// Something happened that is worth another attempt.
    has_news: bool,
    /// Attempts to take the pod's attachments down that ended at plugins that are not there.
    vain_attempts: u32,
}

/// Purpose of work on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    SetUp,
    TearDown,
}

impl Works {
    pub(super) fn new(pokes: mpsc::UnboundedSender<PodUid>) -> Self {
        Self { pods: Mutex::default(), pokes }
    }

    fn pods(&self) -> MutexGuard<'_, BTreeMap<PodUid, Arc<Work>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn of(&self, uid: &PodUid) -> Arc<Work> {
        Arc::clone(self.pods().entry(uid.clone()).or_default())
    }

    pub(super) fn forget(&self, uid: &PodUid) {
        self.pods().remove(uid);
    }

    /// Returns true if something happened, once.
    pub(super) fn has_news(&self, uid: &PodUid) -> bool {
        self.pods().get(uid).is_some_and(|work| std::mem::take(&mut work.marks().has_news))
    }

    /// Has the pod's worker try again at once. A daemon that ends hears nothing.
    pub(super) fn poke(&self, uid: &PodUid, work: &Work) {
        work.marks().has_news = true;
        self.pokes.send(uid.clone()).ok();
    }

    /// The configuration changed: pods that wait for one have another turn.
    pub(super) fn poke_waiting(&self) {
        for (uid, work) in self.pods().iter() {
            let is_waiting = work.marks().is_waiting;
            if is_waiting {
                self.poke(uid, work);
            }
        }
    }
}

impl Work {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other work on the pod is under way.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// An error if other work on the pod is under way.
    pub(super) fn try_turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>, TryLockError> {
        self.turn.try_lock()
    }

    /// Begins to connect the pod; the token breaks it off.
    pub(super) fn begin(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.marks().cancel = cancel.clone();
        cancel
    }

    /// Breaks connecting off; returns true if it was broken off before.
    pub(super) fn break_off(&self) -> bool {
        let marks = self.marks();
        let was_cancelled = marks.cancel.is_cancelled();
        marks.cancel.cancel();
        was_cancelled
    }

    /// Keeps a failure that nobody waited for, or forgets the earlier one.
    pub(super) fn keep_failure(&self, failure: Option<(Direction, NetworkError)>) {
        self.marks().failure = failure;
    }

    /// The failure that nobody waited for, if it is of such work; one of other work is forgotten.
    pub(super) fn take_failure(&self, of: Direction) -> Option<NetworkError> {
        let (direction, error) = self.marks().failure.take()?;
        (direction == of).then_some(error)
    }

    /// Notes whether the pod waits for another configuration.
    pub(super) fn waits(&self, is_waiting: bool) {
        self.marks().is_waiting = is_waiting;
    }

    /// Counts an attempt to take something down that failed: in vain, or for another reason. Returns true, and begins again, after `most` vain ones.
    pub(super) fn is_vain(&self, in_vain: bool, most: u32) -> bool {
        let mut marks = self.marks();
        marks.vain_attempts = if in_vain { marks.vain_attempts + 1 } else { 0 };
        let is_over = marks.vain_attempts >= most;
        if is_over {
            marks.vain_attempts = 0;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vain_attempts_in_a_row_end() {
        let work = Work::default();
        let attempts = [true, true, false, true, true, true, true, true, true].map(|in_vain| work.is_vain(in_vain, 3));
        assert_eq!(attempts, [false, false, false, false, false, true, false, false, true]);
    }

    #[test]
    fn failure_is_told_once_and_to_its_own_kind() {
        let work = Work::default();
        let failure = || Some((Direction::SetUp, NetworkError::UnderWay));
        work.keep_failure(failure());
        assert!(work.take_failure(Direction::SetUp).is_some() && work.take_failure(Direction::SetUp).is_none());
        work.keep_failure(failure());
        assert!(work.take_failure(Direction::TearDown).is_none() && work.take_failure(Direction::SetUp).is_none());
    }

    #[test]
    fn waiting_pods_are_poked_and_have_news_once() {
        let (pokes, mut poked) = mpsc::unbounded_channel();
        let works = Works::new(pokes);
        let (one, other) = (PodUid::new("one"), PodUid::new("other"));
        works.of(&one).waits(true);
        works.of(&other).waits(false);
        works.poke_waiting();
        assert_eq!((poked.try_recv().ok(), poked.try_recv().ok()), (Some(one.clone()), None));
        assert!(works.has_news(&one) && !works.has_news(&one) && !works.has_news(&other));
    }

    #[test]
    fn connecting_is_broken_off_until_it_begins_again() {
        let work = Work::default();
        let token = work.begin();
        assert!(!work.break_off() && token.is_cancelled() && work.break_off());
        assert!(!work.begin().is_cancelled());
    }
}
