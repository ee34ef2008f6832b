//! `/metrics`: how podstead itself is, and its pods in names that existing alerts know. **Pure**.

use super::exposition::{Exposition, Kind};
use crate::services::{Denied, Figures};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use podstead_pod::SourceId;
use podstead_runtime::{Collected, PullFigures, StoreFigures, WaitCause};
use podstead_settings::HookStanding;
use podstead_store::SourceStatus;
use podstead_sys::proc_stat::ProcessUsage;
use serde_json::Value;

const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];

/// Everything that the page shows.
pub(super) struct Own<'a> {
    pub(super) sources: &'a [SourceStatus],
    /// The last contact of a source with its place.
    pub(super) contact: &'a dyn Fn(&SourceId) -> Option<Timestamp>,
    pub(super) pods: &'a [Pod],
    /// The objects of workloads.
    pub(super) workloads: &'a [Value],
    /// Services and NetworkPolicies.
    pub(super) network: &'a Figures,
    /// Deliveries of the hooks of `notify`.
    pub(super) hooks: &'a [HookStanding],
    pub(super) images: Images,
    pub(super) process: ProcessUsage,
    pub(super) started_at: Timestamp,
}

/// Pulls of images.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub(super) figures: PullFigures,
    pub(super) running: usize,
    /// Those of them to which nothing comes, in the order of [`WaitCause::ALL`].
    pub(super) waiting: [usize; WaitCause::ALL.len()],
    pub(super) store: StoreFigures,
}

fn since_1970(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1e3
}

