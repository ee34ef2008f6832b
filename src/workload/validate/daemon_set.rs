//! Rules for a DaemonSet (W45).

use super::{check_amount, check_template};
use crate::problem::{Problem, Problems};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec};

/// Lists all problems of a DaemonSet's own fields.
pub fn daemon_set(object: &DaemonSet) -> Vec<Problem> {
    let mut found = Problems::default();
    match &object.spec {
        None => {
            found.required("spec", "");
        }
        Some(spec) => {
            check_template(&spec.selector, &spec.template, "DaemonSet", &mut found);
            check_update(spec, &mut found);
            found.not_negative("spec.minReadySeconds", spec.min_ready_seconds.map(i64::from));
            found.not_negative("spec.revisionHistoryLimit", spec.revision_history_limit.map(i64::from));
        }
    }
    found.into_vec()
}

/// Exactly one of the two limits is not 0. `maxUnavailable` is 1 and `maxSurge` 0 if they are not written.
fn check_update(spec: &DaemonSetSpec, found: &mut Problems) {
    let Some(strategy) = &spec.update_strategy else { return };
    if let Some(other) = strategy.type_.as_deref().filter(|name| !["RollingUpdate", "OnDelete"].contains(name)) {
        found.not_one_of("spec.updateStrategy.type", other, &["OnDelete", "RollingUpdate"]);
        return;
    }
    let Some(rolling) = strategy.rolling_update.as_ref().filter(|_| strategy.type_.as_deref() != Some("OnDelete")) else { return };
    let path = "spec.updateStrategy.rollingUpdate";
    let unavailable_is_0 = check_amount(&format!("{path}.maxUnavailable"), rolling.max_unavailable.as_ref(), true, found);
    let surge_is_0 =
        check_amount(&format!("{path}.maxSurge"), rolling.max_surge.as_ref(), true, found) || rolling.max_surge.is_none();
    match (unavailable_is_0, surge_is_0) {
        (true, true) => {
            found.required(format!("{path}.maxUnavailable"), "cannot be 0 when maxSurge is 0");
        }
        (false, false) => {
            let field = format!("{path}.maxSurge");
            found.invalid(field, "not 0", "may not be set when maxUnavailable is non-zero");
            found.hint("write maxUnavailable: 0");
        }
        (true, false) | (false, true) => {}
    }
}
