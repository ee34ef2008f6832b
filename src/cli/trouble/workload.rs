//! From the status of workloads to why they do not do what they should. **Pure**.

use super::evidence::Evidence;
use crate::object_type::ObjectType;
use crate::printable::printable;
use crate::workloads::{annotation, is_controlled_by, metadata};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::MISSED_RUN_ANNOTATION;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;

/// Explanation of a workload that is not as it should be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WorkloadTrouble {
    /// Kind and name, such as `deployment web` or `deployment shop/web`.
    pub(crate) name: String,
    /// A few words, such as `does not progress`.
    pub(crate) what: String,
    /// True if it went wrong; false if it is on its way, or runs as far as this host lets it.
    pub(crate) is_failure: bool,
    /// Since when; `None` where that is not known, or says nothing.
    pub(crate) since: Option<Timestamp>,
    /// Known causes, one per line.
    pub(crate) causes: Vec<String>,
    /// A command.
    pub(crate) remedy: String,
}

/// The kind of a workload as served.
fn kind_of(object: &Value) -> Option<WorkloadKind> {
    WorkloadKind::named(object["kind"].as_str()?)
}

/// As people read it: the namespace goes before the name unless it is the default one.
fn shown_name(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    match metadata(object, "namespace") {
        "default" => format!("{kind} {}", metadata(object, "name")),
        namespace => format!("{kind} {namespace}/{}", metadata(object, "name")),
    }
}

/// True if no other workload made it.
pub(crate) fn is_of_a_manifest(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    !owners.into_iter().flatten().any(|owner| owner["controller"] == true)
}

/// The workload that made a pod. A reference alone says nothing: manifests that were exported from a cluster have some, too.
fn controller<'a>(pod: &Pod, workloads: &'a [Value]) -> Option<&'a Value> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true))?;
    workloads.iter().find(|object| metadata(object, "uid") == owner.uid)
}

/// The workload of a manifest that a pod belongs to, such as `deployment web`; `None` for a plain pod.
pub(crate) fn owner_of(pod: &Pod, workloads: &[Value]) -> Option<String> {
    let mut object = controller(pod, workloads)?;
    // A ReplicaSet of a Deployment, a Job of a CronJob: not deeper.
    if let Some(above) = workloads.iter().find(|above| is_controlled_by(object, metadata(above, "uid"))) {
        object = above;
    }
    Some(format!("{} {}", object["kind"].as_str().unwrap_or_default().to_lowercase(), metadata(object, "name")))
}

/// True for an attempt of a Job that has ended: the Job's status says whether that is a problem.
pub(crate) fn is_attempt_of_a_job(pod: &Pod, workloads: &[Value]) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_of_a_job = || controller(pod, workloads).is_some_and(|owner| owner["kind"] == WorkloadKind::Job.as_str());
    matches!(phase, Some("Failed" | "Succeeded")) && is_of_a_job()
}

/// Explains which workloads are not as they should be.
pub(crate) fn explain_workloads(workloads: &[Value], evidence: &Evidence) -> Vec<WorkloadTrouble> {
    let of = |object: &Value| match kind_of(object)? {
        WorkloadKind::CronJob => missed_run(object),
        WorkloadKind::Job => failed_job(object, workloads),
        WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController => {
            let counts = is_of_a_manifest(object) && !is_for_another_host(object);
            counts.then(|| stalled(object).or_else(|| too_few(object, evidence))).flatten()
        }
    };
    workloads.iter().filter_map(of).collect()
}

fn condition<'a>(object: &'a Value, kind: &str, status: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == status)
}

