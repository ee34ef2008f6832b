//! ReplicaSets and ReplicationControllers (W31 to W33).
//!
//! A ReplicationController is a ReplicaSet with another selector and another API version: the caller converts it.

#[cfg(test)]
mod tests;

use crate::adoption;
use crate::conditions::{Condition, Conditions};
use crate::context::{Availability, Context, Pods, availability};
use crate::event::WorkloadEvent;
use crate::exclusive;
use crate::failure::{REPLICA_FAILURE, failure};
use crate::host_fit;
use crate::identity::Identity;
use crate::moment::Moment;
use crate::rank::{Candidate, first_to_go};
use crate::revision::{Revisions, TemplateHash};
use crate::template::{self, Owner};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The memory of a ReplicaSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaSetMemory {
    /// UID, generation and age.
    pub identity: Identity,
    /// Its template and those of pods that were made from earlier ones.
    pub revisions: Revisions,
    /// The pods that are wanted, by the numbers in their names, with their templates.
    #[serde(default)]
    pub pods: BTreeMap<u32, TemplateHash>,
    /// Pods that are not wanted any more and may still exist.
    #[serde(default)]
    pub leaving: BTreeSet<u32>,
    /// Its conditions.
    #[serde(default)]
    pub conditions: Conditions,
}

impl ReplicaSetMemory {
    /// Withdraws a pod that an operator wants made anew: its replacement has the newest revision. Returns false for a pod that it does not want.
    pub fn withdraw(&mut self, owner: &str, pod: &str) -> bool {
        let slot = self.pods.keys().copied().find(|slot| pod_name(owner, *slot) == pod);
        slot.is_some_and(|slot| self.pods.remove(&slot).is_some() && self.leaving.insert(slot))
    }
}

/// The result of one evaluation.
#[derive(Debug)]
pub struct Step {
    /// To be written to disk before anything else is done.
    pub memory: ReplicaSetMemory,
    /// The pods that are wanted now.
    pub pods: Vec<Pod>,
    /// Its status.
    pub status: ReplicaSetStatus,
    /// Events to record.
    pub events: Vec<WorkloadEvent>,
    /// The time of the next look, if nothing happens before.
    pub wake: Option<Moment>,
}

/// The API version and kind that pods name as their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `v1` ReplicationController.
    ReplicationController,
}

impl Flavour {
    fn type_meta(self) -> (&'static str, &'static str) {
        match self {
            Self::ReplicaSet => ("apps/v1", "ReplicaSet"),
            Self::ReplicationController => ("v1", "ReplicationController"),
        }
    }
}

/// Decides which pods of a ReplicaSet are wanted now.
pub fn step(object: &ReplicaSet, flavour: Flavour, memory: Option<&ReplicaSetMemory>, pods: &Pods, context: &Context<'_>) -> Step {
    let default = ReplicaSetSpec::default();
    let spec = object.spec.as_ref().unwrap_or(&default);
    let owner = object.metadata.name.as_deref().unwrap_or_default();
    let template = spec.template.clone().unwrap_or_default();
    let is_lost = memory.is_none() && context.is_memory_lost;
    let mut memory = remember(memory, spec, context);
    let mut events = Vec::new();
    let newest = memory.revisions.take(&template, &serde_json::Value::Null, &BTreeMap::new(), context).0.hash.clone();
    if is_lost {
        memory.pods.extend(adoption::numbers(pods, |slot| pod_name(owner, slot)).into_iter().map(|slot| (slot, newest.clone())));
    }
    memory.leaving.retain(|slot| pods.contains_key(&pod_name(owner, *slot)));
    let written = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    let replicas = limit_replicas(&template, written, &mut memory, context, &mut events);
    resize(owner, replicas, &mut memory, pods, context, &mut events);
    let living: BTreeSet<TemplateHash> = memory.pods.values().cloned().collect();
    memory.revisions.prune(0, |revision| living.contains(&revision.hash));
    let min_ready_seconds = u32::try_from(spec.min_ready_seconds.unwrap_or(0)).unwrap_or(0);
    let seen: Vec<Availability> = memory
        .pods
        .keys()
        .map(|slot| pods.get(&pod_name(owner, *slot)))
        .map(|pod| pod.map_or(Availability::Unavailable, |pod| availability(pod, min_ready_seconds, context.moment)))
        .collect();
    let status = status(&memory, &seen);
    let wake = seen.iter().filter_map(|seen| if let Availability::From(moment) = seen { Some(*moment) } else { None }).min();
    let pods = wanted_pods(object, owner, flavour, &memory);
    Step { memory, pods, status, events, wake }
}

