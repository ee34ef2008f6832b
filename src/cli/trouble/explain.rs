//! From a pod's status and the evidence to why it does not run. **Pure**.

use super::advice::advice;
use super::ending::ending;
use super::evidence::Evidence;
use crate::pods::{annotation, name_on_command_line};
use crate::printable::printable;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Event, Pod};
use podstead_api::published::ORIGIN_ANNOTATION;
use podstead_api::show::{OWN_CONDITIONS, PodRow, age_since};
use podstead_status::reason;

/// Status of a pod that is being removed.
const TERMINATING: &str = "Terminating";
/// Time by which the end of a container may be recorded before the event that says why: both are in whole seconds.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// The kernel's words for a full disk.
const NO_SPACE: &str = "No space left on device";
/// Beginning of the message of a pod whose hostPort no network can forward.
const CANNOT_FORWARD: &str = "cannot forward hostPort";

/// Explanation of an unhealthy pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Trouble {
    /// The first container that is not as it should be.
    pub(crate) container: Option<String>,
    /// Since when the pod is not ready.
    pub(crate) since: Option<Timestamp>,
    /// Known causes, one per line.
    pub(crate) causes: Vec<String>,
    /// A command, or what to change; none where there is nothing to do but wait.
    pub(crate) remedy: Option<String>,
}

/// Explains why a pod is not well.
pub(crate) fn explain(pod: &Pod, row: &PodRow, evidence: &Evidence, now: Timestamp) -> Trouble {
    let container = culprit(pod);
    let ended = container.and_then(last_ending);
    let container_name = container.map(|container| container.name.as_str());
    // The manifest is the place for the fix.
    let origin = annotation(pod, ORIGIN_ANNOTATION);
    let causes = causes(pod, row, container, ended, evidence, now);
    let kill = container.and_then(|container| killed_by_probe(pod, container, evidence));
    let is_full = causes.iter().any(|cause| cause.contains(NO_SPACE));
    let is_unconnected = causes.iter().any(|cause| cause.contains(CANNOT_FORWARD));
    Trouble {
        container: container_name.map(str::to_owned),
        since: since(pod, row),
        causes,
        remedy: match kill {
            None if is_full => Some("free space on the disk (podstead doctor disk)".to_owned()),
            None if is_unconnected => Some(format!(
                "remove hostPort from {}, or set network.type to builtin in podstead's configuration",
                origin.unwrap_or("the manifest")
            )),
            Some(kill) => Some(format!(
                "podstead logs -p {} -c {}; if the program is only slow, change {}Probe in {}",
                name_on_command_line(pod),
                container_name.unwrap_or_default(),
                kill.probe.to_lowercase(),
                origin.unwrap_or("the manifest"),
            )),
            None => advice(
                &row.status,
                ended.and_then(|ended| ended.reason.as_deref()),
                &name_on_command_line(pod),
                container_name,
                origin,
            ),
        },
    }
}

/// Finds the first container that is not as it should be.
pub(super) fn culprit(pod: &Pod) -> Option<&ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    all.into_iter().find(|container| !container.ready && !has_completed(container))
}

fn has_completed(container: &ContainerStatus) -> bool {
    container.state.as_ref().and_then(|state| state.terminated.as_ref()).is_some_and(|terminated| terminated.exit_code == 0)
}

fn since(pod: &Pod, row: &PodRow) -> Option<Timestamp> {
    if let Some(until) = pod.metadata.deletion_timestamp.as_ref().filter(|_| row.status == TERMINATING) {
        // The deletion timestamp of Kubernetes is the end of the grace period.
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
        return until.0.checked_sub(SignedDuration::from_secs(grace)).ok();
    }
    let status = pod.status.as_ref()?;
    // A pod that is stopped while it crashes was not ready before.
    let condition = if row.status == reason::STOPPED { "PodReadyToStartContainers" } else { "Ready" };
    match status.conditions.iter().flatten().find(|found| found.type_ == condition) {
        // It is ready as it was before the edit that does not work.
        Some(found) if found.status == "True" => None,
        found => found.and_then(|found| found.last_transition_time.as_ref()).or(status.start_time.as_ref()).map(|time| time.0),
    }
}

