//! `podstead describe deployment` and so on. The text is **pure**.

use super::writer::Description;
use super::{container, own_annotations, volumes};
use crate::client::{Client, ClientError};
use crate::rollout;
use crate::workloads::{annotation, is_controlled_by, list, metadata, pods_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use podstead_api::published::{ORIGIN_ANNOTATION, REVISION_ANNOTATION, SOURCE_ANNOTATION};
use podstead_api::show::{age_since, human_duration, labels_text, selector_text};
use podstead_api::{MISSED_RUN_ANNOTATION, NEXT_RUN_ANNOTATION};
use podstead_manifest::Problem;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;
use std::collections::BTreeMap;

/// Objects that belong to a workload, and problems of its manifest.
#[derive(Clone, Debug, Default)]
pub(super) struct Related {
    /// Its pods.
    pub(super) pods: Vec<Pod>,
    /// The ReplicaSets of a Deployment.
    pub(super) replica_sets: Vec<Value>,
    /// Faults of its definition in the revision that its source last fetched.
    pub(super) refused: Vec<Problem>,
}

/// Asks the daemon for them.
pub(super) async fn related(
    client: &Client,
    kind: WorkloadKind,
    object: &Value,
    refused: Vec<Problem>,
) -> Result<Related, ClientError> {
    let pods = pods_of(client, kind, object).await?;
    let mut replica_sets = match kind {
        WorkloadKind::Deployment => list(client, WorkloadKind::ReplicaSet, Some(metadata(object, "namespace"))).await?,
        WorkloadKind::StatefulSet
        | WorkloadKind::DaemonSet
        | WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController
        | WorkloadKind::Job
        | WorkloadKind::CronJob => Vec::new(),
    };
    replica_sets.retain(|set| is_controlled_by(set, metadata(object, "uid")));
    replica_sets.sort_by_key(rollout::number);
    Ok(Related { pods, replica_sets, refused })
}

/// Everything but the events.
pub(super) fn describe(kind: WorkloadKind, object: &Value, related: &Related, now: Timestamp) -> String {
    let mut text = Description::default();
    identity(&mut text, object, &related.refused, now);
    let (spec, status) = (&object["spec"], &object["status"]);
    match kind {
        WorkloadKind::Deployment => deployment(&mut text, spec, status),
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => {
            let is_map = kind == WorkloadKind::ReplicationController;
            let selector = &spec["selector"];
            text.field("Selector", &if is_map { labels_text(selector) } else { selector_text(selector) });
            let (current, desired) = (number(&status["replicas"]), number(&spec["replicas"]));
            text.field("Replicas", &format!("{current} current, {desired} desired"));
            pods_status(&mut text, &related.pods);
        }
        WorkloadKind::StatefulSet => stateful_set(&mut text, spec, status, &related.pods),
        WorkloadKind::DaemonSet => daemon_set(&mut text, spec, status, &related.pods),
        WorkloadKind::Job => job(&mut text, spec, status, now),
        WorkloadKind::CronJob => cron_job(&mut text, object, now),
    }
    template(&mut text, object, kind.template_path(), now);
    conditions(&mut text, &status["conditions"], now);
    if kind == WorkloadKind::Deployment {
        replica_sets(&mut text, &related.replica_sets);
    }
    text.finish()
}

fn identity(text: &mut Description, object: &Value, refused: &[Problem], now: Timestamp) {
    for (name, field) in [("Name", "name"), ("Namespace", "namespace"), ("UID", "uid")] {
        text.field(name, metadata(object, field));
    }
    for (name, key) in [("Source", SOURCE_ANNOTATION), ("Revision", REVISION_ANNOTATION), ("Manifest", ORIGIN_ANNOTATION)] {
        text.field(name, annotation(object, key).unwrap_or("<none>"));
    }
    for problem in refused {
        text.field("Rejected Edit", &problem.to_string());
    }
    let owners = object["metadata"]["ownerReferences"].as_array();
    if let Some(owner) = owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
        text.field("Controlled By", &format!("{}/{}", word(&owner["kind"]), word(&owner["name"])));
    }
    if let Some(created) = time(&object["metadata"]["creationTimestamp"]) {
        text.field("Created", &ago(created, now));
    }
    text.entries("Labels", Some(&texts(&object["metadata"]["labels"])));
    let mut annotations = texts(&object["metadata"]["annotations"]);
    annotations
        .retain(|key, _| !own_annotations().contains(&key.as_str()) && key != NEXT_RUN_ANNOTATION && key != MISSED_RUN_ANNOTATION);
    text.entries("Annotations", Some(&annotations));
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{at} ({} ago)", age_since(Some(at), now))
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A number or a text (`25%`).
fn amount(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<unset>".to_owned(),
        other => other.to_string(),
    }
}

