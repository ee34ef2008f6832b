//! `/metrics/resource`: what metrics-server and Prometheus' kubernetes set-ups read from a kubelet. **Pure**.

use super::exposition::{Exposition, Kind};
use super::usage::Snapshot;
use jiff::Timestamp;

const NANOS: f64 = 1e9;

pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}

pub(super) fn since_1970(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1e3
}

/// `/metrics/resource`.
pub(super) fn resource(snapshot: &Snapshot) -> String {
    let mut out = Exposition::default();
    let Snapshot { host, pods, .. } = snapshot;
    let containers = || pods.iter().flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)));
    let mut family = out.family("container_cpu_usage_seconds_total", Kind::Counter, "CPU time used by the container.");
    for (pod, container) in containers() {
        let labels = [("container", container.name.as_str()), ("namespace", &pod.namespace), ("pod", &pod.name)];
        family.sample(&labels, seconds(container.usage.cpu_nanos));
    }
    let mut family = out.family("container_memory_working_set_bytes", Kind::Gauge, "Working set of the container.");
    for (pod, container) in containers() {
        let labels = [("container", container.name.as_str()), ("namespace", &pod.namespace), ("pod", &pod.name)];
        family.sample(&labels, container.usage.working_set_bytes as f64);
    }
    let mut family = out.family("container_start_time_seconds", Kind::Gauge, "Start time of the container, in seconds since 1970.");
    for (pod, container) in containers() {
        let labels = [("container", container.name.as_str()), ("namespace", &pod.namespace), ("pod", &pod.name)];
        if let Some(at) = container.started_at {
            family.sample(&labels, since_1970(at));
        }
    }
    out.family("node_cpu_usage_seconds_total", Kind::Counter, "CPU time used by the host.").sample(&[], seconds(host.cpu_nanos));
    out.family("node_memory_working_set_bytes", Kind::Gauge, "Working set of the host.")
        .sample(&[], host.working_set_bytes() as f64);
    let mut family = out.family("pod_cpu_usage_seconds_total", Kind::Counter, "CPU time used by the pod.");
    for pod in pods {
        family.sample(&[("namespace", &pod.namespace), ("pod", &pod.name)], seconds(pod.usage.cpu_nanos));
    }
    let mut family = out.family("pod_memory_working_set_bytes", Kind::Gauge, "Working set of the pod.");
    for pod in pods {
        family.sample(&[("namespace", &pod.namespace), ("pod", &pod.name)], pod.usage.working_set_bytes as f64);
    }
    out.family("resource_scrape_error", Kind::Gauge, "1 if a value could not be read, else 0.").sample(&[], 0.0);
    out.finish()
}
