//! Rules for a Deployment (W20).

use super::{check_amount, check_replicas, check_template};
use crate::problem::{Problem, Problems};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};

/// The deadline in seconds if none is written.
const DEADLINE: i32 = 600;

/// Lists all problems of a Deployment's own fields.
pub fn deployment(object: &Deployment) -> Vec<Problem> {
    let mut found = Problems::default();
    match &object.spec {
        None => {
            found.required("spec", "");
        }
        Some(spec) => {
            check_replicas(spec.replicas, &mut found);
            check_template(&spec.selector, &spec.template, "Deployment", &mut found);
            check_strategy(spec, &mut found);
            check_times(spec, &mut found);
        }
    }
    found.into_vec()
}

fn check_strategy(spec: &DeploymentSpec, found: &mut Problems) {
    let Some(strategy) = &spec.strategy else { return };
    let path = "spec.strategy.rollingUpdate";
    match (strategy.type_.as_deref(), &strategy.rolling_update) {
        (Some("Recreate"), Some(_)) => {
            found.forbidden(path, "may not be specified when strategy `type` is 'Recreate'");
        }
        (Some("Recreate"), None) | (None | Some("RollingUpdate"), None) => {}
        (None | Some("RollingUpdate"), Some(rolling)) => {
            let unavailable = check_amount(&format!("{path}.maxUnavailable"), rolling.max_unavailable.as_ref(), true, found);
            let surge = check_amount(&format!("{path}.maxSurge"), rolling.max_surge.as_ref(), false, found);
            if unavailable && surge {
                found.invalid(format!("{path}.maxUnavailable"), 0, "may not be 0 when `maxSurge` is 0");
            }
        }
        (Some(other), _) => {
            found.not_one_of("spec.strategy.type", other, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn check_times(spec: &DeploymentSpec, found: &mut Problems) {
    found.not_negative("spec.minReadySeconds", spec.min_ready_seconds.map(i64::from));
    found.not_negative("spec.revisionHistoryLimit", spec.revision_history_limit.map(i64::from));
    found.not_negative("spec.progressDeadlineSeconds", spec.progress_deadline_seconds.map(i64::from));
    let deadline = spec.progress_deadline_seconds.unwrap_or(DEADLINE);
    if deadline <= spec.min_ready_seconds.unwrap_or(0) {
        found.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
    }
}
