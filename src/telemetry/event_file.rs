//! Content of the file with the events of the last hours, so that the next daemon shows what happened before it. **Pure**.

use super::event_log::LoggedEvent;
use super::events::{EventType, Subject};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Reverse;

/// Format of the file.
const FORMAT: u32 = 1;
/// Bytes of the file: less than what the events of a busy host need, and no burden for an SD card.
pub const MAX_BYTES: usize = 256 * 1024;
/// Time after which an event that did not happen again is not kept.
pub const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Reason why the events of an earlier daemon cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EventFileError {
    /// Larger than this daemon writes.
    #[error("it has {0} bytes, more than {MAX_BYTES}")]
    TooLarge(usize),
    /// Not the JSON that it should be.
    #[error("it is damaged")]
    Damaged(#[source] serde_json::Error),
    /// Written by another version of podstead.
    #[error("it has format {0}, and this podstead reads format {FORMAT}")]
    Format(u32),
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
}

/// One event, on a line of its own.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    subject: Cow<'a, Subject>,
    kind: EventType,
    reason: Cow<'a, str>,
    message: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    combined: bool,
    count: u32,
    first: Timestamp,
    last: Timestamp,
}

/// The file for these events: the newest ones, as many as fit, the oldest of them first.
pub fn encode<'a>(events: impl IntoIterator<Item = &'a LoggedEvent>, now: Timestamp) -> Vec<u8> {
    let mut events: Vec<&LoggedEvent> = events.into_iter().filter(|event| is_recent(event.last_seen, now)).collect();
    events.sort_by_key(|event| Reverse(event.version));
    let mut lines = Vec::new();
    let mut file = format!("{{\"format\":{FORMAT}}}\n").into_bytes();
    let mut size = file.len();
    for event in events {
        let LoggedEvent { serial: _, subject, kind, reason, message, is_combined, count, first_seen, last_seen, version: _ } =
            event;
        let kept = Kept {
            subject: Cow::Borrowed(subject),
            kind: *kind,
            reason: reason.into(),
            message: message.into(),
            combined: *is_combined,
            count: *count,
            first: *first_seen,
            last: *last_seen,
        };
        // Writing to memory cannot fail, and an event has string keys only.
        let mut line = serde_json::to_vec(&kept).unwrap_or_default();
        line.push(b'\n');
        size += line.len();
        if size > MAX_BYTES {
            break;
        }
        lines.push(line);
    }
    lines.iter().rev().for_each(|line| file.extend_from_slice(line));
    file
}

/// The events of a file, the oldest first.
pub fn decode(file: &[u8], now: Timestamp) -> Result<Vec<LoggedEvent>, EventFileError> {
    if file.len() > MAX_BYTES {
        return Err(EventFileError::TooLarge(file.len()));
    }
    let mut lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let Header { format } = serde_json::from_slice(lines.next().unwrap_or_default()).map_err(EventFileError::Damaged)?;
    if format != FORMAT {
        return Err(EventFileError::Format(format));
    }
    let mut events = Vec::new();
    for line in lines {
        let Kept { subject, kind, reason, message, combined, count, first, last } =
            serde_json::from_slice(line).map_err(EventFileError::Damaged)?;
        if !is_recent(last, now) {
            continue;
        }
        events.push(LoggedEvent {
            serial: 0,
            subject: subject.into_owned(),
            kind,
            reason: reason.into_owned(),
            message: message.into_owned(),
            is_combined: combined,
            count,
            first_seen: first,
            last_seen: last,
            version: 0,
        });
    }
    Ok(events)
}

/// A time after `now` is recent, too: a host without a clock starts in the past.
fn is_recent(last: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last) <= KEPT_FOR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventLog;
    use crate::events::EventRecorder;
    use podstead_pod::{PodFullName, PodUid, SourceId};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn pod(name: &str) -> Subject {
        Subject::Pod {
            uid: PodUid::new(format!("uid-{name}")),
            full_name: PodFullName { name: name.into(), namespace: "default".into() },
            field_path: Some("spec.containers{c}".into()),
        }
    }

    fn kept(log: &EventLog) -> Vec<u8> {
        let (_, events) = log.journal().list();
        encode(events.iter().map(|event| &**event), NOW)
    }

    /// Events without what a daemon gives them.
    fn shown(log: &EventLog) -> Vec<LoggedEvent> {
        let (_, events) = log.journal().list();
        events.iter().map(|event| LoggedEvent { serial: 0, version: 0, ..LoggedEvent::clone(event) }).collect()
    }

    #[test]
    fn next_daemon_shows_and_counts_the_same_events() {
        let log = EventLog::new(5, || NOW);
        let job = Subject::Workload {
            uid: "1".into(),
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            namespace: "a".into(),
            name: "b".into(),
        };
        for subject in [pod("web"), Subject::Node, Subject::Source(SourceId::new("fleet")), job] {
            log.record(&subject, EventType::Warning, "BackOff", "again\nand again");
            log.record(&subject, EventType::Warning, "BackOff", "again\nand again");
        }
        let next = EventLog::new(100, || NOW);
        next.restore(decode(&kept(&log), NOW).unwrap());
        assert_eq!(shown(&next), shown(&log));
        assert_eq!(next.restored_version(), 104);
        next.record(&Subject::Node, EventType::Warning, "BackOff", "again\nand again");
        let (version, events) = next.journal().list();
        assert_eq!((version, events.iter().map(|event| event.count).max()), (105, Some(3)));
    }

    #[test]
    fn file_keeps_the_newest_events_within_its_bound() {
        let log = EventLog::new(0, || NOW);
        for number in 0..600 {
            log.record(&pod(&number.to_string()), EventType::Normal, "Started", &"x".repeat(1000));
        }
        let file = kept(&log);
        assert!(file.len() <= MAX_BYTES && file.len() > MAX_BYTES - 2000, "{}", file.len());
        let events = decode(&file, NOW).unwrap();
        assert_eq!(events.last().unwrap().subject, pod("599"));
        assert!(events.iter().all(|event| event.subject != pod("0")));
    }

    #[test]
    fn old_events_are_forgotten_future_ones_not() {
        let log = EventLog::new(0, || NOW);
        log.record(&Subject::Node, EventType::Normal, "Old", "");
        let file = kept(&log);
        assert_eq!(decode(&file, NOW + KEPT_FOR).unwrap().len(), 1);
        assert_eq!(decode(&file, NOW + KEPT_FOR + SignedDuration::from_secs(1)).unwrap().len(), 0);
        assert_eq!(decode(&file, NOW - KEPT_FOR - KEPT_FOR).unwrap().len(), 1);
    }

    #[test]
    fn damaged_file_is_an_error() {
        assert!(matches!(decode(b"", NOW), Err(EventFileError::Damaged(_))));
        assert!(matches!(decode(b"{\"format\":2}\n{}\n", NOW), Err(EventFileError::Format(2))));
        assert!(matches!(decode(b"{\"format\":1}\n{\"subject\":1}\n", NOW), Err(EventFileError::Damaged(_))));
        assert!(matches!(decode(&vec![b' '; MAX_BYTES + 1], NOW), Err(EventFileError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let file = [b"{\"format\":1}\n".as_slice(), &bytes].concat();
            drop(decode(&file, NOW));
        }
    }
}
