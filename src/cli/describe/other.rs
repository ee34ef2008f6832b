//! Description of objects that have none of their own: each field below its heading, as kubectl describes custom resources. **Pure**.

use super::service::identity;
use super::writer::Description;
use serde_json::Value;

/// Everything but the events. `hidden` are annotations that are not shown.
pub(super) fn describe(object: &Value, hidden: &[&str]) -> String {
    let mut text = Description::default();
    identity(&mut text, object, hidden);
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            write(&mut text, 0, name, value);
        }
    }
    text.finish()
}

fn write(text: &mut Description, level: usize, name: &str, value: &Value) {
    let heading = title(name);
    match value {
        Value::Object(fields) if fields.is_empty() => text.indented(level, &heading, "<none>"),
        Value::Object(fields) => {
            text.indented_heading(level, &heading);
            // Keys of data are names, not words.
            let is_data =
                matches!(name, "data" | "binaryData" | "capacity" | "allocatable" | "requests" | "labels" | "annotations");
            for (name, value) in fields {
                match scalar(value) {
                    Some(value) if is_data => text.indented(level + 1, name, &value),
                    _ => write(text, level + 1, name, value),
                }
            }
        }
        Value::Array(items) if items.iter().all(|item| scalar(item).is_some()) => {
            let items: Vec<String> = items.iter().filter_map(scalar).collect();
            text.indented(level, &heading, &if items.is_empty() { "<none>".to_owned() } else { items.join("\n") });
        }
        Value::Array(items) => {
            text.indented_heading(level, &heading);
            for (number, item) in items.iter().enumerate() {
                write(text, level + 1, &number.to_string(), item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.indented(level, &heading, &scalar(value).unwrap_or_default());
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("<none>".to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) => Some(value.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// `accessModes` as `Access Modes`.
fn title(name: &str) -> String {
    let mut title = String::new();
    let mut was_lower = false;
    for (at, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && was_lower {
            title.push(' ');
        }
        was_lower = letter.is_ascii_lowercase();
        title.push(if at == 0 { letter.to_ascii_uppercase() } else { letter });
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_stand_below_their_headings() {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Bound", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        insta::assert_snapshot!(describe(&claim, &[]));
        assert_eq!(["podCIDR", "nodeInfo", "phase"].map(title), ["Pod CIDR", "Node Info", "Phase"]);
    }
}
