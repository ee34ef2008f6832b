//! Failures of the host, its sources, revisions, pods and workloads, from what the API serves. **Pure**.

use super::tracker::{Failure, Observed, Subject};
use k8s_openapi::api::core::v1::Pod;
use podstead_api::show::PodRow;
use podstead_config::notify::NotifyKind;
use podstead_pod::Severity;
use podstead_settings::ConfigStanding;
use podstead_status::reason;
use podstead_store::SourceStatus;
use podstead_telemetry::event_log::LoggedEvent;
use podstead_telemetry::events;
use serde_json::Value;

/// States of a pod that are progress, unless they last.
const PROGRESS: [&str; 5] = ["Pending", "ContainerCreating", "PodInitializing", "NotReady", "SchedulingGated"];

/// Adds failures of the configuration.
pub(super) fn of_configuration(observed: &mut Observed, standing: &ConfigStanding) {
    if let Some(error) = &standing.error {
        let failure = Failure { reason: "InvalidConfiguration".to_owned(), message: error.clone(), ..nothing() };
        observed.failures.insert(host("configuration"), failure);
    }
}

/// Adds a disk without space: the newest event decides.
pub(super) fn of_disk<'a>(observed: &mut Observed, events: impl Iterator<Item = &'a LoggedEvent>) {
    let of_disk = |event: &&LoggedEvent| {
        event.subject == events::Subject::Node && ["DiskPressure", "DiskRecovered"].contains(&event.reason.as_str())
    };
    if let Some(event) = events.filter(of_disk).max_by_key(|event| event.version).filter(|event| event.reason == "DiskPressure") {
        let failure = Failure { reason: event.reason.clone(), message: event.message.clone(), ..nothing() };
        observed.failures.insert(host("disk"), failure);
    }
}

/// Adds a source that cannot be fetched, and objects of its revision that are rejected.
pub(super) fn of_source(observed: &mut Observed, status: &SourceStatus) {
    let name = status.id.to_string();
    let subject = |kind| Subject { kind, namespace: String::new(), name: name.clone() };
    let revision = |revision: &Option<podstead_pod::Revision>| revision.as_ref().map(|it| it.0.clone()).unwrap_or_default();
    if let Some(error) = &status.last_error {
        let (source, revision) = (name.clone(), revision(&status.accepted));
        let failure = Failure { reason: "SourceFailed".to_owned(), message: error.clone(), source, revision, is_progress: false };
        observed.failures.insert(subject(NotifyKind::Source), failure);
    }
    let mut errors = status.problems.iter().filter(|problem| problem.severity == Severity::Error);
    if let Some(first) = errors.next() {
        let more = errors.count();
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let (source, revision) = (name.clone(), revision(&status.fetched));
        let message = format!("{first}{more}");
        let failure = Failure { reason: "Rejected".to_owned(), message, source, revision, is_progress: false };
        observed.failures.insert(subject(NotifyKind::Revision), failure);
    }
    // Since the start nothing was read of it.
    if status.fetched.is_none() {
        observed.unknown.extend([subject(NotifyKind::Source), subject(NotifyKind::Revision)]);
    }
}

/// Adds a pod that is not well. An attempt of a Job is the Job's matter, and a stopped pod somebody's wish.
pub(super) fn of_pod(observed: &mut Observed, pod: &Pod, source: &str, revision: &str) {
    let row = PodRow::of(pod);
    let owners = pod.metadata.owner_references.iter().flatten();
    let is_attempt = owners.into_iter().any(|owner| owner.controller == Some(true) && owner.kind == "Job");
    if row.is_well() || is_attempt || row.status == reason::STOPPED || row.status == "Terminating" {
        return;
    }
    let is_init_step = row.status.strip_prefix("Init:").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let failure = Failure {
        is_progress: is_init_step || PROGRESS.contains(&row.status.as_str()),
        message: message_of(pod).unwrap_or_else(|| format!("{} of {} containers are ready", row.ready, row.total)),
        reason: if row.status == "Running" { "NotReady".to_owned() } else { row.status },
        source: source.to_owned(),
        revision: revision.to_owned(),
    };
    let of = |field: &Option<String>| field.clone().unwrap_or_default();
    let subject = Subject { kind: NotifyKind::Pod, namespace: of(&pod.metadata.namespace), name: of(&pod.metadata.name) };
    observed.failures.insert(subject, failure);
}

