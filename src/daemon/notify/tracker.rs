//! Failures that are new, failures that are over, and notifications that are still to be sent. **Pure**.
//!
//! ```text
//!             fails for failing_after                is well for recovered_after
//!   unknown ---------------------------> notified ------------------------------> unknown
//!           (notification "failing")               (notification "recovered")
//! ```

use jiff::Timestamp;
use podstead_config::notify::{NotifyConfig, NotifyKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Most notifications that wait for one hook; older ones are dropped and counted.
const MAX_QUEUE: usize = 100;
/// Most failures that are remembered as notified.
const MAX_NOTIFIED: usize = 2000;
/// Longest message in characters.
const MAX_MESSAGE: usize = 1000;
/// Time for which progress that takes long is no failure, such as a pull over a slow link.
const PROGRESS: Duration = Duration::from_secs(600);

/// Object that fails.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Subject {
    /// Kind for the choice of hooks.
    pub(super) kind: NotifyKind,
    /// Namespace of a pod or workload, otherwise empty.
    pub(super) namespace: String,
    /// Its name; of a workload with its kind, such as `Job/backup`.
    pub(super) name: String,
}

impl Subject {
    /// `pod default/web-edge`, `source fleet`.
    pub(super) fn object(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!("{}/", self.namespace) };
        format!("{} {namespace}{}", self.kind.as_str(), self.name)
    }
}

/// Failure as observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Failure {
    /// CamelCase word.
    pub(in super::super) reason: String,
    /// A sentence.
    pub(in super::super) message: String,
    /// Source of the object; empty for the host.
    pub(in super::super) source: String,
    /// Revision of the source; may be empty.
    pub(in super::super) revision: String,
    /// It may be progress that takes its time.
    #[serde(default, skip_serializing)]
    pub(in super::super) is_progress: bool,
}

/// Observation of everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Failures at this moment.
    pub(super) failures: BTreeMap<Subject, Failure>,
    /// Subjects of which nothing is known yet: what was notified of them stays.
    pub(super) unknown: BTreeSet<Subject>,
}

/// State of a subject in a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It fails.
    Failing,
    /// It does not fail any more, or is not there any more.
    Recovered,
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notice {
    /// Unique, and the same for each attempt.
    pub(super) id: String,
    pub(super) state: State,
    pub(super) subject: Subject,
    pub(super) failure: Failure,
    /// The time of its first failure.
    pub(super) since: Timestamp,
    /// The time of the notification.
    pub(super) time: Timestamp,
}

/// A failure that hooks were notified of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Notified {
    subject: Subject,
    failure: Failure,
    since: Timestamp,
}

/// Notifications for one hook, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Queue {
    waiting: VecDeque<Notice>,
    /// Number of those that were dropped because too many waited.
    dropped: u64,
}

/// The durable part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    notified: Vec<Notified>,
    queues: BTreeMap<String, Queue>,
}

/// The state of all subjects.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    notified: BTreeMap<Subject, Notified>,
    queues: BTreeMap<String, Queue>,
    /// Failures that were not notified yet, since when.
    rising: BTreeMap<Subject, (Instant, Timestamp)>,
    /// Notified subjects that are well again, since when.
    falling: BTreeMap<Subject, Instant>,
}

/// The present moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) moment: Instant,
    pub(super) wall: Timestamp,
}

impl Tracker {
    /// Continues from a record.
    pub(super) fn restored(record: Record) -> Self {
        let notified = record.notified.into_iter().take(MAX_NOTIFIED).map(|notified| (notified.subject.clone(), notified));
        Self { notified: notified.collect(), queues: record.queues, ..Self::default() }
    }

    /// The durable part.
    pub(super) fn record(&self) -> Record {
        Record { version: 1, notified: self.notified.values().cloned().collect(), queues: self.queues.clone() }
    }

