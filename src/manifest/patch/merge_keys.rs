//! Merge keys of the lists of the API.
//!
//! From the API's own definition (`x-kubernetes-patch-merge-key`; `x-kubernetes-list-map-keys` where an item needs two). A list that is not
//! here is replaced as a whole.

use super::tree::{find, same};
use crate::node::{Node, Value};

/// Merge strategy of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListRule {
    /// The patch's list takes its place.
    Replace,
    /// Missing values are added.
    Union,
    /// Items are identified by their keys.
    ByKey(MergeKey),
}

/// Merge key of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MergeKey {
    /// Every item has it.
    pub(super) field: &'static str,
    second: Option<Second>,
}

/// Identifies items that have the same first key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Second {
    field: &'static str,
    default: Option<&'static str>,
}

/// Field of which structure, and its keys.
const TABLE: &[(&str, &str, MergeKey)] = &[
    ("Container", "env", by("name")),
    ("Container", "ports", by_two("containerPort", "protocol", Some("TCP"))),
    ("Container", "volumeDevices", by("devicePath")),
    ("Container", "volumeMounts", by("mountPath")),
    ("EphemeralContainer", "env", by("name")),
    ("EphemeralContainer", "ports", by_two("containerPort", "protocol", Some("TCP"))),
    ("EphemeralContainer", "volumeDevices", by("devicePath")),
    ("EphemeralContainer", "volumeMounts", by("mountPath")),
    ("ObjectMeta", "ownerReferences", by("uid")),
    ("PodSpec", "containers", by("name")),
    ("PodSpec", "ephemeralContainers", by("name")),
    ("PodSpec", "hostAliases", by("ip")),
    ("PodSpec", "imagePullSecrets", by("name")),
    ("PodSpec", "initContainers", by("name")),
    ("PodSpec", "resourceClaims", by("name")),
    ("PodSpec", "schedulingGates", by("name")),
    ("PodSpec", "topologySpreadConstraints", by_two("topologyKey", "whenUnsatisfiable", None)),
    ("PodSpec", "volumes", by("name")),
    ("ServiceSpec", "ports", by_two("port", "protocol", Some("TCP"))),
];

/// Treatment of a field by strategic merge patches, in the words of the API's own definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchStrategy {
    /// `x-kubernetes-patch-strategy`.
    pub strategy: &'static str,
    /// `x-kubernetes-patch-merge-key`: only one, also where items are identified by two.
    pub merge_key: Option<&'static str>,
}

/// Fields whose patches name the keys that stay, beside their strategy otherwise.
const RETAINED: &[(&str, &str)] = &[("DeploymentSpec", "strategy"), ("PodSpec", "resourceClaims"), ("PodSpec", "volumes")];

/// Returns the strategy of the field of a structure; `None` for one that is merged or replaced by its type.
pub fn patch_strategy(structure: &str, field: &str) -> Option<PatchStrategy> {
    let merge_key = match rule_of(structure, field) {
        ListRule::ByKey(key) => Some(key.field),
        ListRule::Union | ListRule::Replace => None,
    };
    let is_merged = rule_of(structure, field) != ListRule::Replace;
    let strategy = match (is_merged, RETAINED.contains(&(structure, field))) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) => return None,
    };
    Some(PatchStrategy { strategy, merge_key })
}

const fn by(field: &'static str) -> MergeKey {
    MergeKey { field, second: None }
}

const fn by_two(field: &'static str, second: &'static str, default: Option<&'static str>) -> MergeKey {
    MergeKey { field, second: Some(Second { field: second, default }) }
}

/// Returns the merge strategy of the list `field` of `structure`.
pub(super) fn rule_of(structure: &str, field: &str) -> ListRule {
    if (structure, field) == ("ObjectMeta", "finalizers") {
        return ListRule::Union;
    }
    let found = TABLE.iter().find(|(of, name, _)| (*of, *name) == (structure, field));
    found.map_or(ListRule::Replace, |(_, _, key)| ListRule::ByKey(*key))
}

impl MergeKey {
    /// Returns the index of the item that a patch's item refers to. If several have the same first key and the patch's item has no second
    /// one, it is the one with the default.
    pub(super) fn position<'a>(self, items: impl Iterator<Item = &'a Node>, wanted: &Node) -> Option<usize> {
        let first = find(wanted.entries(), self.field)?;
        let has_first = |item: &Node| find(item.entries(), self.field).is_some_and(|value| same(value, first));
        let candidates: Vec<(usize, &Node)> = items.enumerate().filter(|(_, item)| has_first(item)).collect();
        let Some(second) = self.second else { return candidates.first().map(|(at, _)| *at) };
        let stated = text(wanted, second.field);
        match (stated, candidates.as_slice()) {
            (None, [(at, _)]) => Some(*at),
            (stated, candidates) => {
                let wanted = stated.or(second.default);
                let has = |item: &Node| text(item, second.field).or(second.default) == wanted;
                candidates.iter().find(|(_, item)| has(item)).map(|(at, _)| *at)
            }
        }
    }

    /// For messages: the first key.
    pub(super) fn is_in(self, item: &Node) -> bool {
        find(item.entries(), self.field).is_some_and(|node| node.value != Value::Null)
    }
}

fn text<'a>(item: &'a Node, field: &str) -> Option<&'a str> {
    find(item.entries(), field)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Type, table};

    #[test]
    fn strategies_are_those_of_kubernetes() {
        let strategy = |structure, field| patch_strategy(structure, field).map(|found| (found.strategy, found.merge_key));
        assert_eq!(strategy("PodSpec", "containers"), Some(("merge", Some("name"))));
        assert_eq!(strategy("PodSpec", "volumes"), Some(("merge,retainKeys", Some("name"))));
        assert_eq!(strategy("Container", "ports"), Some(("merge", Some("containerPort"))));
        assert_eq!(strategy("ObjectMeta", "finalizers"), Some(("merge", None)));
        assert_eq!(strategy("DeploymentSpec", "strategy"), Some(("retainKeys", None)));
        assert_eq!(strategy("Container", "args"), None);
    }

    #[test]
    fn every_row_names_a_list_of_the_api_and_fields_of_its_items() {
        for (structure, field, key) in TABLE {
            let structure = match *structure {
                "Container" => &table::CONTAINER,
                "EphemeralContainer" => &table::EPHEMERAL_CONTAINER,
                "ObjectMeta" => &table::OBJECT_META,
                "PodSpec" => &table::POD_SPEC,
                "ServiceSpec" => &table::SERVICE_SPEC,
                other => panic!("{other}"),
            };
            let Some(Type::List(Type::Object(item))) = structure.field(field).map(|field| &field.ty) else { panic!("{field}") };
            assert!(item.field(key.field).is_some(), "{field}");
            assert!(key.second.is_none_or(|second| item.field(second.field).is_some()), "{field}");
        }
    }
}
