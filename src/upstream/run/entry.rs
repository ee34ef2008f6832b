//! State of one name: the pod, its mirror, and failed requests. **Pure**.

use super::pace::Pace;
use crate::plan::mirror::Detail;
use crate::plan::step::Observed;
use podstead_api::published::PublishedPod;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest pause after a refusal that is about this pod alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Least time between two patches of a status: what changes faster is sent together.
const PATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Least time between two patches that are the same: another client resets the status.
const SAME_PATCH_INTERVAL: Duration = Duration::from_secs(10);
/// A mirror that existed for this long was not deleted by a client that does so repeatedly.
const STOOD: Duration = Duration::from_secs(300);
/// Longest pause before a mirror that is deleted repeatedly is created again.
const LONGEST_CREATE_PAUSE: Duration = Duration::from_secs(60);

/// One name.
///
/// One type because the next request for a mirror depends on all of it: what is wanted, what is there and what failed.
#[derive(Debug)]
pub(super) struct Entry {
    /// The pod of this host.
    pub(super) wanted: Option<Arc<PublishedPod>>,
    /// Time since which there is none.
    pub(super) unwanted_since: Instant,
    /// The mirror at the server.
    pub(super) observed: Option<Observed>,
    /// Time of the server's last answer about it.
    pub(super) answered: Option<Instant>,
    /// A request is under way.
    pub(super) is_busy: bool,
    /// Pod and mirror match.
    pub(super) is_settled: bool,
    /// Reason why not, if the server or another client prevents it.
    pub(super) problem: Option<String>,
    /// The patch that was sent last, and the version that the server had after it.
    sent: Option<(Value, Option<u64>)>,
    /// Level of detail that the server accepts.
    pub(super) detail: Detail,
    /// Earliest time of the next attempt.
    pub(super) not_before: Option<Instant>,
    pace: Pace,
    patch_after: Option<Instant>,
    created: Option<Instant>,
    create_after: Option<Instant>,
    creations: u32,
}

