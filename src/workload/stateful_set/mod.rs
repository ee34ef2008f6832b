//! StatefulSets (W34 to W44).
//!
//! [`step`] decides in this order, as upstream does: pods that are missing, lowest ordinal first; pods beyond the wanted number, highest first; pods of
//! old revisions, highest first. With `OrderedReady` each stage waits for the one before it.

mod claims;
mod status;

#[cfg(test)]
mod tests;

use crate::adoption;
use crate::context::{Availability, Context, Pods, availability};
use crate::deployment::limits::{Rounding, scaled};
use crate::event::WorkloadEvent;
use crate::exclusive::{self, Exclusive};
use crate::failure::failure;
use crate::host_fit;
use crate::identity::Identity;
use crate::moment::Moment;
use crate::revision::{Revision, Revisions, TemplateHash};
use crate::template::{self, Owner};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// The time after a boot in which pods that were available before it become available again.
const RECOVERY: Duration = Duration::from_mins(10);

/// The memory of a StatefulSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatefulSetMemory {
    /// UID, generation and age.
    pub identity: Identity,
    /// Its revisions.
    pub revisions: Revisions,
    /// The revision that the last complete update brought.
    pub current: TemplateHash,
    /// The pods that are wanted, by ordinal, with their revisions.
    #[serde(default)]
    pub pods: BTreeMap<u32, TemplateHash>,
    /// Ordinals of pods that are not wanted any more and may still exist.
    #[serde(default)]
    pub leaving: BTreeSet<u32>,
    /// Ordinals whose claims are wanted.
    #[serde(default)]
    pub claims: BTreeSet<u32>,
    /// Ordinals whose pods have been available with the revisions that they have.
    #[serde(default)]
    pub proven: BTreeSet<u32>,
    /// The failure that an event has told of.
    #[serde(default)]
    pub failure: Option<String>,
}

impl StatefulSetMemory {
    /// Withdraws a pod that an operator wants made anew: its replacement has the newest revision. Returns false for a pod that it does not want.
    pub fn withdraw(&mut self, owner: &str, pod: &str) -> bool {
        let ordinal = self.pods.keys().copied().find(|ordinal| template::name(owner, &ordinal.to_string()) == pod);
        ordinal.is_some_and(|ordinal| self.pods.remove(&ordinal).is_some() && self.leaving.insert(ordinal))
    }
}

/// The result of one evaluation.
#[derive(Debug)]
pub struct Step {
    /// To be written to disk before anything else is done.
    pub memory: StatefulSetMemory,
    /// The pods that are wanted now.
    pub pods: Vec<Pod>,
    /// The claims that are wanted now.
    pub claims: Vec<PersistentVolumeClaim>,
    /// Its status.
    pub status: StatefulSetStatus,
    /// Events to record.
    pub events: Vec<WorkloadEvent>,
    /// A template of which images are missing and needed before pods are replaced (W14).
    pub warm: Option<PodTemplateSpec>,
    /// The time of the next look, if nothing happens before.
    pub wake: Option<Moment>,
}

/// The way in which pods of an old revision are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    OnDelete,
    Rolling { lowest: u32, unavailable: u32 },
}

/// A spec, resolved for this host.
#[derive(Clone, Debug)]
struct Wanted {
    written: u32,
    ordinals: Range<u32>,
    /// The ordinals as written, which keep their claims where pods cannot be.
    claimed: Range<u32>,
    is_ordered: bool,
    update: Update,
    min_ready_seconds: u32,
    exclusive: Option<Exclusive>,
    fits: bool,
}

impl Wanted {
    fn of(spec: &StatefulSetSpec, context: &Context<'_>) -> Self {
        let written = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let exclusive = exclusive::of(&claims::without_own(spec), context.is_exclusive_claim);
        let fits = spec.template.spec.as_ref().is_none_or(|pod| host_fit::fits(pod, context.host));
        let replicas = match &exclusive {
            _ if !fits => 0,
            Some(_) => written.min(1),
            None => written,
        };
        let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).map_or(0, |start| u32::try_from(start).unwrap_or(0));
        let min_ready_seconds = u32::try_from(spec.min_ready_seconds.unwrap_or(0)).unwrap_or(0);
        Self {
            written,
            ordinals: start..start.saturating_add(replicas),
            claimed: start..start.saturating_add(written),
            is_ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
            update: Update::of(spec, start, replicas),
            min_ready_seconds,
            exclusive,
            fits,
        }
    }
}