fn containers(status: Option<&PodStatus>) -> impl Iterator<Item = &ContainerStatus> {
    let lists = status.map(|status| [&status.init_container_statuses, &status.container_statuses]);
    lists.into_iter().flatten().flatten().flatten()
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// The page.
pub(super) fn own(observed: &Own<'_>) -> String {
    let Own { sources, contact, pods, workloads, network, hooks, images, process, started_at } = observed;
    let mut out = Exposition::default();
    out.family("podstead_build_info", Kind::Gauge, "Version of the daemon.").sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    sources_of(&mut out, sources, contact);
    pods_of(&mut out, pods);
    workloads_of(&mut out, workloads);
    network_of(&mut out, network);
    hooks_of(&mut out, hooks);
    images_of(&mut out, images);
    out.family("process_cpu_seconds_total", Kind::Counter, "CPU time used by the daemon.")
        .sample(&[], process.cpu_nanos as f64 / 1e9);
    out.family("process_resident_memory_bytes", Kind::Gauge, "Resident memory of the daemon.")
        .sample(&[], process.resident_bytes as f64);
    out.family("process_open_fds", Kind::Gauge, "Open file descriptors of the daemon.").sample(&[], process.open_files as f64);
    out.family("process_start_time_seconds", Kind::Gauge, "Start time of the daemon, in seconds since 1970.")
        .sample(&[], since_1970(*started_at));
    out.finish()
}

fn images_of(out: &mut Exposition, images: &Images) {
    let Images { figures: PullFigures { hosts, succeeded, failed, time }, running, waiting, store } = images;
    let mut family = out.family(
        "podstead_image_pull_bytes_total",
        Kind::Counter,
        "Bytes of layers from a registry or mirror; kind repeated is what came a second time, after an interruption, and was discarded.",
    );
    for (host, figures) in hosts {
        family.sample(&[("host", host), ("kind", "new")], figures.new_bytes as f64);
        family.sample(&[("host", host), ("kind", "repeated")], figures.repeated_bytes as f64);
    }
    let mut family = out.family(
        "podstead_image_pull_interruptions_total",
        Kind::Counter,
        "Downloads of layers that a registry or mirror broke off.",
    );
    for (host, figures) in hosts {
        family.sample(&[("host", host)], figures.interruptions as f64);
    }
    out.family("podstead_image_pulls_total", Kind::Counter, "Pulls of images that have ended.")
        .sample(&[("result", "success")], *succeeded as f64)
        .sample(&[("result", "failure")], *failed as f64);
    out.family("podstead_image_pull_seconds_total", Kind::Counter, "Time that all pulls of images took.")
        .sample(&[], time.as_secs_f64());
    out.family("podstead_image_pulls", Kind::Gauge, "Pulls of images under way.").sample(&[], *running as f64);
    let mut family = out.family(
        "podstead_image_pulls_waiting",
        Kind::Gauge,
        "Pulls of images under way to which nothing comes; cause is window (for updates), queue (other downloads come first), network (the host \
         cannot be reached, or the link is broken or too slow) or registry (its answer asks for a pause).",
    );
    for (cause, count) in WaitCause::ALL.into_iter().zip(waiting) {
        family.sample(&[("cause", cause.as_str())], *count as f64);
    }
    let StoreFigures { images, layer_bytes, pinned_bytes, partial_bytes, collected } = store;
    out.family("podstead_images", Kind::Gauge, "Images in the store.").sample(&[], *images as f64);
    out.family(
        "podstead_image_store_bytes",
        Kind::Gauge,
        "Disk space of layers of images, each counted once, and of partly downloaded ones.",
    )
    .sample(&[("content", "layers")], *layer_bytes as f64)
    .sample(&[("content", "partial")], *partial_bytes as f64);
    out.family("podstead_image_pinned_bytes", Kind::Gauge, "Disk space of layers of pinned images.")
        .sample(&[], *pinned_bytes as f64);
    let Collected { disk, pull, prune } = collected;
    let reasons = [("disk", disk), ("pull", pull), ("prune", prune)];
    let mut family = out.family(
        "podstead_images_collected_total",
        Kind::Counter,
        "Images that were removed because nothing needed them; reason is disk (its usage was too high), pull (which needed space) or prune.",
    );
    for (reason, removed) in reasons {
        family.sample(&[("reason", reason)], removed.images as f64);
    }
    let mut family =
        out.family("podstead_image_collected_bytes_total", Kind::Counter, "Disk space of images that were removed, by reason.");
    for (reason, removed) in reasons {
        family.sample(&[("reason", reason)], removed.bytes as f64);
    }
}

fn sources_of(out: &mut Exposition, sources: &[SourceStatus], contact: impl Fn(&SourceId) -> Option<Timestamp>) {
    let mut family = out.family("podstead_source_info", Kind::Gauge, "Fetched, accepted and applied revision of a source.");
    for source in sources {
        let revision = |revision: &Option<podstead_pod::Revision>| revision.as_ref().map_or(String::new(), ToString::to_string);
        let (fetched, accepted, applied) = (revision(&source.fetched), revision(&source.accepted), revision(&source.applied));
        let labels = [("source", source.id.as_str()), ("fetched", &fetched), ("accepted", &accepted), ("applied", &applied)];
        family.sample(&labels, 1.0);
    }
    let mut family = out.family(
        "podstead_source_fetched_timestamp_seconds",
        Kind::Gauge,
        "Time of the last successful fetch of a source, whether or not its content changed, in seconds since 1970.",
    );
    for source in sources {
        if let Some(at) = contact(&source.id) {
            family.sample(&[("source", source.id.as_str())], since_1970(at));
        }
    }
    let mut family = out.family(
        "podstead_source_changed_timestamp_seconds",
        Kind::Gauge,
        "Time at which the content of a source last changed, in seconds since 1970.",
    );
    for source in sources {
        if let Some(at) = source.fetched_at {
            family.sample(&[("source", source.id.as_str())], since_1970(at));
        }
    }
    let mut family = out.family("podstead_source_failing", Kind::Gauge, "1 if the last fetch of a source failed, else 0.");
    for source in sources {
        family.sample(&[("source", source.id.as_str())], f64::from(u8::from(source.last_error.is_some())));
    }
    let mut family = out.family(
        "podstead_manifest_errors",
        Kind::Gauge,
        "Number of problems in the manifests of a source, errors and warnings.",
    );
    for source in sources {
        family.sample(&[("source", source.id.as_str())], source.problems.len() as f64);
    }
    let mut family = out.family("podstead_source_held", Kind::Gauge, "1 if a source is held (rolled back or suspended), else 0.");
    for source in sources {
        family.sample(&[("source", source.id.as_str())], f64::from(u8::from(source.hold.is_some())));
    }
}

fn hooks_of(out: &mut Exposition, hooks: &[HookStanding]) {
    let mut family = out.family("podstead_notifications_waiting", Kind::Gauge, "Number of notifications that wait for a hook.");
    for hook in hooks {
        family.sample(&[("hook", hook.name.as_str())], hook.waiting as f64);
    }
    let help = "Number of attempts to deliver a notification since the daemon started, by result: delivered, refused (it is lost) or failed \
                (it is repeated).";
    let mut family = out.family("podstead_notifications_total", Kind::Counter, help);
    for hook in hooks {
        for (result, count) in [("delivered", hook.delivered), ("refused", hook.refused), ("failed", hook.failed)] {
            family.sample(&[("hook", hook.name.as_str()), ("result", result)], count as f64);
        }
    }
}

fn pods_of(out: &mut Exposition, pods: &[Pod]) {
    let running = |pod: &&Pod| containers(pod.status.as_ref()).any(is_running);
    let count = pods.iter().filter(running).count();
    out.family("kubelet_running_pods", Kind::Gauge, "Number of pods with a running container.").sample(&[], count as f64);
    let count = pods.iter().flat_map(|pod| containers(pod.status.as_ref())).filter(|status| is_running(status)).count();
    out.family("kubelet_running_containers", Kind::Gauge, "Number of running containers.")
        .sample(&[("container_state", "running")], count as f64);
    let names = |pod: &Pod| (pod.metadata.namespace.clone().unwrap_or_default(), pod.metadata.name.clone().unwrap_or_default());
    let mut family = out.family("kube_pod_status_phase", Kind::Gauge, "1 for the current phase of a pod, else 0.");
    for pod in pods {
        let (namespace, name) = names(pod);
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        for other in PHASES {
            let labels = [("namespace", namespace.as_str()), ("pod", &name), ("phase", other)];
            family.sample(&labels, f64::from(u8::from(phase == Some(other))));
        }
    }
    let help = "Number of restarts of a container.";
    let mut family = out.family("kube_pod_container_status_restarts_total", Kind::Counter, help);
    for pod in pods {
        let (namespace, name) = names(pod);
        for status in containers(pod.status.as_ref()) {
            let labels = [("namespace", namespace.as_str()), ("pod", &name), ("container", &status.name)];
            family.sample(&labels, f64::from(status.restart_count));
        }
    }
}

/// Values of the label `state`, each with the fields that it may be read from: the first that an object has counts.
type States = &'static [(&'static str, &'static [&'static str])];