/// End of the last run, for a container that is not running.
pub(super) fn last_ending(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    if container.state.as_ref().is_some_and(|state| state.running.is_some()) {
        return None;
    }
    [&container.state, &container.last_state].into_iter().flatten().find_map(|state| state.terminated.as_ref())
}

fn causes(
    pod: &Pod,
    row: &PodRow,
    container: Option<&ContainerStatus>,
    ended: Option<&ContainerStateTerminated>,
    evidence: &Evidence,
    now: Timestamp,
) -> Vec<String> {
    let mut causes = Vec::new();
    if row.status == TERMINATING {
        causes.extend(time_left(pod, now));
        return causes;
    }
    causes.extend(pod.status.as_ref().and_then(|status| status.message.as_deref()).map(first_line));
    let waiting = container.and_then(|container| container.state.as_ref()?.waiting.as_ref());
    let back_off = waiting.filter(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"));
    // The back-off is shown with the end of the last run.
    if back_off.is_none() || ended.is_none() {
        causes.extend(waiting.and_then(|waiting| waiting.message.as_deref()).map(first_line));
    }
    if let (Some(container), Some(ended)) = (container, ended) {
        let pause =
            back_off.and_then(|waiting| waiting.message.as_deref()).and_then(pause).map(|pause| format!("; back-off {pause}"));
        causes.push(format!("container {}: {}{}", container.name, ending(ended, now), pause.unwrap_or_default()));
        causes.extend(memory_limit(pod, container, ended));
        causes.extend(ended.message.as_deref().map(first_line).filter(|message| !message.is_empty()));
        if ended.message.is_none() {
            causes.extend(evidence.last_words(container).map(|line| format!("last log line: {line}")));
        }
    }
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let shortcomings = conditions.filter(|condition| condition.type_.starts_with(OWN_CONDITIONS) && condition.status == "False");
    if container.is_none() {
        causes.extend(shortcomings.filter_map(|condition| condition.message.as_deref()).map(first_line));
    }
    let of_container = |event: &Event| container.is_none_or(|container| is_about(event, container));
    let kill = container.and_then(|container| killed_by_probe(pod, container, evidence));
    causes.extend(kill.as_ref().map(ProbeKill::sentence));
    // A probe that failed before the last run began is not why it ended, nor why the present one is not ready.
    let running = container.and_then(|container| container.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    let began = ended.and_then(|ended| ended.started_at.as_ref()).or(running).map(|time| time.0);
    let counts = |event: &Event| event.last_timestamp.as_ref().map(|time| time.0) >= began;
    let is_told = kill.is_some() && running.is_none();
    let probe = evidence.warning(pod, |event| event.reason.as_deref() == Some("Unhealthy") && of_container(event) && counts(event));
    causes.extend(probe.filter(|_| !is_told).and_then(|event| event.message.as_deref()).map(first_line));
    if causes.is_empty() {
        causes.extend(evidence.warning(pod, |_| true).and_then(|event| event.message.as_deref()).map(first_line));
    }
    causes
}

/// True if the event is about this container of its pod.
fn is_about(event: &Event, container: &ContainerStatus) -> bool {
    let path = event.involved_object.field_path.as_deref().unwrap_or_default();
    path.contains(&format!("{{{}}}", container.name))
}

/// End of a container's last run by podstead, because of a probe.
#[derive(Debug)]
struct ProbeKill {
    /// `Liveness` or `Startup`.
    probe: &'static str,
    /// Result of the check that failed last, if it is known.
    failure: Option<String>,
}

impl ProbeKill {
    fn sentence(&self) -> String {
        let failure = self.failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
        format!("podstead killed its last run because of the {} probe{failure}", self.probe.to_lowercase())
    }
}

/// Finds out whether the last run of a container was killed because of a probe.
fn killed_by_probe(pod: &Pod, container: &ContainerStatus, evidence: &Evidence) -> Option<ProbeKill> {
    let runs = [&container.state, &container.last_state];
    let ended = runs.into_iter().flatten().find_map(|state| state.terminated.as_ref())?;
    let (began, end) = (ended.started_at.as_ref()?.0, ended.finished_at.as_ref()?.0.checked_add(SLACK).ok()?);
    let at = |event: &Event| event.last_timestamp.as_ref().map(|time| time.0);
    let is_within = |event: &Event| at(event).is_some_and(|at| at >= began && at <= end);
    let kill = evidence.kill(pod, |event| is_about(event, container) && is_within(event))?;
    let message = kill.message.as_deref().unwrap_or_default();
    let probe = [("failed liveness probe", "Liveness"), ("failed startup probe", "Startup")];
    let probe = probe.into_iter().find(|(text, _)| message.contains(text))?.1;
    let prefix = format!("{probe} probe failed: ");
    let failure = evidence.warning(pod, |event| {
        let is_of_probe = event.message.as_deref().is_some_and(|message| message.starts_with(&prefix));
        // It may have failed in the present run, too, and is counted there.
        is_of_probe && is_about(event, container) && at(event).is_some_and(|at| at >= began)
    });
    let failure = failure.and_then(|event| event.message.as_deref()?.strip_prefix(&prefix)).map(first_line);
    Some(ProbeKill { probe, failure })
}

/// Remaining grace period of the containers of a terminating pod.
fn time_left(pod: &Pod, now: Timestamp) -> Option<String> {
    let until = pod.metadata.deletion_timestamp.as_ref()?.0;
    Some(if until > now {
        format!("its containers have another {} to stop", age_since(Some(now), until))
    } else {
        "the grace period is over: its containers are being killed".to_owned()
    })
}

/// `10s` of `back-off 10s restarting failed container=...`.
fn pause(message: &str) -> Option<&str> {
    message.strip_prefix("back-off ")?.split(' ').next()
}

/// Against which limit a container was killed.
fn memory_limit(pod: &Pod, container: &ContainerStatus, ended: &ContainerStateTerminated) -> Option<String> {
    if ended.reason.as_deref() != Some("OOMKilled") {
        return None;
    }
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let limits = all.find(|other| other.name == container.name)?.resources.as_ref()?.limits.as_ref()?;
    Some(format!("memory limit: {}", limits.get("memory")?.0))
}

/// Messages are of containers and of servers, too.
fn first_line(message: &str) -> String {
    printable(message.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(container: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "web-edge", "namespace": "default", "uid": "u-1",
                "annotations": {"podstead.dev/origin": "shop/web.yaml:3:1"},
            },
            "spec": {"containers": [{"name": "app", "resources": {"limits": {"memory": "32Mi"}}}]},
            "status": {"phase": "Running", "containerStatuses": [container]},
        }))
        .unwrap()
    }

    fn crashing(terminated: Value) -> Value {
        json!({
            "name": "app", "ready": false, "restartCount": 2, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container=app pod=web"}},
            "lastState": {"terminated": terminated},
        })
    }

    fn warning(reason: &str, at: &str, message: &str) -> Event {
        serde_json::from_value(json!({
            "metadata": {}, "type": "Warning", "reason": reason, "message": message, "lastTimestamp": at,
            "involvedObject": {"kind": "Pod", "uid": "u-1", "fieldPath": "spec.containers{app}"},
        }))
        .unwrap()
    }

    fn explained(pod: &Pod, evidence: &Evidence) -> Trouble {
        explain(pod, &PodRow::of(pod), evidence, "2026-01-01T00:01:00Z".parse().unwrap())
    }

    #[test]
    fn a_crash_is_told_with_its_exit_code_and_its_last_words() {
        let pod = pod(crashing(json!({
            "exitCode": 3, "reason": "Error", "containerID": "podstead://1",
            "startedAt": "2026-01-01T00:00:50Z", "finishedAt": "2026-01-01T00:00:52Z",
        })));
        let evidence = Evidence::new(Vec::new(), [("podstead://1".into(), "starting\nno such file: /data/db\n".into())]);
        let trouble = explained(&pod, &evidence);
        assert_eq!(
            trouble.causes,
            ["container app: Error, exit code 3 after 2s, 8s ago; back-off 20s", "last log line: no such file: /data/db"]
        );
        assert_eq!(trouble.remedy.as_deref(), Some("podstead logs -p web-edge -c app"));
    }

    #[test]
    fn stopped_pod_is_stopped_since_its_stop() {
        let mut pod = pod(crashing(json!({"exitCode": 1, "reason": "Error"})));
        let condition = |name: &str, at: &str| json!({"type": name, "status": "False", "lastTransitionTime": at});
        let status = pod.status.as_mut().unwrap();
        status.container_statuses.as_mut().unwrap()[0].state =
            serde_json::from_value(json!({"waiting": {"reason": "Stopped", "message": "stopped by an operator"}})).unwrap();
        let conditions =
            [condition("Ready", "2026-01-01T00:00:10Z"), condition("PodReadyToStartContainers", "2026-01-01T00:00:57Z")];
        status.conditions = Some(conditions.map(|condition| serde_json::from_value(condition).unwrap()).into());
        assert_eq!(explained(&pod, &Evidence::default()).since, Some("2026-01-01T00:00:57Z".parse().unwrap()));
    }

    #[test]
    fn full_disk_wants_space() {
        let reason = "mount overlay of 1 layers on /run/x: No space left on device (os error 28)";
        let pod = pod(json!({
            "name": "app", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "CreateContainerError", "message": reason}},
        }));
        let trouble = explained(&pod, &Evidence::default());
        assert_eq!(trouble.remedy.as_deref(), Some("free space on the disk (podstead doctor disk)"), "{trouble:?}");
    }

    #[test]
    fn pod_that_is_ready_as_before_an_edit_has_no_time() {
        let mut pod = pod(crashing(json!({"exitCode": 0})));
        let status = pod.status.as_mut().unwrap();
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}]);
        (status.start_time, status.conditions) =
            (Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap()), serde_json::from_value(ready).unwrap());
        assert_eq!(explained(&pod, &Evidence::default()).since, None);
    }

    #[test]
    fn a_program_that_cannot_start_is_mended_in_the_manifest() {
        let pod = pod(crashing(json!({
            "exitCode": 128, "reason": "StartError", "message": "exec \"/bin/nope\":\u{1b}no such file or directory\nmore",
        })));
        let trouble = explained(&pod, &Evidence::default());
        assert_eq!(trouble.causes[1], "exec \"/bin/nope\": no such file or directory");
        assert_eq!(trouble.remedy.as_deref(), Some("fix the command or the image of container app in shop/web.yaml:3:1"));
    }

    #[test]
    fn a_container_that_needs_too_much_memory_is_told_its_limit() {
        let pod = pod(crashing(json!({"exitCode": 137, "reason": "OOMKilled"})));
        let trouble = explained(&pod, &Evidence::default());
        assert_eq!(trouble.causes[1], "memory limit: 32Mi");
        assert!(trouble.remedy.as_deref().unwrap().starts_with("raise resources.limits.memory"), "{trouble:?}");
    }

    #[test]
    fn the_probe_that_keeps_a_container_from_being_ready_is_told() {
        let pod = pod(json!({
            "name": "app", "ready": false, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}},
        }));
        let warnings = vec![
            warning("Unhealthy", "2026-01-01T00:00:50Z", "Readiness probe failed: connection refused"),
            warning("Unhealthy", "2026-01-01T00:00:40Z", "Readiness probe failed: timeout"),
            warning("FailedMount", "2026-01-01T00:00:55Z", "no such volume"),
        ];
        let trouble = explained(&pod, &Evidence::new(warnings, []));
        assert_eq!(trouble.causes, ["Readiness probe failed: connection refused"]);
    }

    #[test]
    fn a_failed_probe_of_an_earlier_run_is_not_why_this_one_ended() {
        let pod = pod(crashing(json!({"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:00:50Z"})));
        let early = Evidence::new(vec![warning("Unhealthy", "2026-01-01T00:00:40Z", "Liveness probe failed")], []);
        assert_eq!(explained(&pod, &early).causes.len(), 1);
        let late = Evidence::new(vec![warning("Unhealthy", "2026-01-01T00:00:51Z", "Liveness probe failed")], []);
        assert_eq!(explained(&pod, &late).causes[1], "Liveness probe failed");
    }

    #[test]
    fn kill_by_a_probe_is_the_cause() {
        let last = json!({"terminated": {"exitCode": 137, "reason": "Error", "startedAt": "2026-01-01T00:00:10Z", "finishedAt": "2026-01-01T00:00:40Z"}});
        let killing = |at: &str| Event {
            type_: Some("Normal".into()),
            ..warning("Killing", at, "Container app failed liveness probe, will be restarted")
        };
        let events = |at: &str| {
            let unready = warning("Unhealthy", "2026-01-01T00:00:39Z", "Readiness probe failed: not yet");
            Evidence::new(
                vec![warning("Unhealthy", "2026-01-01T00:00:38Z", "Liveness probe failed: status 500"), unready, killing(at)],
                [],
            )
        };
        let told = "podstead killed its last run because of the liveness probe: status 500";
        let running = pod(json!({
            "name": "app", "ready": false, "restartCount": 1, "image": "", "imageID": "",
            "state": {"running": {"startedAt": "2026-01-01T00:00:41Z"}}, "lastState": last,
        }));
        let trouble = explained(&running, &events("2026-01-01T00:00:39Z"));
        assert_eq!(trouble.causes, [told], "the readiness probe failed in another run");
        assert!(trouble.remedy.unwrap().ends_with("change livenessProbe in shop/web.yaml:3:1"));
        let waiting = pod(crashing(last["terminated"].clone()));
        let causes = explained(&waiting, &events("2026-01-01T00:00:39Z")).causes;
        assert_eq!(causes[1..], [told], "{causes:?}");
        let earlier = explained(&waiting, &events("2026-01-01T00:00:05Z")).causes;
        assert_eq!(earlier[1..], ["Readiness probe failed: not yet"], "the kill ended another run");
    }

    #[test]
    fn what_no_status_says_is_taken_from_the_newest_warning() {
        let mut pod = pod(json!({
            "name": "app", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "ContainerCreating"}},
        }));
        let evidence = Evidence::new(vec![warning("FailedMount", "2026-01-01T00:00:55Z", "no such volume\nat all")], []);
        assert_eq!(explained(&pod, &evidence).causes, ["no such volume"]);
        pod.metadata.uid = Some("another".into());
        assert!(explained(&pod, &evidence).causes.is_empty());
    }

    #[test]
    fn a_pod_that_ends_says_how_long_it_may_take() {
        let mut pod =
            pod(json!({"name": "app", "ready": false, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}}}));
        let at = |time: &str| Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time.parse().unwrap()));
        pod.metadata.deletion_timestamp = at("2026-01-01T00:01:20Z");
        pod.metadata.deletion_grace_period_seconds = Some(30);
        let trouble = explained(&pod, &Evidence::default());
        assert_eq!(trouble.since, Some("2026-01-01T00:00:50Z".parse().unwrap()), "since its deletion");
        assert_eq!((trouble.causes, trouble.remedy), (vec!["its containers have another 20s to stop".to_owned()], None));
        pod.metadata.deletion_timestamp = at("2026-01-01T00:00:20Z");
        assert_eq!(explained(&pod, &Evidence::default()).causes, ["the grace period is over: its containers are being killed"]);
    }
}
