//! Decides for each event whether it is recorded, combined with similar ones or dropped, as client-go's `EventCorrelator` does. **Pure**.
//!
//! Events of one subject, type and reason that differ in their message are similar. From the tenth message within ten minutes of each
//! other on they become one event. A pod or container that has told much in a short time may tell one more event every five minutes.

use super::events::{EventType, Subject};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Different messages from which on similar events are combined.
const SIMILAR: usize = 10;
/// Similar events further apart than this have nothing to do with each other.
const INTERVAL: SignedDuration = SignedDuration::from_mins(10);
/// Events that a subject may tell at once.
const BURST: u32 = 25;
/// Time in which it may tell one more.
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// Subjects, and groups of similar events, that are remembered; those that were silent for longest are forgotten first.
const MAX_REMEMBERED: usize = 2048;

/// Decision about an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It is an entry of its own, or raises the count of the one with the same message.
    AsItIs,
    /// It raises the count of the one entry for all that are similar.
    Combined,
    /// It is one too many and is dropped.
    Dropped,
}

/// Recently recorded events.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    similar: BTreeMap<(Subject, EventType, String), Similar>,
    buckets: BTreeMap<Subject, Bucket>,
}

/// Messages of one subject, type and reason.
#[derive(Debug)]
struct Similar {
    /// Hashes of at most [`SIMILAR`] different ones.
    messages: Vec<u64>,
    last: Timestamp,
}

/// Token bucket of a subject.
#[derive(Debug)]
struct Bucket {
    tokens: u32,
    /// The time at which the last token was added.
    refilled: Timestamp,
    last: Timestamp,
}

impl Correlator {
    /// Judges one event. Events have to come in the order of `now`; a clock that is set back only delays.
    pub(super) fn judge(&mut self, subject: &Subject, kind: EventType, reason: &str, message: &str, now: Timestamp) -> Verdict {
        let is_combined = self.is_combined(subject, kind, reason, message, now);
        match (self.may_tell(subject, now), is_combined) {
            (false, _) => Verdict::Dropped,
            (true, true) => Verdict::Combined,
            (true, false) => Verdict::AsItIs,
        }
    }

    fn is_combined(&mut self, subject: &Subject, kind: EventType, reason: &str, message: &str, now: Timestamp) -> bool {
        let key = (subject.clone(), kind, reason.to_owned());
        if !self.similar.contains_key(&key) {
            make_room(&mut self.similar, |similar| similar.last);
        }
        let similar = self.similar.entry(key).or_insert_with(|| Similar { messages: Vec::new(), last: now });
        if now.duration_since(similar.last) > INTERVAL {
            similar.messages.clear();
        }
        similar.last = now;
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        let hash = hasher.finish();
        if similar.messages.contains(&hash) {
            return similar.messages.len() >= SIMILAR;
        }
        if similar.messages.len() < SIMILAR {
            similar.messages.push(hash);
        }
        similar.messages.len() >= SIMILAR
    }

    fn may_tell(&mut self, subject: &Subject, now: Timestamp) -> bool {
        match subject {
            Subject::Pod { .. } | Subject::Workload { .. } => {}
            // Their events appear nowhere else, and few things cause them.
            Subject::Source(_) | Subject::Node => return true,
        }
        if !self.buckets.contains_key(subject) {
            make_room(&mut self.buckets, |bucket| bucket.last);
        }
        let bucket = self.buckets.entry(subject.clone()).or_insert(Bucket { tokens: BURST, refilled: now, last: now });
        bucket.last = now;
        let refills = now.duration_since(bucket.refilled).as_secs().max(0) / REFILL.as_secs();
        if refills > 0 {
            let refills = i32::try_from(refills).unwrap_or(i32::MAX);
            bucket.tokens = bucket.tokens.saturating_add(refills.unsigned_abs()).min(BURST);
            bucket.refilled = bucket.refilled.saturating_add(REFILL.saturating_mul(refills)).unwrap_or(now);
        }
        let may = bucket.tokens > 0;
        bucket.tokens = bucket.tokens.saturating_sub(1);
        may
    }
}

