//! Events of this host, posted to the cluster: as aggregated as in the event log, and no faster than the cluster should have to take them.

use super::pace::Pace;
use super::{Links, Standing};
use crate::cluster::{ApiError, ApiRequest, Verb};
use crate::plan::event::MirrorRef;
use crate::plan::mirror::{content_hash, mirror_name};
use crate::plan::{NodeRef, event};
use podstead_api::published::PodKey;
use podstead_telemetry::event_log::LoggedEvent;
use podstead_telemetry::events::Subject;
use podstead_telemetry::journal::ChangeKind;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Events that may be posted at once.
const BURST: u32 = 50;
/// Time in which one more may be.
const REFILL: Duration = Duration::from_secs(2);
/// Longest pause after a failure of the server.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Events that wait; older ones are left out when there are more.
const MAX_WAITING: usize = 500;
/// Events that are known to be at the server.
const MAX_POSTED: usize = 1000;

struct Poster<'a> {
    links: &'a Links,
    version: Option<u64>,
    /// By serial, the latest state of each.
    waiting: BTreeMap<u64, Arc<LoggedEvent>>,
    /// Serials.
    posted: BTreeSet<u64>,
    tokens: u32,
    refilled: Instant,
}

/// Posts for ever.
pub(super) async fn run(links: &Links, mut standing: watch::Receiver<Standing>) -> Infallible {
    let mut log = links.events.journal().subscribe();
    let now = Instant::now();
    let mut poster =
        Poster { links, version: None, waiting: BTreeMap::new(), posted: BTreeSet::new(), tokens: BURST, refilled: now };
    let mut pace = Pace::up_to(LONGEST_PAUSE);
    loop {
        let speaking =
            standing.wait_for(|standing| matches!(standing, Standing::Speaking(_))).await.map(|standing| standing.clone());
        let node = match speaking {
            Ok(Standing::Speaking(node)) => node,
            // The sender lives as long as this: it is in the same task.
            Ok(Standing::Silent) | Err(_) => std::future::pending().await,
        };
        log.borrow_and_update();
        poster.read_log();
        if poster.waiting.is_empty() {
            // The log lives as long as the links.
            log.changed().await.ok();
            continue;
        }
        if let Some(until) = poster.wait_for_token() {
            tokio::time::sleep_until(until).await;
            continue;
        }
        match poster.post_first(&node).await {
            Ok(()) => pace.succeeded(),
            Err(error) => {
                tracing::debug!(%error, "cannot post events");
                tokio::time::sleep(pace.failed(error.retry_after(), (links.random)())).await;
            }
        }
    }
}

impl Poster<'_> {
    fn read_log(&mut self) {
        let journal = self.links.events.journal();
        match self.version.and_then(|version| journal.since(version).ok()) {
            Some(changes) => {
                for change in changes {
                    self.version = Some(change.version);
                    match change.kind {
                        ChangeKind::Added | ChangeKind::Modified => self.waiting.insert(change.value.serial, change.value),
                        ChangeKind::Deleted => self.waiting.remove(&change.value.serial),
                    };
                }
            }
            None => {
                let (version, events) = journal.list();
                // The cluster has those of an earlier daemon already.
                let known = self.version.unwrap_or_else(|| self.links.events.restored_version());
                self.version = Some(version);
                self.waiting.extend(events.into_iter().filter(|event| event.version > known).map(|event| (event.serial, event)));
            }
        }
        while self.waiting.len() > MAX_WAITING {
            self.waiting.pop_first();
        }
    }

    /// Time until which there is none.
    fn wait_for_token(&mut self) -> Option<Instant> {
        let refills = u32::try_from(self.refilled.elapsed().as_secs() / REFILL.as_secs()).unwrap_or(u32::MAX);
        if refills > 0 {
            self.tokens = self.tokens.saturating_add(refills).min(BURST);
            self.refilled += REFILL.saturating_mul(refills);
        }
        (self.tokens == 0).then(|| self.refilled + REFILL)
    }

    /// Posts the oldest one. Whatever is only about it is no error: an event is an aid.
    async fn post_first(&mut self, node: &NodeRef) -> Result<(), ApiError> {
        let Some((serial, logged)) = self.waiting.first_key_value().map(|(serial, event)| (*serial, event.clone())) else {
            return Ok(());
        };
        self.tokens -= 1;
        let (namespace, name) = event::event_name(&logged, &self.links.node_name());
        let all = format!("/api/v1/namespaces/{namespace}/events");
        let patch = ApiRequest::new(Verb::Patch, format!("{all}/{name}")).with_body(event::event_patch(&logged));
        let create = ApiRequest::new(Verb::Create, all).with_body(event::event_object(
            &logged,
            node,
            &self.links.node_name(),
            self.mirror(&logged.subject).as_ref(),
        ));
        let (first, otherwise) = if self.posted.contains(&serial) { (patch, create) } else { (create, patch) };
        let answer = match self.links.cluster.send(first).await {
            // Posted before its answer was lost; or forgotten by the server, which keeps events for an hour.
            Err(error) if error.is_conflict() || error.is_not_found() => self.links.cluster.send(otherwise).await,
            other => other,
        };
        match answer {
            Err(error) if error.is_about_the_server() => return Err(error),
            Err(error) => tracing::debug!(event = %name, %error, "the API server refused an event"),
            Ok(_) => {
                self.posted.insert(serial);
                while self.posted.len() > MAX_POSTED {
                    self.posted.pop_first();
                }
            }
        }
        self.waiting.remove(&serial);
        Ok(())
    }

    fn mirror(&self, subject: &Subject) -> Option<MirrorRef> {
        match subject {
            Subject::Pod { full_name, .. } => {
                let pod = self.links.published.pods().get(&PodKey::from(full_name))?;
                let name = mirror_name(&pod.desired.pod, full_name, &self.links.settings.name).name;
                Some(MirrorRef { name, hash: content_hash(&pod.desired.pod).to_owned() })
            }
            Subject::Workload { .. } | Subject::Source(_) | Subject::Node => None,
        }
    }
}
