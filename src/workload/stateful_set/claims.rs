//! Claims of a StatefulSet (W41 to W43).

use super::State;
use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec, Volume};
use serde_json::Value;
use std::collections::BTreeSet;

/// The annotation that says what becomes of a claim's data when nothing wants the claim any more.
const RECLAIM_POLICY: &str = "podstead.dev/reclaim-policy";

fn name(template: &str, owner: &str, ordinal: u32) -> String {
    format!("{template}-{owner}-{ordinal}")
}

fn template_names(spec: &StatefulSetSpec) -> impl Iterator<Item = &str> {
    spec.volume_claim_templates.iter().flatten().filter_map(|template| template.metadata.name.as_deref())
}

/// Names of the claims of one pod.
pub(super) fn names(spec: &StatefulSetSpec, owner: &str, ordinal: u32) -> Vec<String> {
    template_names(spec).map(|template| name(template, owner, ordinal)).collect()
}

/// The pod template without the volumes that the set's own claims replace.
pub(super) fn without_own(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let own: BTreeSet<&str> = template_names(spec).collect();
    let mut template = spec.template.clone();
    if let Some(volumes) = template.spec.as_mut().and_then(|spec| spec.volumes.as_mut()) {
        volumes.retain(|volume| !own.contains(volume.name.as_str()));
    }
    template
}

/// Gives a pod its claims as volumes; they replace volumes of the same names. `beside` is what the revision remembers.
pub(super) fn mount(spec: &mut PodSpec, beside: &Value, owner: &str, ordinal: u32) {
    let templates = beside["volumeClaimTemplates"].as_array().into_iter().flatten();
    let own: Vec<&str> = templates.filter_map(|template| template["metadata"]["name"].as_str()).collect();
    if own.is_empty() {
        return;
    }
    let volumes = spec.volumes.get_or_insert_default();
    volumes.retain(|volume| !own.contains(&volume.name.as_str()));
    volumes.extend(own.into_iter().map(|template| Volume {
        name: template.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: name(template, owner, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    }));
}

fn deletes(policy: Option<&str>) -> bool {
    policy == Some("Delete")
}

/// Lets the claims of ordinals out of range go, if the policy deletes them and no pod has them any more (W42).
pub(super) fn release(state: &mut State<'_>) {
    let policy = state.spec.persistent_volume_claim_retention_policy.as_ref();
    if !deletes(policy.and_then(|policy| policy.when_scaled.as_deref())) {
        return;
    }
    let (ordinals, memory) = (&state.wanted.claimed, &mut state.memory);
    let (pods, leaving) = (&memory.pods, &memory.leaving);
    memory.claims.retain(|ordinal| ordinals.contains(ordinal) || pods.contains_key(ordinal) || leaving.contains(ordinal));
}

/// The claims that are wanted: of all ordinals in range that ever had a pod, and of the others unless the policy deletes them (W42).
pub(super) fn wanted(state: &State<'_>) -> Vec<PersistentVolumeClaim> {
    let policy = state.spec.persistent_volume_claim_retention_policy.clone().unwrap_or_default();
    let mut all = Vec::new();
    for ordinal in &state.memory.claims {
        let is_in_range = state.wanted.claimed.contains(ordinal);
        let is_deleted = deletes(if is_in_range { policy.when_deleted.as_deref() } else { policy.when_scaled.as_deref() });
        let templates = state.spec.volume_claim_templates.iter().flatten();
        all.extend(templates.filter_map(|template| claim(state, template, *ordinal, is_deleted)));
    }
    all
}

/// A claim with the labels of its template and of the set's selector.
fn claim(state: &State<'_>, template: &PersistentVolumeClaim, ordinal: u32, is_deleted: bool) -> Option<PersistentVolumeClaim> {
    let mut claim = template.clone();
    let metadata = &mut claim.metadata;
    metadata.name = Some(name(metadata.name.as_deref()?, state.owner, ordinal));
    metadata.namespace.clone_from(&state.object.metadata.namespace);
    let selector = state.spec.selector.match_labels.clone().unwrap_or_default();
    if !selector.is_empty() {
        metadata.labels.get_or_insert_default().extend(selector);
    }
    if is_deleted {
        metadata.annotations.get_or_insert_default().insert(RECLAIM_POLICY.to_owned(), "Delete".to_owned());
    }
    claim.status = None;
    Some(claim)
}
