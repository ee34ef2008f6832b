//! The loop of a source that is asked from time to time: poll, report what is new, wait for the next time or for a wish.
//!
//! HTTP and git sources differ in one poll, not in this.

use super::poll::next_delay;
use async_trait::async_trait;
use jiff::Timestamp;
use podstead_artifact::wake::{ReadTimes, Wishes};
use podstead_artifact::{Artifact, SourceReport};
use podstead_pod::SourceId;
use podstead_sys::random::any_number;
use podstead_sys::tick::Tick;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Shortest time between a poll and a requested one: requests without pause (a webhook in a loop) must not make the host or the server
/// work without pause.
const MIN_GAP: Duration = Duration::from_millis(500);

/// Result of one poll.
#[derive(Debug)]
pub enum Polled {
    /// Another artifact than the last one.
    New(Artifact),
    /// Read successfully, the same as the last artifact.
    Unchanged,
    /// Could not be read, or is refused; the last artifact stays.
    Failed {
        /// Reason, the same text for the same reason: it is reported when the text changes.
        reason: String,
        /// Delay that the server asked for, if it did.
        retry_after: Option<Duration>,
    },
}

/// A place that can be asked once.
#[async_trait]
pub trait Pollable: Send {
    /// Asks. Has a time limit of its own. May be dropped at any await.
    async fn poll(&mut self) -> Polled;

    /// Waits until the place may have changed since the last poll; for ever where it does not tell. May be dropped at any await.
    async fn changed(&mut self) {
        std::future::pending().await
    }
}

