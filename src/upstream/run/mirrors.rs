//! Mirror pods: one request per name at a time, the latest state wins, only names that changed are looked at.
//!
//! ```text
//! published pods --changed--+                        +-- answers --+
//! watch ---------observed---+--> entry, due --> plan --> request --+
//! time ----------due--------+
//! ```
//!
//! While the server as a whole does not answer or throttles, the gate closes: nothing is sent, then one request tries. A refusal
//! that is about one pod delays that pod alone.
//!
//! A name is remembered while a pod of this host or of the server has it, also when nothing can be sent for days; and of the server no
//! more are accepted than a Node can have.

use super::entry::Entry;
use super::gate::Gate;
use super::perform::{Outcome, Performed, perform};
use super::queue::Queue;
use super::watch::{MAX_PODS, MAX_STATUSES, Observation};
use super::{Links, Standing};
use crate::cluster::ApiError;
use crate::plan::NodeRef;
use crate::plan::mirror::{Detail, mirror_name};
use crate::plan::status_patch::stored_form;
use crate::plan::step::{Observed, Plan, Step, Wanted, plan};
use futures_util::stream::{FuturesUnordered, StreamExt};
use podstead_api::published::{PodKey, PublishedPod};
use podstead_pod::PodFullName;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_telemetry::journal::ChangeKind;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// A mirror stays this long after its pod is gone: a pod that is created again leaves no gap, and at the start its pod may not be published
/// yet.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(5);
/// Limit for the problems in the status.
const MAX_PROBLEMS: usize = 20;

type InFlight<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Performed> + Send + 'a>>>;

pub(super) struct Mirrors<'a> {
    links: &'a Links,
    node: Option<NodeRef>,
    entries: BTreeMap<PodFullName, Entry>,
    queue: Queue,
    in_flight: InFlight<'a>,
    /// The server's list has been seen.
    is_listed: bool,
    /// Version of the published pods up to which they are known.
    version: Option<u64>,
    ready_since: Option<Instant>,
    gate: Gate,
    wanted: usize,
    settled: usize,
    problems: BTreeSet<PodFullName>,
}

/// Keeps mirrors for ever.
pub(super) async fn run(
    links: &Links,
    mut standing: watch::Receiver<Standing>,
    mut observations: mpsc::Receiver<Observation>,
) -> Infallible {
    let mut feed = links.published.pods().subscribe();
    let mut ready = links.sources_ready.clone();
    let mut mirrors = Mirrors::new(links);
    feed.mark_changed();
    standing.mark_changed();
    ready.mark_changed();
    loop {
        mirrors.fill();
        mirrors.tell();
        let wake = mirrors.wake_at();
        // All arms are cancel-safe; a channel whose sender is gone is not polled again. Nothing here waits for anything else.
        tokio::select! {
            Ok(()) = feed.changed() => {
                feed.borrow_and_update();
                mirrors.read_feed();
            }
            Some(observation) = observations.recv() => mirrors.observe(observation),
            Some(performed) = mirrors.in_flight.next(), if !mirrors.in_flight.is_empty() => mirrors.finish(performed),
            Ok(()) = standing.changed() => {
                let standing = standing.borrow_and_update().clone();
                mirrors.stand(standing);
            }
            Ok(()) = ready.changed() => {
                let is_ready = *ready.borrow_and_update();
                mirrors.sources_ready(is_ready);
            }
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
        }
    }
}

impl<'a> Mirrors<'a> {
    /// Nothing is known.
    pub(super) fn new(links: &'a Links) -> Self {
        Self {
            links,
            node: None,
            entries: BTreeMap::new(),
            queue: Queue::default(),
            in_flight: FuturesUnordered::new(),
            is_listed: false,
            version: None,
            ready_since: None,
            gate: Gate::open(),
            wanted: 0,
            settled: 0,
            problems: BTreeSet::new(),
        }
    }

    fn stand(&mut self, standing: Standing) {
        let node = match standing {
            Standing::Silent => None,
            Standing::Speaking(node) => Some(node),
        };
        if self.node != node {
            self.node = node;
            // Another UID makes other owners.
            self.schedule_all();
        }
    }

