//! Writes of pods with access to the host need role admin, as sessions in such pods do: otherwise role edit would be as much as root.

use super::plan::Planned;
use super::target::Target;
use crate::access::Grants;
use crate::failure::ApiFailure;
use podstead_pod::Pod;
use podstead_settings::Role;
use podstead_store::needs_host_access;
use serde_json::{Value, json};

/// Refuses a change of an object whose pods have access to the host, before or after it, to all but role admin.
pub(super) fn authorize(grants: &Grants, user: &str, target: &Target, name: &str, planned: &Planned) -> Result<(), ApiFailure> {
    if grants.role_in(Some(&target.namespace)) == Some(Role::Admin) {
        return Ok(());
    }
    let has_access = [&planned.before, &planned.after].into_iter().any(|object| has_host_access(target, object));
    if !has_access {
        return Ok(());
    }
    let message = format!(
        "{} {name:?} is forbidden: user {user:?} cannot write pods with access to the host, which needs role admin; allow in the \
         configuration of the source says what counts as such",
        target.plural
    );
    Err(ApiFailure::forbidden(message).about(target.plural, name))
}

fn has_host_access(target: &Target, object: &Value) -> bool {
    let pod = match target.kind {
        "Pod" => object,
        "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"],
        "Deployment" | "ReplicaSet" | "ReplicationController" | "StatefulSet" | "DaemonSet" | "Job" => &object["spec"]["template"],
        _ => return false,
    };
    if pod.is_null() {
        return false;
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": pod["spec"]});
    // A pod that cannot be read is not known to be harmless.
    serde_json::from_value::<Pod>(pod).map_or(true, |pod| needs_host_access(&pod, &target.namespace))
}

#[cfg(test)]
mod tests {
    use super::super::plan::Outcome;
    use super::*;
    use crate::route::{PodPath, Route};
    use podstead_settings::api::WrittenRole;

    fn grants(role: &str) -> Grants {
        let roles: Vec<WrittenRole> = serde_json::from_value(json!([{"role": role, "groups": ["g"]}])).unwrap();
        Grants::of(roles.iter())
    }

    fn planned(before: Value, after: Value) -> Planned {
        Planned {
            outcome: Outcome::Changed,
            edit: None,
            before,
            after,
            written: Default::default(),
            warnings: Vec::new(),
            record: Default::default(),
        }
    }

    fn is_allowed(role: &str, before: &Value, after: &Value) -> bool {
        let path = PodPath { namespace: "shop".to_owned(), name: "web".to_owned() };
        let target = Target::of(&Route::Pod(path), "default").unwrap();
        authorize(&grants(role), "ann", &target, "web", &planned(before.clone(), after.clone())).is_ok()
    }

    #[test]
    fn host_access_needs_admin() {
        let plain = json!({"spec": {"containers": [{"name": "a", "image": "b"}]}});
        let privileged = json!({"spec": {"containers": [{"name": "a", "image": "b", "securityContext": {"privileged": true}}]}});
        assert!(is_allowed("edit", &Value::Null, &plain));
        for (before, after) in [(&Value::Null, &privileged), (&privileged, &plain), (&privileged, &Value::Null)] {
            assert!(!is_allowed("edit", before, after), "{before} {after}");
            assert!(is_allowed("admin", before, after));
        }
        let odd = json!({"spec": {"containers": "none"}});
        assert!(!is_allowed("edit", &Value::Null, &odd));
    }
}
