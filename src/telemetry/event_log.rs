//! The event log: the newest events of this host, aggregated, in memory. Those of the last hours are kept in a file, too
//! ([`super::event_file`]).
//!
//! The same subject, type, reason and message again raises a count instead of adding an entry; many that differ in their message only
//! become one entry ([`super::correlator`]). Entries are bounded in number, per subject and altogether, and each in size, so that a crash
//! loop costs neither memory nor disk. They do not outlive the daemon: an event is an aid, not a state. What happened to pods is in the daemon's log,
//! too, when it happened first and at each doubling of its count.

use super::correlator::{Correlator, Verdict};
use super::events::{EventRecorder, EventType, Subject};
use super::journal::Journal;
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Entries kept altogether; the one that was not repeated for longest goes first.
const MAX_EVENTS: usize = 1000;
/// Entries kept per subject, so that one restless pod does not push out what others said.
const MAX_EVENTS_PER_SUBJECT: usize = 50;
/// Bytes of a message; Kubernetes' own limit.
const MAX_MESSAGE_BYTES: usize = 1024;
/// Bytes of a reason; Kubernetes' own limit.
const MAX_REASON_BYTES: usize = 128;
/// Changes remembered for watchers.
const HISTORY: usize = 512;
/// Before the message of an entry that stands for many (client-go's words).
const COMBINED: &str = "(combined from similar events): ";

/// Identity of an event: equal events are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    subject: Subject,
    kind: EventType,
    reason: String,
    /// `None` for the one that stands for all that differ in their message.
    message: Option<String>,
}

/// One event with how often and when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// A unique number for its name.
    pub serial: u64,
    /// Its subject.
    pub subject: Subject,
    /// Normal or Warning.
    pub kind: EventType,
    /// CamelCase word.
    pub reason: String,
    /// A sentence; of a combined entry the last one.
    pub message: String,
    /// It stands for many that differ in their message.
    pub is_combined: bool,
    /// Number of occurrences.
    pub count: u32,
    /// The time of its first occurrence.
    pub first_seen: Timestamp,
    /// The time of its last occurrence.
    pub last_seen: Timestamp,
    /// Version of the journal at its last change.
    pub version: u64,
}

impl LoggedEvent {
    fn key(&self) -> EventKey {
        let message = (!self.is_combined).then(|| self.message.clone());
        EventKey { subject: self.subject.clone(), kind: self.kind, reason: self.reason.clone(), message }
    }
}

/// Records events and lets them be listed and watched.
#[derive(Debug)]
pub struct EventLog {
    journal: Journal<EventKey, LoggedEvent>,
    correlator: Mutex<Correlator>,
    now: fn() -> Timestamp,
    /// Version of the journal after [`EventLog::restore`].
    restored: AtomicU64,
}

impl EventLog {
    /// An empty log whose versions start after `start`. `now` is the clock that stamps events.
    pub fn new(start: u64, now: fn() -> Timestamp) -> Self {
        Self { journal: Journal::new(start, HISTORY), correlator: Mutex::default(), now, restored: AtomicU64::new(start) }
    }

    /// Adds the events of an earlier daemon, the oldest first. They are not logged again.
    pub fn restore(&self, events: impl IntoIterator<Item = LoggedEvent>) {
        for event in events {
            // Their names must differ from those of this daemon, which a clock that was set back would repeat.
            self.journal.update(event.key(), |_, version| Some(LoggedEvent { serial: version, version, ..event }));
        }
        self.restored.store(self.journal.version(), Ordering::Relaxed);
    }

    /// The version up to which all events are those of an earlier daemon.
    pub fn restored_version(&self) -> u64 {
        self.restored.load(Ordering::Relaxed)
    }

    /// For listing and watching.
    pub fn journal(&self) -> &Journal<EventKey, LoggedEvent> {
        &self.journal
    }

    /// Removes what is too much: of the subject just recorded, and altogether.
    fn trim(&self, subject: &Subject) {
        let (_, events) = self.journal.list();
        let mut surplus = Vec::new();
        let mut of_subject: Vec<_> = events.iter().filter(|event| event.subject == *subject).collect();
        if of_subject.len() > MAX_EVENTS_PER_SUBJECT {
            of_subject.sort_by_key(|event| event.version);
            surplus.extend(of_subject.iter().take(of_subject.len() - MAX_EVENTS_PER_SUBJECT).map(|event| event.key()));
        } else if events.len() > MAX_EVENTS {
            let mut by_age: Vec<_> = events.iter().collect();
            by_age.sort_by_key(|event| event.version);
            surplus.extend(by_age.iter().take(events.len() - MAX_EVENTS).map(|event| event.key()));
        }
        for key in surplus {
            self.journal.remove(&key, |last, version| LoggedEvent { version, ..last.clone() });
        }
    }
}