    /// Takes an observation. Returns true if the record changed.
    pub(super) fn observe(
        &mut self,
        observed: &Observed,
        config: &NotifyConfig,
        now: Now,
        new_id: &mut dyn FnMut() -> String,
    ) -> bool {
        let mut changed = self.forget_hooks(config);
        for (subject, failure) in &observed.failures {
            self.falling.remove(subject);
            if self.notified.contains_key(subject) {
                continue;
            }
            let (since, since_wall) = *self.rising.entry(subject.clone()).or_insert((now.moment, now.wall));
            let patience = if failure.is_progress { config.failing_after.max(PROGRESS) } else { config.failing_after };
            if now.moment.saturating_duration_since(since) < patience || self.notified.len() >= MAX_NOTIFIED {
                continue;
            }
            self.rising.remove(subject);
            let failure = Failure { message: shortened(&failure.message), ..failure.clone() };
            let notified = Notified { subject: subject.clone(), failure, since: since_wall };
            self.send(&notified, State::Failing, config, now, new_id());
            self.notified.insert(subject.clone(), notified);
            changed = true;
        }
        self.rising.retain(|subject, _| observed.failures.contains_key(subject));
        let well = |subject: &&Subject| !observed.failures.contains_key(subject) && !observed.unknown.contains(subject);
        let well: Vec<Subject> = self.notified.keys().filter(well).cloned().collect();
        for subject in well {
            let since = *self.falling.entry(subject.clone()).or_insert(now.moment);
            if now.moment.saturating_duration_since(since) < config.recovered_after {
                continue;
            }
            self.falling.remove(&subject);
            if let Some(notified) = self.notified.remove(&subject) {
                self.send(&notified, State::Recovered, config, now, new_id());
                changed = true;
            }
        }
        changed
    }

    /// The oldest notification for a hook, and the number of those that were dropped before it.
    pub(super) fn next(&self, hook: &str) -> Option<(&Notice, u64)> {
        let queue = self.queues.get(hook)?;
        queue.waiting.front().map(|notice| (notice, queue.dropped))
    }

    /// Number of notifications that wait for a hook.
    pub(super) fn waiting(&self, hook: &str) -> usize {
        self.queues.get(hook).map_or(0, |queue| queue.waiting.len())
    }

    /// The notification was delivered, or never will be.
    pub(super) fn done(&mut self, hook: &str, id: &str) {
        if let Some(queue) = self.queues.get_mut(hook)
            && queue.waiting.front().is_some_and(|notice| notice.id == id)
        {
            queue.waiting.pop_front();
            queue.dropped = 0;
        }
    }

    /// Drops what waits for hooks that are not configured any more.
    fn forget_hooks(&mut self, config: &NotifyConfig) -> bool {
        let before = self.queues.len();
        self.queues.retain(|name, _| config.hooks.iter().any(|hook| hook.name == *name));
        self.queues.len() != before
    }

    fn send(&mut self, notified: &Notified, state: State, config: &NotifyConfig, now: Now, id: String) {
        let Notified { subject, failure, since } = notified.clone();
        let notice = Notice { id, state, subject, failure, since, time: now.wall };
        for hook in config.hooks.iter().filter(|hook| hook.on.contains(&notice.subject.kind)) {
            let queue = self.queues.entry(hook.name.clone()).or_default();
            if queue.waiting.len() >= MAX_QUEUE {
                // The first one may be on its way.
                queue.waiting.remove(1);
                queue.dropped += 1;
            }
            queue.waiting.push_back(notice.clone());
        }
    }
}