fn since(condition: &Value) -> Option<Timestamp> {
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

/// `reason: message`.
fn reason(condition: &Value) -> String {
    let [reason, message] = ["reason", "message"].map(|field| printable(condition[field].as_str().unwrap_or_default()));
    [reason, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// `deployment/web`, with the namespace unless it is the default one.
fn argument(object: &Value) -> String {
    let singular = kind_of(object).map(|kind| ObjectType::Workload(kind).qualified_singular()).unwrap_or_default();
    let singular = singular.split('.').next().unwrap_or_default();
    match metadata(object, "namespace") {
        "default" => format!("{singular}/{}", metadata(object, "name")),
        namespace => format!("{singular}/{} -n {namespace}", metadata(object, "name")),
    }
}

/// Ready pods and wanted ones.
fn counts(object: &Value) -> (i64, i64) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (ready, wanted) = if object["kind"] == WorkloadKind::DaemonSet.as_str() {
        (&status["numberReady"], &status["desiredNumberScheduled"])
    } else {
        (&status["readyReplicas"], &spec["replicas"])
    };
    (ready.as_i64().unwrap_or_default(), wanted.as_i64().unwrap_or_default())
}

/// True for a workload whose node selector or affinity excludes this host (W85): its author wants no pods here.
fn is_for_another_host(object: &Value) -> bool {
    let is_excluded = condition(object, "ReplicaFailure", "True").is_some_and(|failure| failure["reason"] == "FailedScheduling");
    // A StatefulSet has no conditions. Where it may have pods, it has the first one at once.
    let has_none =
        object["kind"] == WorkloadKind::StatefulSet.as_str() && object["status"]["replicas"].as_i64().unwrap_or_default() == 0;
    is_excluded || has_none
}

/// A Deployment beyond its progress deadline, and a workload that asks for more pods than a host can have (W82).
fn stalled(object: &Value) -> Option<WorkloadTrouble> {
    let stalled = condition(object, "Progressing", "False").map(|condition| (condition, "does not progress", true));
    let failure = || condition(object, "ReplicaFailure", "True").map(|condition| (condition, "cannot have all its pods", false));
    let (condition, what, is_failure) = stalled.or_else(failure)?;
    let (ready, wanted) = counts(object);
    Some(WorkloadTrouble {
        name: shown_name(object),
        what: what.to_owned(),
        is_failure,
        since: since(condition),
        causes: vec![reason(condition), format!("{ready} of {wanted} pods are ready")],
        remedy: format!("podstead describe {}", argument(object)),
    })
}

/// A workload with fewer ready pods than it wants. Pods that exist are explained on their own.
fn too_few(object: &Value, evidence: &Evidence) -> Option<WorkloadTrouble> {
    let (ready, wanted) = counts(object);
    (ready < wanted).then(|| WorkloadTrouble {
        name: shown_name(object),
        what: format!("{ready} of {wanted} pods are ready"),
        is_failure: false,
        since: None,
        causes: evidence.warning_about(metadata(object, "uid")).map(|message| printable(&message)).into_iter().collect(),
        remedy: format!("podstead describe {}, if this persists", argument(object)),
    })
}

/// A Job that failed; of a CronJob only the newest one counts.
fn failed_job(object: &Value, workloads: &[Value]) -> Option<WorkloadTrouble> {
    let failed = condition(object, "Failed", "True")?;
    let owner = workloads.iter().find(|owner| is_controlled_by(object, metadata(owner, "uid")));
    let created = |object: &Value| metadata(object, "creationTimestamp").parse::<Timestamp>().ok();
    if let Some(owner) = owner {
        let siblings = workloads.iter().filter(|other| is_controlled_by(other, metadata(owner, "uid")));
        if siblings.map(created).max() > Some(created(object)) {
            return None;
        }
    }
    Some(WorkloadTrouble {
        name: shown_name(object),
        what: "failed".to_owned(),
        is_failure: true,
        since: None,
        causes: vec![reason(failed)],
        remedy: format!("podstead logs {}", argument(object)),
    })
}

fn missed_run(object: &Value) -> Option<WorkloadTrouble> {
    let missed = annotation(object, MISSED_RUN_ANNOTATION)?;
    let name = metadata(object, "name");
    let namespace = match metadata(object, "namespace") {
        "default" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    Some(WorkloadTrouble {
        name: shown_name(object),
        what: "missed its last run".to_owned(),
        is_failure: true,
        since: None,
        causes: vec![printable(missed)],
        remedy: format!("podstead job run {name}{namespace}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, name: &str, spec: Value, status: Value) -> Value {
        json!({
            "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        })
    }

    fn owned(mut object: Value, owner: &str) -> Value {
        object["metadata"]["ownerReferences"] = json!([{"kind": "CronJob", "name": owner, "uid": owner, "controller": true}]);
        object
    }

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!([{"type": kind, "status": status, "reason": reason, "message": "why", "lastTransitionTime": "2026-01-01T00:30:00Z"}])
    }

    fn explained(workloads: &[Value]) -> Vec<WorkloadTrouble> {
        explain_workloads(workloads, &Evidence::default())
    }

    #[test]
    fn deployment_beyond_its_deadline_does_not_progress() {
        let status = json!({"readyReplicas": 1, "conditions": condition("Progressing", "False", "ProgressDeadlineExceeded")});
        let mut web = object("Deployment", "web", json!({"replicas": 3}), status);
        let trouble = explained(&[web.clone()]).remove(0);
        let expected = WorkloadTrouble {
            name: "deployment web".into(),
            what: "does not progress".into(),
            is_failure: true,
            since: Some("2026-01-01T00:30:00Z".parse().unwrap()),
            causes: vec!["ProgressDeadlineExceeded: why".into(), "1 of 3 pods are ready".into()],
            remedy: "podstead describe deployment/web".into(),
        };
        assert_eq!(trouble, expected);
        web["metadata"]["namespace"] = json!("shop");
        assert_eq!(explained(&[web]).remove(0).remedy, "podstead describe deployment/web -n shop");
    }

    #[test]
    fn workload_on_its_way_is_no_failure() {
        let of = |kind: &str, spec: Value, status: Value| {
            explained(&[object(kind, "x", spec, status)]).first().map(|trouble| (trouble.what.clone(), trouble.is_failure))
        };
        let some = |what: &str| Some((what.to_owned(), false));
        let status = json!({"replicas": 1, "readyReplicas": 1});
        assert_eq!(of("StatefulSet", json!({"replicas": 2}), status), some("1 of 2 pods are ready"));
        assert_eq!(of("StatefulSet", json!({"replicas": 2}), json!({})), None, "the host is not selected");
        let taken = json!({"readyReplicas": 1, "conditions": condition("ReplicaFailure", "True", "HostPortTaken")});
        assert_eq!(of("Deployment", json!({"replicas": 2}), taken), some("cannot have all its pods"));
        let excluded = json!({"conditions": condition("ReplicaFailure", "True", "FailedScheduling")});
        assert_eq!(of("Deployment", json!({"replicas": 2}), excluded), None, "the host is not selected");
        assert_eq!(of("StatefulSet", json!({"replicas": 0}), json!({})), None);
        assert_eq!(of("DaemonSet", json!({}), json!({"desiredNumberScheduled": 1})), some("0 of 1 pods are ready"));
        assert_eq!(of("DaemonSet", json!({}), json!({})), None, "the host is not selected");
        let set = owned(object("ReplicaSet", "web-1", json!({"replicas": 2}), json!({})), "web");
        assert_eq!(explained(&[set]), [], "its Deployment is explained instead");
    }

    #[test]
    fn newest_job_of_cron_job_counts() {
        let failed = json!({"conditions": condition("Failed", "True", "BackoffLimitExceeded")});
        let cron = object("CronJob", "dump", json!({}), json!({}));
        let old = owned(object("Job", "dump-1", json!({}), failed.clone()), "dump");
        let mut new = owned(object("Job", "dump-2", json!({}), json!({})), "dump");
        assert_eq!(explained(&[cron.clone(), old.clone()])[0].remedy, "podstead logs job/dump-1");
        new["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
        assert_eq!(explained(&[cron, old, new]), []);
        let alone = object("Job", "once", json!({}), failed);
        assert_eq!(explained(&[alone])[0].causes, ["BackoffLimitExceeded: why"]);
    }

    #[test]
    fn missed_run_is_shown_with_its_reason() {
        let mut cron = object("CronJob", "dump", json!({}), json!({}));
        cron["metadata"]["annotations"] = json!({"podstead.dev/missed-run": "missed its deadline of 60 s"});
        let trouble = explained(&[cron]).remove(0);
        assert_eq!((trouble.what.as_str(), trouble.remedy.as_str()), ("missed its last run", "podstead job run dump"));
        assert_eq!(trouble.causes, ["missed its deadline of 60 s"]);
    }

    #[test]
    fn pod_of_a_deployment_names_the_deployment() {
        let pod = |kind: &str, uid: &str, phase: &str| -> Pod {
            let owner = json!({"apiVersion": "v1", "kind": kind, "name": uid, "uid": uid, "controller": true});
            serde_json::from_value(json!({"metadata": {"ownerReferences": [owner]}, "status": {"phase": phase}})).unwrap()
        };
        let web = object("Deployment", "web", json!({}), json!({}));
        let set = owned(object("ReplicaSet", "web-1", json!({}), json!({})), "web");
        let all = [web, set];
        assert_eq!(owner_of(&pod("ReplicaSet", "web-1", "Running"), &all).as_deref(), Some("deployment web"));
        assert_eq!(owner_of(&pod("ReplicaSet", "web-1", "Running"), &[]), None, "exported from a cluster");
        assert_eq!(owner_of(&Pod::default(), &all), None);
    }

    #[test]
    fn only_ended_pods_of_jobs_are_attempts() {
        let pod = |uid: &str, phase: &str| -> Pod {
            let owner = json!({"apiVersion": "v1", "kind": "Job", "name": uid, "uid": uid, "controller": true});
            serde_json::from_value(json!({"metadata": {"ownerReferences": [owner]}, "status": {"phase": phase}})).unwrap()
        };
        let all = [object("Job", "dump", json!({}), json!({})), object("ReplicaSet", "web", json!({}), json!({}))];
        assert!(is_attempt_of_a_job(&pod("dump", "Failed"), &all));
        assert!(!is_attempt_of_a_job(&pod("dump", "Running"), &all));
        assert!(!is_attempt_of_a_job(&pod("web", "Failed"), &all));
        assert!(!is_attempt_of_a_job(&pod("dump", "Failed"), &[]), "exported from a cluster");
    }
}
