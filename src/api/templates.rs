//! Pod templates of workloads as they are shown: with the defaults that an API server fills in, so that clients show `80/TCP` and not `80/`.
//! ControllerRevisions have them as well. The workloads themselves keep their templates as they are written: their revisions are told apart by them. **Pure**.

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use podstead_pod::defaults;
use serde_json::{Value, json};

/// The places of templates.
const PLACES: [&str; 3] = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/data/spec/template/spec"];

/// Fills in the defaults of the pod template of a workload. Any other object stays as it is.
pub(super) fn fill_in(object: &mut Value) {
    for place in PLACES {
        let Some(spec) = object.pointer_mut(place).filter(|spec| spec.is_object()) else { continue };
        // One that is not understood is shown as it is.
        let Ok(understood) = serde_json::from_value::<PodSpec>(spec.clone()) else { continue };
        let mut pod = Pod { spec: Some(understood), ..Pod::default() };
        defaults::apply(&mut pod);
        *spec = json!(pod.spec);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_a_protocol() {
        let template = |ports: Value| json!({"spec": {"containers": [{"name": "main", "image": "web:1", "ports": ports}]}});
        let mut deployment = json!({"spec": {"replicas": 1, "template": template(json!([{"containerPort": 80}]))}});
        fill_in(&mut deployment);
        let spec = &deployment["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
        assert_eq!(spec["restartPolicy"], "Always");
        let mut cron_job = json!({"spec": {"jobTemplate": {"spec": {"template": template(json!([]))}}}});
        fill_in(&mut cron_job);
        let spec = &cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "IfNotPresent");
        let mut other = json!({"data": {"a": "b"}});
        fill_in(&mut other);
        assert_eq!(other, json!({"data": {"a": "b"}}));
    }
}