    fn sources_ready(&mut self, is_ready: bool) {
        if is_ready && self.ready_since.is_none() {
            self.ready_since = Some(Instant::now());
            self.schedule_all();
        }
    }

    fn schedule_all(&mut self) {
        let now = Instant::now();
        for name in self.entries.keys() {
            self.queue.schedule(name, now);
        }
    }

    /// Records changes of the published pods.
    pub(super) fn read_feed(&mut self) {
        let pods = self.links.published.pods();
        let changes = self.version.and_then(|version| pods.since(version).ok());
        let Some(changes) = changes else {
            let (version, pods) = pods.list();
            self.version = Some(version);
            let gone: Vec<_> =
                self.entries.iter().filter(|(_, entry)| entry.wanted.is_some()).map(|(name, _)| name.clone()).collect();
            let present: BTreeSet<_> = pods.iter().map(|pod| self.name_of(pod)).collect();
            gone.iter().filter(|name| !present.contains(name)).for_each(|name| self.want(name, None));
            pods.into_iter().for_each(|pod| self.want(&self.name_of(&pod), Some(pod)));
            return;
        };
        for change in changes {
            self.version = Some(change.version);
            let name = self.name_of(&change.value);
            match change.kind {
                ChangeKind::Added | ChangeKind::Modified => self.want(&name, Some(change.value)),
                ChangeKind::Deleted => self.want(&name, None),
            }
        }
    }

    /// The name of the mirror of a pod.
    fn name_of(&self, pod: &PublishedPod) -> PodFullName {
        mirror_name(&pod.desired.pod, &pod.desired.full_name, &self.links.settings.name)
    }

