//! Small steps on trees that patches are made of.

use crate::node::{Entry, Node, Value};
use serde_json::Number;

/// The node of a key.
pub(super) fn find<'a>(entries: &'a [Entry], key: &str) -> Option<&'a Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

/// The node of a key, to be changed.
pub(super) fn find_mut<'a>(entries: &'a mut [Entry], key: &str) -> Option<&'a mut Node> {
    entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
}

/// Removes a key.
pub(super) fn take(entries: &mut Vec<Entry>, key: &str) -> Option<Entry> {
    let at = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(at))
}

/// Inserts an entry, replacing one with the same key.
pub(super) fn put(entries: &mut Vec<Entry>, entry: Entry) {
    match entries.iter_mut().find(|known| known.key == entry.key) {
        Some(known) => *known = entry,
        None => entries.push(entry),
    }
}

/// Without the nulls in mappings, which mean absence, and in lists.
pub(crate) fn without_nulls(mut node: Node) -> Node {
    match &mut node.value {
        Value::Map(entries) => {
            entries.retain(|entry| entry.value.value != Value::Null);
            for entry in entries {
                entry.value = without_nulls(std::mem::replace(&mut entry.value, NOTHING));
            }
        }
        Value::List(items) => {
            items.retain(|item| item.value != Value::Null);
            for item in items {
                *item = without_nulls(std::mem::replace(item, NOTHING));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {}
    }
    node
}

/// Stands where a node is taken out for a moment.
pub(super) const NOTHING: Node = Node { at: None, value: Value::Null };

/// Reports whether two trees are equal: numbers by value, mappings in any order.
pub(super) fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Number(one), Value::Number(other)) => same_number(one, other),
        (Value::String(one), Value::String(other)) => one == other,
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let has = |entry: &Entry| find(other, &entry.key).is_some_and(|node| same(&entry.value, node));
            one.len() == other.len() && one.iter().all(has)
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Unsupported(_),
            _,
        ) => false,
    }
}

fn same_number(one: &Number, other: &Number) -> bool {
    match (one.as_i64(), other.as_i64(), one.as_u64(), other.as_u64()) {
        (Some(one), Some(other), _, _) => one == other,
        (_, _, Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

/// Reports whether a tree stays within these numbers of values and keys, and of levels.
pub(crate) fn fits(node: &Node, max_nodes: u32, max_depth: u32) -> bool {
    fn count(node: &Node, left: &mut u32, depth: u32) -> Option<()> {
        *left = left.checked_sub(1)?;
        match &node.value {
            Value::Map(entries) => {
                let depth = depth.checked_sub(1)?;
                *left = left.checked_sub(u32::try_from(entries.len()).ok()?)?;
                entries.iter().try_for_each(|entry| count(&entry.value, left, depth))
            }
            Value::List(items) => {
                let depth = depth.checked_sub(1)?;
                items.iter().try_for_each(|item| count(item, left, depth))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => Some(()),
        }
    }
    let mut left = max_nodes;
    count(node, &mut left, max_depth).is_some()
}

/// The same tree with other places.
pub(super) fn placed(mut node: Node, place: &mut impl FnMut(u32) -> u32) -> Node {
    node.at = node.at.map(&mut *place);
    match node.value {
        Value::Map(entries) => {
            let moved = |Entry { key, key_at, value, duplicate_of }| Entry {
                key,
                key_at: key_at.map(&mut *place),
                value: placed(value, place),
                duplicate_of,
            };
            node.value = Value::Map(entries.into_iter().map(moved).collect());
        }
        Value::List(items) => node.value = Value::List(items.into_iter().map(|item| placed(item, place)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {}
    }
    node
}
