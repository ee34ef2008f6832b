//! Notifications of failures of this host, and of their end, to the hooks of the configuration.
//!
//! In: what the API serves, the state of the configuration file, `notify` of the configuration. Out: commands and POSTs, one at a time per
//! hook, in order; and the record `notify.json`, written before the first attempt and after the last one of each notification, so that a
//! daemon that was killed neither repeats nor forgets one. A notification that is being delivered at that moment is repeated with the same
//! ID.

mod deliver;
mod observe;
mod tracker;

use super::live::LiveConfig;
use deliver::Message;
use jiff::Timestamp;
use podstead_api::{Published, WORKLOAD_KINDS};
use podstead_config::notify::{Hook, NotifyConfig};
use podstead_settings::{ConfigStanding, HookStanding};
use podstead_sys::atomic_file::write_durable;
use podstead_telemetry::EventLog;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracker::{Now, Observed, Record, Tracker};

pub(super) use deliver::{Attempt, judge};
pub(super) use tracker::Failure;

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// First and longest pause after a failed attempt.
const PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));
/// Longest pause that a server may ask for.
const MAX_ASKED: Duration = Duration::from_secs(3600);
/// Period of `maxPerHour`.
const HOUR: Duration = Duration::from_secs(3600);
/// Largest record.
const MAX_RECORD: u64 = 64 << 20;

/// Handles of the other stages.
#[derive(Debug)]
pub(super) struct NotifyLinks {
    /// The configuration, of which `notify` counts.
    pub(super) config: LiveConfig,
    pub(super) published: Arc<Published>,
    pub(super) events: Arc<EventLog>,
    pub(super) standing: watch::Receiver<ConfigStanding>,
    /// The record.
    pub(super) file: PathBuf,
    /// Name of this host.
    pub(super) node: String,
    /// Deliveries so far.
    pub(super) hooks: watch::Sender<Vec<HookStanding>>,
}

/// Attempts of one hook.
#[derive(Debug, Default)]
struct Course {
    /// An attempt is under way.
    is_busy: bool,
    /// Attempts that failed since the last that did not.
    failures: u32,
    /// Not before this.
    next: Option<Instant>,
    /// Times of the last hour at which something was sent.
    sent: VecDeque<Instant>,
    /// For metrics and the status; its name and what waits are filled in when it is shown.
    standing: HookStanding,
}

/// The task.
#[derive(Debug)]
struct Notifier {
    links: NotifyLinks,
    tracker: Tracker,
    courses: BTreeMap<String, Course>,
    attempts: JoinSet<(String, String, Attempt)>,
    /// The record on disk is older than the state.
    is_unwritten: bool,
    /// Failures of pods and workloads, and the versions of what they were read from.
    objects: (Vec<u64>, Observed),
}

/// Runs as long as the daemon.
pub(super) async fn run(links: NotifyLinks) -> Infallible {
    let tracker = restore(&links.file);
    let mut notifier = Notifier {
        links,
        tracker,
        courses: BTreeMap::new(),
        attempts: JoinSet::new(),
        is_unwritten: false,
        objects: Default::default(),
    };
    loop {
        let config = notifier.links.config.borrow_and_update().notify.clone();
        if config.hooks.is_empty() && notifier.attempts.is_empty() {
            notifier.show(&config);
            // Without hooks nothing is looked at; the sender lives as long as the daemon.
            if notifier.links.config.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            continue;
        }
        let observed = notifier.observe();
        let now = Now { moment: Instant::now(), wall: Timestamp::now() };
        notifier.is_unwritten |=
            notifier.tracker.observe(&observed, &config, now, &mut || podstead_pod::PodUid::random().to_string());
        notifier.write().await;
        notifier.start_attempts(&config);
        notifier.show(&config);
        // All arms are cancel-safe: a task that ended is taken by the arm that wins.
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = notifier.links.config.changed() => {}
            Some(ended) = notifier.attempts.join_next() => {
                if let Ok((hook, id, attempt)) = ended {
                    notifier.take(&hook, &id, attempt);
                }
            }
        }
    }
}

impl Notifier {
    fn observe(&mut self) -> Observed {
        let NotifyLinks { published, events, standing, .. } = &self.links;
        let of_workloads = WORKLOAD_KINDS.into_iter().map(|kind| published.workloads(kind).version());
        let versions: Vec<u64> = of_workloads.chain([published.pods().version()]).collect();
        if self.objects.0 != versions {
            self.objects = (versions, observe_objects(published));
        }
        let mut observed = self.objects.1.clone();
        observe::of_configuration(&mut observed, &standing.borrow());
        let (_, logged) = events.journal().list();
        observe::of_disk(&mut observed, logged.iter().map(|event| &**event));
        published.sources().iter().for_each(|status| observe::of_source(&mut observed, status));
        observed
    }

    /// Writes the record if it is not current. A full disk does not hold notifications back: it may be what they are about.
    async fn write(&mut self) {
        if !self.is_unwritten {
            return;
        }
        let (file, record) = (self.links.file.clone(), self.tracker.record());
        let write = move || write_durable(&file, &serde_json::to_vec(&record).map_err(io::Error::other)?, 0o600);
        match tokio::task::spawn_blocking(write).await.map_err(io::Error::other).and_then(|written| written) {
            Ok(()) => self.is_unwritten = false,
            Err(error) => {
                tracing::warn!(file = %self.links.file.display(), %error, "cannot record notifications; some may be repeated")
            }
        }
    }

