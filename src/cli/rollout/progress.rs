//! The progress of a rollout, in the words of `kubectl rollout status` (`pkg/polymorphichelpers/rollout_status.go` of kubectl). **Pure**.

use podstead_workload::object::WorkloadKind;
use serde_json::Value;

/// Progress of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something is to happen still.
    Waiting(String),
    /// It is complete.
    Complete(String),
}

use Progress::{Complete, Waiting};

/// The progress of a workload. The error is a sentence: the rollout failed, or there is none.
pub(super) fn progress(kind: WorkloadKind, object: &Value) -> Result<Progress, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let observed = number(&object["status"]["observedGeneration"]);
    let is_observed = number(&object["metadata"]["generation"]) <= observed;
    match kind {
        WorkloadKind::Deployment if !is_observed => Ok(Waiting("Waiting for deployment spec update to be observed...".to_owned())),
        WorkloadKind::Deployment => deployment(name, &object["spec"], &object["status"]),
        WorkloadKind::DaemonSet | WorkloadKind::StatefulSet if object["spec"]["updateStrategy"]["type"] == "OnDelete" => {
            Err("rollout status is only available for RollingUpdate strategy type".to_owned())
        }
        WorkloadKind::DaemonSet if !is_observed => Ok(Waiting("Waiting for daemon set spec update to be observed...".to_owned())),
        WorkloadKind::DaemonSet => Ok(daemon_set(name, &object["status"])),
        WorkloadKind::StatefulSet if !is_observed || observed == 0 => {
            Ok(Waiting("Waiting for statefulset spec update to be observed...".to_owned()))
        }
        WorkloadKind::StatefulSet => Ok(stateful_set(&object["spec"], &object["status"])),
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController | WorkloadKind::Job | WorkloadKind::CronJob => {
            Err(format!("a {kind} is not rolled out: name a Deployment, StatefulSet or DaemonSet"))
        }
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn deployment(name: &str, spec: &Value, status: &Value) -> Result<Progress, String> {
    let conditions = status["conditions"].as_array();
    let timed_out = |condition: &Value| condition["type"] == "Progressing" && condition["reason"] == "ProgressDeadlineExceeded";
    if conditions.into_iter().flatten().any(timed_out) {
        return Err(format!("deployment {name:?} exceeded its progress deadline"));
    }
    let (wanted, all) = (number(&spec["replicas"]), number(&status["replicas"]));
    let (updated, available) = (number(&status["updatedReplicas"]), number(&status["availableReplicas"]));
    let waiting = format!("Waiting for deployment {name:?} rollout to finish:");
    Ok(if updated < wanted {
        Waiting(format!("{waiting} {updated} out of {wanted} new replicas have been updated..."))
    } else if all > updated {
        Waiting(format!("{waiting} {} old replicas are pending termination...", all - updated))
    } else if available < updated {
        Waiting(format!("{waiting} {available} of {updated} updated replicas are available..."))
    } else {
        Complete(format!("deployment {name:?} successfully rolled out"))
    })
}

fn daemon_set(name: &str, status: &Value) -> Progress {
    let desired = number(&status["desiredNumberScheduled"]);
    let (updated, available) = (number(&status["updatedNumberScheduled"]), number(&status["numberAvailable"]));
    let waiting = format!("Waiting for daemon set {name:?} rollout to finish:");
    if updated < desired {
        Waiting(format!("{waiting} {updated} out of {desired} new pods have been updated..."))
    } else if available < desired {
        Waiting(format!("{waiting} {available} of {desired} updated pods are available..."))
    } else {
        Complete(format!("daemon set {name:?} successfully rolled out"))
    }
}

fn stateful_set(spec: &Value, status: &Value) -> Progress {
    let (wanted, ready) = (number(&spec["replicas"]), number(&status["readyReplicas"]));
    let updated = number(&status["updatedReplicas"]);
    let revision = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    if ready < wanted {
        return Waiting(format!("Waiting for {} pods to be ready...", wanted - ready));
    }
    let partition = number(&spec["updateStrategy"]["rollingUpdate"]["partition"]);
    if partition > 0 {
        let above = (wanted - partition).max(0);
        return if updated < above {
            Waiting(format!("Waiting for partitioned roll out to finish: {updated} out of {above} new pods have been updated..."))
        } else {
            Complete(format!("partitioned roll out complete: {updated} new pods have been updated..."))
        };
    }
    let (current, update) = (revision("currentRevision"), revision("updateRevision"));
    if update != current {
        return Waiting(format!("waiting for statefulset rolling update to complete {updated} pods at revision {update}..."));
    }
    let count = number(&status["currentReplicas"]);
    Complete(format!("statefulset rolling update complete {count} pods at revision {current}..."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(kind: WorkloadKind, spec: Value, mut status: Value) -> Result<Progress, String> {
        if status["observedGeneration"].is_null() {
            status["observedGeneration"] = json!(2);
        }
        progress(kind, &json!({"metadata": {"name": "web", "generation": 2}, "spec": spec, "status": status}))
    }

    #[test]
    fn deployment_is_complete_when_all_are_available() {
        let progress = |all: i64, updated: i64, available: i64| {
            let status = json!({"replicas": all, "updatedReplicas": updated, "availableReplicas": available});
            match of(WorkloadKind::Deployment, json!({"replicas": 3}), status).unwrap() {
                Waiting(text) => text.strip_prefix("Waiting for deployment \"web\" rollout to finish: ").unwrap().to_owned(),
                Complete(text) => text,
            }
        };
        assert_eq!(progress(4, 1, 3), "1 out of 3 new replicas have been updated...");
        assert_eq!(progress(4, 3, 3), "1 old replicas are pending termination...");
        assert_eq!(progress(3, 3, 2), "2 of 3 updated replicas are available...");
        assert_eq!(progress(3, 3, 3), "deployment \"web\" successfully rolled out");
        let conditions = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        let failed = of(WorkloadKind::Deployment, json!({"replicas": 3}), json!({"conditions": conditions}));
        assert_eq!(failed.unwrap_err(), "deployment \"web\" exceeded its progress deadline");
        let unseen = of(WorkloadKind::Deployment, json!({}), json!({"observedGeneration": 1})).unwrap();
        assert_eq!(unseen, Waiting("Waiting for deployment spec update to be observed...".to_owned()));
    }

    #[test]
    fn stateful_set_rolls_out_above_partition() {
        let status = |ready: i64, updated: i64, update: &str| json!({"readyReplicas": ready, "updatedReplicas": updated, "currentReplicas": 3, "currentRevision": "db-1", "updateRevision": update});
        let plain = json!({"replicas": 3});
        let of = |spec: &Value, status: Value| of(WorkloadKind::StatefulSet, spec.clone(), status).unwrap();
        assert_eq!(of(&plain, status(1, 0, "db-1")), Waiting("Waiting for 2 pods to be ready...".to_owned()));
        let waiting = "waiting for statefulset rolling update to complete 1 pods at revision db-2...";
        assert_eq!(of(&plain, status(3, 1, "db-2")), Waiting(waiting.to_owned()));
        let complete = "statefulset rolling update complete 3 pods at revision db-1...";
        assert_eq!(of(&plain, status(3, 0, "db-1")), Complete(complete.to_owned()));
        let partitioned = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
        let complete = "partitioned roll out complete: 1 new pods have been updated...";
        assert_eq!(of(&partitioned, status(3, 1, "db-2")), Complete(complete.to_owned()));
    }

    #[test]
    fn daemon_set_waits_for_its_pod() {
        let of = |updated: i64, available: i64| {
            let status = json!({"desiredNumberScheduled": 1, "updatedNumberScheduled": updated, "numberAvailable": available});
            of(WorkloadKind::DaemonSet, json!({}), status).unwrap()
        };
        assert!(matches!(of(0, 1), Waiting(text) if text.ends_with("0 out of 1 new pods have been updated...")));
        assert!(matches!(of(1, 0), Waiting(text) if text.ends_with("0 of 1 updated pods are available...")));
        assert_eq!(of(1, 1), Complete("daemon set \"web\" successfully rolled out".to_owned()));
        let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
        assert!(progress(WorkloadKind::DaemonSet, &json!({"spec": on_delete})).is_err());
        assert!(progress(WorkloadKind::Job, &json!({})).is_err());
    }
}