/// A field, unless it is not set.
fn optional(text: &mut Description, name: &str, value: &Value) {
    if !value.is_null() {
        text.field(name, &amount(value));
    }
}

/// A number of seconds, unless it is not set or 0.
fn seconds(text: &mut Description, name: &str, value: &Value) {
    if let Some(seconds) = value.as_i64().filter(|seconds| *seconds > 0) {
        text.field(name, &format!("{seconds}s"));
    }
}

fn deployment(text: &mut Description, spec: &Value, status: &Value) {
    text.field("Selector", &selector_text(&spec["selector"]));
    let counts = [
        (number(&spec["replicas"]), "desired"),
        (number(&status["updatedReplicas"]), "updated"),
        (number(&status["replicas"]), "total"),
        (number(&status["availableReplicas"]), "available"),
        (number(&status["unavailableReplicas"]), "unavailable"),
    ];
    text.field("Replicas", &counts.map(|(count, state)| format!("{count} {state}")).join(", "));
    let strategy = &spec["strategy"];
    let rolling = &strategy["rollingUpdate"];
    let limits = [("max unavailable", &rolling["maxUnavailable"]), ("max surge", &rolling["maxSurge"])];
    text.field("Strategy", &strategy_text(word(&strategy["type"]), &limits));
    seconds(text, "Min Ready", &spec["minReadySeconds"]);
    if spec["paused"] == true {
        text.field("Paused", "true");
    }
}

/// `RollingUpdate, max surge 25%`, with the limits that are set.
fn strategy_text(kind: &str, limits: &[(&str, &Value)]) -> String {
    let limits = limits.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| format!(", {name} {}", amount(value)));
    format!("{kind}{}", limits.collect::<String>())
}

fn stateful_set(text: &mut Description, spec: &Value, status: &Value, pods: &[Pod]) {
    text.field("Selector", &selector_text(&spec["selector"]));
    text.field("Replicas", &format!("{} desired, {} total", number(&spec["replicas"]), number(&status["replicas"])));
    let strategy = &spec["updateStrategy"];
    let rolling = &strategy["rollingUpdate"];
    let limits = [("partition", &rolling["partition"]), ("max unavailable", &rolling["maxUnavailable"])];
    text.field("Update Strategy", &strategy_text(word(&strategy["type"]), &limits));
    optional(text, "Pod Management", &spec["podManagementPolicy"]);
    optional(text, "Service Name", &spec["serviceName"]);
    optional(text, "Current Revision", &status["currentRevision"]);
    optional(text, "Update Revision", &status["updateRevision"]);
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    let claims: Vec<String> = claims
        .map(|claim| format!("{}, {}", metadata(claim, "name"), amount(&claim["spec"]["resources"]["requests"]["storage"])))
        .collect();
    if !claims.is_empty() {
        text.field("Volume Claims", &claims.join("\n"));
    }
    pods_status(text, pods);
}

