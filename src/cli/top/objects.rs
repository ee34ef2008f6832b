//! `podstead top -o json`: usage as objects. **Pure**.

use super::{Limits, Used};
use podstead_api::PodDisk;
use serde_json::{Value, json};

const API_VERSION: &str = "podstead.dev/v1alpha1";

/// Usage of this host.
pub(super) fn of_node(name: &str, milli_cpu: u64, memory: u64) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "NodeUsage", "metadata": {"name": name}, "milliCpu": milli_cpu, "memoryBytes": memory,
    })
}

/// Usage of a pod or of a container.
pub(super) fn of_pod(used: &Used) -> Value {
    let Used { uid, namespace, pod, container, milli_cpu, memory, limits: Limits { milli_cpu: cpu_limit, memory: memory_limit } } =
        used;
    json!({
        "apiVersion": API_VERSION, "kind": "PodUsage", "metadata": {"namespace": namespace, "name": pod, "uid": uid},
        "container": container, "milliCpu": milli_cpu, "milliCpuLimit": cpu_limit, "memoryBytes": memory,
        "memoryLimitBytes": memory_limit,
    })
}

/// Disk space of a pod.
pub(super) fn of_disk(disk: &PodDisk) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "PodDisk",
        "metadata": {"namespace": disk.namespace, "name": disk.name, "uid": disk.uid},
        "layerBytes": disk.layer_bytes, "volumeBytes": disk.volume_bytes, "logBytes": disk.log_bytes,
    })
}
