//! READY, STATUS and RESTARTS of a pod, by the rules of kubectl's printer, so that both say the same of a pod.

use super::age::age_since;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Conditions of pods that Kubernetes does not know begin so.
pub const OWN_CONDITIONS: &str = "podstead.dev/";

/// Values of the columns of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRow {
    /// Containers that are ready.
    pub ready: usize,
    /// Containers that should be: main containers and sidecars.
    pub total: usize,
    /// `Running`, `CrashLoopBackOff`, `Init:0/2`, `Completed`, `Terminating`, ...
    pub status: String,
    /// Restarts of main containers and sidecars; while initialising, of init containers.
    pub restarts: i64,
    /// End of the last restarted run.
    pub last_restart: Option<Timestamp>,
}

impl PodRow {
    /// Computes the columns.
    pub fn of(pod: &Pod) -> Self {
        let empty = PodStatus::default();
        Self::of_parts(
            &pod.metadata,
            pod.spec.as_ref().map_or(&[][..], |spec| &spec.containers),
            init_containers(pod),
            pod.status.as_ref().unwrap_or(&empty),
        )
    }

    fn of_parts(metadata: &ObjectMeta, containers: &[Container], init: &[Container], status: &PodStatus) -> Self {
        let mut row = Self { total: containers.len() + init.iter().filter(|c| is_sidecar(c)).count(), ..Self::default() };
        row.status = status.reason.clone().or_else(|| status.phase.clone()).unwrap_or_else(|| "Unknown".into());
        let mut sidecars = Restarts::default();
        let initialising = row.add_init_containers(init, status, &mut sidecars);
        if !initialising || has_condition(status, "Initialized") {
            row.add_main_containers(status, sidecars);
        }
        let over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        // Beyond kubectl's words: it runs, but not with all that it needs, or not as it was edited.
        if let Some(reason) = Some(&row.status).filter(|status| *status == "Running").and_then(|_| shortcoming(status)) {
            row.status = reason.to_owned();
        }
        if metadata.deletion_timestamp.is_some() && !over {
            row.status = "Terminating".into();
        }
        row
    }

    /// Returns whether initialisation is under way; then the status says how far it is.
    fn add_init_containers(&mut self, init: &[Container], status: &PodStatus, sidecars: &mut Restarts) -> bool {
        let mut all = Restarts::default();
        for (index, container) in status.init_container_statuses.iter().flatten().enumerate() {
            let sidecar = init.iter().any(|spec| spec.name == container.name && is_sidecar(spec));
            all.add(container);
            if sidecar {
                sidecars.add(container);
            }
            let state = container.state.clone().unwrap_or_default();
            match (state.terminated, state.waiting.and_then(|waiting| waiting.reason)) {
                (Some(terminated), _) if terminated.exit_code == 0 => continue,
                _ if sidecar && container.started == Some(true) => {
                    self.ready += usize::from(container.ready);
                    continue;
                }
                (Some(terminated), _) => self.status = format!("Init:{}", ending(&terminated)),
                (None, Some(reason)) if !reason.is_empty() && reason != "PodInitializing" => self.status = format!("Init:{reason}"),
                (None, _) => self.status = format!("Init:{index}/{}", init.len()),
            }
            self.restarts = all.count;
            self.last_restart = all.last;
            return true;
        }
        false
    }

    fn add_main_containers(&mut self, status: &PodStatus, mut restarts: Restarts) {
        let mut some_running = false;
        // Backwards, so that of several words the first container's wins.
        for container in status.container_statuses.iter().flatten().rev() {
            restarts.add(container);
            let state = container.state.clone().unwrap_or_default();
            match (state.waiting.and_then(|waiting| waiting.reason).filter(|reason| !reason.is_empty()), state.terminated) {
                (Some(reason), _) => self.status = reason,
                (None, Some(terminated)) => self.status = ending(&terminated),
                (None, None) if container.ready && state.running.is_some() => {
                    some_running = true;
                    self.ready += 1;
                }
                (None, None) => {}
            }
        }
        if self.status == "Completed" && some_running {
            self.status = if has_condition(status, "Ready") { "Running" } else { "NotReady" }.into();
        }
        self.restarts = restarts.count;
        self.last_restart = restarts.last;
    }

    /// `1/2`.
    pub fn ready_column(&self) -> String {
        format!("{}/{}", self.ready, self.total)
    }

    /// `3 (5m ago)`.
    pub fn restarts_column(&self, now: Timestamp) -> String {
        match self.last_restart {
            Some(last) if self.restarts != 0 => format!("{} ({} ago)", self.restarts, age_since(Some(last), now)),
            _ => self.restarts.to_string(),
        }
    }

    /// True if the pod is healthy: running with all containers ready, or completed.
    pub fn is_well(&self) -> bool {
        match self.status.as_str() {
            "Running" => self.ready == self.total,
            "Completed" | "Succeeded" => true,
            _ => false,
        }
    }
}