fn daemon_set(text: &mut Description, spec: &Value, status: &Value, pods: &[Pod]) {
    text.field("Selector", &selector_text(&spec["selector"]));
    text.entries("Node Selector", Some(&texts(&spec["template"]["spec"]["nodeSelector"])));
    let counts = [
        ("desiredNumberScheduled", "desired"),
        ("currentNumberScheduled", "current"),
        ("updatedNumberScheduled", "up-to-date"),
        ("numberAvailable", "available"),
        ("numberMisscheduled", "misscheduled"),
    ];
    text.field("Pods", &counts.map(|(field, state)| format!("{} {state}", number(&status[field]))).join(", "));
    let strategy = &spec["updateStrategy"];
    let rolling = &strategy["rollingUpdate"];
    let limits = [("max unavailable", &rolling["maxUnavailable"]), ("max surge", &rolling["maxSurge"])];
    text.field("Update Strategy", &strategy_text(word(&strategy["type"]), &limits));
    pods_status(text, pods);
}

fn job(text: &mut Description, spec: &Value, status: &Value, now: Timestamp) {
    text.field("Selector", &selector_text(&spec["selector"]));
    for (name, field) in [
        ("Parallelism", "parallelism"),
        ("Completions", "completions"),
        ("Completion Mode", "completionMode"),
        ("Suspend", "suspend"),
        ("Backoff Limit", "backoffLimit"),
    ] {
        optional(text, name, &spec[field]);
    }
    seconds(text, "Active Deadline", &spec["activeDeadlineSeconds"]);
    seconds(text, "TTL After Finished", &spec["ttlSecondsAfterFinished"]);
    let (start, end) = (time(&status["startTime"]), time(&status["completionTime"]));
    if let Some(start) = start {
        text.field("Started", &ago(start, now));
    }
    if let (Some(start), Some(end)) = (start, end) {
        let lasted = human_duration(end.duration_since(start).as_secs());
        text.field("Completed", &format!("{}, after {lasted}", ago(end, now)));
    }
    let count = |field: &str| number(&status[field]);
    let (active, ready, succeeded, failed) = (count("active"), count("ready"), count("succeeded"), count("failed"));
    text.field("Pods Status", &format!("{active} active ({ready} ready), {succeeded} succeeded, {failed} failed"));
    optional(text, "Completed Indexes", &status["completedIndexes"]);
    optional(text, "Failed Indexes", &status["failedIndexes"]);
}

fn cron_job(text: &mut Description, object: &Value, now: Timestamp) {
    let (spec, status) = (&object["spec"], &object["status"]);
    text.field("Schedule", word(&spec["schedule"]));
    text.field("Time Zone", spec["timeZone"].as_str().unwrap_or("UTC"));
    optional(text, "Concurrency Policy", &spec["concurrencyPolicy"]);
    optional(text, "Suspend", &spec["suspend"]);
    seconds(text, "Starting Deadline", &spec["startingDeadlineSeconds"]);
    let limits = [("successfulJobsHistoryLimit", "successful"), ("failedJobsHistoryLimit", "failed")];
    text.field("History Limits", &limits.map(|(field, name)| format!("{} {name}", amount(&spec[field]))).join(", "));
    for (name, field) in [("Last Schedule", "lastScheduleTime"), ("Last Success", "lastSuccessfulTime")] {
        text.field(name, &time(&status[field]).map_or_else(|| "<none>".to_owned(), |at| ago(at, now)));
    }
    let next = annotation(object, NEXT_RUN_ANNOTATION).and_then(|next| next.parse::<Timestamp>().ok());
    let until = |next: Timestamp| format!("{next} (in {})", human_duration(next.duration_since(now).as_secs().max(0)));
    text.field("Next Run", &next.map_or_else(|| "<none>".to_owned(), until));
    if let Some(missed) = annotation(object, MISSED_RUN_ANNOTATION) {
        text.field("Missed Run", missed);
    }
    let active: Vec<&str> = status["active"].as_array().into_iter().flatten().map(|job| word(&job["name"])).collect();
    text.field("Active Jobs", &if active.is_empty() { "<none>".to_owned() } else { active.join("\n") });
}

