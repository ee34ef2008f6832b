//! The labels of the Node, and which of them a node may set itself.

use super::node::{HostFacts, NodeSettings};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Labels of Kubernetes that the admission plugin NodeRestriction lets a node set.
const OF_NODES: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Prefixes of Kubernetes below which a node may set anything.
const PREFIXES_OF_NODES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Patches of labels, each refused or taken as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelPatches {
    /// Of labels that every node may set.
    pub free: Option<Value>,
    /// Of labels that NodeRestriction refuses: another admission may take them.
    pub restricted: Option<Value>,
}

/// All labels of the Node.
fn wanted(settings: &NodeSettings, facts: &HostFacts) -> BTreeMap<String, String> {
    let mut labels = settings.labels.clone();
    for (key, value) in [
        ("kubernetes.io/arch", facts.identity.architecture.as_str()),
        ("kubernetes.io/hostname", settings.name.as_str()),
        ("kubernetes.io/os", facts.identity.operating_system.as_str()),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    labels
}

/// Those with which the Node is created: one that is refused would keep the whole Node away.
pub fn at_creation(settings: &NodeSettings, facts: &HostFacts) -> BTreeMap<String, String> {
    wanted(settings, facts).into_iter().filter(|(key, _)| is_free(key)).collect()
}

/// Returns the patches that set the labels of this host on the Node; labels of others stay.
pub fn patches(settings: &NodeSettings, facts: &HostFacts, node: &Value) -> LabelPatches {
    let has = |key: &str, value: &str| node["metadata"]["labels"].get(key).and_then(Value::as_str) == Some(value);
    let missing = wanted(settings, facts).into_iter().filter(|(key, value)| !has(key, value));
    let (free, restricted): (BTreeMap<_, _>, BTreeMap<_, _>) = missing.partition(|(key, _)| is_free(key));
    let patch = |labels: BTreeMap<String, String>| (!labels.is_empty()).then(|| json!({"metadata": {"labels": labels}}));
    LabelPatches { free: patch(free), restricted: patch(restricted) }
}

/// Reports whether NodeRestriction lets a node set it.
fn is_free(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_below = |domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if is_below("node-restriction.kubernetes.io") {
        return false;
    }
    let is_of_kubernetes = is_below("kubernetes.io") || is_below("k8s.io");
    !is_of_kubernetes || OF_NODES.contains(&key) || PREFIXES_OF_NODES.iter().any(|prefix| is_below(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::node::HostIdentity;

    #[test]
    fn what_noderestriction_refuses_is_told_from_what_it_takes() {
        let free =
            ["site", "example.com/site", "kubernetes.io/os", "node.kubernetes.io/x", "a.kubelet.kubernetes.io/x", "notk8s.io/x"];
        let restricted = [
            "node-role.kubernetes.io/edge",
            "kubernetes.io/x",
            "k8s.io/x",
            "a.k8s.io/x",
            "node-restriction.kubernetes.io/x",
            "a.node-restriction.kubernetes.io/x",
        ];
        assert_eq!(free.map(is_free), [true; 6]);
        assert_eq!(restricted.map(is_free), [false; 6]);
    }

    #[test]
    fn a_node_that_exists_gets_the_labels_that_it_lacks() {
        let identity = HostIdentity { architecture: "amd64".into(), operating_system: "linux".into(), ..HostIdentity::default() };
        let facts = HostFacts { identity, ..HostFacts::default() };
        let labels = [("site", "berlin"), ("node-role.kubernetes.io/edge", "")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let settings = NodeSettings { name: "edge".into(), labels, ..NodeSettings::default() };
        let node = json!({"metadata": {"labels": {"site": "bonn", "other": "x", "kubernetes.io/os": "linux"}}});
        let expected = json!({"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "edge", "site": "berlin"});
        let found = patches(&settings, &facts, &node);
        assert_eq!(found.free, Some(json!({"metadata": {"labels": expected}})));
        assert_eq!(found.restricted, Some(json!({"metadata": {"labels": {"node-role.kubernetes.io/edge": ""}}})));
        let node = json!({"metadata": {"labels": at_creation(&settings, &facts)}});
        assert_eq!(patches(&settings, &facts, &node), LabelPatches { free: None, ..found });
    }
}
