//! Deployments (W20 to W30).
//!
//! [`step`] decides; the sizes of the revisions come from [`size`], the deadline is in [`progress`], status and ReplicaSets are in [`status`].

pub mod limits;
pub mod progress;
pub mod size;
pub mod status;

#[cfg(test)]
mod tests;

use crate::adoption;
use crate::conditions::Conditions;
use crate::context::{Availability, Context, Pods, availability};
use crate::event::WorkloadEvent;
use crate::exclusive::{self, Exclusive};
use crate::host_fit;
use crate::identity::Identity;
use crate::moment::Moment;
use crate::rank::{Candidate, first_to_go};
use crate::revision::{Arrival, Revision, Revisions, TemplateHash};
use crate::slots::Slots;
use crate::template::{self, Owner};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use limits::Limits;
use progress::{Counters, Progress, Sight, Stage};
use serde::{Deserialize, Serialize};
use size::{Side, Sides};
use std::collections::BTreeMap;

/// The memory of a Deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentMemory {
    /// UID, generation and age.
    pub identity: Identity,
    /// Its revisions.
    pub revisions: Revisions,
    /// Its pods, by revision.
    #[serde(default)]
    pub pods: BTreeMap<TemplateHash, Slots>,
    /// The number of replicas and the maximum that the sizes were made for.
    #[serde(default)]
    pub sized_for: Option<(u32, u32)>,
    /// Progress of the newest rollout.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// Its conditions.
    #[serde(default)]
    pub conditions: Conditions,
}

impl DeploymentMemory {
    /// Withdraws a pod that an operator wants made anew: its replacement has the newest revision. Returns false for a pod that it does not want.
    pub fn withdraw(&mut self, owner: &str, pod: &str) -> bool {
        self.pods.iter_mut().any(|(hash, slots)| {
            let slot = slots.wanted.iter().copied().find(|slot| pod_name(owner, hash, *slot) == pod);
            slot.is_some_and(|slot| slots.withdraw(slot))
        })
    }
}

/// The result of one evaluation.
#[derive(Debug)]
pub struct Step {
    /// To be written to disk before anything else is done.
    pub memory: DeploymentMemory,
    /// The pods that are wanted now, in the order of their names.
    pub pods: Vec<Pod>,
    /// Its status.
    pub status: DeploymentStatus,
    /// Its ReplicaSets, for readers.
    pub replica_sets: Vec<ReplicaSet>,
    /// Events to record.
    pub events: Vec<WorkloadEvent>,
    /// A template of which images are missing and needed before pods are replaced (W14).
    pub warm: Option<PodTemplateSpec>,
    /// The time of the next look, if nothing happens before.
    pub wake: Option<Moment>,
}

/// The way in which pods are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Recreate,
    Rolling(Limits),
}

/// A spec, resolved for this host.
#[derive(Clone, Debug)]
struct Wanted {
    /// As written.
    written: u32,
    /// Of those, as many as can exist on this host.
    replicas: u32,
    strategy: Strategy,
    min_ready_seconds: u32,
    is_paused: bool,
    exclusive: Option<Exclusive>,
    fits: bool,
}

impl Wanted {
    fn of(spec: &DeploymentSpec, context: &Context<'_>) -> Self {
        let written = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let exclusive = exclusive::of(&spec.template, context.is_exclusive_claim);
        let fits = spec.template.spec.as_ref().is_none_or(|pod| host_fit::fits(pod, context.host));
        let replicas = match &exclusive {
            _ if !fits => 0,
            Some(_) => written.min(1),
            None => written,
        };
        let strategy = spec.strategy.clone().unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let quarter = || IntOrString::String("25%".to_owned());
        let surge = rolling.max_surge.unwrap_or_else(quarter);
        let unavailable = rolling.max_unavailable.unwrap_or_else(quarter);
        let strategy = match (strategy.type_.as_deref(), &exclusive) {
            (Some("Recreate"), _) => Strategy::Recreate,
            (_, Some(_)) => Strategy::Rolling(Limits { surge: 0, unavailable: 1 }),
            (_, None) => Strategy::Rolling(Limits::resolve(&surge, &unavailable, replicas)),
        };
        let min_ready_seconds = u32::try_from(spec.min_ready_seconds.unwrap_or(0)).unwrap_or(0);
        Self { written, replicas, strategy, min_ready_seconds, is_paused: spec.paused.unwrap_or_default(), exclusive, fits }
    }