/// Message of the pod, or of the first container that waits or ended with one.
fn message_of(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let mut of_containers = containers.filter_map(|container| {
        let state = container.state.as_ref()?;
        let waiting = state.waiting.as_ref().and_then(|waiting| waiting.message.clone());
        let ended = || {
            let ended = state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
            Some(
                ended
                    .message
                    .clone()
                    .unwrap_or_else(|| format!("container {} ended with exit code {}", container.name, ended.exit_code)),
            )
        };
        waiting.or_else(ended)
    });
    status.message.clone().or_else(|| of_containers.next())
}

/// Adds a Job that failed, and a workload that does not progress.
pub(super) fn of_workload(observed: &mut Observed, object: &Value, source: &str, revision: &str) {
    let conditions = object["status"]["conditions"].as_array();
    let failed = conditions.into_iter().flatten().find(|condition| {
        let (kind, status) = (&condition["type"], &condition["status"]);
        (kind == "Failed" && status == "True" && object["kind"] == "Job") || (kind == "Progressing" && status == "False")
    });
    let Some(condition) = failed else { return };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let subject = Subject {
        kind: NotifyKind::Workload,
        namespace: word(&metadata["namespace"]),
        name: format!("{}/{}", word(&object["kind"]), word(&metadata["name"])),
    };
    let failure = Failure {
        reason: word(&condition["reason"]),
        message: word(&condition["message"]),
        source: source.to_owned(),
        revision: revision.to_owned(),
        is_progress: false,
    };
    observed.failures.insert(subject, failure);
}

fn host(name: &str) -> Subject {
    Subject { kind: NotifyKind::Host, namespace: String::new(), name: name.to_owned() }
}

fn nothing() -> Failure {
    let [reason, message, source, revision] = [const { String::new() }; 4];
    Failure { reason, message, source, revision, is_progress: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(parts: Value) -> Observed {
        let mut object =
            json!({"metadata": {"name": "web-edge", "namespace": "default"}, "spec": {"containers": [{"name": "main"}]}});
        for (key, value) in parts.as_object().unwrap() {
            object[key] = value.clone();
        }
        object["metadata"]["name"] = "web-edge".into();
        let mut observed = Observed::default();
        of_pod(&mut observed, &serde_json::from_value(object).unwrap(), "fleet", "abc");
        observed
    }

    fn waiting(reason: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": "why"}});
        let container = json!({"name": "main", "ready": false, "restartCount": 1, "image": "", "imageID": "", "state": state});
        json!({"phase": "Running", "containerStatuses": [container]})
    }

    #[test]
    fn pods_fail_with_reason_and_message() {
        let observed = pod(json!({"status": waiting("CrashLoopBackOff")}));
        let (subject, failure) = observed.failures.into_iter().next().unwrap();
        assert_eq!(subject.object(), "pod default/web-edge");
        assert_eq!((failure.reason.as_str(), failure.message.as_str(), failure.is_progress), ("CrashLoopBackOff", "why", false));
        let observed = pod(json!({"status": waiting("ContainerCreating")}));
        assert!(observed.failures.values().all(|failure| failure.is_progress) && observed.failures.len() == 1);
    }

    #[test]
    fn stopped_pods_and_attempts_are_no_failures() {
        assert!(pod(json!({"status": waiting("Stopped")})).failures.is_empty());
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "dump", "uid": "2", "controller": true});
        let metadata = json!({"namespace": "default", "ownerReferences": [owner]});
        assert!(pod(json!({"metadata": metadata, "status": {"phase": "Failed"}})).failures.is_empty());
    }

    #[test]
    fn failed_jobs_are_failures() {
        let mut observed = Observed::default();
        let condition = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"});
        let mut job =
            json!({"kind": "Job", "metadata": {"name": "dump", "namespace": "default"}, "status": {"conditions": [condition]}});
        of_workload(&mut observed, &job, "fleet", "abc");
        assert_eq!(observed.failures.keys().next().unwrap().object(), "workload default/Job/dump");
        job["status"]["conditions"][0]["status"] = "False".into();
        let mut observed = Observed::default();
        of_workload(&mut observed, &job, "fleet", "abc");
        assert!(observed.failures.is_empty());
    }
}