fn pods_status(text: &mut Description, pods: &[Pod]) {
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let count = |wanted: &str| pods.iter().filter(|pod| phase(pod).as_deref() == Some(wanted)).count();
    let (running, pending) = (count("Running"), count("Pending"));
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    text.field("Pods Status", &format!("{running} running, {pending} pending, {succeeded} succeeded, {failed} failed"));
}

/// The pod template, as a pod is described.
fn template(text: &mut Description, object: &Value, path: &str, now: Timestamp) {
    let template = path.split('.').fold(object, |value, field| &value[field]);
    text.entries("Template Labels", Some(&texts(&template["metadata"]["labels"])));
    // A spec that this version cannot read is left out.
    let spec: PodSpec = serde_json::from_value(template["spec"].clone()).unwrap_or_default();
    container::containers(text, "Init Containers", spec.init_containers.as_deref(), None, now);
    container::containers(text, "Containers", Some(&spec.containers), None, now);
    volumes(text, spec.volumes.as_deref().unwrap_or_default());
}

fn conditions(text: &mut Description, conditions: &Value, now: Timestamp) {
    let rows: Vec<(&str, String)> = conditions
        .as_array()
        .into_iter()
        .flatten()
        .map(|condition| {
            let since = time(&condition["lastTransitionTime"]).map(|since| format!("for {}", age_since(Some(since), now)));
            let why = [&condition["reason"], &condition["message"]].map(|why| why.as_str().filter(|why| !why.is_empty()));
            let parts = [Some(word(&condition["status"])), since.as_deref(), why[0], why[1]].into_iter().flatten();
            (word(&condition["type"]), parts.collect::<Vec<_>>().join(", "))
        })
        .collect();
    if !rows.is_empty() {
        text.heading("Conditions");
        text.indented_rows(1, &rows);
    }
}

/// The new ReplicaSet, which has the highest number (W11), and the old ones that still have pods.
fn replica_sets(text: &mut Description, sets: &[Value]) {
    let current = sets.iter().map(rollout::number).max().unwrap_or_default();
    let (new, old): (Vec<&Value>, Vec<&Value>) = sets.iter().partition(|set| rollout::number(set) == current);
    let shown = |sets: Vec<&Value>| {
        let sets = sets.into_iter().map(|set| {
            let (made, wanted) = (number(&set["status"]["replicas"]), number(&set["spec"]["replicas"]));
            format!("{} ({made}/{wanted} replicas created)", metadata(set, "name"))
        });
        let sets: Vec<String> = sets.collect();
        if sets.is_empty() { "<none>".to_owned() } else { sets.join("\n") }
    };
    let has_pods = |set: &&Value| number(&set["spec"]["replicas"]) > 0 || number(&set["status"]["replicas"]) > 0;
    text.field("Old ReplicaSets", &shown(old.into_iter().filter(has_pods).collect()));
    text.field("New ReplicaSet", &shown(new));
}

