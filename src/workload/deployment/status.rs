//! Status, conditions and ReplicaSets of a Deployment (W28 to W30).

use super::progress::{Counters, Stage};
use super::{State, replica_set_name};
use crate::conditions::Condition;
use crate::context::Availability;
use crate::event::WorkloadEvent;
use crate::failure::{REPLICA_FAILURE, failure};
use crate::revision::{Revision, TemplateHash};
use crate::slots::Slots;
use crate::template::Owner;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use std::collections::BTreeMap;

/// The condition that tells that the minimum of pods is available.
const AVAILABLE: &str = "Available";
/// The condition that tells how far the rollout is.
const PROGRESSING: &str = "Progressing";

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Sets the conditions; tells of those that an operator should look at.
pub(super) fn set_conditions(state: &mut State<'_>, counters: &Counters, deadline_seconds: i32) {
    let now = state.context.wall;
    let minimum = state.wanted.replicas.saturating_sub(state.wanted.limits().unavailable);
    let conditions = &mut state.memory.conditions;
    if counters.available >= minimum {
        conditions.set(AVAILABLE, true, "MinimumReplicasAvailable", "Deployment has minimum availability.", now);
    } else {
        conditions.set(AVAILABLE, false, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now);
    }
    let name = state.memory.revisions.newest().map(|revision| replica_set_name(state.owner, &revision.hash)).unwrap_or_default();
    match &state.memory.progress {
        Some(progress) if deadline_seconds != i32::MAX => {
            let (status, reason, message) = describe(progress.stage, &name);
            let is_other = conditions.set(PROGRESSING, status, reason, &message, now);
            if is_other && progress.stage == Stage::ProgressDeadlineExceeded {
                state.events.push(WorkloadEvent::warning(reason, message));
            }
        }
        Some(_) | None => conditions.remove(PROGRESSING),
    }
    set_failure(state);
}

/// Tells of pods that are written and cannot exist on this host (W82, W85).
fn set_failure(state: &mut State<'_>) {
    let wanted = state.wanted;
    match failure(wanted.written, wanted.exclusive.as_ref(), wanted.fits) {
        Some((reason, message)) => {
            if state.memory.conditions.set(REPLICA_FAILURE, true, reason, &message, state.context.wall) {
                state.events.push(WorkloadEvent::warning(reason, message));
            }
        }
        None => state.memory.conditions.remove(REPLICA_FAILURE),
    }
}

fn describe(stage: Stage, name: &str) -> (bool, &'static str, String) {
    match stage {
        Stage::NewReplicaSetCreated => (true, "NewReplicaSetCreated", format!("Created new replica set \"{name}\"")),
        Stage::FoundNewReplicaSet => (true, "FoundNewReplicaSet", format!("Found new replica set \"{name}\"")),
        Stage::ReplicaSetUpdated => (true, "ReplicaSetUpdated", format!("ReplicaSet \"{name}\" is progressing.")),
        Stage::NewReplicaSetAvailable => {
            (true, "NewReplicaSetAvailable", format!("ReplicaSet \"{name}\" has successfully progressed."))
        }
        Stage::ProgressDeadlineExceeded => {
            (false, "ProgressDeadlineExceeded", format!("ReplicaSet \"{name}\" has timed out progressing."))
        }
        Stage::DeploymentPaused => (true, "DeploymentPaused", "Deployment is paused".to_owned()),
        Stage::DeploymentResumed => (true, "DeploymentResumed", "Deployment is resumed".to_owned()),
    }
}

/// The status of the Deployment.
pub(super) fn of(state: &State<'_>) -> DeploymentStatus {
    let counters = state.counters();
    let replicas = counters.updated + counters.old;
    let leaving: usize = state.memory.pods.values().map(|slots| slots.leaving.len()).sum();
    let unavailable = state.wanted.replicas.max(replicas).saturating_sub(counters.available);
    DeploymentStatus {
        observed_generation: Some(state.memory.identity.generation),
        replicas: Some(number(replicas)),
        updated_replicas: Some(number(counters.updated)),
        ready_replicas: Some(number(counters.ready)),
        available_replicas: Some(number(counters.available)),
        unavailable_replicas: Some(number(unavailable)),
        terminating_replicas: Some(i32::try_from(leaving).unwrap_or(i32::MAX)),
        collision_count: i32::try_from(state.memory.revisions.collisions).ok().filter(|count| *count > 0),
        conditions: Some(state.memory.conditions.iter().map(shown).collect()),
    }
}

fn shown(condition: &Condition) -> DeploymentCondition {
    DeploymentCondition {
        type_: condition.kind.clone(),
        status: if condition.status { "True" } else { "False" }.to_owned(),
        reason: Some(condition.reason.clone()),
        message: Some(condition.message.clone()),
        last_update_time: Some(Time(condition.updated)),
        last_transition_time: Some(Time(condition.changed)),
    }
}

/// The ReplicaSets that stand for the revisions, oldest first (W30).
pub(super) fn replica_sets(state: &State<'_>, deployment: &Deployment) -> Vec<ReplicaSet> {
    state.memory.revisions.iter().map(|revision| replica_set(state, deployment, revision)).collect()
}

fn replica_set(state: &State<'_>, deployment: &Deployment, revision: &Revision) -> ReplicaSet {
    let empty = Slots::default();
    let slots = state.memory.pods.get(&revision.hash).unwrap_or(&empty);
    let owner = Owner { api_version: "apps/v1", kind: "Deployment", name: state.owner, uid: &state.memory.identity.uid };
    let mut annotations = revision.annotations.clone();
    annotations.insert("deployment.kubernetes.io/revision".to_owned(), revision.number.to_string());
    annotations.insert("deployment.kubernetes.io/desired-replicas".to_owned(), state.wanted.replicas.to_string());
    annotations.insert("deployment.kubernetes.io/max-replicas".to_owned(), state.wanted.maximum().to_string());
    let with_hash = |labels: Option<BTreeMap<String, String>>| {
        let mut labels = labels.unwrap_or_default();
        labels.insert("pod-template-hash".to_owned(), revision.hash.as_str().to_owned());
        Some(labels)
    };
    let mut template = revision.template.clone();
    let mut template_metadata = template.metadata.take().unwrap_or_default();
    template_metadata.labels = with_hash(template_metadata.labels.take());
    let labels = template_metadata.labels.clone();
    template.metadata = Some(template_metadata);
    let written = deployment.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(replica_set_name(state.owner, &revision.hash)),
            namespace: deployment.metadata.namespace.clone(),
            uid: Some(revision.uid.clone()),
            creation_timestamp: revision.created.map(Time),
            labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owner.reference()]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(number(slots.count())),
            min_ready_seconds: deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds),
            selector: LabelSelector { match_labels: with_hash(written.match_labels), ..written },
            template: Some(template),
        }),
        status: Some(replica_set_status(state, &revision.hash, slots)),
    }
}

fn replica_set_status(state: &State<'_>, hash: &TemplateHash, slots: &Slots) -> ReplicaSetStatus {
    let count = |holds: &dyn Fn(u32) -> bool| i32::try_from(slots.wanted.iter().filter(|slot| holds(**slot)).count()).ok();
    ReplicaSetStatus {
        replicas: number(slots.count()),
        fully_labeled_replicas: Some(number(slots.count())),
        ready_replicas: count(&|slot| state.availability_of(hash, slot) != Availability::Unavailable),
        available_replicas: count(&|slot| state.availability_of(hash, slot) == Availability::Available),
        terminating_replicas: i32::try_from(slots.leaving.len()).ok(),
        observed_generation: Some(1),
        conditions: None,
    }
}
