//! The words in a strategic merge that are no fields: their form, and a patch without them.

use super::merge_keys::{ListRule, rule_of};
use super::tree::find;
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value};
use crate::schema::{Struct, Type};

/// Directive that a mapping or list replaces the existing one, or deletes it.
pub(super) const PATCH: &str = "$patch";
pub(super) const REPLACE: &str = "replace";
pub(super) const DELETE: &str = "delete";
/// Names the fields of a mapping that stay.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETION: &str = "$deleteFromPrimitiveList/";

/// The list whose order a key gives.
pub(super) fn order_of(key: &str) -> Option<&str> {
    key.strip_prefix(ORDER)
}

/// The list that a key takes values out of.
pub(super) fn deletion_of(key: &str) -> Option<&str> {
    key.strip_prefix(DELETION)
}

/// Reports whether a key is a directive and not a field.
pub(super) fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN_KEYS || order_of(key).is_some() || deletion_of(key).is_some()
}

/// `node` without directives, for the walk that holds it against the schema, and what is wrong with the directives themselves and with
/// the keys of list items. `path` is the node's field, `at` its place where it has none of its own.
pub(super) fn stripped(node: &Node, ty: &Type, path: &str, at: u32, faults: &mut Vec<Fault>) -> Node {
    let value = match (&node.value, ty) {
        (Value::Map(entries), Type::Object(structure)) => Value::Map(stripped_fields(entries, structure, path, at, faults)),
        (Value::Map(entries), Type::Map(inner)) => {
            let mut kept = Vec::new();
            for entry in entries {
                let key_at = entry.key_at.unwrap_or(at);
                match entry.key.as_str() {
                    PATCH => check_patch(entry, path, key_at, faults),
                    RETAIN_KEYS => check_strings(entry, path, key_at, faults),
                    // Takes the key out.
                    _ if entry.value.value == Value::Null => {}
                    key => {
                        let value = stripped(&entry.value, inner, &join(path, key), key_at, faults);
                        kept.push(Entry { value, ..entry.clone() });
                    }
                }
            }
            Value::Map(kept)
        }
        (Value::List(items), Type::List(inner)) => {
            let each = items.iter().enumerate();
            Value::List(each.map(|(index, item)| stripped(item, inner, &format!("{path}[{index}]"), at, faults)).collect())
        }
        (other, _) => other.clone(),
    };
    Node { at: node.at, value }
}

fn stripped_fields(entries: &[Entry], structure: &'static Struct, path: &str, at: u32, faults: &mut Vec<Fault>) -> Vec<Entry> {
    let mut kept = Vec::new();
    for entry in entries {
        let key_at = entry.key_at.unwrap_or(at);
        let key = entry.key.as_str();
        if key == PATCH {
            check_patch(entry, path, key_at, faults);
        } else if key == RETAIN_KEYS {
            check_strings(entry, path, key_at, faults);
        } else if let Some(field) = order_of(key) {
            check_order(entry, structure, field, path, key_at, faults);
        } else if let Some(field) = deletion_of(key) {
            let is_primitive = matches!(list_of(structure, field), Some(Type::Str | Type::Int32 | Type::Int64));
            if is_primitive && matches!(entry.value.value, Value::List(_)) {
                continue;
            }
            let message = if is_primitive {
                "expected a list".to_owned()
            } else {
                format!("{} is not a list of plain values", quoted(field))
            };
            faults.push(Fault::at(code::INVALID_VALUE, key_at, message).field(join(path, key)));
        } else {
            let ty = structure.field(key).map_or(&Type::Any, |field| &field.ty);
            let value = stripped(&entry.value, ty, &join(path, key), key_at, faults);
            if let (ListRule::ByKey(_), Value::List(items)) = (rule_of(structure.name, key), &entry.value.value) {
                check_keys(items, structure, key, &join(path, key), key_at, faults);
            }
            let value = without_markers(value, &entry.value);
            kept.push(Entry { value, ..entry.clone() });
        }
    }
    kept
}

/// An item `$patch: replace` says something of its list and is none of its items.
fn without_markers(stripped: Node, written: &Node) -> Node {
    match (stripped.value, &written.value) {
        (Value::List(items), Value::List(written)) => {
            let is_item = |node: &Node| !matches!(node.entries(), [only] if only.key == PATCH);
            let items = items.into_iter().zip(written).filter(|(_, written)| is_item(written)).map(|(item, _)| item).collect();
            Node { at: stripped.at, value: Value::List(items) }
        }
        (value, _) => Node { at: stripped.at, value },
    }
}

fn list_of(structure: &'static Struct, field: &str) -> Option<&'static Type> {
    structure.field(field)?.ty.of_items()
}

fn check_patch(entry: &Entry, path: &str, at: u32, faults: &mut Vec<Fault>) {
    if !matches!(entry.value.as_str(), Some(REPLACE | DELETE)) {
        let fault = Fault::at(code::INVALID_VALUE, entry.value.at.unwrap_or(at), "expected replace or delete");
        faults.push(fault.field(join(path, PATCH)).hint("to merge a mapping, leave $patch out"));
    }
}

fn check_strings(entry: &Entry, path: &str, at: u32, faults: &mut Vec<Fault>) {
    let is_good = matches!(&entry.value.value, Value::List(items) if items.iter().all(|item| item.as_str().is_some()));
    if !is_good {
        faults.push(Fault::at(code::WRONG_TYPE, at, "expected a list of strings").field(join(path, &entry.key)));
    }
}

fn check_order(entry: &Entry, structure: &'static Struct, field: &str, path: &str, at: u32, faults: &mut Vec<Fault>) {
    let mut tell = |message: String| faults.push(Fault::at(code::INVALID_VALUE, at, message).field(join(path, &entry.key)));
    if list_of(structure, field).is_none() {
        return tell(format!("{} is not a list", quoted(field)));
    }
    let Value::List(items) = &entry.value.value else { return tell("expected a list".to_owned()) };
    match rule_of(structure.name, field) {
        ListRule::Replace => tell(format!("{} is replaced as a whole; write it in the wanted order", quoted(field))),
        ListRule::Union => {}
        ListRule::ByKey(key) => {
            if !items.iter().all(|item| key.is_in(item)) {
                tell(format!("every item needs {:?}", key.field));
            }
        }
    }
}

fn check_keys(items: &[Node], structure: &'static Struct, field: &str, path: &str, at: u32, faults: &mut Vec<Fault>) {
    let ListRule::ByKey(key) = rule_of(structure.name, field) else { return };
    for (index, item) in items.iter().enumerate() {
        let is_replacement = find(item.entries(), PATCH).is_some_and(|directive| directive.as_str() == Some(REPLACE));
        if matches!(item.value, Value::Map(_)) && !is_replacement && !key.is_in(item) {
            let fault = Fault::at(code::MISSING_FIELD, item.at.unwrap_or(at), "is required");
            let hint = "it identifies the item";
            faults.push(fault.field(format!("{path}[{index}].{}", key.field)).hint(hint));
        }
        if is_replacement && item.entries().len() > 1 {
            let fault =
                Fault::at(code::INVALID_VALUE, item.at.unwrap_or(at), "an item with $patch: replace must have no other field");
            faults.push(fault.field(format!("{path}[{index}]")).hint("it makes the other items replace the list"));
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
