//! DaemonSets (W45 to W49): at most one pod on this host, two for a moment while an update surges.

#[cfg(test)]
mod tests;

use crate::context::{Availability, Context, Pods, availability};
use crate::deployment::limits::{Rounding, scaled};
use crate::event::WorkloadEvent;
use crate::exclusive;
use crate::host_fit;
use crate::identity::Identity;
use crate::moment::Moment;
use crate::revision::{Revision, Revisions, TemplateHash};
use crate::template::{self, Owner};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The memory of a DaemonSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DaemonSetMemory {
    /// UID, generation and age.
    pub identity: Identity,
    /// Its revisions.
    pub revisions: Revisions,
    /// Revisions of which a pod is wanted.
    #[serde(default)]
    pub pods: BTreeSet<TemplateHash>,
    /// Revisions of which a pod is not wanted any more and may still exist.
    #[serde(default)]
    pub leaving: BTreeSet<TemplateHash>,
}

impl DaemonSetMemory {
    /// Withdraws a pod that an operator wants made anew: its replacement has the newest revision. Returns false for a pod that it does not want.
    pub fn withdraw(&mut self, owner: &str, pod: &str) -> bool {
        let hash = self.pods.iter().find(|hash| template::name(owner, hash.as_str()) == pod).cloned();
        hash.is_some_and(|hash| self.pods.remove(&hash) && self.leaving.insert(hash))
    }
}

/// The result of one evaluation.
#[derive(Debug)]
pub struct Step {
    /// To be written to disk before anything else is done.
    pub memory: DaemonSetMemory,
    /// The pods that are wanted now.
    pub pods: Vec<Pod>,
    /// Its status.
    pub status: DaemonSetStatus,
    /// Events to record.
    pub events: Vec<WorkloadEvent>,
    /// A template of which images are missing and needed before the pod is replaced (W14).
    pub warm: Option<PodTemplateSpec>,
    /// The time of the next look, if nothing happens before.
    pub wake: Option<Moment>,
}

/// The way in which the pod of an old revision is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    /// Never by itself.
    OnDelete,
    /// The old pod ends first.
    StopFirst,
    /// The new pod starts beside the old one.
    Surge,
}

impl Update {
    /// A surging pod would need what only one pod can have (W82).
    fn of(spec: &DaemonSetSpec, is_exclusive: bool) -> Self {
        let strategy = spec.update_strategy.clone().unwrap_or_default();
        let surge =
            strategy.rolling_update.and_then(|rolling| rolling.max_surge).map_or(0, |surge| scaled(&surge, 1, Rounding::Up));
        match strategy.type_.as_deref() {
            Some("OnDelete") => Self::OnDelete,
            _ if surge > 0 && !is_exclusive => Self::Surge,
            _ => Self::StopFirst,
        }
    }
}

/// Decides which pods of a DaemonSet are wanted now.
pub fn step(object: &DaemonSet, memory: Option<&DaemonSetMemory>, pods: &Pods, context: &Context<'_>) -> Step {
    let default = DaemonSetSpec::default();
    let spec = object.spec.as_ref().unwrap_or(&default);
    let owner = object.metadata.name.as_deref().unwrap_or_default();
    let is_lost = memory.is_none() && context.is_memory_lost;
    let (mut memory, newest) = remember(object, spec, memory, context);
    if is_lost && pods.get(&template::name(owner, newest.hash.as_str())).is_some_and(|pod| !pod.is_terminating) {
        // W97.
        memory.pods.insert(newest.hash.clone());
    }
    let fits = spec.template.spec.as_ref().is_none_or(|pod| host_fit::fits(pod, context.host));
    let min_ready_seconds = u32::try_from(spec.min_ready_seconds.unwrap_or(0)).unwrap_or(0);
    let mut state = State { owner, pods, context, min_ready_seconds, fits, newest, memory, events: Vec::new(), is_held: false };
    state.settle();
    if fits {
        state.update(Update::of(spec, exclusive::of(&spec.template, context.is_exclusive_claim).is_some()));
    } else {
        let all: Vec<TemplateHash> = state.memory.pods.iter().cloned().collect();
        all.iter().for_each(|hash| state.withdraw(hash));
    }
    let limit = usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
    let living = state.memory.pods.clone();
    state.memory.revisions.prune(limit, |revision| living.contains(&revision.hash));
    let is_missing = state.is_held && !(context.has_images)(&state.newest.template);
    let warm = is_missing.then(|| state.newest.template.clone());
    let (status, wake) = (state.status(), state.next_availability());
    let pods = state.wanted_pods(object.metadata.namespace.as_deref());
    let State { memory, events, .. } = state;
    Step { memory, pods, status, events, warm, wake }
}

/// The memory with the template as the newest revision, and that revision.
fn remember(
    object: &DaemonSet,
    spec: &DaemonSetSpec,
    memory: Option<&DaemonSetMemory>,
    context: &Context<'_>,
) -> (DaemonSetMemory, Revision) {
    let identity = Identity::of(memory.map(|memory| &memory.identity), spec, context);
    let mut revisions = memory.map(|memory| memory.revisions.clone()).unwrap_or_default();
    let annotations = object.metadata.annotations.clone().unwrap_or_default();
    let newest = revisions.take(&spec.template, &serde_json::Value::Null, &annotations, context).0.clone();
    let pods = memory.map(|memory| memory.pods.clone()).unwrap_or_default();
    let leaving = memory.map(|memory| memory.leaving.clone()).unwrap_or_default();
    (DaemonSetMemory { identity, revisions, pods, leaving }, newest)
}

