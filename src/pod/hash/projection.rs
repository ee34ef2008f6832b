//! Input of a hash: named values, without those that are unset.

use serde::Serialize;
use serde_json::{Map, Value};

/// Named values. Order does not matter, absence does.
#[derive(Debug, Default)]
pub(super) struct Projection(Map<String, Value>);

impl Projection {
    /// Adds a value, unless it is `None`.
    pub(super) fn optional(&mut self, name: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.insert(name, serde_json::to_value(value).unwrap_or(Value::Null));
        }
    }

    /// Adds a value, unless it says nothing: null, false, empty text, empty list, empty object. For fields where Kubernetes does not
    /// tell these from absence. Objects inside the value stay when they are empty: `emptyDir: {}` says something.
    pub(super) fn nonzero(&mut self, name: &str, value: &impl Serialize) {
        self.insert(name, without_zeros(serde_json::to_value(value).unwrap_or(Value::Null)));
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    fn insert(&mut self, name: &str, value: Value) {
        let empty_object = matches!(&value, Value::Object(members) if members.is_empty());
        if !says_nothing(&value) && !empty_object {
            self.0.insert(name.to_owned(), value);
        }
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The value without empty and false members, at any depth; `false` itself counts as empty.
pub(super) fn without_zeros(value: Value) -> Value {
    match value {
        Value::Bool(false) => Value::Null,
        Value::Array(items) => Value::Array(items.into_iter().map(without_zeros).collect()),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| (name, without_zeros(value)))
                .filter(|(_, value)| !says_nothing(value))
                .collect(),
        ),
        Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) => value,
    }
}

/// 128 bits of SHA-256 in hexadecimal over the value as JSON with sorted keys. `kind` keeps hashes of different kinds apart.
pub(super) fn digest(kind: &str, value: &Value) -> String {
    let mut text = format!("podstead {kind} 1\n");
    write_sorted(value, &mut text);
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hex::encode(hash.as_ref().get(..16).unwrap_or_default())
}

/// JSON without blanks, keys sorted: the same text for the same value, whatever order a map happens to keep.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_sorted(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write_sorted(value, text);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let mut text = String::new();
        write_sorted(&json!({"b": [{"d": 1, "c": "x\"y"}], "a": null}), &mut text);
        assert_eq!(text, r#"{"a":null,"b":[{"c":"x\"y","d":1}]}"#);
    }

    #[test]
    fn what_says_nothing_is_left_out_and_an_empty_object_is_not() {
        let mut projection = Projection::default();
        projection.nonzero("a", &json!({"x": false, "y": "", "z": [], "emptyDir": {}, "n": 0}));
        projection.nonzero("b", &false);
        projection.nonzero("e", &json!({}));
        projection.optional("c", Some(&false));
        projection.optional("d", None::<&bool>);
        assert_eq!(projection.into_value(), json!({"a": {"emptyDir": {}, "n": 0}, "c": false}));
    }

    #[test]
    fn hashes_of_different_kinds_differ() {
        assert_ne!(digest("a", &Value::Null), digest("b", &Value::Null));
        assert_eq!(digest("a", &Value::Null).len(), 32);
    }
}
