//! Tables of workloads in the columns of kubectl (`pkg/printers/internalversion/printers.go` of Kubernetes). **Pure**.

use crate::published_workloads::{MISSED_RUN_ANNOTATION, NEXT_RUN_ANNOTATION};
use crate::show::{age_since, human_duration, labels_text, selector_text};
use crate::table::{AGE, Column};
use jiff::Timestamp;
use podstead_workload::object::WorkloadKind;
use serde_json::{Value, json};

const CONTAINERS: Column = Column::text("Containers", "Names of the containers of the pod template").wide();
const IMAGES: Column = Column::text("Images", "Images of the containers of the pod template").wide();
const SELECTOR: Column = Column::text("Selector", "Label selector of the pods").wide();
const DESIRED: Column = Column::number("Desired", "Number of pods that are wanted");
const CURRENT: Column = Column::number("Current", "Number of pods that exist");
const READY_PODS: Column = Column::number("Ready", "Number of pods that are ready");
const READY: Column = Column::text("Ready", "Ready pods of the pods that are wanted");
const UP_TO_DATE: Column = Column::number("Up-to-date", "Number of pods of the current template");
const AVAILABLE: Column = Column::number("Available", "Number of pods that have been ready for minReadySeconds");

const DEPLOYMENT: &[Column] = &[Column::name(), READY, UP_TO_DATE, AVAILABLE, AGE, CONTAINERS, IMAGES, SELECTOR];
const REPLICA_SET: &[Column] = &[Column::name(), DESIRED, CURRENT, READY_PODS, AGE, CONTAINERS, IMAGES, SELECTOR];
const STATEFUL_SET: &[Column] = &[Column::name(), READY, AGE, CONTAINERS, IMAGES];
const DAEMON_SET: &[Column] = &[
    Column::name(),
    DESIRED,
    CURRENT,
    READY_PODS,
    UP_TO_DATE,
    AVAILABLE,
    Column::text("Node Selector", "Labels that the host must have"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const JOB: &[Column] = &[
    Column::name(),
    Column::text("Status", "Status of the job"),
    Column::text("Completions", "Completed pods of the completions that are wanted"),
    Column::text("Duration", "Time between the start and the completion"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const CRON_JOB: &[Column] = &[
    Column::name(),
    Column::text("Schedule", "Schedule in cron format"),
    Column::text("Timezone", "Time zone of the schedule; UTC if it is not set"),
    Column { kind: "boolean", ..Column::text("Suspend", "True if no new runs are started") },
    Column::number("Active", "Number of running jobs"),
    Column::text("Last Schedule", "Time since the last scheduled run"),
    AGE,
    Column::text("Next", "Time until the next run").wide(),
    Column::text("Missed", "Reason for which the last due run did not start").wide(),
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// Columns of a kind.
pub(super) const fn columns(kind: WorkloadKind) -> &'static [Column] {
    match kind {
        WorkloadKind::Deployment => DEPLOYMENT,
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => REPLICA_SET,
        WorkloadKind::StatefulSet => STATEFUL_SET,
        WorkloadKind::DaemonSet => DAEMON_SET,
        WorkloadKind::Job => JOB,
        WorkloadKind::CronJob => CRON_JOB,
    }
}

/// One cell for each of [`columns`].
pub(super) fn cells(kind: WorkloadKind, object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let age = json!(age_since(time(&object["metadata"]["creationTimestamp"]), now));
    let ready = || json!(format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])));
    let selector = json!(selector_text(&spec["selector"]));
    let mut cells = vec![object["metadata"]["name"].clone()];
    match kind {
        WorkloadKind::Deployment => {
            cells.extend([ready(), count(&status["updatedReplicas"]), count(&status["availableReplicas"]), age]);
            cells.extend(containers(&spec["template"]));
            cells.push(selector);
        }
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => {
            cells.extend([count(&spec["replicas"]), count(&status["replicas"]), count(&status["readyReplicas"]), age]);
            cells.extend(containers(&spec["template"]));
            let is_map = kind == WorkloadKind::ReplicationController;
            cells.push(if is_map { json!(labels_text(&spec["selector"])) } else { selector });
        }
        WorkloadKind::StatefulSet => {
            cells.extend([ready(), age]);
            cells.extend(containers(&spec["template"]));
        }
        WorkloadKind::DaemonSet => {
            let counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady"];
            cells.extend(counts.map(|field| count(&status[field])));
            cells.extend(["updatedNumberScheduled", "numberAvailable"].map(|field| count(&status[field])));
            cells.push(json!(labels_text(&spec["template"]["spec"]["nodeSelector"])));
            cells.push(age);
            cells.extend(containers(&spec["template"]));
            cells.push(selector);
        }
        WorkloadKind::Job => {
            cells.extend([json!(job_status(object)), json!(completions(object)), json!(job_duration(status, now)), age]);
            cells.extend(containers(&spec["template"]));
            cells.push(selector);
        }
        WorkloadKind::CronJob => {
            cells.extend(schedule(object, now));
            cells.push(age);
            cells.extend(next_and_missed(object, now));
            cells.extend(containers(&spec["jobTemplate"]["spec"]["template"]));
            cells.push(json!(selector_text(&spec["jobTemplate"]["spec"]["selector"])));
        }
    }
    cells
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn count(value: &Value) -> Value {
    json!(number(value))
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Names and images.
fn containers(template: &Value) -> [Value; 2] {
    let all = template["spec"]["containers"].as_array();
    ["name", "image"].map(|field| {
        let values: Vec<&str> = all.into_iter().flatten().filter_map(|container| container[field].as_str()).collect();
        json!(values.join(","))
    })
}

fn job_status(object: &Value) -> &'static str {
    let conditions = object["status"]["conditions"].as_array();
    let has = |name: &str| conditions.into_iter().flatten().any(|other| other["type"] == name && other["status"] == "True");
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if object["metadata"]["deletionTimestamp"].is_string() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(object: &Value) -> String {
    let (spec, succeeded) = (&object["spec"], number(&object["status"]["succeeded"]));
    match (spec["completions"].as_i64(), number(&spec["parallelism"])) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(status: &Value, now: Timestamp) -> String {
    match (time(&status["startTime"]), time(&status["completionTime"])) {
        (None, _) => String::new(),
        (Some(start), end) => human_duration(end.unwrap_or(now).duration_since(start).as_secs()),
    }
}

fn schedule(object: &Value, now: Timestamp) -> [Value; 5] {
    let (spec, status) = (&object["spec"], &object["status"]);
    let last = time(&status["lastScheduleTime"]);
    let suspend = match spec["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    [
        spec["schedule"].clone(),
        json!(spec["timeZone"].as_str().unwrap_or("<none>")),
        json!(suspend),
        json!(status["active"].as_array().map_or(0, Vec::len)),
        json!(last.map_or_else(|| "<none>".to_owned(), |last| age_since(Some(last), now))),
    ]
}

fn next_and_missed(object: &Value, now: Timestamp) -> [Value; 2] {
    let annotations = &object["metadata"]["annotations"];
    let next = time(&annotations[NEXT_RUN_ANNOTATION]);
    // One that is due is about to start.
    let until = next.map_or_else(|| "<none>".to_owned(), |next| human_duration(next.duration_since(now).as_secs().max(0)));
    [json!(until), json!(annotations[MISSED_RUN_ANNOTATION].as_str().unwrap_or("<none>"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: WorkloadKind, spec: Value, status: Value) -> Vec<Value> {
        let metadata = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        let cells = cells(kind, &object, "2026-01-01T00:10:00Z".parse().unwrap());
        assert_eq!(cells.len(), columns(kind).len(), "{kind}");
        cells
    }

    fn template() -> Value {
        json!({"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}]}})
    }

    #[test]
    fn replicas_are_counted_as_kubectl_does() {
        let selector = json!({"matchLabels": {"app": "x"}});
        let spec = json!({"replicas": 3, "selector": selector, "template": template()});
        let status = json!({"replicas": 4, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2});
        let deployment = row(WorkloadKind::Deployment, spec.clone(), status.clone());
        assert_eq!(json!(deployment), json!(["x", "2/3", 1, 2, "10m", "a,b", "i:1,j:2", "app=x"]));
        let replica_set = row(WorkloadKind::ReplicaSet, spec.clone(), status.clone());
        assert_eq!(json!(replica_set), json!(["x", 3, 4, 2, "10m", "a,b", "i:1,j:2", "app=x"]));
        assert_eq!(json!(row(WorkloadKind::StatefulSet, spec, status.clone())), json!(["x", "2/3", "10m", "a,b", "i:1,j:2"]));
        let spec = json!({"replicas": 3, "selector": {"app": "x"}, "template": template()});
        let controller = row(WorkloadKind::ReplicationController, spec, status);
        assert_eq!(json!(controller), json!(["x", 3, 4, 2, "10m", "a,b", "i:1,j:2", "app=x"]));
        let daemon_set = row(WorkloadKind::DaemonSet, json!({"template": template()}), json!({"desiredNumberScheduled": 1}));
        assert_eq!(json!(daemon_set), json!(["x", 1, 0, 0, 0, 0, "<none>", "10m", "a,b", "i:1,j:2", "<none>"]));
    }

    #[test]
    fn status_of_a_job_is_its_verdict() {
        let of = |conditions: &[&str]| {
            let conditions: Vec<Value> = conditions.iter().map(|name| json!({"type": name, "status": "True"})).collect();
            row(WorkloadKind::Job, json!({}), json!({"conditions": conditions}))[1].clone()
        };
        assert_eq!(of(&[]), "Running");
        assert_eq!(of(&["SuccessCriteriaMet", "Complete"]), "Complete");
        assert_eq!(of(&["FailureTarget", "Failed"]), "Failed");
        assert_eq!(of(&["FailureTarget"]), "FailureTarget");
        assert_eq!(of(&["Suspended"]), "Suspended");
    }

    #[test]
    fn completions_depend_on_parallelism() {
        let of = |spec: Value| {
            let times = json!({"succeeded": 1, "startTime": "2026-01-01T00:01:00Z", "completionTime": "2026-01-01T00:01:42Z"});
            let row = row(WorkloadKind::Job, spec, times);
            (row[2].clone(), row[3].clone())
        };
        assert_eq!(of(json!({"completions": 5, "parallelism": 2})), (json!("1/5"), json!("42s")));
        assert_eq!(of(json!({"parallelism": 3})), (json!("1/1 of 3"), json!("42s")));
        assert_eq!(of(json!({"parallelism": 1})), (json!("1/1"), json!("42s")));
        let running = row(WorkloadKind::Job, json!({}), json!({"startTime": "2026-01-01T00:01:00Z"}));
        assert_eq!((&running[2], &running[3]), (&json!("0/1"), &json!("9m")));
    }

    #[test]
    fn cron_job_shows_next_and_missed_run() {
        let object = json!({
            "metadata": {
                "name": "x", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"podstead.dev/next-run": "2026-01-01T00:15:00Z", "podstead.dev/missed-run": "missed its deadline of 60 s"},
            },
            "spec": {
                "schedule": "*/15 * * * *", "timeZone": "Europe/Berlin", "suspend": false,
                "jobTemplate": {"spec": {"template": template()}},
            },
            "status": {"active": [{}], "lastScheduleTime": "2026-01-01T00:00:00Z"},
        });
        let cells = cells(WorkloadKind::CronJob, &object, "2026-01-01T00:10:00Z".parse().unwrap());
        let expected = json!([
            "x",
            "*/15 * * * *",
            "Europe/Berlin",
            "False",
            1,
            "10m",
            "10m",
            "5m",
            "missed its deadline of 60 s",
            "a,b",
            "i:1,j:2",
            "<none>",
        ]);
        assert_eq!(json!(cells), expected);
        let bare = row(WorkloadKind::CronJob, json!({"schedule": "@daily"}), json!({}));
        assert_eq!(json!(bare[1..9]), json!(["@daily", "<none>", "<unset>", 0, "<none>", "10m", "<none>", "<none>"]));
    }
}