/// Polls now and then every `interval`, until the receiver of reports is dropped.
pub async fn poll_forever(
    id: SourceId,
    interval: Duration,
    mut place: impl Pollable,
    reports: mpsc::Sender<(SourceId, SourceReport)>,
    mut wishes: Wishes,
) {
    let mut failures = 0_u32;
    let mut told: Option<String> = None;
    let mut wish = None;
    loop {
        let asked = wishes.gather(wish.take());
        wishes.looks().set_next(None);
        let began = Tick::now();
        let polled = tokio::select! {
            polled = place.poll() => polled,
            () = reports.closed() => return,
        };
        let (report, retry_after) = match polled {
            Polled::New(artifact) => {
                let times = ReadTimes { noticed: None, began, ended: Tick::now() };
                wishes.looks().record_reading(&artifact.revision, times);
                (Some(SourceReport::Artifact(artifact)), None)
            }
            Polled::Unchanged => (told.is_some().then_some(SourceReport::Recovered), None),
            Polled::Failed { reason, retry_after } => {
                failures = failures.saturating_add(1);
                tracing::debug!(source = %id, failures, %reason, "poll failed");
                let report = (told.as_ref() != Some(&reason)).then(|| SourceReport::Failed(reason.clone()));
                told = Some(reason);
                (report, Some(retry_after))
            }
        };
        if retry_after.is_none() {
            wishes.looks().record_contact(Timestamp::now());
            (failures, told) = (0, None);
        }
        if let Some(report) = report
            && reports.send((id.clone(), report)).await.is_err()
        {
            return;
        }
        if !asked.send(&id, &reports).await {
            return;
        }
        let ended = Instant::now();
        let delay = next_delay(interval, failures, retry_after.flatten(), any_number());
        wishes.looks().set_next(Timestamp::now().checked_add(delay).ok());
        // Cancel-safe: a wish is taken out only when it wins, and a poll sees every change.
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = place.changed() => tokio::time::sleep_until(ended + MIN_GAP).await,
            wished = wishes.next() => {
                wish = Some(wished);
                tokio::time::sleep_until(ended + MIN_GAP).await;
            }
            () = reports.closed() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_artifact::Surroundings;
    use podstead_artifact::wake::{Verdict, Waker};
    use podstead_pod::Revision;
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Answers as scripted, then as the last time.
    struct Script {
        answers: VecDeque<Result<&'static str, &'static str>>,
        last: Option<&'static str>,
        polls: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Pollable for Script {
        async fn poll(&mut self) -> Polled {
            self.polls.fetch_add(1, Ordering::SeqCst);
            let answer = if self.answers.len() > 1 { self.answers.pop_front() } else { self.answers.front().copied() };
            match answer.unwrap() {
                Ok(revision) if self.last == Some(revision) => Polled::Unchanged,
                Ok(revision) => {
                    self.last = Some(revision);
                    Polled::New(Artifact {
                        revision: Revision(revision.into()),
                        place: None,
                        commit: None,
                        files: BTreeMap::new(),
                        beside: BTreeMap::new(),
                        around: Surroundings::default(),
                    })
                }
                Err(reason) => Polled::Failed { reason: reason.into(), retry_after: None },
            }
        }
    }

    type Reports = mpsc::Receiver<(SourceId, SourceReport)>;

    fn start(answers: &[Result<&'static str, &'static str>]) -> (Reports, Waker, Arc<AtomicUsize>) {
        let polls = Arc::<AtomicUsize>::default();
        let script = Script { answers: answers.iter().copied().collect(), last: None, polls: polls.clone() };
        let (waker, wishes) = Waker::new();
        let (sender, reports) = mpsc::channel(1);
        tokio::spawn(poll_forever(SourceId::new("s"), Duration::from_secs(60), script, sender, wishes));
        (reports, waker, polls)
    }

    async fn next(reports: &mut Reports) -> String {
        match reports.recv().await.unwrap().1 {
            SourceReport::Artifact(artifact) => artifact.revision.0,
            SourceReport::Failed(reason) => format!("failed: {reason}"),
            SourceReport::Recovered => "recovered".into(),
            SourceReport::Degraded(_) => "degraded".into(),
            SourceReport::Inquiry(inquiry) => {
                inquiry.answer(Verdict { in_force: None, pods: 0, error: None, refused: 0 });
                "inquiry".into()
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_once_and_the_recovery_too() {
        let script = [Ok("1"), Err("x"), Err("x"), Err("y"), Err("y"), Ok("1"), Ok("1"), Err("y"), Ok("2")];
        let (mut reports, _waker, polls) = start(&script);
        for expected in ["1", "failed: x", "failed: y", "recovered", "failed: y", "2"] {
            assert_eq!(next(&mut reports).await, expected);
        }
        assert_eq!(polls.load(Ordering::SeqCst), script.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wish_is_answered_after_the_reports_of_its_look_and_long_before_the_interval() {
        let (mut reports, waker, _) = start(&[Ok("1"), Ok("2")]);
        assert_eq!(next(&mut reports).await, "1");
        let began = Instant::now();
        let waiting = tokio::spawn(async move { waker.sync().await });
        assert_eq!(next(&mut reports).await, "2");
        assert_eq!(next(&mut reports).await, "inquiry");
        assert!(waiting.await.unwrap().is_ok());
        assert!(began.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn wishes_without_end_do_not_make_it_poll_without_end() {
        let (mut reports, waker, polls) = start(&[Ok("1")]);
        assert_eq!(next(&mut reports).await, "1");
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            waker.wake();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let polls = polls.load(Ordering::SeqCst);
        assert!((15..=22).contains(&polls), "{polls} polls in 10 s");
    }

    #[tokio::test(start_paused = true)]
    async fn readers_are_told_when_it_looks_again() {
        let (mut reports, waker, _) = start(&[Ok("1"), Err("x")]);
        assert_eq!(waker.looks().next, None);
        for expected in ["1", "failed: x"] {
            assert_eq!(next(&mut reports).await, expected);
            // The next report is waited for in vain, so that the source comes to its pause.
            tokio::time::timeout(Duration::from_millis(1), reports.recv()).await.unwrap_err();
            let left = waker.looks().next.unwrap().duration_since(Timestamp::now()).as_secs();
            assert!((1..=120).contains(&left), "{left} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unchanged_poll_is_a_contact_and_a_failed_one_is_not() {
        let (mut reports, waker, polls) = start(&[Ok("1"), Ok("1"), Err("x")]);
        assert_eq!(next(&mut reports).await, "1");
        let first = waker.looks().contact.unwrap();
        assert_eq!(next(&mut reports).await, "failed: x");
        assert_eq!(polls.load(Ordering::SeqCst), 3);
        let second = waker.looks().contact.unwrap();
        assert!(second > first, "the unchanged poll counts");
        tokio::time::timeout(Duration::from_secs(600), reports.recv()).await.unwrap_err();
        assert!(polls.load(Ordering::SeqCst) > 3);
        assert_eq!(waker.looks().contact, Some(second), "a failed poll does not count");
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_nobody_listens() {
        let (reports, waker, _) = start(&[Ok("1")]);
        drop(reports);
        let ended = tokio::time::timeout(Duration::from_secs(30), waker.sync()).await;
        assert!(matches!(ended, Ok(Err(_))), "{ended:?}");
    }
}
