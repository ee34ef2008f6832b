//! The status of a StatefulSet (W44).

use super::State;
use crate::context::Availability;
use crate::revision::TemplateHash;
use crate::template;
use k8s_openapi::api::apps::v1::StatefulSetStatus;

/// The status as it is shown.
pub(super) fn of(state: &State<'_>) -> StatefulSetStatus {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let (pods, current, update) = (&state.memory.pods, &state.memory.current, &state.update.hash);
    let with = |wanted: &TemplateHash| number(pods.values().filter(|hash| *hash == wanted).count());
    let ready = pods.keys().filter(|ordinal| state.availability_of(**ordinal) != Availability::Unavailable);
    let available = pods.keys().filter(|ordinal| state.is_available(**ordinal));
    let name = |hash: &TemplateHash| template::name(state.owner, hash.as_str());
    StatefulSetStatus {
        observed_generation: Some(state.memory.identity.generation),
        replicas: number(pods.len()),
        ready_replicas: Some(number(ready.count())),
        available_replicas: Some(number(available.count())),
        current_replicas: Some(with(current)),
        updated_replicas: Some(with(update)),
        current_revision: Some(name(current)),
        update_revision: Some(name(update)),
        collision_count: Some(i32::try_from(state.memory.revisions.collisions).unwrap_or(i32::MAX)),
        conditions: None,
    }
}