impl Update {
    /// The number of pods that may be unavailable rounds down and is at least 1 (W38).
    fn of(spec: &StatefulSetSpec, start: u32, replicas: u32) -> Self {
        let strategy = spec.update_strategy.clone().unwrap_or_default();
        if strategy.type_.as_deref() == Some("OnDelete") {
            return Self::OnDelete;
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let partition = u32::try_from(rolling.partition.unwrap_or(0)).unwrap_or(0);
        let unavailable = rolling.max_unavailable.unwrap_or(IntOrString::Int(1));
        Self::Rolling {
            lowest: start.saturating_add(partition),
            unavailable: scaled(&unavailable, replicas, Rounding::Down).max(1),
        }
    }
}

/// Decides which pods and claims of a StatefulSet are wanted now.
pub fn step(object: &StatefulSet, memory: Option<&StatefulSetMemory>, pods: &Pods, context: &Context<'_>) -> Step {
    let default = StatefulSetSpec::default();
    let spec = object.spec.as_ref().unwrap_or(&default);
    let wanted = Wanted::of(spec, context);
    let owner = object.metadata.name.as_deref().unwrap_or_default();
    let is_lost = memory.is_none() && context.is_memory_lost;
    let (memory, update) = remember(object, spec, memory, context);
    let mut state =
        State { owner, object, spec, pods, wanted: &wanted, context, update, memory, events: Vec::new(), is_held: false };
    if is_lost {
        state.adopt();
    }
    state.settle();
    state.report_failure();
    state.decide();
    state.finish_update();
    claims::release(&mut state);
    state.prune(spec.revision_history_limit.unwrap_or(10));
    let warm = state.warm();
    let (status, wake) = (status::of(&state), state.next_availability());
    let (pods, claims) = (state.wanted_pods(), claims::wanted(&state));
    let State { memory, events, .. } = state;
    Step { memory, pods, claims, status, events, warm, wake }
}

/// The memory with the template as the newest revision, and that revision.
fn remember(
    object: &StatefulSet,
    spec: &StatefulSetSpec,
    memory: Option<&StatefulSetMemory>,
    context: &Context<'_>,
) -> (StatefulSetMemory, Revision) {
    let identity = Identity::of(memory.map(|memory| &memory.identity), spec, context);
    let mut revisions = memory.map(|memory| memory.revisions.clone()).unwrap_or_default();
    let annotations = object.metadata.annotations.clone().unwrap_or_default();
    let beside = serde_json::json!({"serviceName": spec.service_name, "volumeClaimTemplates": spec.volume_claim_templates});
    let update = revisions.take(&spec.template, &beside, &annotations, context).0.clone();
    let memory = match memory {
        Some(memory) => StatefulSetMemory { identity, revisions, ..memory.clone() },
        None => StatefulSetMemory {
            identity,
            revisions,
            current: update.hash.clone(),
            pods: BTreeMap::new(),
            leaving: BTreeSet::new(),
            claims: BTreeSet::new(),
            proven: BTreeSet::new(),
            failure: None,
        },
    };
    (memory, update)
}

/// A StatefulSet in the middle of its evaluation.
#[derive(Debug)]
struct State<'a> {
    owner: &'a str,
    object: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    pods: &'a Pods,
    wanted: &'a Wanted,
    context: &'a Context<'a>,
    update: Revision,
    memory: StatefulSetMemory,
    events: Vec<WorkloadEvent>,
    /// A pod of an old revision stays only because images or sources are waited for.
    is_held: bool,
}