fn remember(memory: Option<&ReplicaSetMemory>, spec: &ReplicaSetSpec, context: &Context<'_>) -> ReplicaSetMemory {
    let identity = Identity::of(memory.map(|memory| &memory.identity), spec, context);
    let fresh = || ReplicaSetMemory {
        identity: identity.clone(),
        revisions: Revisions::default(),
        pods: BTreeMap::new(),
        leaving: BTreeSet::new(),
        conditions: Conditions::default(),
    };
    memory.map_or_else(fresh, |memory| ReplicaSetMemory { identity: identity.clone(), ..memory.clone() })
}

fn pod_name(owner: &str, slot: u32) -> String {
    template::name(owner, &slot.to_string())
}

/// Returns the number of pods that can exist on this host, and sets the condition that gives the reason if it is lower than written.
fn limit_replicas(
    template: &PodTemplateSpec,
    written: u32,
    memory: &mut ReplicaSetMemory,
    context: &Context<'_>,
    events: &mut Vec<WorkloadEvent>,
) -> u32 {
    let exclusive = exclusive::of(template, context.is_exclusive_claim);
    let fits = template.spec.as_ref().is_none_or(|spec| host_fit::fits(spec, context.host));
    match failure(written, exclusive.as_ref(), fits) {
        Some((reason, message)) => {
            if memory.conditions.set(REPLICA_FAILURE, true, reason, &message, context.wall) {
                events.push(WorkloadEvent::warning(reason, message));
            }
        }
        None => memory.conditions.remove(REPLICA_FAILURE),
    }
    match exclusive {
        _ if !fits => 0,
        Some(_) => written.min(1),
        None => written,
    }
}

fn resize(
    owner: &str,
    replicas: u32,
    memory: &mut ReplicaSetMemory,
    pods: &Pods,
    context: &Context<'_>,
    events: &mut Vec<WorkloadEvent>,
) {
    let Some(newest) = memory.revisions.newest().map(|revision| revision.hash.clone()) else { return };
    let now = u32::try_from(memory.pods.len()).unwrap_or(u32::MAX);
    if now < replicas {
        let is_free = |slot: &u32| {
            let name = pod_name(owner, *slot);
            !memory.pods.contains_key(slot)
                && !memory.leaving.contains(slot)
                && !pods.contains_key(&name)
                && !(context.is_taken)(&name)
        };
        let chosen: Vec<u32> = (0..).filter(is_free).take((replicas - now) as usize).collect();
        for slot in chosen {
            events.push(WorkloadEvent::normal("SuccessfulCreate", format!("Created pod: {}", pod_name(owner, slot))));
            memory.pods.insert(slot, newest.clone());
        }
    } else {
        let candidates = memory.pods.keys().map(|slot| Candidate { slot: *slot, pod: pods.get(&pod_name(owner, *slot)) });
        for slot in first_to_go(candidates).into_iter().take((now - replicas) as usize) {
            events.push(WorkloadEvent::normal("SuccessfulDelete", format!("Deleted pod: {}", pod_name(owner, slot))));
            memory.pods.remove(&slot);
            memory.leaving.insert(slot);
        }
    }
}

fn status(memory: &ReplicaSetMemory, seen: &[Availability]) -> ReplicaSetStatus {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let conditions: Vec<ReplicaSetCondition> = memory.conditions.iter().map(shown).collect();
    ReplicaSetStatus {
        replicas: number(memory.pods.len()),
        fully_labeled_replicas: Some(number(memory.pods.len())),
        ready_replicas: Some(number(seen.iter().filter(|seen| **seen != Availability::Unavailable).count())),
        available_replicas: Some(number(seen.iter().filter(|seen| **seen == Availability::Available).count())),
        terminating_replicas: Some(number(memory.leaving.len())),
        observed_generation: Some(memory.identity.generation),
        conditions: (!conditions.is_empty()).then_some(conditions),
    }
}

fn shown(condition: &Condition) -> ReplicaSetCondition {
    ReplicaSetCondition {
        type_: condition.kind.clone(),
        status: if condition.status { "True" } else { "False" }.to_owned(),
        reason: Some(condition.reason.clone()),
        message: Some(condition.message.clone()),
        last_transition_time: Some(Time(condition.changed)),
    }
}

fn wanted_pods(object: &ReplicaSet, owner: &str, flavour: Flavour, memory: &ReplicaSetMemory) -> Vec<Pod> {
    let (api_version, kind) = flavour.type_meta();
    let reference = Owner { api_version, kind, name: owner, uid: &memory.identity.uid };
    let namespace = object.metadata.namespace.as_deref();
    let pod = |(slot, hash): (&u32, &TemplateHash)| {
        let revision = memory.revisions.find(hash)?;
        Some(template::pod(&revision.template, &pod_name(owner, *slot), namespace, &[], &reference))
    };
    memory.pods.iter().filter_map(pod).collect()
}
