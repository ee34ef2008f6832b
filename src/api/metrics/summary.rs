//! `/stats/summary`, as the kubelet has it: what telegraf and the OpenTelemetry collector read. **Pure**.

use super::usage::{Filesystem, PodUsage, Snapshot};
use jiff::Timestamp;
use podstead_container::cgroup::Usage;
use podstead_sys::net_dev::InterfaceCounters;
use serde_json::{Value, json};

fn cpu(usage: &Usage, at: Timestamp) -> Value {
    json!({"time": at.to_string(), "usageCoreNanoSeconds": usage.cpu_nanos})
}

fn memory(usage: &Usage, at: Timestamp) -> Value {
    json!({"time": at.to_string(), "usageBytes": usage.memory_bytes, "workingSetBytes": usage.working_set_bytes})
}

fn memory_with(usage: &Usage, anonymous_bytes: u64, at: Timestamp) -> Value {
    let mut memory = memory(usage, at);
    memory["rssBytes"] = anonymous_bytes.into();
    memory
}

/// The first interface at the top, as the kubelet has its default one; `null` without any.
fn network(interfaces: &[InterfaceCounters], at: Timestamp) -> Value {
    let one = |interface: &InterfaceCounters| {
        let InterfaceCounters { name, received, sent } = interface;
        json!({
            "name": name,
            "rxBytes": received.bytes, "rxErrors": received.errors,
            "txBytes": sent.bytes, "txErrors": sent.errors,
        })
    };
    let Some(mut network) = interfaces.first().map(one) else { return Value::Null };
    network["time"] = at.to_string().into();
    network["interfaces"] = interfaces.iter().map(one).collect();
    network
}

fn disk(filesystem: Option<Filesystem>, at: Timestamp) -> Value {
    let Some(Filesystem { capacity_bytes, available_bytes, used_bytes, inodes, free_inodes }) = filesystem else {
        return Value::Null;
    };
    json!({
        "time": at.to_string(),
        "capacityBytes": capacity_bytes, "availableBytes": available_bytes, "usedBytes": used_bytes,
        "inodes": inodes, "inodesFree": free_inodes, "inodesUsed": inodes.saturating_sub(free_inodes),
    })
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
            "memory": memory_with(&container.usage, container.counters.anonymous_bytes, at),
        })
    });
    json!({
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": time(pod.started_at),
        "containers": containers.collect::<Vec<_>>(),
        "cpu": cpu(&pod.usage, at),
        "memory": memory(&pod.usage, at),
        "network": network(&pod.interfaces, at),
        "process_stats": {"process_count": pod.usage.pids},
    })
}

/// The whole document. Readers compute rates, because the kubelet's `usageNanoCores` would need continuous measurement.
pub(super) fn summary(snapshot: &Snapshot) -> Value {
    let Snapshot { at, node, host, interfaces, filesystem, pods } = snapshot;
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
            "network": network(interfaces, *at),
            "fs": disk(*filesystem, *at),
        },
        "pods": pods.iter().map(|usage| pod(usage, *at)).collect::<Vec<_>>(),
    })
}