impl EventRecorder for EventLog {
    fn record(&self, subject: &Subject, kind: EventType, reason: &str, message: &str) {
        let now = (self.now)();
        let reason = cut(reason, MAX_REASON_BYTES);
        // No code that can panic runs with half-made changes.
        let verdict = self.correlator.lock().unwrap_or_else(PoisonError::into_inner).judge(subject, kind, &reason, message, now);
        let (message, is_combined) = match verdict {
            Verdict::AsItIs => (cut(message, MAX_MESSAGE_BYTES), false),
            Verdict::Combined => (cut(&format!("{COMBINED}{message}"), MAX_MESSAGE_BYTES), true),
            Verdict::Dropped => return,
        };
        let key_message = (!is_combined).then(|| message.clone());
        let key = EventKey { subject: subject.clone(), kind, reason: reason.clone(), message: key_message };
        let mut count = 1;
        let line = (kind, reason.clone(), message.clone());
        self.journal.update(key, |before, version| {
            count = before.map_or(1, |event| event.count.saturating_add(1));
            Some(match before {
                Some(event) => LoggedEvent { count, last_seen: now, version, message, ..event.clone() },
                None => LoggedEvent {
                    serial: version,
                    subject: subject.clone(),
                    kind,
                    reason,
                    message,
                    is_combined,
                    count: 1,
                    first_seen: now,
                    last_seen: now,
                    version,
                },
            })
        });
        if count == 1 {
            self.trim(subject);
        }
        // Rarer and rarer: what happens again and again must not fill the journal.
        if count.is_power_of_two() {
            let (kind, reason, message) = line;
            log(subject, kind, &reason, &message, count);
        }
    }
}

/// Writes what happened to a pod or a workload into the daemon's log, which outlives the daemon. What events say about sources and the host is
/// logged where it happens.
fn log(subject: &Subject, event_type: EventType, reason: &str, message: &str, count: u32) {
    match subject {
        Subject::Pod { uid, full_name, field_path } => {
            let container = field_path.as_deref().and_then(container_of);
            match event_type {
                EventType::Normal => tracing::info!(pod = %full_name, container, pod_uid = %uid, reason, count, "{message}"),
                EventType::Warning => tracing::warn!(pod = %full_name, container, pod_uid = %uid, reason, count, "{message}"),
            }
        }
        Subject::Workload { uid: _, api_version: _, kind, namespace, name } => {
            let workload = format!("{}/{name}", kind.to_lowercase());
            match event_type {
                EventType::Normal => tracing::info!(workload, namespace, reason, count, "{message}"),
                EventType::Warning => tracing::warn!(workload, namespace, reason, count, "{message}"),
            }
        }
        Subject::Source(_) | Subject::Node => {}
    }
}

/// `web` of `spec.containers{web}`.
fn container_of(field_path: &str) -> Option<&str> {
    field_path.split_once('{')?.1.strip_suffix('}')
}

