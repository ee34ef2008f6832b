//! The Node that stands for this host: its object, its labels, its status.

use super::status_patch::{replaced, with_removals};
use super::{labels, seconds};
use jiff::{SignedDuration, Timestamp};
use podstead_settings::Taint;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An unchanged status is sent again after this, as the kubelet's: it carries the times of the last heartbeat.
pub const STATUS_PERIOD: SignedDuration = SignedDuration::from_mins(5);

/// Facts about this host at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Kernel's host name.
    pub host_name: String,
    /// Addresses, the primary one first.
    pub addresses: Vec<IpAddr>,
    /// Processors.
    pub cpus: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of the file system of the durable state.
    pub storage_bytes: u64,
    /// `status.nodeInfo`.
    pub identity: HostIdentity,
    /// Pressure conditions.
    pub pressure: Pressure,
    /// Problems of podstead itself.
    pub health: Health,
}

/// Problems that keep podstead from running pods. Messages are stable from one check to the next, because each change is sent to the
/// server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Reason why the sync loop is considered to hang.
    pub sync: Option<String>,
    /// Reason why pods cannot be connected.
    pub network: Option<String>,
}

/// `status.nodeInfo` of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostIdentity {
    /// `/etc/machine-id`.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// The firmware's UUID of the machine.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    /// Of this boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Release of the kernel.
    pub kernel_version: String,
    /// `PRETTY_NAME` of the distribution.
    pub os_image: String,
    /// `podstead://VERSION`.
    pub container_runtime_version: String,
    /// Must have the form of a Kubernetes version; with podstead's after the plus.
    pub kubelet_version: String,
    /// As above; nothing proxies services here.
    pub kube_proxy_version: String,
    /// `linux`.
    pub operating_system: String,
    /// As Go calls it.
    pub architecture: String,
}

/// Resources that are scarce on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Memory.
    pub memory: bool,
    /// Space or inodes on the disk of the durable state.
    pub disk: bool,
    /// Process ids.
    pub pids: bool,
}

/// Settings of the Node from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSettings {
    /// Its name.
    pub name: String,
    /// Its labels, beside those that every Node has.
    pub labels: BTreeMap<String, String>,
    /// Its taints when it is created.
    pub taints: Vec<Taint>,
    /// Pods that it has room for.
    pub max_pods: u32,
}

/// The object to create.
pub fn node_object(settings: &NodeSettings, facts: &HostFacts, now: Timestamp) -> Value {
    node_object_after(settings, facts, &Value::Null, now)
}

/// The object with the times of conditions that have not changed since `before`.
pub fn node_object_after(settings: &NodeSettings, facts: &HostFacts, before: &Value, now: Timestamp) -> Value {
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.name, "labels": labels::at_creation(settings, facts)},
        "spec": {},
        "status": status(settings, facts, &before["status"], now),
    });
    if !settings.taints.is_empty() {
        node["spec"]["taints"] = json!(settings.taints);
    }
    node
}