    fn limits(&self) -> Limits {
        match self.strategy {
            Strategy::Recreate => Limits { surge: 0, unavailable: 0 },
            Strategy::Rolling(limits) => limits,
        }
    }

    fn maximum(&self) -> u32 {
        self.replicas.saturating_add(self.limits().surge)
    }
}

/// Decides which pods of a Deployment are wanted now.
pub fn step(deployment: &Deployment, memory: Option<&DeploymentMemory>, pods: &Pods, context: &Context<'_>) -> Step {
    let default = DeploymentSpec::default();
    let spec = deployment.spec.as_ref().unwrap_or(&default);
    let wanted = Wanted::of(spec, context);
    let owner = deployment.metadata.name.as_deref().unwrap_or_default();
    let mut state = State { owner, pods, wanted: &wanted, context, memory: remember(memory, spec, context), events: Vec::new() };
    let is_new_rollout = state.take_template(spec, deployment);
    if memory.is_none() && context.is_memory_lost {
        state.adopt();
    }
    state.settle();
    let before = state.sizes();
    let held = state.resize();
    state.begin_rollout(is_new_rollout);
    state.record_scaling(&before);
    let deadline = state.update_progress(held, spec.progress_deadline_seconds.unwrap_or(600));
    state.prune(spec.revision_history_limit.unwrap_or(10));
    let warm = state.warm(held);
    let wake = state.next_availability().into_iter().chain(deadline).min();
    let status = status::of(&state);
    let replica_sets = status::replica_sets(&state, deployment);
    let wanted_pods = state.wanted_pods(deployment.metadata.namespace.as_deref());
    let State { memory, events, .. } = state;
    Step { memory, pods: wanted_pods, status, replica_sets, events, warm, wake }
}

fn remember(memory: Option<&DeploymentMemory>, spec: &DeploymentSpec, context: &Context<'_>) -> DeploymentMemory {
    let identity = Identity::of(memory.map(|memory| &memory.identity), spec, context);
    memory.map_or_else(
        || DeploymentMemory {
            identity: identity.clone(),
            revisions: Revisions::default(),
            pods: BTreeMap::new(),
            sized_for: None,
            progress: None,
            conditions: Conditions::default(),
        },
        |memory| DeploymentMemory { identity: identity.clone(), ..memory.clone() },
    )
}

/// A Deployment in the middle of its evaluation.
#[derive(Debug)]
struct State<'a> {
    owner: &'a str,
    pods: &'a Pods,
    wanted: &'a Wanted,
    context: &'a Context<'a>,
    memory: DeploymentMemory,
    events: Vec<WorkloadEvent>,
}

/// The name of the ReplicaSet of a revision.
fn replica_set_name(owner: &str, hash: &TemplateHash) -> String {
    template::name(owner, hash.as_str())
}

/// The name of a pod.
fn pod_name(owner: &str, hash: &TemplateHash, slot: u32) -> String {
    template::name(owner, &format!("{hash}-{slot}"))
}