fn init_containers(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default()
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn has_condition(status: &PodStatus, type_: &str) -> bool {
    status.conditions.iter().flatten().any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Reason of a condition of podstead's own that is not as it should be.
fn shortcoming(status: &PodStatus) -> Option<&str> {
    let is_one = |condition: &&PodCondition| condition.type_.starts_with(OWN_CONDITIONS) && condition.status == "False";
    status.conditions.iter().flatten().find(is_one)?.reason.as_deref()
}

fn ending(terminated: &ContainerStateTerminated) -> String {
    match (terminated.reason.as_deref(), terminated.signal) {
        (Some(reason), _) if !reason.is_empty() => reason.to_owned(),
        (_, Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated.exit_code),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &ContainerStatus) {
        self.count += i64::from(container.restart_count);
        let terminated = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        if let Some(finished) = terminated.and_then(|terminated| terminated.finished_at.as_ref()) {
            self.last = self.last.max(Some(finished.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn row(metadata: Value, spec: Value, status: Value) -> PodRow {
        PodRow::of(&serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap())
    }

    fn container(name: &str, ready: bool, restarts: u32, state: Value) -> Value {
        json!({"name": name, "ready": ready, "restartCount": restarts, "state": state, "image": "", "imageID": ""})
    }

    fn running() -> Value {
        json!({"running": {}})
    }

    fn waiting(reason: &str) -> Value {
        json!({"waiting": {"reason": reason}})
    }

    fn terminated(code: i32, reason: &str) -> Value {
        json!({"terminated": {"exitCode": code, "reason": reason}})
    }

    fn two() -> Value {
        json!({"containers": [{"name": "a"}, {"name": "b"}]})
    }

    #[test]
    fn main_containers_decide_ready_and_status() {
        let cases = [
            ("both run", running(), running(), "2/2", "Running"),
            ("one waits", running(), waiting("CrashLoopBackOff"), "1/2", "CrashLoopBackOff"),
            ("both wait: the first is told", waiting("ImagePullBackOff"), waiting("ErrImagePull"), "0/2", "ImagePullBackOff"),
            ("one ended well, pod not ready", running(), terminated(0, "Completed"), "1/2", "NotReady"),
            ("ended with a reason", terminated(137, "OOMKilled"), terminated(0, "Completed"), "0/2", "OOMKilled"),
            ("ended with a code", terminated(3, ""), running(), "1/2", "ExitCode:3"),
        ];
        for (what, a, b, ready, status) in cases {
            let is_ready = |state: &Value| state.get("running").is_some();
            let statuses = [container("a", is_ready(&a), 0, a.clone()), container("b", is_ready(&b), 0, b.clone())];
            let row = row(json!({}), two(), json!({"phase": "Running", "containerStatuses": statuses}));
            assert_eq!((row.ready_column().as_str(), row.status.as_str()), (ready, status), "{what}");
        }
    }

    #[test]
    fn init_containers_are_counted_until_they_are_done() {
        let spec = json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
        let cases = [
            ("first runs", running(), waiting("PodInitializing"), "Init:0/2"),
            ("second runs", terminated(0, "Completed"), running(), "Init:1/2"),
            ("first failed", terminated(1, "Error"), waiting("PodInitializing"), "Init:Error"),
            (
                "first was killed",
                json!({"terminated": {"exitCode": 137, "signal": 9}}),
                waiting("PodInitializing"),
                "Init:Signal:9",
            ),
            ("second crash-loops", terminated(0, "Completed"), waiting("CrashLoopBackOff"), "Init:CrashLoopBackOff"),
        ];
        for (what, i, j, status) in cases {
            let statuses = [container("i", false, 0, i), container("j", false, 4, j)];
            let main = [container("a", false, 0, waiting("PodInitializing"))];
            let status_json = json!({"phase": "Pending", "initContainerStatuses": statuses, "containerStatuses": main});
            let row = row(json!({}), spec.clone(), status_json);
            assert_eq!((row.ready_column().as_str(), row.status.as_str()), ("0/1", status), "{what}");
        }
    }

    #[test]
    fn sidecars_count_as_containers_and_init_restarts_are_forgotten_afterwards() {
        let spec =
            json!({"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
        let mut sidecar = container("s", true, 2, running());
        sidecar["started"] = json!(true);
        let status = json!({
            "phase": "Running",
            "initContainerStatuses": [container("i", true, 7, terminated(0, "Completed")), sidecar],
            "containerStatuses": [container("a", true, 1, running())],
        });
        let row = row(json!({}), spec, status);
        assert_eq!((row.ready_column().as_str(), row.status.as_str(), row.restarts), ("2/2", "Running", 3));
        assert!(row.is_well());
    }

    #[test]
    fn a_pod_in_deletion_terminates_unless_it_is_over() {
        let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let status = |phase: &str| json!({"phase": phase});
        assert_eq!(row(metadata.clone(), two(), status("Running")).status, "Terminating");
        assert_eq!(row(metadata, two(), status("Failed")).status, "Failed");
    }

    #[test]
    fn the_reason_of_the_pod_goes_before_its_phase() {
        assert_eq!(row(json!({}), two(), json!({"phase": "Failed", "reason": "DeadlineExceeded"})).status, "DeadlineExceeded");
        assert_eq!(row(json!({}), two(), json!({})).status, "Unknown");
    }

    #[test]
    fn the_restart_column_says_when_the_last_one_was() {
        let mut a = container("a", true, 3, running());
        a["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}});
        let row = row(json!({}), json!({"containers": [{"name": "a"}]}), json!({"phase": "Running", "containerStatuses": [a]}));
        let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
        assert_eq!(row.restarts_column(now), "3 (5m ago)");
        assert_eq!(PodRow::default().restarts_column(now), "0");
    }
}
