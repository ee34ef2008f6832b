//! Memory size of JSON values, and parsing within a memory limit.
//!
//! A text of some bytes may become a hundred times as large as a tree of values (`[{"":0},{"":0},…`). So what a server sends is bounded twice:
//! its text where it is received, its tree here, while it grows.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::cell::Cell;
use std::fmt;

/// Bytes of a value in a list, with the room that the list keeps for more.
const ITEM: usize = 64;
/// Bytes of a string beside its text.
const STRING: usize = 16;
/// Bytes of a map with one field: it has room for more.
const MAP: usize = 640;
/// Bytes of each field, with the room that maps keep for more.
const FIELD: usize = 128;

/// Reason why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// It is not JSON.
    #[error("not JSON")]
    NoJson,
    /// It is larger than the limit.
    #[error("too large")]
    TooHeavy,
}

/// About as many bytes as the values take in memory, rather more than less.
pub fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => STRING + text.len(),
        Value::Array(items) => items.iter().map(|item| ITEM + weight(item)).sum(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| FIELD + STRING + key.len() + weight(value));
            MAP + fields.sum::<usize>()
        }
    }
}

/// Reads JSON whose tree weighs no more than `most`; fields called as one of `unread`, at any depth, are passed over.
pub fn parse(text: &[u8], most: usize, unread: &[&str]) -> Result<Value, TreeError> {
    let left = Cell::new(Some(most));
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let tree = Tree { left: &left, unread }.deserialize(&mut deserializer);
    match tree.and_then(|tree| deserializer.end().map(|()| tree)) {
        Ok(tree) => Ok(tree),
        Err(_) if left.get().is_none() => Err(TreeError::TooHeavy),
        Err(_) => Err(TreeError::NoJson),
    }
}

/// Deserializer of one value.
#[derive(Clone, Copy)]
struct Tree<'a> {
    /// Bytes that may still be taken; `None` after it was too much.
    left: &'a Cell<Option<usize>>,
    unread: &'a [&'a str],
}

impl Tree<'_> {
    fn take<E: Error>(self, bytes: usize) -> Result<(), E> {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(bytes)));
        self.left.get().map(drop).ok_or_else(|| E::custom(TreeError::TooHeavy))
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.take(STRING + text.len())?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            self.take(ITEM)?;
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.take(MAP)?;
        let mut object = serde_json::Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if self.unread.contains(&key.as_str()) {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            self.take(FIELD + STRING + key.len())?;
            let value = fields.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trees() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-c]{0,3}", inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_tree_that_weighs_as_much_as_it_may_is_read_and_one_byte_less_is_too_little(tree in trees()) {
            let (text, weight) = (tree.to_string(), weight(&tree));
            prop_assert_eq!(parse(text.as_bytes(), weight, &[]), Ok(tree));
            if let Some(less) = weight.checked_sub(1) {
                prop_assert_eq!(parse(text.as_bytes(), less, &[]), Err(TreeError::TooHeavy));
            }
        }
    }

    #[test]
    fn a_short_text_that_would_be_a_large_tree_is_given_up() {
        let text = format!("[{}{{}}]", r#"{"":0},"#.repeat(1 << 17));
        assert_eq!(parse(text.as_bytes(), 16 << 20, &[]), Err(TreeError::TooHeavy));
        assert_eq!(parse("[".repeat(1 << 17).as_bytes(), 16 << 20, &[]), Err(TreeError::NoJson), "nor is the stack used up");
    }

    #[test]
    fn what_nobody_reads_weighs_nothing() {
        let text = format!(r#"{{"a": 1, "spec": [{}0], "b": {{"spec": "x"}}}}"#, "{},".repeat(10_000));
        let expected = serde_json::json!({"a": 1, "b": {}});
        assert_eq!(parse(text.as_bytes(), 4096, &["spec"]), Ok(expected));
        for no in ["", "{", "<html>", "{} {}"] {
            assert_eq!(parse(no.as_bytes(), 4096, &[]), Err(TreeError::NoJson), "{no}");
        }
    }
}
