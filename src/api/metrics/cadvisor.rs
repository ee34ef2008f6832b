//! `/metrics/cadvisor`: the names that common dashboards use, with cadvisor's labels. **Pure**.

use super::exposition::{Exposition, Kind};
use super::resource::{seconds, since_1970};
use super::usage::{ContainerUsage, PodUsage, Snapshot};
use jiff::Timestamp;
use podstead_container::cgroup::DiskCounters;
use podstead_sys::net_dev::InterfaceCounters;

type OfContainer = fn(&ContainerUsage, Timestamp) -> Option<f64>;
type OfDisk = fn(&DiskCounters) -> u64;
type OfInterface = fn(&InterfaceCounters) -> u64;

const OF_CONTAINERS: [(&str, Kind, &str, OfContainer); 17] = [
    ("container_cpu_usage_seconds_total", Kind::Counter, "Total CPU time used.", |container, _| {
        Some(seconds(container.usage.cpu_nanos))
    }),
    ("container_cpu_user_seconds_total", Kind::Counter, "CPU time used in user mode.", |container, _| {
        Some(seconds(container.counters.cpu_user_nanos))
    }),
    ("container_cpu_system_seconds_total", Kind::Counter, "CPU time used in kernel mode.", |container, _| {
        Some(seconds(container.counters.cpu_system_nanos))
    }),
    ("container_cpu_cfs_periods_total", Kind::Counter, "Number of elapsed CPU quota periods.", |container, _| {
        container.counters.cpu_quota.map(|_| container.counters.periods as f64)
    }),
    (
        "container_cpu_cfs_throttled_periods_total",
        Kind::Counter,
        "Number of CPU quota periods in which the container was throttled.",
        |container, _| container.counters.cpu_quota.map(|_| container.counters.throttled_periods as f64),
    ),
    (
        "container_cpu_cfs_throttled_seconds_total",
        Kind::Counter,
        "Total time for which the container was throttled.",
        |container, _| container.counters.cpu_quota.map(|_| seconds(container.counters.throttled_nanos)),
    ),
    ("container_memory_usage_bytes", Kind::Gauge, "Memory usage, including the page cache.", |container, _| {
        Some(container.usage.memory_bytes as f64)
    }),
    (
        "container_memory_working_set_bytes",
        Kind::Gauge,
        "Working set: memory that cannot be reclaimed immediately.",
        |container, _| Some(container.usage.working_set_bytes as f64),
    ),
    ("container_memory_rss", Kind::Gauge, "Anonymous memory.", |container, _| Some(container.counters.anonymous_bytes as f64)),
    ("container_memory_cache", Kind::Gauge, "Page cache.", |container, _| Some(container.counters.file_bytes as f64)),
    ("container_threads", Kind::Gauge, "Number of processes and threads.", |container, _| Some(container.usage.pids as f64)),
    ("container_oom_events_total", Kind::Counter, "Number of processes killed by the OOM killer.", |container, _| {
        Some(container.oom_kills as f64)
    }),
    ("container_spec_memory_limit_bytes", Kind::Gauge, "Memory limit, 0 if unlimited.", |container, _| {
        Some(container.counters.memory_limit.unwrap_or_default() as f64)
    }),
    ("container_spec_cpu_quota", Kind::Gauge, "CPU quota in microseconds per period.", |container, _| {
        container.counters.cpu_quota.map(|(quota, _)| quota as f64)
    }),
    ("container_spec_cpu_period", Kind::Gauge, "CPU quota period in microseconds.", |container, _| {
        container.counters.cpu_quota.map(|(_, period)| period as f64)
    }),
    ("container_start_time_seconds", Kind::Gauge, "Start time of the container, in seconds since 1970.", |container, _| {
        container.started_at.map(since_1970)
    }),
    ("container_last_seen", Kind::Gauge, "Time of the last observation, in seconds since 1970.", |_, at| Some(since_1970(at))),
];

const OF_DISKS: [(&str, &str, OfDisk); 4] = [
    ("container_fs_reads_bytes_total", "Bytes read from disks.", |disk| disk.read_bytes),
    ("container_fs_writes_bytes_total", "Bytes written to disks.", |disk| disk.written_bytes),
    ("container_fs_reads_total", "Number of disk read requests.", |disk| disk.reads),
    ("container_fs_writes_total", "Number of disk write requests.", |disk| disk.writes),
];

const OF_INTERFACES: [(&str, &str, OfInterface); 8] = [
    ("container_network_receive_bytes_total", "Bytes received.", |interface| interface.received.bytes),
    ("container_network_receive_packets_total", "Packets received.", |interface| interface.received.packets),
    ("container_network_receive_errors_total", "Receive errors.", |interface| interface.received.errors),
    ("container_network_receive_packets_dropped_total", "Received packets that were dropped.", |interface| {
        interface.received.dropped
    }),
    ("container_network_transmit_bytes_total", "Bytes sent.", |interface| interface.sent.bytes),
    ("container_network_transmit_packets_total", "Packets sent.", |interface| interface.sent.packets),
    ("container_network_transmit_errors_total", "Send errors.", |interface| interface.sent.errors),
    ("container_network_transmit_packets_dropped_total", "Packets to send that were dropped.", |interface| interface.sent.dropped),
];

/// The page.
pub(super) fn cadvisor(snapshot: &Snapshot) -> String {
    let mut out = Exposition::default();
    let containers = || snapshot.pods.iter().flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)));
    for (name, kind, help, value) in OF_CONTAINERS {
        let mut family = out.family(name, kind, help);
        for (pod, container) in containers() {
            if let Some(value) = value(container, snapshot.at) {
                family.sample(&labels(pod, container), value);
            }
        }
    }
    for (name, help, value) in OF_DISKS {
        let mut family = out.family(name, Kind::Counter, help);
        for (pod, container) in containers() {
            for (device, disk) in &container.counters.disks {
                let labels = labels(pod, container);
                let with_device: Vec<_> = labels.into_iter().chain([("device", device.as_str())]).collect();
                family.sample(&with_device, value(disk) as f64);
            }
        }
    }
    // Interfaces are the pod's: in cadvisor they are of no container.
    for (name, help, value) in OF_INTERFACES {
        let mut family = out.family(name, Kind::Counter, help);
        for pod in &snapshot.pods {
            for interface in &pod.interfaces {
                let labels =
                    [("id", pod.uid.as_str()), ("interface", &interface.name), ("namespace", &pod.namespace), ("pod", &pod.name)];
                family.sample(&labels, value(interface) as f64);
            }
        }
    }
    out.finish()
}

fn labels<'a>(pod: &'a PodUsage, container: &'a ContainerUsage) -> [(&'a str, &'a str); 6] {
    [
        ("container", &container.name),
        ("id", &container.id),
        ("image", &container.image),
        ("name", &container.id),
        ("namespace", &pod.namespace),
        ("pod", &pod.name),
    ]
}
