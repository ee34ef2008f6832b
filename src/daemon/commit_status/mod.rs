//! Reports of the state of each revision of a git repository to its server: GitHub, GitLab, Gitea.
//!
//! In: the configuration, what the API serves. Out: requests, one at a time per source and always with the newest state; and the record
//! `commit-status.json`, written after each report, so that a daemon that starts does not repeat what was reported. A report that was on its way
//! when the daemon was killed is repeated.

mod course;
mod request;
mod verdict;

use super::live::LiveConfig;
use super::notify::{Attempt, failing_objects, pause};
use course::{Course, Report, Reported};
use podstead_api::{Published, WORKLOAD_KINDS};
use podstead_config::{CommitStatus, Config, SourcePlace};
use podstead_pod::SourceId;
use podstead_sys::atomic_file::write_durable;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use verdict::{Seen, Verdict, verdict};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(2);
/// Largest record.
const MAX_RECORD: u64 = 1 << 20;
/// Longest pause that a server may ask for.
const MAX_ASKED: Duration = Duration::from_secs(3600);
/// Shortest pause after a failed attempt.
const MIN_PAUSE: Duration = Duration::from_secs(5);

/// Handles of the other stages.
#[derive(Debug)]
pub(super) struct CommitStatusLinks {
    /// The configuration, of which the sources count.
    pub(super) config: LiveConfig,
    pub(super) published: Arc<Published>,
    pub(super) events: Arc<dyn EventRecorder>,
    /// The record.
    pub(super) file: PathBuf,
    /// Name of this host.
    pub(super) node: String,
}

/// The task.
#[derive(Debug)]
struct Reporter {
    links: CommitStatusLinks,
    courses: BTreeMap<SourceId, Course>,
    attempts: JoinSet<(SourceId, Report, String, Attempt)>,
}

/// Runs as long as the daemon.
pub(super) async fn run(links: CommitStatusLinks) -> Infallible {
    let courses = restore(&links.file);
    let mut reporter = Reporter { links, courses, attempts: JoinSet::new() };
    loop {
        let wanted = wanted(&reporter.links.config.borrow_and_update());
        reporter.courses.retain(|source, _| wanted.contains_key(source));
        if wanted.is_empty() && reporter.attempts.is_empty() {
            // The sender lives as long as the daemon.
            if reporter.links.config.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            continue;
        }
        reporter.look(&wanted);
        reporter.start_attempts(&wanted);
        // All arms are cancel-safe: a task that ended is taken by the arm that wins.
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = reporter.links.config.changed() => {}
            Some(ended) = reporter.attempts.join_next() => {
                if let Ok((source, report, place, attempt)) = ended {
                    reporter.take(source, report, &place, attempt).await;
                }
            }
        }
    }
}

/// Sources whose revisions are reported.
fn wanted(config: &Config) -> BTreeMap<SourceId, CommitStatus> {
    let of = |place: &SourcePlace| match place {
        SourcePlace::Git(git) => git.commit_status.as_deref().cloned(),
        SourcePlace::Directory { .. } | SourcePlace::Http(_) | SourcePlace::Oci(_) | SourcePlace::Bundle(_) => None,
    };
    config.sources.iter().filter_map(|source| Some((source.name.clone(), of(&source.place)?))).collect()
}

/// Server, repository and name of the status: what one was told, another one does not know.
fn place_of(config: &CommitStatus) -> String {
    let CommitStatus { provider: _, api, repository, context, token_file: _, ca_file: _ } = config;
    format!("{api} {repository} {}", context.as_deref().unwrap_or_default())
}

impl Reporter {
    fn look(&mut self, wanted: &BTreeMap<SourceId, CommitStatus>) {
        for (source, course) in &mut self.courses {
            if let Some(config) = wanted.get(source) {
                course.go_to(&place_of(config));
            }
        }
        let statuses = self.links.published.sources();
        let open: Vec<_> = statuses
            .into_iter()
            .filter(|status| wanted.contains_key(&status.id))
            .filter(|status| {
                let revision = status.fetched.as_ref().map(|revision| revision.0.as_str());
                !self.courses.get(&status.id).is_some_and(|course| course.is_over(revision))
            })
            .collect();
        if open.is_empty() {
            return;
        }
        let (failing, rolling, now) = (failing_objects(&self.links.published), rolling_out(&self.links.published), Instant::now());
        for status in open {
            let seen = Seen { status: &status, failing: &failing, rolling: &rolling };
            if let Some(Verdict { revision, state, description, is_final }) = verdict(&seen) {
                let report = Report { revision, state, description };
                self.courses.entry(status.id.clone()).or_default().see(report, is_final, now);
            }
        }
    }