impl State<'_> {
    /// Makes the template the newest revision, unless the Deployment is paused (W27). Returns how it arrived.
    fn take_template(&mut self, spec: &DeploymentSpec, deployment: &Deployment) -> Arrival {
        if self.wanted.is_paused {
            return Arrival::Unchanged;
        }
        let annotations = deployment.metadata.annotations.clone().unwrap_or_default();
        self.memory.revisions.take(&spec.template, &serde_json::Value::Null, &annotations, self.context).1
    }

    /// Wants the pods of the template that exist (W97).
    fn adopt(&mut self) {
        let Some(hash) = self.memory.revisions.newest().map(|revision| revision.hash.clone()) else { return };
        let wanted = adoption::numbers(self.pods, |slot| pod_name(self.owner, &hash, slot));
        self.memory.pods.insert(hash, Slots { wanted, ..Slots::default() });
    }

    /// Forgets pods that are gone.
    fn settle(&mut self) {
        let (owner, pods) = (self.owner, self.pods);
        for (hash, slots) in &mut self.memory.pods {
            slots.settle(|slot| pods.contains_key(&pod_name(owner, hash, slot)));
        }
        self.memory.pods.retain(|_, slots| !slots.is_empty());
    }

    fn sizes(&self) -> BTreeMap<TemplateHash, u32> {
        self.memory.pods.iter().map(|(hash, slots)| (hash.clone(), slots.count())).collect()
    }

    fn availability_of(&self, hash: &TemplateHash, slot: u32) -> Availability {
        let pod = self.pods.get(&pod_name(self.owner, hash, slot));
        pod.map_or(Availability::Unavailable, |pod| availability(pod, self.wanted.min_ready_seconds, self.context.moment))
    }

    fn side(&self, revision: &Revision) -> Side {
        let slots = self.memory.pods.get(&revision.hash);
        let wanted = || slots.iter().flat_map(|slots| slots.wanted.iter().copied());
        let available = wanted().filter(|slot| self.availability_of(&revision.hash, *slot) == Availability::Available);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Side { revision: revision.number, wanted: count(wanted().count()), available: count(available.count()) }
    }

    /// The revisions in numbers; `None` while there is no revision, for a Deployment that was paused from the beginning.
    fn sides(&self) -> Option<Sides> {
        let newest = self.memory.revisions.newest()?;
        let old = self.memory.revisions.iter().filter(|revision| revision.number != newest.number);
        let old: Vec<Side> = old.map(|revision| self.side(revision)).filter(|side| side.wanted > 0).collect();
        let leaving = || self.memory.pods.values().map(|slots| u32::try_from(slots.leaving.len()).unwrap_or(u32::MAX)).sum();
        let occupied = self.wanted.exclusive.is_some().then(leaving);
        Some(Sides { old, new: self.side(newest), occupied })
    }

    /// True while a pod of an old revision exists that has not ended (W25).
    fn has_old_pods(&self) -> bool {
        let newest = self.memory.revisions.newest().map(|revision| &revision.hash);
        let old = self.memory.pods.iter().filter(|(hash, _)| Some(*hash) != newest);
        let mut leaving = old.flat_map(|(hash, slots)| slots.leaving.iter().map(move |slot| pod_name(self.owner, hash, *slot)));
        leaving.any(|name| self.pods.get(&name).is_some_and(|pod| !pod.is_terminal()))
    }

    /// Changes the sizes of the revisions as far as may be now. Returns true if pods of old revisions wait for images or sources (W14, W94).
    fn resize(&mut self) -> bool {
        let Some(mut sides) = self.sides() else { return false };
        let wanted = self.wanted;
        let target = (wanted.replicas, wanted.maximum());
        if let Some(before) = self.memory.sized_for.filter(|before| *before != target) {
            sides.share(wanted.replicas, wanted.limits(), before.1);
        }
        self.memory.sized_for = Some(target);
        let newest = self.memory.revisions.newest().map(|revision| &revision.template);
        let may_replace = self.context.may_remove && newest.is_none_or(|template| (self.context.has_images)(template));
        if !wanted.is_paused {
            match wanted.strategy {
                Strategy::Recreate => sides.recreate(wanted.replicas, self.has_old_pods(), may_replace),
                Strategy::Rolling(limits) => sides.roll(wanted.replicas, limits, may_replace),
            }
        } else if sides.old.is_empty() {
            sides.new.wanted = wanted.replicas;
        }
        let is_held = !may_replace && sides.old_total() > 0;
        self.apply(&sides);
        is_held
    }

    fn apply(&mut self, sides: &Sides) {
        let by_number: BTreeMap<u64, TemplateHash> =
            self.memory.revisions.iter().map(|revision| (revision.number, revision.hash.clone())).collect();
        for side in sides.old.iter().chain([&sides.new]) {
            let Some(hash) = by_number.get(&side.revision) else { continue };
            let (owner, pods, is_taken) = (self.owner, self.pods, self.context.is_taken);
            let slots = self.memory.pods.entry(hash.clone()).or_default();
            let now = slots.count();
            if side.wanted > now {
                slots.grow(side.wanted - now, |slot| {
                    let name = pod_name(owner, hash, slot);
                    pods.contains_key(&name) || is_taken(&name)
                });
            } else if side.wanted < now {
                let candidates =
                    slots.wanted.iter().map(|slot| Candidate { slot: *slot, pod: pods.get(&pod_name(owner, hash, *slot)) });
                let order = first_to_go(candidates);
                slots.shrink(now - side.wanted, &order);
            }
        }
        self.memory.pods.retain(|_, slots| !slots.is_empty());
    }

    fn record_scaling(&mut self, before: &BTreeMap<TemplateHash, u32>) {
        let now = self.sizes();
        let hashes: std::collections::BTreeSet<&TemplateHash> = before.keys().chain(now.keys()).collect();
        for hash in hashes {
            let (from, to) = (before.get(hash).copied().unwrap_or(0), now.get(hash).copied().unwrap_or(0));
            let direction = match from.cmp(&to) {
                std::cmp::Ordering::Less => "up",
                std::cmp::Ordering::Equal => continue,
                std::cmp::Ordering::Greater => "down",
            };
            let name = replica_set_name(self.owner, hash);
            let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
            self.events.push(WorkloadEvent::normal("ScalingReplicaSet", message));
        }
    }

    /// Counts of the pods as they are observed.
    fn counters(&self) -> Counters {
        let newest = self.memory.revisions.newest().map(|revision| &revision.hash);
        let mut counters = Counters::default();
        for (hash, slots) in &self.memory.pods {
            let is_new = Some(hash) == newest;
            for slot in &slots.wanted {
                let pod = self.pods.get(&pod_name(self.owner, hash, *slot));
                counters.updated += u32::from(is_new);
                counters.old += u32::from(!is_new);
                counters.ready += u32::from(pod.is_some_and(|pod| pod.is_active() && pod.ready_since.is_some()));
                counters.available += u32::from(self.availability_of(hash, *slot) == Availability::Available);
            }
        }
        counters
    }

    fn begin_rollout(&mut self, arrival: Arrival) {
        let stage = match arrival {
            Arrival::New => Stage::NewReplicaSetCreated,
            Arrival::Returned => Stage::FoundNewReplicaSet,
            Arrival::Unchanged => return,
        };
        self.memory.progress = Some(Progress::begin(stage, self.counters()));
    }

    /// Updates the progress and the conditions. Returns the moment at which the deadline passes.
    fn update_progress(&mut self, is_held: bool, deadline_seconds: i32) -> Option<Moment> {
        let counters = self.counters();
        let is_complete =
            counters.old == 0 && counters.updated == self.wanted.replicas && counters.available == self.wanted.replicas;
        let sight = Sight { counters, is_complete, is_held };
        let is_paused = self.wanted.is_paused;
        let now = self.context.moment;
        let deadline = self.memory.progress.as_mut().and_then(|progress| {
            match (is_paused, progress.stage) {
                (true, _) => progress.stage = Stage::DeploymentPaused,
                (false, Stage::DeploymentPaused) => *progress = Progress::begin(Stage::DeploymentResumed, counters),
                (false, _) => {}
            }
            if is_paused { None } else { progress.observe(&sight, deadline_seconds, now) }
        });
        status::set_conditions(self, &counters, deadline_seconds);
        deadline
    }

    fn prune(&mut self, limit: i32) {
        let is_complete = self.memory.progress.as_ref().is_some_and(|progress| progress.stage == Stage::NewReplicaSetAvailable);
        if is_complete {
            let pods = &self.memory.pods;
            self.memory.revisions.prune(usize::try_from(limit).unwrap_or(0), |revision| pods.contains_key(&revision.hash));
        }
    }

    fn warm(&self, is_held: bool) -> Option<PodTemplateSpec> {
        let template = &self.memory.revisions.newest()?.template;
        (is_held && !(self.context.has_images)(template)).then(|| template.clone())
    }

    fn next_availability(&self) -> Option<Moment> {
        let slots = self.memory.pods.iter().flat_map(|(hash, slots)| slots.wanted.iter().map(move |slot| (hash, *slot)));
        let moments = slots.filter_map(|(hash, slot)| match self.availability_of(hash, slot) {
            Availability::From(moment) => Some(moment),
            Availability::Available | Availability::Unavailable => None,
        });
        moments.min()
    }

    fn wanted_pods(&self, namespace: Option<&str>) -> Vec<Pod> {
        let mut all = Vec::new();
        for (hash, slots) in &self.memory.pods {
            let Some(revision) = self.memory.revisions.find(hash) else { continue };
            let set = replica_set_name(self.owner, hash);
            let owner = Owner { api_version: "apps/v1", kind: "ReplicaSet", name: &set, uid: &revision.uid };
            let label = [("pod-template-hash", hash.as_str())];
            let pod = |slot: &u32| template::pod(&revision.template, &pod_name(self.owner, hash, *slot), namespace, &label, &owner);
            all.extend(slots.wanted.iter().map(pod));
        }
        all
    }
}
