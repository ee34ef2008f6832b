//! `/metrics/cadvisor`: the names that common dashboards use, with cadvisor's labels. **Pure**.

use super::exposition::{Exposition, Kind};
use super::resource::{seconds, since_1970};
use super::usage::{ContainerUsage, PodUsage, Snapshot};
use crate::sys::cgroup::DiskCounters;
use crate::sys::net_dev::InterfaceCounters;
use jiff::Timestamp;

type OfContainer = fn(&ContainerUsage, Timestamp) -> Option<f64>;
type OfDisk = fn(&DiskCounters) -> u64;
type OfInterface = fn(&InterfaceCounters) -> u64;

const OF_CONTAINERS: [(&str, Kind, &str, OfContainer); 17] = [
    ("container_cpu_usage_seconds_total", Kind::Counter, "Processor time that was used.", |container, _| {
        Some(seconds(container.usage.cpu_nanos))
    }),
    ("container_cpu_user_seconds_total", Kind::Counter, "Processor time in programs.", |container, _| {
        Some(seconds(container.counters.cpu_user_nanos))
    }),
    ("container_cpu_system_seconds_total", Kind::Counter, "Processor time in the kernel.", |container, _| {
        Some(seconds(container.counters.cpu_system_nanos))
    }),
    ("container_cpu_cfs_periods_total", Kind::Counter, "Periods under a quota of processor time.", |container, _| {
        container.counters.cpu_quota.map(|_| container.counters.periods as f64)
    }),
    ("container_cpu_cfs_throttled_periods_total", Kind::Counter, "Periods in which it was held back.", |container, _| {
        container.counters.cpu_quota.map(|_| container.counters.throttled_periods as f64)
    }),
    ("container_cpu_cfs_throttled_seconds_total", Kind::Counter, "For how long it was held back.", |container, _| {
        container.counters.cpu_quota.map(|_| seconds(container.counters.throttled_nanos))
    }),
    ("container_memory_usage_bytes", Kind::Gauge, "Memory in use, page cache included.", |container, _| {
        Some(container.usage.memory_bytes as f64)
    }),
    ("container_memory_working_set_bytes", Kind::Gauge, "Memory in use that cannot be dropped at once.", |container, _| {
        Some(container.usage.working_set_bytes as f64)
    }),
    ("container_memory_rss", Kind::Gauge, "Memory that belongs to no file.", |container, _| {
        Some(container.counters.anonymous_bytes as f64)
    }),
    ("container_memory_cache", Kind::Gauge, "Files in memory.", |container, _| Some(container.counters.file_bytes as f64)),
    ("container_threads", Kind::Gauge, "Processes and threads.", |container, _| Some(container.usage.pids as f64)),
    ("container_oom_events_total", Kind::Counter, "Processes killed for want of memory.", |container, _| {
        Some(container.oom_kills as f64)
    }),
    ("container_spec_memory_limit_bytes", Kind::Gauge, "Most memory, 0 without a limit.", |container, _| {
        Some(container.counters.memory_limit.unwrap_or_default() as f64)
    }),
    ("container_spec_cpu_quota", Kind::Gauge, "Microseconds of processor time in each period.", |container, _| {
        container.counters.cpu_quota.map(|(quota, _)| quota as f64)
    }),
    ("container_spec_cpu_period", Kind::Gauge, "Microseconds of a period.", |container, _| {
        container.counters.cpu_quota.map(|(_, period)| period as f64)
    }),
    ("container_start_time_seconds", Kind::Gauge, "When it was started, in seconds since 1970.", |container, _| {
        container.started_at.map(since_1970)
    }),
    ("container_last_seen", Kind::Gauge, "When it was looked at last, in seconds since 1970.", |_, at| Some(since_1970(at))),
];

const OF_DISKS: [(&str, &str, OfDisk); 4] = [
    ("container_fs_reads_bytes_total", "Bytes read from a disk.", |disk| disk.read_bytes),
    ("container_fs_writes_bytes_total", "Bytes written to a disk.", |disk| disk.written_bytes),
    ("container_fs_reads_total", "Requests to read from a disk.", |disk| disk.reads),
    ("container_fs_writes_total", "Requests to write to a disk.", |disk| disk.writes),
];

const OF_INTERFACES: [(&str, &str, OfInterface); 8] = [
    ("container_network_receive_bytes_total", "Bytes that came in.", |interface| interface.received.bytes),
    ("container_network_receive_packets_total", "Packets that came in.", |interface| interface.received.packets),
    ("container_network_receive_errors_total", "Packets that came in broken.", |interface| interface.received.errors),
    ("container_network_receive_packets_dropped_total", "Packets that came in and found no room.", |interface| {
        interface.received.dropped
    }),
    ("container_network_transmit_bytes_total", "Bytes that went out.", |interface| interface.sent.bytes),
    ("container_network_transmit_packets_total", "Packets that went out.", |interface| interface.sent.packets),
    ("container_network_transmit_errors_total", "Packets that could not go out.", |interface| interface.sent.errors),
    ("container_network_transmit_packets_dropped_total", "Packets that found no room to go out.", |interface| {
        interface.sent.dropped
    }),
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