impl Entry {
    /// Entry of a name that is not wanted and does not exist.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            wanted: None,
            unwanted_since: now,
            observed: None,
            answered: None,
            is_busy: false,
            is_settled: false,
            problem: None,
            sent: None,
            detail: Detail::Whole,
            not_before: None,
            pace: Pace::up_to(LONGEST_PAUSE),
            patch_after: None,
            created: None,
            create_after: None,
            creations: 0,
        }
    }

    /// Reports whether the entry can be dropped.
    pub(super) const fn is_over(&self) -> bool {
        self.wanted.is_none() && self.observed.is_none() && !self.is_busy
    }

    /// Records the mirror seen at the server, unless a later version is known already.
    pub(super) fn observe(&mut self, seen: Observed) {
        let is_older = match (self.observed.as_ref().and_then(|known| known.version), seen.version) {
            (Some(known), Some(seen)) => seen < known,
            (_, None) | (None, _) => false,
        };
        if !is_older {
            self.observed = Some(seen);
        }
    }

    /// Reports whether the server's last answer about it came after that time.
    pub(super) fn was_answered_since(&self, began: Instant) -> bool {
        self.answered.is_some_and(|answered| answered > began)
    }

    /// Records the mirror in a list that was begun at that time. An answer that came since may be later, else the list counts: the versions of
    /// a restored server are lower than those that it had.
    pub(super) fn list(&mut self, seen: Observed, began: Instant) {
        match self.was_answered_since(began) {
            true => self.observe(seen),
            false => self.observed = Some(seen),
        }
    }

    /// Records that the server deleted the mirror with this UID.
    pub(super) fn vanish(&mut self, uid: &str) {
        if self.observed.as_ref().is_some_and(|known| known.uid == uid) {
            self.observed = None;
        }
    }

    /// Schedules the next attempt after a refusal or a conflict, and returns its time.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>, random: u32, now: Instant) -> Instant {
        let at = now + self.pace.failed(retry_after, random);
        self.not_before = Some(at);
        at
    }

    /// Records a success.
    pub(super) fn succeeded(&mut self) {
        self.pace.succeeded();
        self.not_before = None;
        self.problem = None;
    }

    /// A mirror was created. The next one for this name waits the longer, the shorter this one stands: the first that is taken away is back
    /// at once.
    pub(super) fn count_creation(&mut self, now: Instant) {
        let stood = self.created.is_none_or(|created| now.duration_since(created) >= STOOD);
        self.creations = if stood { 0 } else { self.creations.saturating_add(1).min(16) };
        self.created = Some(now);
        self.create_after = self
            .creations
            .checked_sub(1)
            .map(|doublings| now + Duration::from_secs(1).saturating_mul(1 << doublings).min(LONGEST_CREATE_PAUSE));
    }

    /// Records that a status was sent, and the server's version after it.
    pub(super) fn count_patch(&mut self, patch: Value, version: Option<u64>, now: Instant) {
        let is_same = self.sent.as_ref().is_some_and(|(sent, _)| *sent == patch);
        self.patch_after = Some(now + if is_same { SAME_PATCH_INTERVAL } else { PATCH_INTERVAL });
        self.sent = Some((patch, version));
    }

    /// The server took this patch and has nothing else since: it stores something else than it is sent, and would do so again.
    pub(super) fn is_futile(&self, patch: &Value) -> bool {
        let known = self.observed.as_ref().map(|observed| observed.version);
        self.sent.as_ref().is_some_and(|(sent, version)| sent == patch && known == Some(*version))
    }

    /// Earliest time to create a mirror; in the past if at once.
    pub(super) const fn create_after(&self) -> Option<Instant> {
        self.create_after
    }

    /// Earliest time to send a status.
    pub(super) const fn patch_after(&self) -> Option<Instant> {
        self.patch_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(uid: &str, version: u64) -> Observed {
        Observed {
            uid: uid.into(),
            version: Some(version),
            mirror_of: None,
            owner: None,
            is_deleting: false,
            status: Value::Null,
            weight: 0,
        }
    }

    #[test]
    fn what_is_older_than_what_is_known_does_not_count() {
        let mut entry = Entry::new(Instant::now());
        entry.observe(observed("a", 5));
        entry.observe(observed("a", 4));
        assert_eq!(entry.observed.as_ref().unwrap().version, Some(5));
        entry.list(observed("a", 3), Instant::now());
        assert_eq!(entry.observed.as_ref().unwrap().version, Some(3), "a server that was restored");
        entry.answered = Some(Instant::now() + STOOD);
        entry.list(observed("a", 2), Instant::now());
        assert_eq!(entry.observed.as_ref().unwrap().version, Some(3), "an answer that came after the list");
        entry.vanish("b");
        assert!(entry.observed.is_some());
        entry.vanish("a");
        assert!(entry.is_over());
    }

    #[test]
    fn a_patch_without_effect_is_not_sent_again_until_the_server_has_something_else() {
        let now = Instant::now();
        let mut entry = Entry::new(now);
        let patch = serde_json::json!({"status": {"phase": "Running"}});
        entry.observe(observed("a", 5));
        entry.count_patch(patch.clone(), Some(5), now);
        assert!(entry.is_futile(&patch) && !entry.is_futile(&Value::Null));
        entry.observe(observed("a", 6));
        assert!(!entry.is_futile(&patch));
        entry.count_patch(patch, Some(7), now);
        assert_eq!(entry.patch_after(), Some(now + SAME_PATCH_INTERVAL), "but not without pause");
    }

    #[test]
    fn a_mirror_that_is_taken_away_is_back_at_once_and_then_later_and_later() {
        let start = Instant::now();
        let mut entry = Entry::new(start);
        entry.count_creation(start);
        assert_eq!(entry.create_after(), None);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            entry.count_creation(start);
            pauses.push(entry.create_after().unwrap().duration_since(start).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        entry.count_creation(start + STOOD);
        assert_eq!(entry.create_after(), None);
    }
}
