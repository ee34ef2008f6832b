//! Pods and workloads that are not as they should be, and images that cannot be had.

use super::finding::Finding;
use super::host::Host;
use crate::pods::{name_on_command_line, shown_name};
use crate::trouble::{Evidence, WorkloadTrouble, explain, explain_workloads, is_attempt_of_a_job};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::show::{PodRow, age_since};
use podstead_telemetry::counted;
use serde_json::Value;

/// Restarts from which on a pod that runs is worth a look.
const MANY_RESTARTS: i64 = 10;

pub(super) fn check(host: &Host) -> Vec<Finding> {
    match &host.answers {
        Ok(answers) => judge(&answers.pods, &answers.workloads, &answers.evidence, Timestamp::now()),
        Err(_) => Vec::new(),
    }
}

fn judge(pods: &[Pod], workloads: &[Value], evidence: &Evidence, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pod in pods {
        let row = PodRow::of(pod);
        let name = shown_name(pod);
        if row.is_well() || is_attempt_of_a_job(pod, workloads) {
            if row.restarts >= MANY_RESTARTS {
                let last = row.last_restart.map(|at| format!(", last {} ago", age_since(Some(at), now))).unwrap_or_default();
                let what = format!("pod {name} was restarted {} times{last}", row.restarts);
                findings.push(Finding::note(what, "", format!("podstead logs -p {}", name_on_command_line(pod))));
            }
            continue;
        }
        let trouble = explain(pod, &row, evidence, now);
        let since = trouble.since.map(|since| format!(" for {}", age_since(Some(since), now))).unwrap_or_default();
        let container = trouble.container.as_deref();
        let image = container.filter(|_| is_about_an_image(&row.status)).and_then(|container| image_of(pod, container));
        let image = image.map(|image| format!(", image {image}")).unwrap_or_default();
        let container = container.map(|container| format!(", container {container}")).unwrap_or_default();
        let what = format!("pod {name} is {}{since}{container}{image}", row.status);
        let why = trouble.causes.join("; ");
        let remedy = trouble.remedy.unwrap_or_default();
        findings.push(if is_on_its_way(&row.status) {
            Finding::note(what, why, remedy)
        } else {
            Finding::problem(what, why, remedy)
        });
    }
    findings.extend(explain_workloads(workloads, evidence).into_iter().map(|trouble| of_workload(trouble, now)));
    if findings.is_empty() {
        findings.push(Finding::ok(format!("{}, all healthy", counted(pods.len(), "pod"))));
    }
    findings
}

fn of_workload(trouble: WorkloadTrouble, now: Timestamp) -> Finding {
    let WorkloadTrouble { name, what, is_failure, since, causes, remedy } = trouble;
    let since = since.map(|since| format!(" for {}", age_since(Some(since), now))).unwrap_or_default();
    let (what, why) = (format!("{name}: {what}{since}"), causes.join("; "));
    if is_failure { Finding::problem(what, why, remedy) } else { Finding::note(what, why, remedy) }
}

/// Nothing has gone wrong so far.
fn is_on_its_way(status: &str) -> bool {
    matches!(status, "ContainerCreating" | "PodInitializing" | "Pending" | "Terminating")
        || status.strip_prefix("Init:").is_some_and(|progress| progress.contains('/'))
}

fn is_about_an_image(status: &str) -> bool {
    let status = status.strip_prefix("Init:").unwrap_or(status);
    matches!(
        status,
        "ErrImagePull"
            | "SignatureValidationFailed"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
    )
}

fn image_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a str> {
    let spec = pod.spec.as_ref()?;
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.into_iter().find(|other| other.name == container)?.image.as_deref()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok, Problem};
    use super::*;
    use serde_json::json;

    fn pod(state: &serde_json::Value, restarts: u32) -> Pod {
        let ready = state["running"].is_object();
        serde_json::from_value(json!({
            "metadata": {"name": "web-edge", "namespace": "default"},
            "spec": {"containers": [{"name": "app", "image": "nginx:1"}]},
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "app", "ready": ready, "restartCount": restarts, "image": "", "imageID": "", "state": state},
                ],
            },
        }))
        .unwrap()
    }

    #[test]
    fn pods_are_judged_by_what_they_wait_for() {
        let now = Timestamp::UNIX_EPOCH;
        let severity = |state: serde_json::Value, restarts| -> Severity {
            judge(&[pod(&state, restarts)], &[], &Evidence::default(), now)[0].severity
        };
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "why"}});
        assert_eq!(severity(json!({"running": {}}), 0), Ok);
        assert_eq!(severity(json!({"running": {}}), 40), Note);
        assert_eq!(severity(waiting("ContainerCreating"), 0), Note);
        assert_eq!(severity(waiting("CrashLoopBackOff"), 3), Problem);
        let missing = &judge(&[pod(&waiting("ImagePullBackOff"), 0)], &[], &Evidence::default(), now)[0];
        assert_eq!(missing.what, "pod web-edge is ImagePullBackOff, container app, image nginx:1");
        assert_eq!(missing.why, "why");
        assert!(missing.remedy.contains("podstead image import"), "{missing:?}");
    }

    #[test]
    fn workload_that_stalls_is_a_problem() {
        let condition = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"});
        let metadata = json!({"name": "web", "namespace": "default"});
        let mut web =
            json!({"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2}, "status": {"conditions": [condition]}});
        let finding = |web: &Value| judge(&[], std::slice::from_ref(web), &Evidence::default(), Timestamp::UNIX_EPOCH).remove(0);
        let stalled = finding(&web);
        assert_eq!((stalled.severity, stalled.why.as_str()), (Problem, "ProgressDeadlineExceeded; 0 of 2 pods are ready"));
        assert_eq!(stalled.what, "deployment web: does not progress");
        web["status"] = json!({});
        assert_eq!(finding(&web).severity, Note);
    }
}
