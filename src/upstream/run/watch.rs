//! Observes this node's pods at the server: a list, then a watch from its version on, for ever.
//!
//! A server whose store was restored from a backup counts its versions from an earlier one on again, and a watch from a version that it does
//! not have yet stays silent. So a watch only follows another one that lasted as long as was asked for; after anything else the pods are
//! listed again. A watch that is silent for longer than the bookmarks of a server need, or that goes back, is ended.

use super::{Links, Standing, request};
use crate::cluster::{ApiError, WatchKind};
use crate::plan::step::Observed;
use crate::run::pace::Pace;
use podstead_pod::PodFullName;
use serde_json::Value;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Longest pause before the server is asked again: so long at most its return goes unnoticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A watch that ends earlier than this is a failure, although its end was proper.
const SHORTEST_WATCH: Duration = Duration::from_secs(5);
/// A watch is asked for that long, and up to as long again.
const WATCH_SECONDS: u32 = 300;
/// Longest silence in a watch: a server sends a bookmark about once a minute.
const LONGEST_SILENCE: Duration = Duration::from_secs(180);
/// More pods than any node can have: a server that never ends a list.
pub(super) const MAX_PODS: usize = 10_000;
/// More pages than these have.
const MAX_PAGES: usize = 800;
/// Weight of all statuses that are remembered, about three thousand of the usual ones. What is above costs one more request with the pod's next
/// change, not memory.
pub(super) const MAX_STATUSES: usize = 32 << 20;
/// Longest accepted version and page token.
const MAX_TOKEN: usize = 16 << 10;

/// An observation.
#[derive(Debug)]
pub(super) enum Observation {
    /// These were all at some time after that instant.
    All(Vec<(PodFullName, Observed)>, Instant),
    /// This is there.
    Present(PodFullName, Box<Observed>),
    /// This is gone.
    Gone(PodFullName, Box<Observed>),
    /// The server answers again.
    Back,
}

/// Observes while this host speaks for the Node.
pub(super) async fn run(links: &Links, mut standing: watch::Receiver<Standing>, observe: mpsc::Sender<Observation>) -> Infallible {
    let mut reflector = Reflector { links, observe, version: None };
    let mut pace = Pace::up_to(LONGEST_PAUSE);
    loop {
        // The sender lives as long as this: it is in the same task.
        standing.wait_for(|standing| matches!(standing, Standing::Speaking(_))).await.ok();
        let began = Instant::now();
        // Both arms are cancel-safe: what a watch had not delivered comes again from the version on.
        let ended = tokio::select! {
            ended = reflector.follow() => ended,
            _ = standing.wait_for(|standing| *standing == Standing::Silent) => {
                links.board.connected(false, None, (links.now)());
                continue;
            }
        };
        match ended {
            Ok(()) if began.elapsed() >= SHORTEST_WATCH => pace.succeeded(),
            // The version is too old: list again. A server that says so for ever is not asked without pause.
            Err(error) if error.is_expired() && reflector.version.take().is_some() => {
                tracing::debug!("the watch of pods expired; listing them again");
            }
            Ok(()) => tokio::time::sleep(pace.failed(None, (links.random)())).await,
            Err(error) => {
                reflector.version = None;
                if began.elapsed() >= SHORTEST_WATCH {
                    pace.succeeded();
                }
                tracing::debug!(%error, "cannot watch the pods of the cluster");
                links.board.connected(false, Some(error.to_string()), (links.now)());
                tokio::time::sleep(pace.failed(error.retry_after(), (links.random)())).await;
            }
        }
    }
}

struct Reflector<'a> {
    links: &'a Links,
    observe: mpsc::Sender<Observation>,
    /// The version up to which everything was observed.
    version: Option<String>,
}

impl Reflector<'_> {
    /// Until the server ends the watch, or it cannot be relied on any more.
    async fn follow(&mut self) -> Result<(), ApiError> {
        let node = &self.links.settings.name;
        let version = match self.version.take() {
            Some(version) => version,
            None => self.list().await?,
        };
        let seconds = WATCH_SECONDS + (self.links.random)() % WATCH_SECONDS;
        let asked_for = Duration::from_secs(seconds.into());
        let began = Instant::now();
        let mut watch = self.links.cluster.watch(request::watch_pods(node, &version, seconds)).await?;
        self.version = Some(version);
        self.links.board.connected(true, None, (self.links.now)());
        self.tell(Observation::Back).await;
        loop {
            let Ok(next) = tokio::time::timeout(LONGEST_SILENCE, watch.next()).await else {
                tracing::debug!("the watch of pods is silent; listing them again");
                self.version = None;
                return Ok(());
            };
            let Some(event) = next else {
                if began.elapsed() < asked_for {
                    // A server that shuts down ends watches properly, and may come back with another store.
                    self.version = None;
                }
                return Ok(());
            };
            let event = event?;
            let version = token(&event.object["metadata"]["resourceVersion"]);
            if is_earlier(version.as_deref(), self.version.as_deref()) {
                tracing::debug!("the watch of pods went back to an earlier version; listing them again");
                self.version = None;
                return Ok(());
            }
            let observation = match (event.kind, Observed::of(&event.object)) {
                (WatchKind::Bookmark, _) | (_, None) => None,
                (WatchKind::Present, Some((name, observed))) => Some(Observation::Present(name, Box::new(observed))),
                (WatchKind::Deleted, Some((name, observed))) => Some(Observation::Gone(name, Box::new(observed))),
            };
            if let Some(observation) = observation {
                self.tell(observation).await;
            }
            // Only now: what was not told comes again.
            if version.is_some() {
                self.version = version;
            }
        }
    }

    async fn list(&self) -> Result<String, ApiError> {
        let node = &self.links.settings.name;
        let began = Instant::now();
        let mut pods = Vec::new();
        let mut weight = 0;
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = self.links.cluster.send(request::list_pods(node, after.as_deref())).await?;
            for (name, mut observed) in page["items"].as_array().into_iter().flatten().filter_map(Observed::of) {
                weight += observed.weight;
                if weight > MAX_STATUSES {
                    weight -= observed.weight;
                    observed.forget_status();
                }
                pods.push((name, observed));
            }
            let next = page["metadata"]["continue"].as_str().unwrap_or_default();
            if next.is_empty() {
                let version = token(&page["metadata"]["resourceVersion"]).unwrap_or_else(|| "0".to_owned());
                self.tell(Observation::All(pods, began)).await;
                return Ok(version);
            }
            if pods.len() > MAX_PODS || next.len() > MAX_TOKEN {
                break;
            }
            after = Some(next.to_owned());
        }
        Err(ApiError::Unreachable("the list of pods is too long".to_owned()))
    }

    async fn tell(&self, observation: Observation) {
        // The receiver lives as long as this: it is in the same task.
        self.observe.send(observation).await.ok();
    }
}

/// Versions are in order where both are numbers, and else unknown.
fn is_earlier(version: Option<&str>, known: Option<&str>) -> bool {
    let number = |version: Option<&str>| version.and_then(|version| version.parse::<u64>().ok());
    number(version).zip(number(known)).is_some_and(|(version, known)| version < known)
}

fn token(value: &Value) -> Option<String> {
    value.as_str().filter(|token| token.len() <= MAX_TOKEN).map(str::to_owned)
}