/// The patch of the status; `None` if nothing differs but the times of heartbeats, and these are younger than `period`.
pub fn status_patch(
    settings: &NodeSettings,
    facts: &HostFacts,
    node: &Value,
    now: Timestamp,
    period: SignedDuration,
) -> Option<Value> {
    let before = &node["status"];
    let mut wanted = status(settings, facts, before, now);
    let is_due = condition(before, "Ready").is_none_or(|ready| {
        let last = ready["lastHeartbeatTime"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
        // A heartbeat from the future was dated by a clock that is not trusted any more.
        last.is_none_or(|last| now.duration_since(last) >= period || last.duration_since(now) >= period)
    });
    if is_due {
        fix_addresses(&mut wanted, before);
        return Some(json!({"status": wanted}));
    }
    let mut patch = Map::new();
    for field in ["addresses", "allocatable", "capacity", "nodeInfo"] {
        if !contains(&before[field], &wanted[field]) {
            patch.insert(field.to_owned(), wanted[field].clone());
        }
    }
    let conditions = wanted["conditions"].as_array().into_iter().flatten();
    let differing: Vec<_> = conditions
        .filter(|wanted| {
            let before = wanted["type"].as_str().and_then(|kind| condition(before, kind));
            before.is_none_or(|before| ["status", "reason", "message"].iter().any(|field| before[*field] != wanted[*field]))
        })
        .cloned()
        .collect();
    if !differing.is_empty() {
        patch.insert("conditions".to_owned(), differing.into());
    }
    let mut patch = Value::Object(patch);
    fix_addresses(&mut patch, before);
    patch.as_object().is_some_and(|patch| !patch.is_empty()).then(|| json!({"status": patch}))
}

/// Addresses are merged by their type, although there may be two of one type: the list is replaced as a whole.
fn fix_addresses(status: &mut Value, before: &Value) {
    if let Some(addresses) = status.get_mut("addresses").filter(|addresses| addresses.is_array()) {
        *addresses = replaced(addresses, &before["addresses"]);
    }
}

/// Reports whether `has` contains everything in `wanted`; a map may contain more.
fn contains(has: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => fields.iter().all(|(key, value)| match has.get(key) {
            Some(has) => has == value,
            // What is empty need not be stored.
            None => value == "",
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => has == wanted,
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn status(settings: &NodeSettings, facts: &HostFacts, before: &Value, now: Timestamp) -> Value {
    let mut addresses: Vec<Value> =
        facts.addresses.iter().map(|address| json!({"type": "InternalIP", "address": address.to_string()})).collect();
    addresses.push(json!({"type": "Hostname", "address": facts.host_name}));
    let resources = json!({
        "cpu": canonical(facts.cpus, 1000, &["", "k", "M"]),
        "memory": canonical(facts.memory_bytes / 1024, 1024, &["Ki", "Mi", "Gi", "Ti", "Pi"]),
        "ephemeral-storage": canonical(facts.storage_bytes / 1024, 1024, &["Ki", "Mi", "Gi", "Ti", "Pi"]),
        "pods": canonical(settings.max_pods.into(), 1000, &["", "k", "M"]),
    });
    json!({
        "addresses": addresses,
        "capacity": resources,
        // Nothing is set aside: static pods are not refused for what others left.
        "allocatable": resources,
        "nodeInfo": facts.identity,
        "conditions": conditions(facts, before, now),
    })
}

/// A quantity as a server writes it: with the largest suffix that leaves a whole number. Another form would differ for ever.
fn canonical(mut number: u64, base: u64, suffixes: &[&str]) -> String {
    let mut suffix = 0;
    while number > 0 && number.is_multiple_of(base) && suffix + 1 < suffixes.len() {
        number /= base;
        suffix += 1;
    }
    if number == 0 { "0".to_owned() } else { format!("{number}{}", suffixes[suffix]) }
}

fn conditions(facts: &HostFacts, before: &Value, now: Timestamp) -> Vec<Value> {
    let Pressure { memory, disk, pids } = facts.pressure;
    let Health { sync, network } = &facts.health;
    let word = |is: bool| if is { "True" } else { "False" };
    let pressure = |kind, is, has: &'static str, has_not: &'static str, what: &str| {
        (kind, word(is), if is { has } else { has_not }, what.to_owned())
    };
    let trouble: Vec<&str> = [sync, network].into_iter().flatten().map(String::as_str).collect();
    // The kubelet's reasons: alerts and people know them.
    let all = [
        pressure(
            "MemoryPressure",
            memory,
            "KubeletHasInsufficientMemory",
            "KubeletHasSufficientMemory",
            "available memory compared with upstream.pressure.memoryAvailable",
        ),
        pressure(
            "DiskPressure",
            disk,
            "KubeletHasDiskPressure",
            "KubeletHasNoDiskPressure",
            "free disk space and inodes compared with upstream.pressure",
        ),
        pressure(
            "PIDPressure",
            pids,
            "KubeletHasInsufficientPID",
            "KubeletHasSufficientPID",
            "free process ids compared with upstream.pressure.pidsAvailable",
        ),
        match network {
            None => ("NetworkUnavailable", "False", "PodNetworkReady", "podstead provides the pod network".to_owned()),
            Some(trouble) => ("NetworkUnavailable", "True", "NetworkPluginNotReady", trouble.clone()),
        },
        match trouble.is_empty() {
            true => ("Ready", "True", "KubeletReady", "podstead is ready; it runs static pods only".to_owned()),
            false => ("Ready", "False", "KubeletNotReady", trouble.join("; ")),
        },
    ];
    all.into_iter()
        .map(|(kind, status, reason, message)| {
            let condition_before = condition(before, kind);
            let since = condition_before
                .filter(|before| before["status"] == status)
                .and_then(|before| before["lastTransitionTime"].as_str())
                .map_or_else(|| seconds(now), str::to_owned);
            let condition = json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": seconds(now), "lastTransitionTime": since,
            });
            with_removals(&condition, condition_before)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_settings::TaintEffect;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn settings() -> NodeSettings {
        NodeSettings {
            name: "edge".into(),
            labels: BTreeMap::from([("site".into(), "berlin".into())]),
            taints: vec![Taint { key: "podstead.dev/static-pods".into(), value: String::new(), effect: TaintEffect::NoSchedule }],
            max_pods: 110,
        }
    }

    fn facts() -> HostFacts {
        HostFacts {
            host_name: "edge".into(),
            addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            cpus: 4,
            memory_bytes: 1 << 30,
            storage_bytes: 1 << 33,
            identity: HostIdentity { architecture: "amd64".into(), operating_system: "linux".into(), ..HostIdentity::default() },
            pressure: Pressure::default(),
            health: Health::default(),
        }
    }

    #[test]
    fn a_node_has_labels_taints_addresses_capacity_and_all_conditions() {
        let node = node_object(&settings(), &facts(), at("2026-01-01T00:00:00.5Z"));
        assert_eq!(node["metadata"]["labels"]["site"], "berlin");
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "edge");
        assert_eq!(node["spec"]["taints"], json!([{"key": "podstead.dev/static-pods", "effect": "NoSchedule"}]));
        let status = &node["status"];
        assert_eq!(status["capacity"], json!({"cpu": "4", "memory": "1Gi", "ephemeral-storage": "8Gi", "pods": "110"}));
        assert_eq!(status["addresses"][1], json!({"type": "InternalIP", "address": "2001:db8::1"}));
        let kinds: Vec<_> = status["conditions"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready"]);
        assert_eq!(condition(status, "Ready").unwrap()["lastTransitionTime"], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn quantities_are_written_as_a_server_writes_them() {
        let binary = |number| canonical(number, 1024, &["Ki", "Mi", "Gi", "Ti", "Pi"]);
        assert_eq!([0, 1, 1023, 1024, 1536, 16_374_460].map(binary), ["0", "1Ki", "1023Ki", "1Mi", "1536Ki", "16374460Ki"]);
        assert_eq!([4, 110, 1000, 10_000].map(|number| canonical(number, 1000, &["", "k", "M"])), ["4", "110", "1k", "10k"]);
    }

    #[test]
    fn an_unchanged_status_is_sent_every_five_minutes_and_also_when_the_clock_went_back() {
        let node = node_object(&settings(), &facts(), at("2026-01-01T00:00:00Z"));
        assert_eq!(status_patch(&settings(), &facts(), &node, at("2026-01-01T00:04:59Z"), STATUS_PERIOD), None);
        let patch = status_patch(&settings(), &facts(), &node, at("2026-01-01T00:05:00Z"), STATUS_PERIOD).unwrap();
        let ready = condition(&patch["status"], "Ready").unwrap();
        assert_eq!(ready["lastHeartbeatTime"], "2026-01-01T00:05:00Z");
        assert_eq!(ready["lastTransitionTime"], "2026-01-01T00:00:00Z", "the state is the same");
        assert_eq!(patch["status"]["addresses"][0], json!({"$patch": "replace"}));
        let made_by_hand = json!({"metadata": {"name": "edge"}});
        let patch = status_patch(&settings(), &facts(), &made_by_hand, at("2026-01-01T00:05:00Z"), STATUS_PERIOD).unwrap();
        assert_eq!(patch["status"]["addresses"][0]["address"], "192.0.2.1", "there is nothing to replace");
        assert!(status_patch(&settings(), &facts(), &node, at("2020-01-01T00:00:00Z"), STATUS_PERIOD).is_some());
    }

    #[test]
    fn a_node_is_not_ready_while_its_sync_loop_hangs_or_pods_cannot_be_connected() {
        let node = node_object(&settings(), &facts(), at("2026-01-01T00:00:00Z"));
        let shown = |health: Health| -> Vec<Value> {
            let facts = HostFacts { health, ..facts() };
            let patch = status_patch(&settings(), &facts, &node, at("2026-01-01T00:01:00Z"), STATUS_PERIOD).unwrap();
            let conditions = patch["status"]["conditions"].as_array().unwrap().iter();
            conditions.map(|c| json!([c["type"], c["status"], c["reason"], c["message"]])).collect()
        };
        let network = Health { network: Some("no plugin".into()), ..Health::default() };
        let unavailable = json!(["NetworkUnavailable", "True", "NetworkPluginNotReady", "no plugin"]);
        assert_eq!(shown(network.clone()), [unavailable.clone(), json!(["Ready", "False", "KubeletNotReady", "no plugin"])]);
        let both = Health { sync: Some("it hangs".into()), ..network };
        assert_eq!(shown(both), [unavailable, json!(["Ready", "False", "KubeletNotReady", "it hangs; no plugin"])]);
    }

    #[test]
    fn what_changes_is_sent_at_once_and_alone() {
        let node = node_object(&settings(), &facts(), at("2026-01-01T00:00:00Z"));
        let short = HostFacts { pressure: Pressure { memory: true, ..Pressure::default() }, ..facts() };
        let patch = status_patch(&settings(), &short, &node, at("2026-01-01T00:01:00Z"), STATUS_PERIOD).unwrap();
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        assert_eq!(patch["status"].as_object().unwrap().len(), 1);
        assert_eq!(
            (conditions.len(), &conditions[0]["type"], &conditions[0]["status"]),
            (1, &json!("MemoryPressure"), &json!("True"))
        );
        assert_eq!(conditions[0]["lastTransitionTime"], "2026-01-01T00:01:00Z");
    }
}