const OF_REPLICAS: States = &[
    ("desired", &["/status/desiredNumberScheduled", "/spec/replicas"]),
    ("ready", &["/status/numberReady", "/status/readyReplicas"]),
    ("available", &["/status/numberAvailable", "/status/availableReplicas"]),
];
const OF_JOBS: States = &[
    ("active", &["/status/active"]),
    ("ready", &["/status/ready"]),
    ("succeeded", &["/status/succeeded"]),
    ("failed", &["/status/failed"]),
];

fn workloads_of(out: &mut Exposition, workloads: &[Value]) {
    let help = "Number of pods of a workload: desired, ready, available; of a Job: active, ready, succeeded, failed.";
    let mut family = out.family("podstead_workload_replicas", Kind::Gauge, help);
    for workload in workloads {
        let text = |path: &str| workload.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        let states = match kind {
            "Job" => OF_JOBS,
            // The pods of a CronJob are those of its Jobs.
            "CronJob" => &[],
            _ => OF_REPLICAS,
        };
        for (state, paths) in states {
            let count = paths.iter().find_map(|path| workload.pointer(path)?.as_i64()).unwrap_or_default();
            family.sample(&[("kind", kind), ("namespace", namespace), ("name", name), ("state", state)], count as f64);
        }
    }
}

fn network_of(out: &mut Exposition, network: &Figures) {
    let Figures { services, changes, denied } = network;
    out.family("podstead_services", Kind::Gauge, "Number of Services.").sample(&[], services.len() as f64);
    let mut family = out.family("podstead_service_endpoints", Kind::Gauge, "Number of ready endpoints of a Service.");
    for (namespace, service, count) in services {
        family.sample(&[("namespace", namespace), ("service", service)], *count as f64);
    }
    let help = "Number of changes of the packet rules of Services since the daemon started.";
    out.family("podstead_service_rule_changes_total", Kind::Counter, help).sample(&[], *changes as f64);
    let help =
        "Number of packets that NetworkPolicies denied, to (ingress) and from (egress) a pod, since the packet rules were made.";
    let mut family = out.family("podstead_network_policy_denied_packets_total", Kind::Counter, help);
    for Denied { namespace, pod, direction, packets } in denied {
        family.sample(&[("namespace", namespace), ("pod", pod), ("direction", direction)], *packets as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_of_workloads_are_counted_by_state() {
        let metadata = json!({"name": "x", "namespace": "default"});
        let workloads = [
            json!({"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 3}, "status": {"readyReplicas": 2}}),
            json!({"kind": "DaemonSet", "metadata": metadata, "spec": {}, "status": {"desiredNumberScheduled": 1, "numberReady": 1}}),
            json!({"kind": "Job", "metadata": metadata, "spec": {}, "status": {"active": 1, "ready": 1, "failed": 4}}),
            json!({"kind": "CronJob", "metadata": metadata, "spec": {}, "status": {}}),
        ];
        let mut out = Exposition::default();
        workloads_of(&mut out, &workloads);
        let text = out.finish();
        let samples: Vec<(&str, &str, &str)> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let (labels, count) = line.rsplit_once(' ')?;
                let quoted: Vec<&str> = labels.split('"').collect();
                Some((*quoted.get(1)?, *quoted.get(7)?, count))
            })
            .collect();
        let expected = [
            ("Deployment", "desired", "3"),
            ("Deployment", "ready", "2"),
            ("Deployment", "available", "0"),
            ("DaemonSet", "desired", "1"),
            ("DaemonSet", "ready", "1"),
            ("DaemonSet", "available", "0"),
            ("Job", "active", "1"),
            ("Job", "ready", "1"),
            ("Job", "succeeded", "0"),
            ("Job", "failed", "4"),
        ];
        assert_eq!(samples, expected);
    }
}
