//! Difference between two accepted sets, field by field.

use crate::AcceptedObject;
use crate::history::{Change, FieldChange, ObjectChange};
use crate::undelta::{KeptFiles, in_use};
use podstead_manifest::ObjectKey;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Stands for the content of a secret.
const REDACTED: &str = "(redacted)";
/// Stands for the content of a secret that is another one.
const REDACTED_ANEW: &str = "(redacted, another value)";

/// Objects that are not the same in `before` and `after`, by key. Files do not count, only what is in them.
pub(crate) fn diff(before: &KeptFiles, after: &KeptFiles) -> Vec<ObjectChange> {
    let (before, after) = (in_use(before), in_use(after));
    let keys: BTreeSet<&ObjectKey> = before.keys().chain(after.keys()).copied().collect();
    let change = |key: &ObjectKey| match (before.get(key), after.get(key)) {
        (None, None) => None,
        (None, Some(_)) => Some(Change::Added),
        (Some(_), None) => Some(Change::Removed),
        (Some(before), Some(after)) if before.object == after.object => None,
        (Some(before), Some(after)) => {
            let mut fields = Vec::new();
            compare(String::new(), &value(&before.object), &value(&after.object), &mut fields);
            if let AcceptedObject::Secret(_) = after.object {
                fields.iter_mut().for_each(redact);
            }
            Some(Change::Changed(fields))
        }
    };
    let described = keys.into_iter().filter_map(|key| {
        let ObjectKey { kind, namespace, name } = key;
        let change = change(key)?;
        Some(ObjectChange { kind: kind.to_string(), namespace: namespace.to_string(), name: name.to_string(), change })
    });
    described.collect()
}

fn value(object: &AcceptedObject) -> Value {
    let value = match object {
        AcceptedObject::Pod(pod) => serde_json::to_value(pod),
        AcceptedObject::ConfigMap(config_map) => serde_json::to_value(config_map),
        AcceptedObject::Secret(secret) => serde_json::to_value(secret),
        AcceptedObject::PersistentVolumeClaim(claim) => serde_json::to_value(claim),
        AcceptedObject::Workload(workload) => Ok(workload.to_json()),
        AcceptedObject::Network(object) => object.to_json(),
    };
    // These types have string keys only: they are always values.
    value.unwrap_or_default()
}

fn compare(field: String, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_maps(&field, before, after, changes),
        (Value::Array(before), Value::Array(after)) => match (by_name(before), by_name(after)) {
            (Some(named_before), Some(named_after)) => {
                let names: BTreeSet<&str> = named_before.keys().chain(named_after.keys()).copied().collect();
                let count = changes.len();
                for name in names {
                    one(format!("{field}[{name}]"), named_before.get(name).copied(), named_after.get(name).copied(), changes);
                }
                // The same items in another order: of containers and variables, the order counts.
                if changes.len() == count {
                    let order = |items: &[Value]| Value::from(items.iter().filter_map(name_of).collect::<Vec<_>>());
                    changes.push(FieldChange { field, before: Some(order(before)), after: Some(order(after)) });
                }
            }
            (None, _) | (_, None) => {
                for index in 0..before.len().max(after.len()) {
                    one(format!("{field}[{index}]"), before.get(index), after.get(index), changes);
                }
            }
        },
        (before, after) => changes.push(FieldChange { field, before: Some(before.clone()), after: Some(after.clone()) }),
    }
}

fn compare_maps(field: &str, before: &Map<String, Value>, after: &Map<String, Value>, changes: &mut Vec<FieldChange>) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        one(join(field, key), before.get(key), after.get(key), changes);
    }
}

fn one(field: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<FieldChange>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(field, before, after, changes),
        (before, after) => changes.push(FieldChange { field, before: before.cloned(), after: after.cloned() }),
    }
}

