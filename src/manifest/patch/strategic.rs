//! Strategic merge: the Kubernetes rules for laying a part of an object over an object, as `kubectl patch --type=strategic` has them.
//!
//! Mappings are merged, null removes a field, lists are merged where the API names the keys of their items and are replaced
//! elsewhere. Two differences, both where Kubernetes would mix up two items: ports are identified by port and protocol, and spread
//! constraints by topology key and what happens when they cannot be met.

use super::directive::{self, DELETE, PATCH, REPLACE, RETAIN_KEYS};
use super::list::{self, Merged};
use super::merge_keys::{ListRule, MergeKey, rule_of};
use super::tree::{self, find, find_mut, put, take};
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value};
use crate::schema::{Struct, Type};

/// Lays `patch` over `original`, both of this type. The faults' places are nodes of the patch.
pub(crate) fn merge(original: Vec<Entry>, patch: Vec<Entry>, ty: &Type) -> Result<Vec<Entry>, Fault> {
    let (mut original, mut patch) = (original, patch);
    if let Some(directive) = take(&mut patch, PATCH) {
        return match directive.value.as_str() {
            Some(REPLACE) => Ok(added_entries(patch)),
            Some(DELETE) => Ok(Vec::new()),
            Some(_) | None => Err(unknown_directive(&directive)),
        };
    }
    if let Some(directive) = take(&mut patch, RETAIN_KEYS) {
        retain(&mut original, &patch, &directive)?;
    }
    let structure = if let Type::Object(structure) = ty { Some(*structure) } else { None };
    let orders: Vec<Entry> = patch.extract_if(.., |entry| directive::order_of(&entry.key).is_some()).collect();
    for order in orders {
        let Some(field) = directive::order_of(&order.key).map(str::to_owned) else { continue };
        set_order(&mut original, take(&mut patch, &field), &field, order, structure)?;
    }
    let deletions: Vec<Entry> = patch.extract_if(.., |entry| directive::deletion_of(&entry.key).is_some()).collect();
    for Entry { key, value, .. } in deletions {
        let list = directive::deletion_of(&key).and_then(|field| find_mut(&mut original, field));
        if let (Some(Node { value: Value::List(items), .. }), Value::List(gone)) = (list, &value.value) {
            items.retain(|item| !gone.iter().any(|gone| tree::same(item, gone)));
        }
    }
    for entry in patch {
        let inner = ty.of_key(&entry.key);
        merge_entry(&mut original, entry, structure, inner)?;
    }
    Ok(original)
}

fn merge_entry(original: &mut Vec<Entry>, entry: Entry, structure: Option<&'static Struct>, ty: &Type) -> Result<(), Fault> {
    if entry.value.value == Value::Null {
        take(original, &entry.key);
        return Ok(());
    }
    let Entry { key, key_at, value: Node { at, value }, duplicate_of } = entry;
    let merged = match (find_mut(original, &key).map(|node| &mut node.value), value) {
        (Some(Value::Map(known)), Value::Map(patch)) => {
            // Only what the patch wrote has its place; the mapping around it stays where it was.
            *known = merge(std::mem::take(known), patch, ty)?;
            return Ok(());
        }
        (Some(Value::List(known)), Value::List(patch)) => {
            let rule = structure.map_or(ListRule::Replace, |structure| rule_of(structure.name, &key));
            let merged = merge_list(std::mem::take(known), patch, rule, ty)?;
            if rule != ListRule::Replace {
                *known = list::by_patch_and_original(merged);
                return Ok(());
            }
            Value::List(list::nodes(merged))
        }
        (_, value) => value,
    };
    if let Some(value) = added(Node { at, value: merged }) {
        put(original, Entry { key, key_at, value, duplicate_of });
    }
    Ok(())
}

/// Puts a list in the order that the patch gives, after merging its items where there are some.
fn set_order(
    original: &mut Vec<Entry>,
    patch: Option<Entry>,
    field: &str,
    order: Entry,
    structure: Option<&'static Struct>,
) -> Result<(), Fault> {
    let rule = structure.map_or(ListRule::Replace, |structure| rule_of(structure.name, field));
    let Value::List(order_items) = order.value.value else { return Ok(()) };
    let patched = match patch {
        Some(Entry { value: Node { value: Value::List(items), .. }, .. }) => Some(items),
        // Another value than a list takes the list's place: there is nothing to put in order.
        Some(entry) => return merge_entry(original, entry, structure, &Type::Any),
        None => None,
    };
    if let Some(patched) = &patched
        && !list::follows(patched, &order_items, rule)
    {
        let message = format!("the items of {field} are not in the order of {}", quoted(&order.key));
        return Err(Fault::at(code::INVALID_VALUE, order.key_at.unwrap_or_default(), message).field(order.key));
    }
    let known = take(original, field);
    if known.is_none() && patched.is_none() {
        return Ok(());
    }
    let at = known.as_ref().and_then(|entry| entry.value.at).or(order.value.at);
    let key_at = known.as_ref().and_then(|entry| entry.key_at).or(order.key_at);
    let items = match known.map(|entry| entry.value.value) {
        Some(Value::List(items)) => items,
        Some(_) | None => Vec::new(),
    };
    let ty = structure.and_then(|structure| structure.field(field)).map_or(&Type::Any, |field| &field.ty);
    let merged = merge_list(items, patched.unwrap_or_default(), rule, ty)?;
    let value = Node { at, value: Value::List(list::by_order(merged, &order_items, rule)) };
    put(original, Entry { key: field.to_owned(), key_at, value, duplicate_of: None });
    Ok(())
}