impl State<'_> {
    fn pod_name(&self, ordinal: u32) -> String {
        template::name(self.owner, &ordinal.to_string())
    }

    /// Wants the pods that exist, and the claims of all ordinals (W97).
    fn adopt(&mut self) {
        let ordinals = adoption::numbers(self.pods, |ordinal| self.pod_name(ordinal));
        self.memory.claims.extend(self.wanted.claimed.clone().chain(ordinals.iter().copied()));
        self.memory.pods.extend(ordinals.into_iter().map(|ordinal| (ordinal, self.update.hash.clone())));
    }

    fn settle(&mut self) {
        let (owner, pods) = (self.owner, self.pods);
        self.memory.leaving.retain(|ordinal| pods.contains_key(&template::name(owner, &ordinal.to_string())));
        let available: BTreeSet<u32> = self.memory.pods.keys().copied().filter(|ordinal| self.is_available(*ordinal)).collect();
        self.memory.proven.retain(|ordinal| self.memory.pods.contains_key(ordinal));
        self.memory.proven.extend(available);
    }

    fn report_failure(&mut self) {
        let wanted = self.wanted;
        let found = failure(wanted.written, wanted.exclusive.as_ref(), wanted.fits);
        if let Some((reason, message)) = found.filter(|(_, message)| self.memory.failure.as_ref() != Some(message)) {
            self.events.push(WorkloadEvent::warning(reason, message.clone()));
            self.memory.failure = Some(message);
        } else if failure(wanted.written, wanted.exclusive.as_ref(), wanted.fits).is_none() {
            self.memory.failure = None;
        }
    }

    fn availability_of(&self, ordinal: u32) -> Availability {
        let is_wanted = self.memory.pods.contains_key(&ordinal);
        let pod = self.pods.get(&self.pod_name(ordinal)).filter(|_| is_wanted);
        pod.map_or(Availability::Unavailable, |pod| availability(pod, self.wanted.min_ready_seconds, self.context.moment))
    }

    fn is_available(&self, ordinal: u32) -> bool {
        self.availability_of(ordinal) == Availability::Available
    }

    /// An ordinal without a pod: the earlier pod is gone, and so are the data of an earlier claim (W43).
    fn is_free(&self, ordinal: u32) -> bool {
        let name = self.pod_name(ordinal);
        let are_claims_leaving = || {
            let claims = claims::names(self.spec, self.owner, ordinal);
            !self.memory.claims.contains(&ordinal) && claims.iter().any(|claim| (self.context.is_claim_leaving)(claim))
        };
        !self.memory.leaving.contains(&ordinal) && !self.pods.contains_key(&name) && !are_claims_leaving()
    }

    fn decide(&mut self) {
        let has_room = self.create();
        self.repair();
        if has_room && self.remove_surplus() {
            self.replace();
        }
    }

    /// Creates missing pods. Returns false if a later stage has to wait for pods of this one.
    fn create(&mut self) -> bool {
        for ordinal in self.wanted.ordinals.clone() {
            let is_wanted = self.memory.pods.contains_key(&ordinal);
            if !is_wanted && self.is_free(ordinal) {
                let revision = self.revision_for(ordinal);
                let message = format!("create Pod {name} in StatefulSet {} successful", self.owner, name = self.pod_name(ordinal));
                self.events.push(WorkloadEvent::normal("SuccessfulCreate", message));
                self.memory.pods.insert(ordinal, revision);
                self.memory.claims.insert(ordinal);
            }
            if self.wanted.is_ordered && !self.is_available(ordinal) {
                return false;
            }
        }
        true
    }

    /// The revision that a new pod gets: below the partition the current one, which an update has not reached (W37, W40).
    fn revision_for(&self, ordinal: u32) -> TemplateHash {
        match self.wanted.update {
            Update::Rolling { lowest, .. } if ordinal < lowest => self.memory.current.clone(),
            Update::Rolling { .. } | Update::OnDelete => self.update.hash.clone(),
        }
    }

    fn withdraw(&mut self, ordinal: u32) {
        let message = format!("delete Pod {name} in StatefulSet {} successful", self.owner, name = self.pod_name(ordinal));
        self.events.push(WorkloadEvent::normal("SuccessfulDelete", message));
        self.memory.pods.remove(&ordinal);
        self.memory.leaving.insert(ordinal);
    }

    /// Ordinals of pods that an update has to replace, highest first.
    fn outdated(&self) -> Vec<u32> {
        let Update::Rolling { lowest, .. } = self.wanted.update else { return Vec::new() };
        let old = |(ordinal, hash): (&u32, &TemplateHash)| {
            (*ordinal >= lowest && self.wanted.ordinals.contains(ordinal) && *hash != self.update.hash).then_some(*ordinal)
        };
        self.memory.pods.iter().rev().filter_map(old).collect()
    }

    fn may_replace(&self) -> bool {
        self.context.may_remove && (self.context.has_images)(&self.update.template)
    }

    /// After a boot no pod is available for a while, and those that were available before are not broken.
    fn is_coming_back(&self, ordinal: u32) -> bool {
        self.memory.proven.contains(&ordinal) && self.context.moment < Moment::after_boot(RECOVERY)
    }

    /// Replaces a pod of an old revision that is not available, highest first: else a set whose template was broken could never be repaired (W39).
    fn repair(&mut self) {
        let broken = self.outdated().into_iter().find(|ordinal| !self.is_available(*ordinal) && !self.is_coming_back(*ordinal));
        let Some(ordinal) = broken else { return };
        // Ordered sets replace one pod at a time.
        let waits = self.wanted.is_ordered && !self.memory.leaving.is_empty();
        if waits {
            return;
        }
        if self.may_replace() {
            self.withdraw(ordinal);
        } else {
            self.is_held = true;
        }
    }

    /// Removes pods beyond the wanted number, highest first. Returns true when none is left.
    fn remove_surplus(&mut self) -> bool {
        let surplus: Vec<u32> =
            self.memory.pods.keys().rev().copied().filter(|ordinal| !self.wanted.ordinals.contains(ordinal)).collect();
        let is_leaving = self.memory.leaving.iter().any(|ordinal| !self.wanted.ordinals.contains(ordinal));
        if !self.wanted.is_ordered {
            surplus.iter().for_each(|ordinal| self.withdraw(*ordinal));
            return surplus.is_empty() && !is_leaving;
        }
        let Some(highest) = surplus.first().copied().filter(|_| !is_leaving) else { return surplus.is_empty() && !is_leaving };
        let is_first_unhealthy = surplus.iter().skip(1).all(|ordinal| self.is_available(*ordinal));
        if self.is_available(highest) || is_first_unhealthy {
            self.withdraw(highest);
        }
        false
    }

    /// Replaces pods of old revisions, highest first, as long as not too many are unavailable (W37, W38).
    fn replace(&mut self) {
        let Update::Rolling { unavailable, .. } = self.wanted.update else { return };
        let outdated = self.outdated();
        if outdated.is_empty() {
            return;
        }
        let down = self.wanted.ordinals.clone().filter(|ordinal| !self.is_available(*ordinal)).count();
        let room = (unavailable as usize).saturating_sub(down);
        let chosen: Vec<u32> = outdated.into_iter().take(room).collect();
        if chosen.is_empty() {
            return;
        }
        if self.may_replace() {
            chosen.into_iter().for_each(|ordinal| self.withdraw(ordinal));
        } else {
            self.is_held = true;
        }
    }

    /// Makes the update's revision the current one when all pods have it and are ready (W37).
    fn finish_update(&mut self) {
        let all = self.wanted.ordinals.clone().all(|ordinal| {
            self.memory.pods.get(&ordinal) == Some(&self.update.hash) && self.availability_of(ordinal) != Availability::Unavailable
        });
        if all && matches!(self.wanted.update, Update::Rolling { .. }) {
            self.memory.current = self.update.hash.clone();
        }
    }

    fn prune(&mut self, limit: i32) {
        let living: BTreeSet<&TemplateHash> = self.memory.pods.values().chain([&self.memory.current]).collect();
        self.memory.revisions.prune(usize::try_from(limit).unwrap_or(0), |revision| living.contains(&revision.hash));
    }

    fn warm(&self) -> Option<PodTemplateSpec> {
        let is_missing = self.is_held && !(self.context.has_images)(&self.update.template);
        is_missing.then(|| self.update.template.clone())
    }

    fn next_availability(&self) -> Option<Moment> {
        let moments = self.memory.pods.keys().filter_map(|ordinal| match self.availability_of(*ordinal) {
            Availability::From(moment) => Some(moment),
            Availability::Available | Availability::Unavailable => None,
        });
        let is_waited_for = |ordinal: &u32| !self.is_available(*ordinal) && self.is_coming_back(*ordinal);
        let recovery = self.outdated().iter().any(is_waited_for).then(|| Moment::after_boot(RECOVERY));
        moments.chain(recovery).min()
    }

    fn wanted_pods(&self) -> Vec<Pod> {
        self.memory.pods.iter().filter_map(|(ordinal, hash)| Some(self.pod(*ordinal, self.memory.revisions.find(hash)?))).collect()
    }

    /// A pod with its identity: host name, subdomain, labels and claims (W6, W35, W41).
    fn pod(&self, ordinal: u32, revision: &Revision) -> Pod {
        let (name, number) = (self.pod_name(ordinal), ordinal.to_string());
        let controller_revision = template::name(self.owner, revision.hash.as_str());
        let labels = [
            ("apps.kubernetes.io/pod-index", number.as_str()),
            ("controller-revision-hash", controller_revision.as_str()),
            ("statefulset.kubernetes.io/pod-name", name.as_str()),
        ];
        let owner = Owner { api_version: "apps/v1", kind: "StatefulSet", name: self.owner, uid: &self.memory.identity.uid };
        let mut pod = template::pod(&revision.template, &name, self.object.metadata.namespace.as_deref(), &labels, &owner);
        let spec = pod.spec.get_or_insert_default();
        spec.hostname = Some(name.clone());
        let service: Option<String> = revision.beside["serviceName"].as_str().map(str::to_owned);
        spec.subdomain = service.filter(|service| !service.is_empty());
        claims::mount(spec, &revision.beside, self.owner, ordinal);
        pod
    }
}