fn join(field: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    match (field.is_empty(), plain) {
        (true, _) => key.to_owned(),
        (false, true) => format!("{field}.{key}"),
        (false, false) => format!("{field}[{key:?}]"),
    }
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

/// Items by name; `None` where some have none, or the same one.
fn by_name(items: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let named: BTreeMap<&str, &Value> = items.iter().map(|item| Some((name_of(item)?, item))).collect::<Option<_>>()?;
    (named.len() == items.len()).then_some(named)
}

/// Removes the content from a change of a secret. Names of its keys stay.
fn redact(change: &mut FieldChange) {
    let is_content = ["data", "stringData"]
        .iter()
        .any(|content| change.field.strip_prefix(content).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])));
    // What was applied last by kubectl is a copy of the whole object.
    if !is_content && !change.field.starts_with("metadata.annotations") {
        return;
    }
    let hidden = |value: &Value, text: &str| match value {
        Value::Object(map) => map.keys().map(|key| (key.clone(), json!(text))).collect::<Map<_, _>>().into(),
        _ => json!(text),
    };
    let both = change.before.is_some();
    change.after = change.after.as_ref().map(|value| hidden(value, if both { REDACTED_ANEW } else { REDACTED }));
    change.before = change.before.as_ref().map(|value| hidden(value, REDACTED));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undelta::KeptFile;
    use crate::{CheckContext, check};
    use podstead_pod::{AdmitContext, NodeName};

    fn files(text: &str) -> KeptFiles {
        let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        let checked = check("a.yaml", text.as_bytes(), &context, &BTreeMap::new());
        assert!(!checked.accepted.is_empty(), "{:?}", checked.problems);
        KeptFiles::from([("a.yaml".into(), KeptFile { objects: checked.accepted, ..KeptFile::default() })])
    }

    fn text(changes: &[ObjectChange]) -> Vec<String> {
        let mut lines = Vec::new();
        for object in changes {
            let name = format!("{} {}/{}", object.kind, object.namespace, object.name);
            match &object.change {
                Change::Added => lines.push(format!("+ {name}")),
                Change::Removed => lines.push(format!("- {name}")),
                Change::Changed(fields) => {
                    let value = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
                    let line = |change: &FieldChange| {
                        format!("{name} {}: {} -> {}", change.field, value(&change.before), value(&change.after))
                    };
                    lines.extend(fields.iter().map(line));
                }
            }
        }
        lines
    }

    fn pod(containers: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, labels: {{example.org/a: b}}}}\nspec: {{containers: [{containers}]}}\n"
        )
    }

    const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";

    #[test]
    fn the_same_is_no_difference() {
        assert_eq!(diff(&files(&pod("{name: a, image: x}")), &files(&pod("{image: x, name: a}"))), []);
        assert_eq!(diff(&KeptFiles::new(), &KeptFiles::new()), []);
    }

    #[test]
    fn fields_are_named_by_the_names_of_what_they_are_in() {
        let before = files(&pod("{name: a, image: 'x:1', env: [{name: A, value: '1'}]}, {name: b, image: 'y:1', args: [p, q]}"));
        let after = pod(
            "{name: b, image: 'y:1', args: [p, r, s]}, {name: a, image: 'x:2', env: [{name: A, value: '1'}, {name: B, value: '2'}]}",
        );
        let after = files(&after.replace("example.org/a: b", "example.org/a: c"));
        assert_eq!(
            text(&diff(&before, &after)),
            [
                r#"Pod default/web metadata.labels["example.org/a"]: "b" -> "c""#,
                r#"Pod default/web spec.containers[a].env[B]: nothing -> {"name":"B","value":"2"}"#,
                r#"Pod default/web spec.containers[a].image: "x:1" -> "x:2""#,
                r#"Pod default/web spec.containers[b].args[1]: "q" -> "r""#,
                r#"Pod default/web spec.containers[b].args[2]: nothing -> "s""#,
            ]
        );
    }

    #[test]
    fn another_order_is_a_difference_of_its_own() {
        let (before, after) = (pod("{name: a, image: x}, {name: b, image: z}"), pod("{name: b, image: z}, {name: a, image: x}"));
        assert_eq!(text(&diff(&files(&before), &files(&after))), [r#"Pod default/web spec.containers: ["a","b"] -> ["b","a"]"#]);
    }

    #[test]
    fn objects_come_and_go_whatever_file_they_are_in() {
        let [web, other] = [pod("{name: a, image: x}"), pod("{name: a, image: x}").replace("name: web", "name: other")];
        let mut moved = files(&web);
        let file = moved.remove("a.yaml").unwrap();
        moved.insert("z.yaml".into(), file);
        assert_eq!(diff(&files(&web), &moved), []);
        assert_eq!(text(&diff(&files(&web), &files(&other))), ["+ Pod default/other", "- Pod default/web"]);
    }

    #[test]
    fn no_content_of_a_secret_is_shown() {
        let before = SECRET.replace("name: s}", "name: s, annotations: {note: hunter0}}");
        let after = SECRET.replace("hunter2", "hunter3").replace("}\nstr", ", annotations: {note: hunter1}}\nstr")
            + "data: {token: aHVudGVyNA==}\n";
        let changes = diff(&files(&before), &files(&after));
        let all = format!("{changes:?} {}", text(&changes).join("\n"));
        for content in ["hunter", "aHVudGVy"] {
            assert!(!all.contains(content), "{all}");
        }
        assert!(all.contains("password") && all.contains("token") && all.contains("another value"), "{all}");
    }
}
