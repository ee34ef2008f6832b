//! Requests to poll a source now, and their results.
//!
//! A request goes to the source; the source polls, reports as always, and sends the [`Inquiry`] of the request after its reports,
//! on the same channel. So it is answered when everything that the poll found is in force, or refused.

use super::{CommitSummary, SourceReport};
use jiff::Timestamp;
use podstead_pod::{Revision, SourceId};
use podstead_sys::tick::Tick;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Limit for requests that wait. One poll answers all of them, so more are needed only for people who wait.
const WISHES: usize = 16;

/// Result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Revision whose set is in force.
    pub in_force: Option<Revision>,
    /// Pods in it.
    pub pods: usize,
    /// Reason why the current content of the source is not in force.
    pub error: Option<String>,
    /// Objects of the revision that was read that are refused; their last good versions stay.
    pub refused: usize,
}

/// Somebody waits for what came of all reports before this one.
#[derive(Clone, Debug)]
pub struct Inquiry(mpsc::Sender<Verdict>);

impl Inquiry {
    /// An inquiry, and where its answer comes out.
    pub fn new() -> (Self, mpsc::Receiver<Verdict>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Answers. Nobody may be waiting any more.
    pub fn answer(&self, verdict: Verdict) {
        // An error means that nobody waits, or that it is answered.
        self.0.try_send(verdict).ok();
    }
}

/// Request to poll a source now.
#[derive(Debug, Default)]
pub struct Wish {
    inquiry: Option<Inquiry>,
}

/// The source does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source is no longer running")]
pub struct SourceEnded;

/// Times of a source's looks at its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookTimes {
    /// The next look without an event; `None` for a source that follows its place all the time, or looks just now.
    pub next: Option<Timestamp>,
    /// The end of the last look that read the place successfully, whether or not anything had changed.
    pub contact: Option<Timestamp>,
}

/// Revisions whose reading times are kept.
const READINGS: usize = 4;

/// Times at which a revision was read from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTimes {
    /// First sign of the change; `None` for a source that polls.
    pub noticed: Option<Tick>,
    /// Beginning of the look that read it.
    pub began: Tick,
    /// End of that look.
    pub ended: Tick,
}

/// [`LookTimes`] that the source writes and everybody reads.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    times: Arc<Mutex<LookTimes>>,
    change: Arc<Mutex<Option<CommitSummary>>>,
    readings: Arc<Mutex<VecDeque<(Revision, ReadTimes)>>>,
}

impl Looks {
    fn lock(&self) -> MutexGuard<'_, LookTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time of the next look; `None` while the source looks.
    pub fn set_next(&self, at: Option<Timestamp>) {
        self.lock().next = at;
    }

    /// Takes the description of the change that this host itself made to the place since the last call.
    pub fn take_change(&self) -> Option<CommitSummary> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records that the place was read successfully.
    pub fn record_contact(&self, at: Timestamp) {
        self.lock().contact = Some(at);
    }

    /// Records the reading of a revision that is reported next.
    pub fn record_reading(&self, revision: &Revision, times: ReadTimes) {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        if readings.len() >= READINGS {
            readings.pop_front();
        }
        readings.push_back((revision.clone(), times));
    }
}

/// Wakes one source.
#[derive(Clone, Debug)]
pub struct Waker {
    wishes: mpsc::Sender<Wish>,
    looks: Looks,
}

impl Waker {
    /// A waker, and what the source is run with.
    pub fn new() -> (Self, Wishes) {
        let (sender, receiver) = mpsc::channel(WISHES);
        let looks = Looks::default();
        (Self { wishes: sender, looks: looks.clone() }, Wishes { receiver: Some(receiver), looks })
    }

    /// The times of the source's looks.
    pub fn looks(&self) -> LookTimes {
        *self.looks.lock()
    }

    /// The times at which the source last read a revision, if that is not long ago.
    pub fn reading(&self, revision: &Revision) -> Option<ReadTimes> {
        let readings = self.looks.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.iter().rev().find(|(read, _)| read == revision).map(|(_, times)| *times)
    }

    /// Forgets the readings so far.
    pub fn forget_readings(&self) {
        self.looks.readings.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Describes the change that was just made to the place, for the history of the source. `None` takes it back.
    pub fn describe_change(&self, change: Option<CommitSummary>) {
        *self.looks.change.lock().unwrap_or_else(PoisonError::into_inner) = change;
    }

    /// Requests a poll without waiting for it.
    pub fn wake(&self) {
        // A full channel is as good: the source looks when it takes the first one out. A closed one has no source.
        self.wishes.try_send(Wish::default()).ok();
    }

    /// Requests a poll and waits until its result is in force or refused. The caller sets the time limit.
    pub async fn sync(&self) -> Result<Verdict, SourceEnded> {
        let (inquiry, mut verdict) = Inquiry::new();
        self.wishes.send(Wish { inquiry: Some(inquiry) }).await.map_err(|_| SourceEnded)?;
        verdict.recv().await.ok_or(SourceEnded)
    }
}

/// All sources that can be woken, by name. The one who runs them writes; everybody else reads.
#[derive(Clone, Debug, Default)]
pub struct Wakers(Arc<Mutex<BTreeMap<SourceId, Entry>>>);

#[derive(Clone, Debug)]
struct Entry {
    waker: Waker,
    /// Configured URL; `None` for a directory.
    url: Option<String>,
}

impl Wakers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SourceId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a source, or replaces one. `url`: where it reads from, for a source that others may know by that.
    pub fn insert(&self, source: SourceId, waker: Waker, url: Option<String>) {
        self.lock().insert(source, Entry { waker, url });
    }