fn shortened(message: &str) -> String {
    message.chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_config::notify::{Hook, HookTarget};

    struct Bench {
        tracker: Tracker,
        config: NotifyConfig,
        now: Now,
        ids: u32,
    }

    impl Bench {
        fn new() -> Self {
            let target = HookTarget::Command { program: "/bin/true".into(), arguments: Vec::new() };
            let on = [NotifyKind::Pod, NotifyKind::Source].into();
            let hook = Hook { name: "ops".to_owned(), on, target, timeout: Duration::from_secs(1) };
            let config = NotifyConfig { hooks: vec![hook], ..NotifyConfig::default() };
            let now = Now { moment: Instant::now(), wall: Timestamp::UNIX_EPOCH };
            Self { tracker: Tracker::default(), config, now, ids: 0 }
        }

        fn look(&mut self, failing: &[&str], after: u64) -> bool {
            self.look_at(
                Observed { failures: failing.iter().map(|name| (pod(name), failure())).collect(), ..Observed::default() },
                after,
            )
        }

        fn look_at(&mut self, observed: Observed, after: u64) -> bool {
            self.now.moment += Duration::from_secs(after);
            let ids = &mut self.ids;
            self.tracker.observe(&observed, &self.config, self.now, &mut || {
                *ids += 1;
                ids.to_string()
            })
        }

        fn restart(&mut self) {
            let text = serde_json::to_string(&self.tracker.record()).unwrap();
            self.tracker = Tracker::restored(serde_json::from_str(&text).unwrap());
        }

        fn take(&mut self) -> Vec<String> {
            let mut taken = Vec::new();
            while let Some((notice, dropped)) = self.tracker.next("ops") {
                let dropped = if dropped > 0 { format!(" after {dropped}") } else { String::new() };
                taken.push(format!("{} {:?}{dropped}", notice.subject.name, notice.state));
                let id = notice.id.clone();
                self.tracker.done("ops", &id);
            }
            taken
        }
    }

    fn pod(name: &str) -> Subject {
        Subject { kind: NotifyKind::Pod, namespace: "default".to_owned(), name: name.to_owned() }
    }

    fn failure() -> Failure {
        let [reason, message, source, revision] = ["CrashLoopBackOff", "exit code 1", "fleet", "abc"].map(str::to_owned);
        Failure { reason, message, source, revision, is_progress: false }
    }

    #[test]
    fn failure_and_recovery_are_notified_once() {
        let mut bench = Bench::new();
        assert!(!bench.look(&["web"], 0));
        assert!(!bench.look(&["web"], 59));
        assert!(bench.look(&["web"], 1));
        assert!(!bench.look(&["web"], 1000));
        assert_eq!(bench.take(), ["web Failing"]);
        assert!(!bench.look(&[], 1));
        assert!(!bench.look(&["web"], 59), "it fails again before it counts as recovered");
        assert!(!bench.look(&[], 59));
        assert!(bench.look(&[], 60));
        assert_eq!(bench.take(), ["web Recovered"]);
    }

    #[test]
    fn record_keeps_what_was_notified() {
        let mut bench = Bench::new();
        bench.look(&["web"], 0);
        bench.look(&["web"], 60);
        bench.restart();
        assert_eq!(bench.take(), ["web Failing"], "it was not delivered yet");
        bench.restart();
        bench.look(&["web"], 0);
        assert!(!bench.look(&["web"], 1000));
        assert_eq!(bench.take(), [""; 0]);
        bench.look(&[], 0);
        bench.restart();
        bench.look(&[], 0);
        assert!(bench.look(&[], 60));
        assert_eq!(bench.take(), ["web Recovered"]);
    }

    #[test]
    fn unknown_subjects_are_left_alone() {
        let mut bench = Bench::new();
        bench.look(&["web"], 0);
        bench.look(&["web"], 60);
        bench.take();
        let unknown = || Observed { unknown: [pod("web")].into(), ..Observed::default() };
        bench.look_at(unknown(), 0);
        assert!(!bench.look_at(unknown(), 1000));
    }

    #[test]
    fn queue_is_bounded_and_counts() {
        let mut bench = Bench::new();
        let names: Vec<String> = (0..MAX_QUEUE + 3).map(|number| format!("{number:04}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        bench.look(&names, 0);
        bench.look(&names, 60);
        let taken = bench.take();
        assert_eq!((taken.len(), taken[0].as_str()), (MAX_QUEUE, "0000 Failing after 3"));
        assert_eq!(taken[1], "0004 Failing");
    }

    #[test]
    fn progress_has_more_time() {
        let mut bench = Bench::new();
        let slow = || {
            let failures = [(pod("web"), Failure { is_progress: true, ..failure() })];
            Observed { failures: failures.into(), ..Observed::default() }
        };
        bench.look_at(slow(), 0);
        assert!(!bench.look_at(slow(), 599));
        assert!(bench.look_at(slow(), 1));
    }

    #[test]
    fn other_kinds_and_removed_hooks_get_nothing() {
        let mut bench = Bench::new();
        let host = Subject { kind: NotifyKind::Host, ..pod("disk") };
        let observed = || Observed { failures: [(host.clone(), failure())].into(), ..Observed::default() };
        bench.look_at(observed(), 0);
        assert!(bench.look_at(observed(), 60));
        assert_eq!(bench.take(), [""; 0]);
        bench.look(&["web"], 0);
        bench.look(&["web"], 60);
        bench.config.hooks.clear();
        assert!(bench.look(&["web"], 0));
        assert!(bench.tracker.next("ops").is_none());
    }
}