    fn start_attempts(&mut self, wanted: &BTreeMap<SourceId, CommitStatus>) {
        for (source, course) in &mut self.courses {
            let Some(config) = wanted.get(source) else { continue };
            let Some(report) = course.begin(Instant::now()) else { continue };
            let (source, config, node) = (source.clone(), config.clone(), self.links.node.clone());
            self.attempts.spawn(async move {
                let attempt = request::send(&config, &report, &node).await;
                (source, report, place_of(&config), attempt)
            });
        }
    }

    /// Takes the result of an attempt.
    async fn take(&mut self, source: SourceId, report: Report, place: &str, attempt: Attempt) {
        let Some(course) = self.courses.get_mut(&source) else { return };
        let told = match attempt {
            Attempt::Delivered => {
                tracing::info!(%source, revision = report.revision, state = report.state.as_str(), "reported the status of the commit");
                course.delivered(report, place);
                None
            }
            Attempt::Refused(reason) => {
                course.delivered(report, place);
                Some(format!("the server refused the status of the commit: {reason}"))
            }
            Attempt::Failed(reason, asked) => {
                let failures = course.failures();
                let wait = asked.map_or_else(|| pause(failures), |asked| asked.clamp(MIN_PAUSE, MAX_ASKED));
                course.failed(Instant::now() + wait);
                (failures == 0).then(|| format!("cannot report the status of the commit: {reason}; trying again"))
            }
        };
        if let Some(message) = told {
            tracing::warn!(%source, "{message}");
            self.links.events.record(&Subject::Source(source), EventType::Warning, "CommitStatusFailed", &message);
        }
        self.write().await;
    }

    async fn write(&self) {
        let record: BTreeMap<&SourceId, &Reported> =
            self.courses.iter().filter_map(|(source, course)| Some((source, course.reported()?))).collect();
        let (file, bytes) = (self.links.file.clone(), serde_json::to_vec(&record));
        let write = move || write_durable(&file, &bytes.map_err(io::Error::other)?, 0o600);
        let written = tokio::task::spawn_blocking(write).await.map_err(io::Error::other);
        if let Err(error) = written.and_then(|written| written) {
            tracing::warn!(file = %self.links.file.display(), %error, "cannot record the reported statuses of commits; some may be repeated");
        }
    }
}

/// Sources of workloads that are not complete, with their names.
fn rolling_out(published: &Published) -> Vec<(SourceId, String)> {
    let workloads = WORKLOAD_KINDS.into_iter().flat_map(|kind| published.workloads(kind).list().1);
    let incomplete = workloads.filter_map(|workload| {
        // Made by this daemon: it is JSON.
        let object: Value = serde_json::from_slice(&workload.json()).unwrap_or_default();
        let name = format!("{}/{}", object["kind"].as_str()?, object["metadata"]["name"].as_str()?);
        (!verdict::is_complete(&object)).then(|| (workload.source.clone(), name))
    });
    incomplete.collect()
}

/// Continues from the record. One that cannot be read is left out: then statuses are reported again, which does no harm.
fn restore(file: &std::path::Path) -> BTreeMap<SourceId, Course> {
    let read = || -> io::Result<BTreeMap<SourceId, Reported>> {
        let open = match std::fs::File::open(file) {
            Ok(open) => open,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(open, MAX_RECORD), &mut bytes)?;
        serde_json::from_slice(&bytes).map_err(io::Error::other)
    };
    let reported = read().unwrap_or_else(|error| {
        tracing::warn!(file = %file.display(), %error, "cannot use the record of reported statuses of commits");
        BTreeMap::new()
    });
    reported.into_iter().map(|(source, reported)| (source, Course::restored(reported))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_record_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("commit-status.json");
        assert!(restore(&file).is_empty());
        for bytes in [&b""[..], b"{", b"[]", &[0xff; 100]] {
            std::fs::write(&file, bytes).unwrap();
            assert!(restore(&file).is_empty());
        }
    }
}
