//! Objects and patches as a server stores them: the stored form, and strategic merge.

use serde_json::{Map, Value};

/// Lists that are merged, by the key of their items.
const MERGED: [(&str, &str); 5] =
    [("conditions", "type"), ("podIPs", "ip"), ("hostIPs", "ip"), ("addresses", "type"), ("ownerReferences", "uid")];
/// Fields that hold a time in whole seconds.
const TIMES: [&str; 6] = ["finishedAt", "startedAt", "startTime", "lastProbeTime", "lastTransitionTime", "lastHeartbeatTime"];

/// As a server keeps it: no nulls, no empty lists and texts, times in whole seconds. Empty objects that it writes out stay.
pub(crate) fn stored(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| {
                let value = match &value {
                    Value::String(text) if TIMES.contains(&key.as_str()) => Value::String(whole_seconds(text)),
                    _ => stored(value),
                };
                let is_empty = match &value {
                    Value::Null => true,
                    Value::String(text) => text.is_empty(),
                    Value::Array(items) => items.is_empty(),
                    Value::Object(_) | Value::Bool(_) | Value::Number(_) => false,
                };
                (!is_empty).then_some((key, value))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(stored).collect()),
        other => other,
    }
}

fn whole_seconds(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => text.to_owned(),
    }
}

/// `before` with a strategic merge patch, as k8s.io/apimachinery's `strategicpatch` makes it.
pub(crate) fn strategic(before: &Value, patch: &Value) -> Value {
    let (Value::Object(before), Value::Object(patch)) = (before, patch) else { return patch.clone() };
    let mut after: Map<String, Value> = before.clone();
    for (field, change) in patch {
        let key = MERGED.iter().find(|(name, _)| name == field).map(|(_, key)| *key);
        match (change, key) {
            (Value::Null, _) => {
                after.remove(field);
            }
            // A list that was not there is taken as it is: a directive in it becomes an item without fields.
            (Value::Array(items), Some(_)) if !after.contains_key(field) => {
                let items =
                    items.iter().map(|item| if item["$patch"].is_null() { item.clone() } else { Value::Object(Map::new()) });
                after.insert(field.clone(), items.collect());
            }
            (Value::Array(items), Some(key)) => {
                let list = merged(after.get(field), items, key);
                after.insert(field.clone(), list);
            }
            (Value::Object(_), _) => {
                let inner = strategic(after.get(field).unwrap_or(&Value::Object(Map::new())), change);
                after.insert(field.clone(), inner);
            }
            (other, _) => {
                after.insert(field.clone(), other.clone());
            }
        }
    }
    Value::Object(after)
}

fn merged(before: Option<&Value>, items: &[Value], key: &str) -> Value {
    let mut list = before.and_then(Value::as_array).cloned().unwrap_or_default();
    if items.iter().any(|item| item["$patch"] == "replace") {
        list.clear();
        list.extend(items.iter().filter(|item| item["$patch"].is_null()).cloned());
        return list.into();
    }
    for item in items {
        if item["$patch"] == "delete" {
            list.retain(|other| other[key] != item[key]);
        } else if let Some(found) = list.iter_mut().find(|other| other[key] == item[key]) {
            *found = strategic(found, item);
        } else {
            list.push(item.clone());
        }
    }
    list.into()
}
