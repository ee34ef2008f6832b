//! Reports of one source: which state is to be reported, and when. **Pure**, but for the clock that it is given.
//!
//! ```text
//!   seen (differs from what was reported) --lasts for SETTLED, unless pending--> due --delivered--> reported
//! ```
//!
//! A success is final for its revision: what happens to its pods later is another matter.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Time for which a success or a failure must last before it is reported: a container that crashes at once was running for a moment.
const SETTLED: Duration = Duration::from_secs(10);

/// State of a revision on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It is being applied.
    Pending,
    /// All of its pods and workloads are as they should be.
    Success,
    /// Objects were refused, or pods fail.
    Failure,
}

impl State {
    /// The word of GitHub and Gitea.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// State of a revision, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) revision: String,
    pub(super) state: State,
    pub(super) description: String,
}

/// The last report that the server has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reported {
    revision: String,
    state: State,
    /// The place of the report; unknown in records of earlier versions.
    #[serde(default)]
    place: Option<String>,
}

/// A request on its way, or the pause after one that failed.
#[derive(Debug, Default)]
enum Delivery {
    #[default]
    Idle,
    UnderWay,
    /// Not before this.
    Pausing(Instant),
}

/// Reports of one source.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// State that is seen now, the time since when, and true if it needs no time to settle.
    seen: Option<(Report, Instant, bool)>,
    reported: Option<Reported>,
    delivery: Delivery,
    /// Attempts that failed in a row.
    failures: u32,
}

impl Course {
    pub(super) fn restored(reported: Reported) -> Self {
        Self { reported: Some(reported), ..Self::default() }
    }

    pub(super) const fn reported(&self) -> Option<&Reported> {
        self.reported.as_ref()
    }

    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    /// Reports go to this place from now on. What another one was told is not known there.
    pub(super) fn go_to(&mut self, place: &str) {
        let is_elsewhere = |reported: &mut Reported| reported.place.as_deref().is_some_and(|other| other != place);
        if self.reported.take_if(is_elsewhere).is_some() && !matches!(self.delivery, Delivery::UnderWay) {
            (self.delivery, self.failures) = (Delivery::Idle, 0);
        }
    }

    /// Returns true if nothing more is to be reported of this revision.
    pub(super) fn is_over(&self, revision: Option<&str>) -> bool {
        let is_final = |reported: &Reported| reported.state == State::Success && revision == Some(&reported.revision);
        revision.is_none() || self.reported.as_ref().is_some_and(is_final)
    }

    /// Takes note of the state. `is_settled`: it will not change by waiting.
    pub(super) fn see(&mut self, report: Report, is_settled: bool, now: Instant) {
        let is_same = |(seen, _, _): &(Report, Instant, bool)| seen.revision == report.revision && seen.state == report.state;
        let since = self.seen.as_ref().filter(|seen| is_same(seen)).map_or(now, |(_, since, _)| *since);
        self.seen = Some((report, since, is_settled));
    }

    /// The report to send now, which is under way then.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Report> {
        let (report, since, is_settled) = self.seen.as_ref()?;
        let is_known = |reported: &Reported| reported.revision == report.revision && reported.state == report.state;
        let is_due = report.state == State::Pending || *is_settled || now.saturating_duration_since(*since) >= SETTLED;
        // A failure that ends is pending again for a while; that is no news.
        let is_step_back = |reported: &Reported| report.state == State::Pending && reported.revision == report.revision;
        let is_free = match self.delivery {
            Delivery::Idle => true,
            Delivery::UnderWay => false,
            Delivery::Pausing(until) => until <= now,
        };
        if !is_due || !is_free || self.reported.as_ref().is_some_and(|reported| is_known(reported) || is_step_back(reported)) {
            return None;
        }
        self.delivery = Delivery::UnderWay;
        Some(report.clone())
    }

    /// The server at `place` has the report, or will never take it.
    pub(super) fn delivered(&mut self, report: Report, place: &str) {
        let Report { revision, state, description: _ } = report;
        let reported = Reported { revision, state, place: Some(place.to_owned()) };
        (self.reported, self.delivery, self.failures) = (Some(reported), Delivery::Idle, 0);
    }

    /// An attempt failed, and the next one comes not before `next`.
    pub(super) fn failed(&mut self, next: Instant) {
        self.delivery = Delivery::Pausing(next);
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "https://git.example.org/shop/fleet";

    fn report(revision: &str, state: State) -> Report {
        Report { revision: revision.to_owned(), state, description: String::new() }
    }

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    #[test]
    fn states_settle_before_they_are_reported() {
        let (mut course, begin) = (Course::default(), Instant::now());
        course.see(report("a", State::Pending), false, begin);
        let first = course.begin(begin).unwrap();
        assert_eq!(course.begin(begin), None, "one at a time");
        course.delivered(first, PLACE);
        course.see(report("a", State::Success), false, after(begin, 1));
        assert_eq!(course.begin(after(begin, 5)), None);
        course.see(report("a", State::Failure), false, after(begin, 6));
        course.see(report("a", State::Failure), false, after(begin, 14));
        assert_eq!(course.begin(after(begin, 15)), None, "since second 6 only");
        let failure = course.begin(after(begin, 16)).unwrap();
        assert_eq!(failure.state, State::Failure);
        course.delivered(failure, PLACE);
        course.see(report("a", State::Pending), false, after(begin, 20));
        assert_eq!(course.begin(after(begin, 20)), None, "no step back");
        course.see(report("a", State::Success), false, after(begin, 21));
        let success = course.begin(after(begin, 31)).unwrap();
        course.delivered(success, PLACE);
        assert!(course.is_over(Some("a")) && !course.is_over(Some("b")) && course.is_over(None));
    }

    #[test]
    fn refusal_is_reported_at_once() {
        let (mut course, begin) = (Course::default(), Instant::now());
        course.see(report("a", State::Failure), true, begin);
        assert!(course.begin(begin).is_some());
    }

    #[test]
    fn newest_state_is_sent_after_a_pause() {
        let (mut course, begin) = (Course::default(), Instant::now());
        course.see(report("a", State::Pending), false, begin);
        assert!(course.begin(begin).is_some());
        course.failed(after(begin, 5));
        course.see(report("b", State::Pending), false, after(begin, 1));
        assert_eq!(course.begin(after(begin, 4)), None);
        assert_eq!(course.begin(after(begin, 5)).unwrap().revision, "b");
        assert_eq!(course.failures(), 1);
    }

    #[test]
    fn restored_state_is_not_repeated() {
        let (mut course, begin) = (Course::default(), Instant::now());
        course.delivered(report("a", State::Failure), PLACE);
        let mut restored = Course::restored(course.reported().unwrap().clone());
        restored.see(report("a", State::Failure), true, begin);
        assert_eq!(restored.begin(begin), None);
    }

    #[test]
    fn another_place_is_told_again() {
        let (mut course, begin) = (Course::default(), Instant::now());
        course.delivered(report("a", State::Success), PLACE);
        course.go_to(PLACE);
        assert!(course.is_over(Some("a")));
        course.go_to("https://git.example.org/shop/other");
        assert!(!course.is_over(Some("a")));
        course.see(report("a", State::Success), true, begin);
        assert!(course.begin(begin).is_some());
        let earlier: Reported = serde_json::from_str(r#"{"revision": "a", "state": "success"}"#).unwrap();
        let mut course = Course::restored(earlier);
        course.go_to(PLACE);
        assert!(course.is_over(Some("a")), "a record without a place is of the same");
    }
}
