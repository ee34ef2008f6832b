//! A document as a tree whose nodes know where they are written.

use serde_json::Number;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Byte offset in the file of a scalar, or of what a list or mapping begins with; `None` when it is unknown.
    pub(super) at: Option<u32>,
    /// Its value.
    pub(super) value: Value,
}

/// Value of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping in the order of writing.
    Map(Vec<Entry>),
    /// A value that Kubernetes does not support, with its description.
    Unsupported(String),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// Byte offset of the key.
    pub(super) key_at: Option<u32>,
    /// The value.
    pub(super) value: Node,
    /// An earlier entry has the same key: its offset.
    pub(super) duplicate_of: Option<Option<u32>>,
}

impl Node {
    /// The entries of a mapping; none for anything else.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::List(_) | Value::Unsupported(_) => &[],
        }
    }

    /// The first entry of that name.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The string, if it is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) | Value::Unsupported(_) => None,
        }
    }
}