/// Merges lists; the result knows where each item comes from.
fn merge_list(original: Vec<Node>, patch: Vec<Node>, rule: ListRule, ty: &Type) -> Result<Vec<Merged>, Fault> {
    match rule {
        ListRule::Replace => Ok(patch.into_iter().filter_map(added).map(Merged::alone).collect()),
        ListRule::Union => {
            let mut merged = Merged::of_original(original);
            for (index, node) in patch.into_iter().enumerate() {
                match merged.iter_mut().find(|known| tree::same(&known.node, &node)) {
                    Some(known) => known.patch = known.patch.or(Some(index)),
                    None => merged.push(Merged { node, original: None, patch: Some(index) }),
                }
            }
            Ok(merged)
        }
        ListRule::ByKey(key) => merge_by_key(original, patch, key, ty),
    }
}

fn merge_by_key(mut original: Vec<Node>, patch: Vec<Node>, key: MergeKey, ty: &Type) -> Result<Vec<Merged>, Fault> {
    let item_type = if let Type::List(inner) = ty { inner } else { &Type::Any };
    let mut items = Vec::new();
    let mut replace = false;
    for item in patch {
        match find(item.entries(), PATCH).map(Node::as_str) {
            None => items.push(item),
            Some(Some(REPLACE)) => replace = true,
            Some(Some(DELETE)) => {
                while let Some(at) = key.position(original.iter(), &item) {
                    original.remove(at);
                }
            }
            Some(_) => {
                let at = item.entry(PATCH).and_then(|entry| entry.key_at).unwrap_or_default();
                return Err(Fault::at(code::INVALID_VALUE, at, "write replace or delete").field(PATCH));
            }
        }
    }
    if replace {
        return Ok(items.into_iter().filter_map(added).map(Merged::alone).collect());
    }
    let mut merged = Merged::of_original(original);
    for (index, item) in items.into_iter().enumerate() {
        match key.position(merged.iter().map(|merged| &merged.node), &item) {
            Some(at) => {
                let known = &mut merged[at];
                known.patch = known.patch.or(Some(index));
                if let (Value::Map(entries), Value::Map(patch)) = (&mut known.node.value, item.value) {
                    *entries = merge(std::mem::take(entries), patch, item_type)?;
                }
            }
            None => merged.extend(added(item).map(|node| Merged { node, original: None, patch: Some(index) })),
        }
    }
    Ok(merged)
}

/// Keeps only the fields that the directive names, as a patch that makes a volume another one wants it.
fn retain(original: &mut Vec<Entry>, patch: &[Entry], directive: &Entry) -> Result<(), Fault> {
    let Value::List(kept) = &directive.value.value else { return Ok(()) };
    let is_kept = |key: &str| kept.iter().any(|node| node.as_str() == Some(key));
    for entry in patch.iter().filter(|entry| entry.value.value != Value::Null && !directive::is_directive(&entry.key)) {
        if !is_kept(&entry.key) {
            let message = format!("the patch has {}, which is not in {RETAIN_KEYS}", quoted(&entry.key));
            return Err(Fault::at(code::INVALID_VALUE, entry.key_at.unwrap_or_default(), message).field(RETAIN_KEYS));
        }
    }
    original.retain(|entry| is_kept(&entry.key));
    Ok(())
}

fn unknown_directive(entry: &Entry) -> Fault {
    let at = entry.value.at.or(entry.key_at).unwrap_or_default();
    Fault::at(code::INVALID_VALUE, at, "write replace or delete").field(PATCH)
}

/// Returns the part of a patch to add where there is nothing to merge it with: without directives and nulls. `None` for an item that is to
/// be deleted.
fn added(mut node: Node) -> Option<Node> {
    match node.value {
        Value::Map(entries) => {
            if find(&entries, PATCH).is_some_and(|directive| directive.as_str() == Some(DELETE)) {
                return None;
            }
            node.value = Value::Map(added_entries(entries));
        }
        Value::List(items) => node.value = Value::List(items.into_iter().filter_map(added_item).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {}
    }
    Some(node)
}

/// An item `$patch: replace` says something of its list and is no item itself.
fn added_item(node: Node) -> Option<Node> {
    if find(node.entries(), PATCH).is_some() {
        return None;
    }
    added(node)
}

fn added_entries(entries: Vec<Entry>) -> Vec<Entry> {
    let kept = entries.into_iter().filter(|entry| !directive::is_directive(&entry.key) && entry.value.value != Value::Null);
    kept.filter_map(|entry| Some(Entry { value: added(entry.value)?, ..entry })).collect()
}