    /// Removes a source.
    pub fn remove(&self, source: &SourceId) {
        self.lock().remove(source);
    }

    /// The waker of a source, if there is one of that name.
    pub fn get(&self, source: &str) -> Option<Waker> {
        self.lock().iter().find(|(id, _)| id.as_str() == source).map(|(_, entry)| entry.waker.clone())
    }

    /// The sources whose URL fulfils a condition.
    pub fn with_url(&self, condition: impl Fn(&str) -> bool) -> Vec<(SourceId, Waker)> {
        let entries = self.lock();
        let chosen = entries.iter().filter(|(_, entry)| entry.url.as_deref().is_some_and(&condition));
        chosen.map(|(id, entry)| (id.clone(), entry.waker.clone())).collect()
    }
}

/// Receiver of the requests for one source.
#[derive(Debug)]
pub struct Wishes {
    receiver: Option<mpsc::Receiver<Wish>>,
    looks: Looks,
}

impl Wishes {
    /// Receiver for a source that is never woken.
    pub fn none() -> Self {
        Self { receiver: None, looks: Looks::default() }
    }

    /// Record of the source's poll times.
    pub fn looks(&self) -> &Looks {
        &self.looks
    }

    /// Waits for the next request; for ever once all senders are dropped. Cancel-safe.
    pub async fn next(&mut self) -> Wish {
        if let Some(receiver) = &mut self.receiver
            && let Some(wish) = receiver.recv().await
        {
            return wish;
        }
        self.receiver = None;
        std::future::pending().await
    }

    /// All waiting requests, after `first`: one poll answers them all.
    pub fn gather(&mut self, first: Option<Wish>) -> Asked {
        let waiting = std::iter::from_fn(|| self.receiver.as_mut().and_then(|receiver| receiver.try_recv().ok()));
        Asked(first.into_iter().chain(waiting).filter_map(|wish| wish.inquiry).collect())
    }
}

/// Those who wait for a look.
#[derive(Debug, Default)]
pub struct Asked(Vec<Inquiry>);

impl Asked {
    /// Reports that carry the inquiries, to be sent after those of the poll.
    pub fn into_reports(self) -> impl Iterator<Item = SourceReport> {
        self.0.into_iter().map(SourceReport::Inquiry)
    }

    /// Adds those who wait for a later look, because that one counts for all.
    pub fn join(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Sends [`Self::into_reports`]. Returns whether anybody receives reports.
    pub async fn send(self, source: &SourceId, reports: &mpsc::Sender<(SourceId, SourceReport)>) -> bool {
        for report in self.into_reports() {
            if reports.send((source.clone(), report)).await.is_err() {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(revision: &str) -> Verdict {
        Verdict { in_force: Some(Revision(revision.into())), pods: 1, error: None, refused: 0 }
    }

    #[tokio::test]
    async fn one_look_answers_all_who_wait() {
        let (waker, mut wishes) = Waker::new();
        waker.wake();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let waker = waker.clone();
                    async move { waker.sync().await }
                })
            })
            .collect();
        let (reports, mut reported) = mpsc::channel(8);
        let mut asked = Asked::default();
        while asked.0.len() < 3 {
            let wish = wishes.next().await;
            asked.join(wishes.gather(Some(wish)));
        }
        assert!(asked.send(&SourceId::new("a"), &reports).await);
        for _ in 0..3 {
            let (_, SourceReport::Inquiry(inquiry)) = reported.recv().await.unwrap() else { panic!() };
            inquiry.answer(verdict("r"));
        }
        for waiter in waiting {
            assert_eq!(waiter.await.unwrap(), Ok(verdict("r")));
        }
    }

    #[tokio::test]
    async fn a_storm_of_wishes_is_bounded_and_none_waits() {
        let (waker, mut wishes) = Waker::new();
        for _ in 0..10_000 {
            waker.wake();
        }
        let first = wishes.next().await;
        wishes.gather(Some(first));
        let nothing = tokio::time::timeout(std::time::Duration::ZERO, wishes.next()).await;
        assert!(nothing.is_err(), "one look took them all");
    }

    #[test]
    fn readings_of_last_revisions_are_kept() {
        let (waker, wishes) = Waker::new();
        for number in 0..6 {
            let times = ReadTimes { noticed: None, began: Tick::from_nanos(number), ended: Tick::from_nanos(number + 1) };
            wishes.looks().record_reading(&Revision(number.to_string()), times);
        }
        assert_eq!(waker.reading(&Revision("1".into())), None);
        assert_eq!(waker.reading(&Revision("5".into())).unwrap().began, Tick::from_nanos(5));
    }

    #[tokio::test]
    async fn who_waits_is_told_when_the_source_ends() {
        let (waker, wishes) = Waker::new();
        let waiting = tokio::spawn({
            let waker = waker.clone();
            async move { waker.sync().await }
        });
        drop(wishes);
        assert_eq!(waiting.await.unwrap(), Err(SourceEnded));
    }

    #[tokio::test]
    async fn without_wakers_there_is_never_a_wish() {
        let (waker, mut wishes) = Waker::new();
        drop(waker);
        for wishes in [&mut wishes, &mut Wishes::none()] {
            assert!(tokio::time::timeout(std::time::Duration::ZERO, wishes.next()).await.is_err());
        }
    }
}