/// A DaemonSet in the middle of its evaluation.
#[derive(Debug)]
struct State<'a> {
    owner: &'a str,
    pods: &'a Pods,
    context: &'a Context<'a>,
    min_ready_seconds: u32,
    fits: bool,
    newest: Revision,
    memory: DaemonSetMemory,
    events: Vec<WorkloadEvent>,
    /// The pod of an old revision stays only because images or sources are waited for.
    is_held: bool,
}

impl State<'_> {
    fn pod_name(&self, hash: &TemplateHash) -> String {
        template::name(self.owner, hash.as_str())
    }

    fn settle(&mut self) {
        let (owner, pods) = (self.owner, self.pods);
        self.memory.leaving.retain(|hash| pods.contains_key(&template::name(owner, hash.as_str())));
    }

    fn availability_of(&self, hash: &TemplateHash) -> Availability {
        let pod = self.pods.get(&self.pod_name(hash)).filter(|_| self.memory.pods.contains(hash));
        pod.map_or(Availability::Unavailable, |pod| availability(pod, self.min_ready_seconds, self.context.moment))
    }

    fn update(&mut self, update: Update) {
        let old: Vec<TemplateHash> = self.memory.pods.iter().filter(|hash| **hash != self.newest.hash).cloned().collect();
        let may_replace = self.context.may_remove && (self.context.has_images)(&self.newest.template);
        match update {
            Update::OnDelete if !old.is_empty() => return,
            Update::OnDelete => {}
            Update::StopFirst if old.is_empty() => {}
            Update::StopFirst => {
                self.replace(&old, may_replace);
                return;
            }
            Update::Surge => {
                let is_there = self.availability_of(&self.newest.hash) == Availability::Available;
                let useless = |hash: &&TemplateHash| self.availability_of(hash) == Availability::Unavailable;
                let going: Vec<TemplateHash> = old.iter().filter(|hash| is_there || useless(hash)).cloned().collect();
                self.replace(&going, may_replace);
            }
        }
        self.create(update);
    }

    fn replace(&mut self, old: &[TemplateHash], may_replace: bool) {
        if may_replace {
            old.iter().for_each(|hash| self.withdraw(hash));
        } else {
            self.is_held |= !old.is_empty();
        }
    }

    /// Without surge, the new pod waits until the old one is gone.
    fn create(&mut self, update: Update) {
        let name = self.pod_name(&self.newest.hash);
        let is_blocked = update != Update::Surge && !self.memory.leaving.is_empty();
        let is_new = !self.memory.pods.contains(&self.newest.hash);
        let is_free = !self.memory.leaving.contains(&self.newest.hash) && !self.pods.contains_key(&name);
        if is_new && is_free && !is_blocked && !(self.context.is_taken)(&name) {
            self.events.push(WorkloadEvent::normal("SuccessfulCreate", format!("Created pod: {name}")));
            self.memory.pods.insert(self.newest.hash.clone());
        }
    }

    fn withdraw(&mut self, hash: &TemplateHash) {
        self.events.push(WorkloadEvent::normal("SuccessfulDelete", format!("Deleted pod: {}", self.pod_name(hash))));
        self.memory.pods.remove(hash);
        self.memory.leaving.insert(hash.clone());
    }

    fn next_availability(&self) -> Option<Moment> {
        let moments = self.memory.pods.iter().filter_map(|hash| match self.availability_of(hash) {
            Availability::From(moment) => Some(moment),
            Availability::Available | Availability::Unavailable => None,
        });
        moments.min()
    }

    /// One host has one of everything or none (W49).
    fn status(&self) -> DaemonSetStatus {
        let any =
            |holds: &dyn Fn(Availability) -> bool| i32::from(self.memory.pods.iter().any(|hash| holds(self.availability_of(hash))));
        let desired = i32::from(self.fits);
        let exists = i32::from(!self.memory.pods.is_empty());
        let available = any(&|availability| availability == Availability::Available);
        DaemonSetStatus {
            observed_generation: Some(self.memory.identity.generation),
            desired_number_scheduled: desired,
            current_number_scheduled: exists,
            updated_number_scheduled: Some(i32::from(self.memory.pods.contains(&self.newest.hash))),
            number_misscheduled: i32::from(!self.fits && !self.memory.leaving.is_empty()),
            number_ready: any(&|availability| availability != Availability::Unavailable),
            number_available: Some(available),
            number_unavailable: Some((desired - available).max(0)),
            collision_count: Some(i32::try_from(self.memory.revisions.collisions).unwrap_or(i32::MAX)),
            conditions: None,
        }
    }

    fn wanted_pods(&self, namespace: Option<&str>) -> Vec<Pod> {
        let owner = Owner { api_version: "apps/v1", kind: "DaemonSet", name: self.owner, uid: &self.memory.identity.uid };
        let pod = |hash: &TemplateHash| {
            let revision = self.memory.revisions.find(hash)?;
            let labels = [("controller-revision-hash", hash.as_str())];
            Some(template::pod(&revision.template, &self.pod_name(hash), namespace, &labels, &owner))
        };
        self.memory.pods.iter().filter_map(pod).collect()
    }
}