/// At most `limit` bytes of `text`, cut between characters, an ellipsis where something is missing.
fn cut(text: &str, limit: usize) -> String {
    const ELLIPSIS: &str = "...";
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit - ELLIPSIS.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::{PodFullName, PodUid};
    use std::sync::Arc;

    fn pod(name: &str) -> Subject {
        Subject::Pod {
            uid: PodUid::new(format!("uid-{name}")),
            full_name: PodFullName { name: name.into(), namespace: "default".into() },
            field_path: None,
        }
    }

    fn log() -> EventLog {
        EventLog::new(0, || Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_same_event_again_is_counted_not_added() {
        let log = log();
        for _ in 0..3 {
            log.record(&pod("web"), EventType::Warning, "BackOff", "back-off 10s restarting");
        }
        log.record(&pod("web"), EventType::Warning, "BackOff", "back-off 20s restarting");
        let (version, events) = log.journal().list();
        assert_eq!(version, 4);
        let counts: Vec<_> = events.iter().map(|event| (event.message.as_str(), event.count, event.serial)).collect();
        assert_eq!(counts, [("back-off 10s restarting", 3, 1), ("back-off 20s restarting", 1, 4)]);
    }

    #[test]
    fn many_similar_events_are_one_that_counts_and_has_the_last_message() {
        let log = log();
        for number in 0..30 {
            log.record(&Subject::Node, EventType::Warning, "Failed", &format!("attempt {number}"));
        }
        let (_, events) = log.journal().list();
        assert_eq!(events.len(), 10);
        let combined = events.iter().find(|event| event.is_combined).unwrap();
        assert_eq!((combined.message.as_str(), combined.count), ("(combined from similar events): attempt 29", 21));
    }

    #[test]
    fn a_crash_loop_does_not_write_for_ever() {
        let log = log();
        log.record(&pod("quiet"), EventType::Normal, "Started", "started container c");
        for number in 0..3000 {
            log.record(&pod("restless"), EventType::Warning, "BackOff", "back-off 5m0s restarting");
            log.record(&pod("restless"), EventType::Warning, "Failed", &format!("attempt {number}"));
        }
        let (version, events) = log.journal().list();
        assert_eq!(version, 1 + 25, "watchers are told no more than that");
        assert!(events.iter().any(|event| event.subject == pod("quiet")));
    }

    #[test]
    fn event_of_a_workload_is_logged() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let writer = {
            let lines = lines.clone();
            move || Lines(lines.clone())
        };
        let subscriber = tracing_subscriber::fmt().with_writer(writer).without_time().with_ansi(false).with_target(false).finish();
        let web = Subject::Workload {
            uid: "1".into(),
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "default".into(),
            name: "web".into(),
        };
        tracing::subscriber::with_default(subscriber, || {
            log().record(&web, EventType::Normal, "ScalingReplicaSet", "Scaled up replica set web-7d9c to 3");
        });
        let written = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
        let fields = "workload=\"deployment/web\" namespace=\"default\" reason=\"ScalingReplicaSet\" count=1";
        assert_eq!(written, format!(" INFO Scaled up replica set web-7d9c to 3 {fields}\n"));
    }

    #[test]
    fn what_happens_to_a_pod_is_logged_at_each_doubling_of_its_count() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let writer = {
            let lines = lines.clone();
            move || Lines(lines.clone())
        };
        let subscriber = tracing_subscriber::fmt().with_writer(writer).without_time().with_ansi(false).with_target(false).finish();
        tracing::subscriber::with_default(subscriber, || {
            let log = log();
            let Subject::Pod { uid, full_name, .. } = pod("web") else { unreachable!() };
            let main = Subject::Pod { uid, full_name, field_path: Some("spec.containers{main}".into()) };
            for _ in 0..9 {
                log.record(&main, EventType::Warning, "BackOff", "back-off restarting");
            }
            log.record(&Subject::Node, EventType::Normal, "Other", "logged where it happens");
        });
        let text = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
        let counts = [1, 2, 4, 8];
        let line = |count| {
            format!(
                " WARN back-off restarting pod=web_default container=\"main\" pod_uid=uid-web reason=\"BackOff\" count={count}\n"
            )
        };
        assert_eq!(text, counts.map(line).concat());
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_that_says_much_does_not_push_out_the_events_of_others() {
        let log = log();
        log.record(&pod("quiet"), EventType::Normal, "Started", "started container c");
        for number in 0..3000 {
            log.record(&Subject::Node, EventType::Warning, &format!("Reason{number}"), "x");
        }
        let (_, events) = log.journal().list();
        assert_eq!(events.len(), 1 + MAX_EVENTS_PER_SUBJECT);
        assert!(events.iter().any(|event| event.subject == pod("quiet")));
        assert!(events.iter().any(|event| event.reason == "Reason2999"));
    }

    #[test]
    fn the_number_of_events_is_bounded_and_the_stalest_go_first() {
        let log = log();
        for number in 0..MAX_EVENTS + 5 {
            log.record(&pod(&number.to_string()), EventType::Normal, "Started", "started");
        }
        let (_, events) = log.journal().list();
        assert_eq!(events.len(), MAX_EVENTS);
        assert!(!events.iter().any(|event| event.subject == pod("4")));
        assert!(events.iter().any(|event| event.subject == pod("5")));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let log = log();
        log.record(&Subject::Node, EventType::Warning, "Long", &"ü".repeat(4000));
        let (_, events) = log.journal().list();
        assert!(events[0].message.len() <= MAX_MESSAGE_BYTES);
        assert!(events[0].message.ends_with("ü..."));
    }
}
