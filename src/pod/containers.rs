//! The containers of a pod by role and by name, and what a container's fields say once defaults are in.

use super::Pod;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde::{Deserialize, Serialize};

/// Role of a container in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ContainerKind {
    /// From `spec.initContainers`, with no restart policy of its own.
    Init,
    /// From `spec.initContainers`, with `restartPolicy: Always`.
    Sidecar,
    /// From `spec.containers`.
    Main,
}

/// `imagePullPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PullPolicy {
    /// Ask the registry each time; when it cannot be reached and the image is present, the present one is used.
    Always,
    /// Pull only when absent.
    IfNotPresent,
    /// Never pull.
    Never,
}

/// Source of a container's termination message: `terminationMessagePolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TerminationMessagePolicy {
    /// The file behind `terminationMessagePath` only.
    File,
    /// The end of the log when that file is empty and the container failed.
    FallbackToLogsOnError,
}

/// Seconds between the stop signal and SIGKILL where the pod says nothing.
pub const DEFAULT_GRACE_SECS: u64 = 30;

/// The pod's spec; an empty one when there is none (which validation refuses).
pub fn spec(pod: &Pod) -> &PodSpec {
    static EMPTY: std::sync::OnceLock<PodSpec> = std::sync::OnceLock::new();
    pod.spec.as_ref().unwrap_or_else(|| EMPTY.get_or_init(PodSpec::default))
}

/// A list that may be absent, as a slice.
pub fn list<T>(items: &Option<Vec<T>>) -> &[T] {
    items.as_deref().unwrap_or_default()
}

/// A text that may be absent; absent and empty mean the same to Kubernetes.
pub fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// All containers in the order of their start: init containers and sidecars as written, then main containers.
pub fn all(pod: &Pod) -> impl Iterator<Item = (ContainerKind, &Container)> {
    init(pod).chain(main(pod).map(|container| (ContainerKind::Main, container)))
}

/// Init containers and sidecars as written.
pub fn init(pod: &Pod) -> impl Iterator<Item = (ContainerKind, &Container)> {
    list(&spec(pod).init_containers).iter().map(|container| (init_kind(container), container))
}

/// Main containers as written.
pub fn main(pod: &Pod) -> impl Iterator<Item = &Container> {
    spec(pod).containers.iter()
}

/// The container of that name with its role.
pub fn find<'pod>(pod: &'pod Pod, name: &str) -> Option<(ContainerKind, &'pod Container)> {
    all(pod).find(|(_, container)| container.name == name)
}

/// Returns true if any container of the pod has the volume, mounted or as a device. What no container has is not prepared, as on a kubelet.
pub fn has_volume(pod: &Pod, volume: &str) -> bool {
    all(pod).any(|(_, container)| {
        let mounts = list(&container.volume_mounts).iter().map(|mount| &mount.name);
        mounts.chain(list(&container.volume_devices).iter().map(|device| &device.name)).any(|name| name == volume)
    })
}

/// The role of an entry of `spec.initContainers`.
pub fn init_kind(container: &Container) -> ContainerKind {
    if text(&container.restart_policy) == "Always" { ContainerKind::Sidecar } else { ContainerKind::Init }
}

/// The pull policy. An unset policy is defaulted by the image's tag (kubelet rule A17).
pub fn pull_policy(container: &Container) -> PullPolicy {
    image_pull_policy(container.image_pull_policy.as_deref(), text(&container.image))
}

/// The same for any image.
pub fn image_pull_policy(written: Option<&str>, image: &str) -> PullPolicy {
    match written.unwrap_or_default() {
        "Always" => PullPolicy::Always,
        "Never" => PullPolicy::Never,
        "IfNotPresent" => PullPolicy::IfNotPresent,
        _ if image_tag_is_latest(image) => PullPolicy::Always,
        _ => PullPolicy::IfNotPresent,
    }
}

/// Source of the message that is shown when the container has exited.
pub fn termination_message_policy(container: &Container) -> TerminationMessagePolicy {
    match text(&container.termination_message_policy) {
        "FallbackToLogsOnError" => TerminationMessagePolicy::FallbackToLogsOnError,
        _ => TerminationMessagePolicy::File,
    }
}

/// Seconds between the stop signal and SIGKILL. A negative value in the spec means one second, as Kubernetes reads it.
pub fn termination_grace_secs(pod: &Pod) -> u64 {
    spec(pod).termination_grace_period_seconds.map_or(DEFAULT_GRACE_SECS, |seconds| u64::try_from(seconds).unwrap_or(1))
}

/// Seconds that the pod may be active (kubelet rule D13).
pub fn active_deadline_secs(pod: &Pod) -> Option<u64> {
    spec(pod).active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok())
}

/// The signal that `lifecycle.stopSignal` names, e.g. `SIGQUIT`; it takes precedence over the image's.
pub fn stop_signal(container: &Container) -> Option<&str> {
    container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.stop_signal.as_deref()).filter(|signal| !signal.is_empty())
}

/// Returns true if an image reference has the tag `latest`, explicitly or by having neither tag nor digest.
pub(crate) fn image_tag_is_latest(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    // A colon before the last slash belongs to a port.
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, tag)), _) => tag == "latest",
        (None, digest) => digest.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(yaml: &str) -> Pod {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn containers_come_in_the_order_of_their_start_with_their_role() {
        let pod = pod("{spec: {containers: [{name: web}], initContainers: [{name: setup}, {name: proxy, restartPolicy: Always}]}}");
        let all: Vec<_> = all(&pod).map(|(kind, container)| (kind, container.name.as_str())).collect();
        assert_eq!(all, [(ContainerKind::Init, "setup"), (ContainerKind::Sidecar, "proxy"), (ContainerKind::Main, "web")]);
        assert_eq!(find(&pod, "proxy").unwrap().0, ContainerKind::Sidecar);
        assert!(find(&pod, "none").is_none());
    }

    #[test]
    fn the_pull_policy_follows_the_tag_unless_it_is_written() {
        for (image, policy, expected) in [
            ("nginx", "", PullPolicy::Always),
            ("nginx:latest", "", PullPolicy::Always),
            ("nginx:1.27", "", PullPolicy::IfNotPresent),
            ("registry:5000/nginx", "", PullPolicy::Always),
            ("registry:5000/nginx:1", "", PullPolicy::IfNotPresent),
            ("nginx@sha256:00", "", PullPolicy::IfNotPresent),
            ("nginx:latest@sha256:00", "", PullPolicy::Always),
            ("nginx:latest", "Never", PullPolicy::Never),
            ("nginx:1.27", "Always", PullPolicy::Always),
            ("nginx", "IfNotPresent", PullPolicy::IfNotPresent),
        ] {
            let container = Container { image: Some(image.into()), image_pull_policy: Some(policy.into()), ..Container::default() };
            assert_eq!(pull_policy(&container), expected, "{image} {policy}");
        }
    }

    #[test]
    fn grace_is_thirty_seconds_unless_written_and_one_when_negative() {
        for (written, expected) in [("", 30), ("terminationGracePeriodSeconds: 0", 0), ("terminationGracePeriodSeconds: -5", 1)] {
            assert_eq!(termination_grace_secs(&pod(&format!("{{spec: {{containers: [], {written}}}}}"))), expected, "{written}");
        }
    }
}
