//! Rules for a StatefulSet (W34).

use super::{check_amount, check_replicas, check_template};
use crate::problem::{Problem, Problems};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use std::collections::BTreeSet;

/// Bytes in a DNS label, which the name of each pod is.
const LONGEST_LABEL: usize = 63;

/// Lists all problems of a StatefulSet's own fields.
pub fn stateful_set(object: &StatefulSet) -> Vec<Problem> {
    let mut found = Problems::default();
    match &object.spec {
        None => {
            found.required("spec", "");
        }
        Some(spec) => {
            check_name(object.metadata.name.as_deref().unwrap_or_default(), spec, &mut found);
            check_replicas(spec.replicas, &mut found);
            check_template(&spec.selector, &spec.template, "StatefulSet", &mut found);
            check_update(spec, &mut found);
            check_claims(spec, &mut found);
            found.not_negative("spec.minReadySeconds", spec.min_ready_seconds.map(i64::from));
            found.not_negative("spec.revisionHistoryLimit", spec.revision_history_limit.map(i64::from));
            found.not_negative("spec.ordinals.start", spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).map(i64::from));
        }
    }
    found.into_vec()
}

/// The name of each pod, which is its host name, is a DNS label.
fn check_name(name: &str, spec: &StatefulSetSpec, found: &mut Problems) {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    let last = format!("{name}-{}", start.saturating_add(spec.replicas.unwrap_or(1)).saturating_sub(1).max(0));
    if last.len() > LONGEST_LABEL {
        found.invalid("metadata.name", name, format_args!("must be no more than {LONGEST_LABEL} characters"));
        found.hint(format!("shorten the name: the last pod would be called {last}"));
    } else if name.contains('.') {
        let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'";
        found.invalid("metadata.name", name, rule);
        found.hint("the names of the pods are host names");
    }
}

fn check_update(spec: &StatefulSetSpec, found: &mut Problems) {
    if let Some(policy) = spec.pod_management_policy.as_deref().filter(|policy| !["OrderedReady", "Parallel"].contains(policy)) {
        found.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let Some(strategy) = &spec.update_strategy else { return };
    let path = "spec.updateStrategy.rollingUpdate";
    match (strategy.type_.as_deref(), &strategy.rolling_update) {
        (Some("OnDelete"), Some(_)) => {
            found.forbidden(path, "only allowed for updateStrategy 'RollingUpdate'");
        }
        (Some("OnDelete"), None) | (None | Some("RollingUpdate"), None) => {}
        (None | Some("RollingUpdate"), Some(rolling)) => {
            found.not_negative(format!("{path}.partition"), rolling.partition.map(i64::from));
            let field = format!("{path}.maxUnavailable");
            if check_amount(&field, rolling.max_unavailable.as_ref(), true, found) {
                found.invalid(field, 0, "cannot be 0");
            }
        }
        (Some(other), _) => {
            found.invalid("spec.updateStrategy", other, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn check_claims(spec: &StatefulSetSpec, found: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, template) in spec.volume_claim_templates.iter().flatten().enumerate() {
        let field = format!("spec.volumeClaimTemplates[{index}].metadata.name");
        match template.metadata.name.as_deref() {
            None | Some("") => {
                found.required(field, "");
                found.hint("containers mount the claim by this name");
            }
            Some(name) if !seen.insert(name) => {
                found.invalid(field, name, "must be unique");
            }
            Some(_) => {}
        }
    }
    let Some(policy) = &spec.persistent_volume_claim_retention_policy else { return };
    for (name, value) in [("whenDeleted", &policy.when_deleted), ("whenScaled", &policy.when_scaled)] {
        if let Some(value) = value.as_deref().filter(|value| !["Retain", "Delete"].contains(value)) {
            let field = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
            found.not_one_of(field, value, &["Delete", "Retain"]);
        }
    }
}
