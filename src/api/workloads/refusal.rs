//! Errors for changes of a workload: they name the place of its manifest and, where the request says enough, the field to edit (W12). **Pure**
//! but for the look-up.

use super::Workloads;
use crate::failure::ApiFailure;
use crate::own::short_revision;
use crate::published_workloads::PublishedWorkload;
use crate::route::PodPath;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;

/// The annotation that `kubectl rollout restart` sets in the pod template.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

impl Workloads {
    /// Error for changes of a workload. `body` is what the client sent, if it could be read.
    pub(crate) fn refuse_change(&self, path: &PodPath, body: Option<&Value>) -> ApiFailure {
        self.refuse(path, body.and_then(field_to_edit).unwrap_or("change or remove its manifest there"))
    }

    /// Error for changes of the number of pods.
    pub(crate) fn refuse_scaling(&self, path: &PodPath) -> ApiFailure {
        self.refuse(path, "edit spec.replicas of its manifest there")
    }

    fn refuse(&self, path: &PodPath, what_to_do: &str) -> ApiFailure {
        let resource = self.resource();
        match self.find(path) {
            Ok(workload) => {
                let PublishedWorkload { source, revision, origin, .. } = &*workload;
                let revision = short_revision(&revision.0);
                let owner = owner(&workload.object()).map(|owner| format!(" belongs to {owner} and")).unwrap_or_default();
                ApiFailure::method_not_allowed(format!(
                    "{} {:?}{owner} is managed by source {source} (revision {revision}, {origin}): {what_to_do}",
                    resource.singular, path.name
                ))
                .about(resource.qualified, &path.name)
            }
            Err(not_found) => not_found,
        }
    }

    /// Error for creating a workload: names the sources.
    pub(crate) fn refuse_creation(&self) -> ApiFailure {
        let refusal = self.published.refuse_creation(self.resource().plural);
        match self.kind {
            // `kubectl create job --from=cronjob/NAME`.
            WorkloadKind::Job => {
                let message = format!("{}; podstead job run NAME starts a CronJob now", refusal.message);
                ApiFailure { message, ..refusal }
            }
            WorkloadKind::StatefulSet
            | WorkloadKind::DaemonSet
            | WorkloadKind::Deployment
            | WorkloadKind::ReplicaSet
            | WorkloadKind::ReplicationController
            | WorkloadKind::CronJob => refusal,
        }
    }
}

/// The workload that made this one, such as `deployment "web"`.
fn owner(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(format!("{} {:?}", owner["kind"].as_str()?.to_lowercase(), owner["name"].as_str()?))
}

/// The edit that has the effect of `kubectl rollout restart`, `pause`, `resume` or `undo`, or of a patch of `suspend`; `None` for other requests.
fn field_to_edit(body: &Value) -> Option<&'static str> {
    // `rollout undo` sends a JSON patch.
    let replaces_template =
        body.as_array().is_some_and(|patch| patch.iter().any(|operation| operation["path"] == "/spec/template"));
    if replaces_template {
        return Some("return its source to an earlier revision (podstead rollback)");
    }
    if !body["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT].is_null() {
        return Some("to restart its pods, add an annotation to spec.template.metadata of its manifest there");
    }
    if !body["spec"]["paused"].is_null() {
        return Some("edit spec.paused of its manifest there");
    }
    if !body["spec"]["suspend"].is_null() {
        return Some("edit spec.suspend of its manifest there");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refusals_name_the_field_to_edit() {
        let restart = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: "2026-01-01T00:00:00Z"}}}}});
        let undo = json!([{"op": "replace", "path": "/spec/template", "value": {}}]);
        for (body, expected) in [
            (restart, "to restart its pods"),
            (undo, "return its source"),
            (json!({"spec": {"paused": true}}), "edit spec.paused"),
            (json!({"spec": {"suspend": true}}), "edit spec.suspend"),
        ] {
            assert!(field_to_edit(&body).unwrap().starts_with(expected), "{body}");
        }
        for other in [json!({"spec": {"replicas": 2}}), json!("x"), json!(null), json!([1])] {
            assert_eq!(field_to_edit(&other), None, "{other}");
        }
    }
}