/// Forgets the one that was silent for longest if there are too many.
fn make_room<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, last: impl Fn(&V) -> Timestamp) {
    if map.len() < MAX_REMEMBERED {
        return;
    }
    if let Some(stalest) = map.iter().min_by_key(|(_, value)| last(value)).map(|(key, _)| key.clone()) {
        map.remove(&stalest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::{PodFullName, PodUid, SourceId};

    fn pod(name: &str) -> Subject {
        let full_name = PodFullName { name: name.into(), namespace: "default".into() };
        Subject::Pod { uid: PodUid::new(name), full_name, field_path: None }
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    fn source() -> Subject {
        Subject::Source(SourceId::new("fleet"))
    }

    #[test]
    fn the_tenth_message_within_ten_minutes_is_combined_and_silence_ends_it() {
        let mut correlator = Correlator::default();
        let mut judge = |message: &str, secs| correlator.judge(&source(), EventType::Warning, "Failed", message, at(secs));
        for number in 0..9 {
            assert_eq!(judge(&format!("attempt {number}"), number), Verdict::AsItIs);
            assert_eq!(judge(&format!("attempt {number}"), number), Verdict::AsItIs, "the same message again counts up");
        }
        for number in 9..30 {
            assert_eq!(judge(&format!("attempt {number}"), number), Verdict::Combined);
        }
        assert_eq!(judge("attempt 0", 29 + 600), Verdict::Combined, "ten minutes are still near");
        assert_eq!(judge("attempt 0", 29 + 600 + 601), Verdict::AsItIs);
    }

    #[test]
    fn reasons_types_and_subjects_are_combined_apart() {
        let mut correlator = Correlator::default();
        for number in 0..20 {
            correlator.judge(&source(), EventType::Warning, "Failed", &number.to_string(), at(0));
        }
        assert_eq!(correlator.judge(&source(), EventType::Warning, "Other", "x", at(0)), Verdict::AsItIs);
        assert_eq!(correlator.judge(&source(), EventType::Normal, "Failed", "x", at(0)), Verdict::AsItIs);
        assert_eq!(correlator.judge(&Subject::Node, EventType::Warning, "Failed", "x", at(0)), Verdict::AsItIs);
    }

    #[test]
    fn a_pod_tells_25_events_and_then_one_in_five_minutes() {
        let mut correlator = Correlator::default();
        let mut judge = |pod_name: &str, secs| correlator.judge(&pod(pod_name), EventType::Normal, "Started", "same", at(secs));
        assert_eq!((0..40).filter(|_| judge("web", 0) != Verdict::Dropped).count(), 25);
        assert_eq!(judge("db", 0), Verdict::AsItIs, "another pod has its own");
        assert_eq!(judge("web", 299), Verdict::Dropped);
        assert_eq!(judge("web", 300), Verdict::AsItIs);
        assert_eq!(judge("web", 301), Verdict::Dropped);
        assert_eq!((0..40).filter(|_| judge("web", 300 + 4 * 300) != Verdict::Dropped).count(), 4);
        assert_eq!(judge("web", 0), Verdict::Dropped, "a clock that was set back gives nothing");
        assert_eq!((0..40).filter(|_| judge("web", 1_000_000) != Verdict::Dropped).count(), 25, "never more than at first");
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = Correlator::default();
        for number in 0..MAX_REMEMBERED + 100 {
            let secs = i64::try_from(number).unwrap();
            correlator.judge(&pod(&number.to_string()), EventType::Normal, "Started", "same", at(secs));
        }
        assert_eq!((correlator.similar.len(), correlator.buckets.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
        assert!(!correlator.buckets.contains_key(&pod("99")) && correlator.buckets.contains_key(&pod("100")));
    }
}