    fn start_attempts(&mut self, config: &NotifyConfig) {
        let now = Instant::now();
        self.courses.retain(|name, course| course.is_busy || config.hooks.iter().any(|hook| hook.name == *name));
        for hook in &config.hooks {
            let course = self.courses.entry(hook.name.clone()).or_default();
            let Some((notice, dropped)) = self.tracker.next(&hook.name) else { continue };
            while course.sent.front().is_some_and(|sent| now.saturating_duration_since(*sent) >= HOUR) {
                course.sent.pop_front();
            }
            let is_over_rate = course.sent.len() >= usize::try_from(config.max_per_hour).unwrap_or(usize::MAX);
            if course.is_busy || is_over_rate || course.next.is_some_and(|next| now < next) {
                continue;
            }
            course.is_busy = true;
            let message = Message { notice: notice.clone(), dropped, node: self.links.node.clone() };
            let hook = hook.clone();
            self.attempts.spawn(async move {
                let attempt = deliver::attempt(&hook, &message).await;
                (hook.name, message.notice.id, attempt)
            });
        }
    }

    /// Shows the deliveries of the configured hooks.
    fn show(&self, config: &NotifyConfig) {
        let of = |hook: &Hook| {
            let standing = self.courses.get(&hook.name).map(|course| course.standing.clone()).unwrap_or_default();
            HookStanding { name: hook.name.clone(), waiting: self.tracker.waiting(&hook.name), ..standing }
        };
        let hooks: Vec<HookStanding> = config.hooks.iter().map(of).collect();
        self.links.hooks.send_if_modified(|shown| {
            let differs = *shown != hooks;
            *shown = hooks;
            differs
        });
    }

    /// Takes the result of an attempt.
    fn take(&mut self, hook: &str, id: &str, attempt: Attempt) {
        let course = self.courses.entry(hook.to_owned()).or_default();
        course.is_busy = false;
        let now = Instant::now();
        match attempt {
            Attempt::Delivered => {
                if course.failures > 0 {
                    tracing::info!(hook, "notifications are delivered again");
                }
                (course.failures, course.next) = (0, None);
                course.sent.push_back(now);
                course.standing.delivered += 1;
                course.standing.error = None;
            }
            Attempt::Refused(reason) => {
                tracing::error!(hook, %reason, "the receiver refused a notification, which is dropped");
                (course.failures, course.next) = (0, None);
                course.sent.push_back(now);
                course.standing.refused += 1;
                course.standing.error = Some(reason);
            }
            Attempt::Failed(reason, asked) => {
                if course.failures == 0 {
                    tracing::warn!(hook, %reason, "a notification was not delivered, and is retried");
                }
                let pause = asked.map_or_else(|| pause(course.failures), |asked| asked.clamp(PAUSES.0, MAX_ASKED));
                course.failures = course.failures.saturating_add(1);
                course.next = Some(now + pause);
                course.standing.failed += 1;
                course.standing.error = Some(reason);
                return;
            }
        }
        self.tracker.done(hook, id);
        self.is_unwritten = true;
    }
}

/// Pods and workloads that are not well, such as `pod default/web`.
pub(super) fn failing_objects(published: &Published) -> Vec<(String, Failure)> {
    observe_objects(published).failures.into_iter().map(|(subject, failure)| (subject.object(), failure)).collect()
}

/// Failures of all pods and workloads.
fn observe_objects(published: &Published) -> Observed {
    let mut observed = Observed::default();
    for pod in published.pods().list().1 {
        observe::of_pod(&mut observed, &pod.object(), pod.desired.source.as_str(), &pod.desired.revision.0);
    }
    for workload in WORKLOAD_KINDS.into_iter().flat_map(|kind| published.workloads(kind).list().1) {
        // Made by this daemon: it is JSON.
        let object = serde_json::from_slice(&workload.json()).unwrap_or_default();
        observe::of_workload(&mut observed, &object, workload.source.as_str(), &workload.revision.0);
    }
    observed
}

/// Pause after an attempt that failed, with so many failed ones before it.
pub(super) fn pause(failures: u32) -> Duration {
    PAUSES.0.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(PAUSES.1)
}

/// Continues from the record. One that cannot be read is reported and left out: everything that fails is notified again.
fn restore(file: &std::path::Path) -> Tracker {
    let read = || -> io::Result<Option<Record>> {
        let open = match std::fs::File::open(file) {
            Ok(open) => open,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(open, MAX_RECORD), &mut bytes)?;
        serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other)
    };
    match read() {
        Ok(record) => Tracker::restored(record.unwrap_or_default()),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "cannot use the record of notifications; some may be repeated");
            Tracker::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_limit() {
        let pauses: Vec<u64> = [0, 1, 2, 6, 7, 1000].map(|failures| pause(failures).as_secs()).into();
        assert_eq!(pauses, [5, 10, 20, 320, 600, 600]);
    }

    #[test]
    fn damaged_record_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("notify.json");
        assert!(restore(&file).next("ops").is_none());
        for bytes in [&b""[..], b"{", b"{\"version\": 1}", &[0xff; 100]] {
            std::fs::write(&file, bytes).unwrap();
            assert!(restore(&file).next("ops").is_none());
        }
    }
}