    fn want(&mut self, name: &PodFullName, pod: Option<Arc<PublishedPod>>) {
        let now = Instant::now();
        let entry = self.entries.entry(name.clone()).or_insert_with(|| Entry::new(now));
        match (&entry.wanted, &pod) {
            (None, Some(_)) => self.wanted += 1,
            (Some(_), None) => {
                self.wanted -= 1;
                entry.unwanted_since = now;
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        // What was refused of another incarnation may be taken of this one.
        let hash = |pod: &Option<Arc<PublishedPod>>| {
            pod.as_ref().map(|pod| crate::plan::mirror::content_hash(&pod.desired.pod).to_owned())
        };
        if hash(&entry.wanted) != hash(&pod) {
            entry.not_before = None;
            entry.detail = Detail::Whole;
        }
        entry.wanted = pod;
        self.touch(name);
    }

    pub(super) fn observe(&mut self, observation: Observation) {
        let now = Instant::now();
        match observation {
            Observation::All(pods, began) => {
                self.is_listed = true;
                let listed: BTreeSet<_> = pods.iter().map(|(name, _)| name.clone()).collect();
                for (name, entry) in &mut self.entries {
                    if !listed.contains(name) && !entry.was_answered_since(began) {
                        entry.observed = None;
                    }
                }
                let over: Vec<_> = self.entries.iter().filter(|(_, entry)| entry.is_over()).map(|(name, _)| name.clone()).collect();
                over.iter().for_each(|name| self.forget(name));
                for (name, observed) in pods {
                    self.entries.entry(name).or_insert_with(|| Entry::new(now)).list(observed, began);
                }
                self.schedule_all();
            }
            Observation::Present(name, observed) => {
                if !self.entries.contains_key(&name) && self.entries.len() >= self.wanted + MAX_PODS {
                    tracing::debug!(pod = %name, "ignoring a pod: the API server reports more pods than a Node can have");
                    return;
                }
                let observed = self.fitting(&name, *observed);
                self.entries.entry(name.clone()).or_insert_with(|| Entry::new(now)).observe(observed);
                self.touch(&name);
            }
            Observation::Gone(name, observed) => {
                if let Some(entry) = self.entries.get_mut(&name) {
                    entry.vanish(&observed.uid);
                }
                self.touch(&name);
            }
            Observation::Back => self.gate.succeeded(),
        }
    }

    /// Drops the status of an observed pod if there is no room for it.
    fn fitting(&self, name: &PodFullName, mut observed: Observed) -> Observed {
        let before = self.entries.get(name).and_then(|entry| entry.observed.as_ref()).map_or(0, |known| known.weight);
        if self.statuses_held() - before + observed.weight > MAX_STATUSES {
            observed.forget_status();
        }
        observed
    }

    /// Bytes of all statuses that the server has, about.
    pub(super) fn statuses_held(&self) -> usize {
        self.entries.values().filter_map(|entry| entry.observed.as_ref()).map(|known| known.weight).sum()
    }

    /// Schedules a name as early as allowed, or drops it.
    fn touch(&mut self, name: &PodFullName) {
        let Some(entry) = self.entries.get(name) else { return };
        if entry.is_over() {
            self.forget(name);
            return;
        }
        let now = Instant::now();
        let at = entry.not_before.map_or(now, |not_before| not_before.max(now));
        self.queue.schedule(name, at);
    }

    /// Drops a name that neither side has any more.
    fn forget(&mut self, name: &PodFullName) {
        self.set_settled(name, false);
        self.problems.remove(name);
        self.queue.remove(name);
        self.entries.remove(name);
    }

    /// Names that are remembered, and those of them that are due some time.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.entries.len(), self.queue.len())
    }

    fn wake_at(&self) -> Option<Instant> {
        let next = self.queue.next()?;
        let now = Instant::now();
        if self.node.is_none() || !self.is_listed || self.in_flight.len() >= self.gate.limit(now).max(1) {
            return None;
        }
        Some(self.gate.opens_after(next))
    }

    /// Begins what is due, as far as there is room.
    fn fill(&mut self) {
        let Some(node) = self.node.clone().filter(|_| self.is_listed) else { return };
        let now = Instant::now();
        while self.in_flight.len() < self.gate.limit(now)
            && let Some(name) = self.queue.take_due(now)
        {
            if let Some(step) = self.next_step(&name, &node, now) {
                if let Some(entry) = self.entries.get_mut(&name) {
                    entry.is_busy = true;
                }
                let cluster = self.links.cluster.as_ref();
                self.in_flight.push(Box::pin(perform(cluster, &self.links.settings.name, name, step)));
            }
        }
    }

    /// Returns the next step for a name; a step that has to wait is scheduled.
    fn next_step(&mut self, name: &PodFullName, node: &NodeRef, now: Instant) -> Option<Step> {
        let ready_since = self.ready_since;
        let entry = self.entries.get_mut(name)?;
        if entry.is_busy {
            // It is looked at again when the answer is there.
            return None;
        }
        let patience = ready_since.map(|ready| ready.max(entry.unwanted_since) + ORPHAN_PATIENCE);
        let may_remove = patience.is_some_and(|until| until <= now);
        let status = entry.wanted.as_ref().map(|pod| {
            // These types have string keys only: writing them cannot fail.
            stored_form(serde_json::to_value(&pod.status).unwrap_or_default())
        });
        let wanted = entry.wanted.as_ref().zip(status.as_ref()).map(|(pod, status)| Wanted {
            full_name: name,
            pod: &pod.desired.pod,
            status,
            detail: entry.detail,
        });
        let is_wanted = wanted.is_some();
        let planned = plan(wanted, entry.observed.as_ref(), node, may_remove);
        let (step, wait) = match planned {
            Plan::Settled => (None, if is_wanted { None } else { patience.filter(|until| *until > now) }),
            Plan::Blocked => {
                let problem = "a pod that is not a mirror pod already has this name".to_owned();
                entry.problem = Some(problem);
                self.problems.insert(name.clone());
                self.set_settled(name, false);
                return None;
            }
            Plan::Act(Step::PatchStatus { patch, .. }) if entry.is_futile(&patch) => (None, None),
            Plan::Act(step) => {
                let after = match &step {
                    Step::Create(_) => entry.create_after(),
                    Step::PatchStatus { .. } => entry.patch_after(),
                    Step::Delete { .. } => None,
                };
                match after.filter(|after| *after > now) {
                    Some(after) => (None, Some(after)),
                    None => (Some(step), None),
                }
            }
        };
        let is_settled = is_wanted && step.is_none() && wait.is_none();
        if is_settled {
            entry.succeeded();
            self.problems.remove(name);
        }
        if let Some(at) = wait {
            self.queue.schedule(name, at);
        }
        self.set_settled(name, is_settled);
        step
    }

    fn set_settled(&mut self, name: &PodFullName, is_settled: bool) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        match (entry.is_settled, is_settled) {
            (false, true) => self.settled += 1,
            (true, false) => self.settled -= 1,
            (true, true) | (false, false) => {}
        }
        entry.is_settled = is_settled;
    }