/// Writes the workload that made a pod, such as `ReplicaSet/web-7d9c8f4b5`.
pub(super) fn controlled_by(text: &mut Description, pod: &Pod) {
    if let Some((kind, name)) = crate::workloads::controller_of(pod) {
        text.field("Controlled By", &format!("{kind}/{name}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: WorkloadKind, annotations: Value, spec: Value, status: Value) -> Value {
        let mut all = json!({
            "podstead.dev/source": "fleet", "podstead.dev/revision": "abc", "podstead.dev/origin": "web.yaml:3:1",
        });
        annotations.as_object().into_iter().flatten().for_each(|(key, value)| all[key] = value.clone());
        json!({
            "kind": kind.as_str(),
            "metadata": {
                "name": "web", "namespace": "default", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app": "web"}, "annotations": all,
            },
            "spec": spec,
            "status": status,
        })
    }

    fn described(kind: WorkloadKind, object: &Value, related: &Related) -> String {
        describe(kind, object, related, "2026-01-01T01:00:00Z".parse().unwrap())
    }

    fn template() -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}})
    }

    #[test]
    fn deployment_that_rolls_out_is_described() {
        let set = |name: &str, revision: &str, wanted: u32, made: u32| {
            json!({
                "metadata": {"name": name, "annotations": {"deployment.kubernetes.io/revision": revision}},
                "spec": {"replicas": wanted}, "status": {"replicas": made},
            })
        };
        let related = Related {
            replica_sets: vec![set("web-1", "1", 0, 0), set("web-2", "2", 2, 2), set("web-3", "3", 2, 1)],
            ..Related::default()
        };
        let condition = json!({
            "type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "ReplicaSet \"web-3\" is progressing.",
            "lastTransitionTime": "2026-01-01T00:30:00Z",
        });
        let spec = json!({
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template(),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}}, "minReadySeconds": 5,
        });
        let status = json!({"replicas": 4, "updatedReplicas": 2, "availableReplicas": 3, "conditions": [condition]});
        let object = object(WorkloadKind::Deployment, json!({"deployment.kubernetes.io/revision": "3"}), spec, status);
        insta::assert_snapshot!(described(WorkloadKind::Deployment, &object, &related));
    }

    #[test]
    fn cron_job_says_when_it_runs() {
        let annotations =
            json!({"podstead.dev/next-run": "2026-01-01T01:30:00Z", "podstead.dev/missed-run": "missed its deadline of 60 s"});
        let spec = json!({
            "schedule": "30 * * * *", "concurrencyPolicy": "Forbid", "suspend": false, "startingDeadlineSeconds": 60,
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1, "jobTemplate": {"spec": {"template": template()}},
        });
        let status = json!({"lastScheduleTime": "2026-01-01T00:30:00Z", "active": [{"name": "web-1"}]});
        let object = object(WorkloadKind::CronJob, annotations, spec, status);
        insta::assert_snapshot!(described(WorkloadKind::CronJob, &object, &Related::default()));
    }

    #[test]
    fn job_says_how_its_pods_ended() {
        let spec =
            json!({"parallelism": 2, "completions": 5, "completionMode": "Indexed", "backoffLimit": 6, "template": template()});
        let status = json!({
            "startTime": "2026-01-01T00:30:00Z", "completionTime": "2026-01-01T00:31:00Z", "succeeded": 5, "failed": 1,
            "completedIndexes": "0-4",
        });
        let text = described(WorkloadKind::Job, &object(WorkloadKind::Job, json!({}), spec, status), &Related::default());
        for line in [
            "Completions:         5",
            "Completed:           2026-01-01T00:31:00Z (29m ago), after 60s",
            "Pods Status:         0 active (0 ready), 5 succeeded, 1 failed",
            "Completed Indexes:   0-4",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }

    #[test]
    fn other_kinds_count_their_pods() {
        let pod = |phase: &str| serde_json::from_value::<Pod>(json!({"metadata": {}, "status": {"phase": phase}})).unwrap();
        let related = Related { pods: vec![pod("Running"), pod("Running"), pod("Pending")], ..Related::default() };
        let claim = json!({"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}});
        let spec = json!({
            "replicas": 3, "template": template(), "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
            "volumeClaimTemplates": [claim],
        });
        for (kind, line) in [
            (WorkloadKind::StatefulSet, "Update Strategy:     RollingUpdate, partition 1"),
            (WorkloadKind::StatefulSet, "Volume Claims:       data, 1Gi"),
            (WorkloadKind::DaemonSet, "Pods:                0 desired, 0 current, 0 up-to-date, 0 available, 0 misscheduled"),
            (WorkloadKind::ReplicaSet, "Replicas:            3 current, 3 desired"),
        ] {
            let text = described(kind, &object(kind, json!({}), spec.clone(), json!({"replicas": 3})), &related);
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
            assert!(text.contains("Pods Status:         2 running, 1 pending, 0 succeeded, 0 failed\n"), "{text}");
        }
    }
}
