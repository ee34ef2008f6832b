//! `/stats/summary`, as the kubelet has it: what telegraf and the OpenTelemetry collector read. **Pure**.

use super::usage::{PodUsage, Snapshot};
use crate::sys::cgroup::Usage;
use jiff::Timestamp;
use serde_json::{Value, json};

fn cpu(usage: &Usage, at: Timestamp) -> Value {
    json!({"time": at.to_string(), "usageCoreNanoSeconds": usage.cpu_nanos})
}

fn memory(usage: &Usage, at: Timestamp) -> Value {
    json!({"time": at.to_string(), "usageBytes": usage.memory_bytes, "workingSetBytes": usage.working_set_bytes})
}

fn time(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| Value::from(at.to_string()))
}

fn pod(pod: &PodUsage, at: Timestamp) -> Value {
    let containers = pod.containers.iter().map(|container| {
        json!({
            "name": container.name,
            "startTime": time(container.started_at),
            "cpu": cpu(&container.usage, at),
            "memory": memory(&container.usage, at),
        })
    });
    json!({
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": time(pod.started_at),
        "containers": containers.collect::<Vec<_>>(),
        "cpu": cpu(&pod.usage, at),
        "memory": memory(&pod.usage, at),
        "process_stats": {"process_count": pod.usage.pids},
    })
}

/// The whole document. Rates are for the reader to compute: the kubelet's `usageNanoCores` would need somebody who looks all the time.
pub(super) fn summary(snapshot: &Snapshot) -> Value {
    let Snapshot { at, node, host, pods } = snapshot;
    json!({
        "node": {
            "nodeName": node,
            "startTime": time(Timestamp::from_second(host.booted_at).ok()),
            "cpu": {"time": at.to_string(), "usageCoreNanoSeconds": host.cpu_nanos},
            "memory": {
                "time": at.to_string(),
                "availableBytes": host.memory_available,
                "usageBytes": host.memory_total.saturating_sub(host.memory_available),
                "workingSetBytes": host.working_set_bytes(),
            },
        },
        "pods": pods.iter().map(|usage| pod(usage, *at)).collect::<Vec<_>>(),
    })
}