    fn finish(&mut self, performed: Performed) {
        let now = Instant::now();
        let Performed { name, step, outcome } = performed;
        let random = (self.links.random)();
        let Some(entry) = self.entries.get_mut(&name) else { return };
        entry.is_busy = false;
        let reached = match outcome {
            Outcome::Done(observed) => {
                entry.succeeded();
                entry.answered = Some(now);
                self.problems.remove(&name);
                match step {
                    Step::Create(_) => entry.count_creation(now),
                    Step::PatchStatus { patch, .. } => {
                        entry.count_patch(patch, observed.as_ref().and_then(|observed| observed.version), now);
                    }
                    Step::Delete { .. } => {}
                }
                match observed {
                    Some(observed) => entry.observe(observed),
                    None => entry.observed = None,
                }
                Ok(())
            }
            Outcome::Surprise(observed) => {
                entry.observed = observed;
                entry.failed(None, random, now);
                Ok(())
            }
            Outcome::Failed(error) if error.is_about_the_server() => Err(error),
            Outcome::Failed(error) if error.is_invalid() && matches!(step, Step::Create(_)) && entry.detail == Detail::Whole => {
                tracing::info!(pod = %name, %error, "the API server refused the mirror pod; retrying without fields that older servers do not know");
                entry.detail = Detail::Plain;
                Ok(())
            }
            Outcome::Failed(error) => {
                entry.failed(error.retry_after(), random, now);
                self.refuse(&name, &step, &error);
                Ok(())
            }
        };
        match reached {
            Ok(()) => self.gate.succeeded(),
            Err(error) => {
                tracing::debug!(pod = %name, %error, "request to the API server failed; retrying");
                self.gate.failed(error.retry_after(), random, now);
            }
        }
        self.touch(&name);
    }

    fn refuse(&mut self, name: &PodFullName, step: &Step, error: &ApiError) {
        let what = match step {
            Step::Create(_) => "cannot create mirror pod",
            Step::PatchStatus { .. } => "cannot update status of mirror pod",
            Step::Delete { .. } => "cannot delete mirror pod",
        };
        let problem = format!("{what}: {error}");
        let Some(entry) = self.entries.get_mut(name) else { return };
        // Told once, not with every try.
        if entry.problem.as_ref() != Some(&problem) {
            tracing::warn!(pod = %name, "{problem}");
            if let Some(pod) = &entry.wanted {
                let subject =
                    Subject::Pod { uid: pod.desired.uid.clone(), full_name: pod.desired.full_name.clone(), field_path: None };
                self.links.events.record(&subject, EventType::Warning, "FailedMirror", &problem);
            }
        }
        entry.problem = Some(problem);
        self.problems.insert(name.clone());
    }

    fn tell(&self) {
        let problem = |name: &PodFullName| {
            let problem = self.entries.get(name)?.problem.as_ref()?;
            let PodKey { namespace, name } = PodKey::from(name);
            Some(format!("{namespace}/{name}: {problem}"))
        };
        self.links.board.update(|status| {
            (status.pods, status.mirrors) = (self.wanted, self.settled);
            status.problems = self.problems.iter().take(MAX_PROBLEMS).filter_map(problem).collect();
        });
    }
}
