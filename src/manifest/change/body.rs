//! A body to a JSON value, and the fields in it that no schema has.

use crate::documents::{self, Document};
use crate::kind::kind_named;
use crate::node::{Entry, Node, Value};
use crate::schema::{Type, table};
use crate::{Limits, encoding, protobuf, yaml};
use serde_json::{Map, Value as Json};

/// A body of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Its content, nulls included.
    pub value: Json,
    /// Paths of keys that occur twice.
    pub duplicates: Vec<String>,
}

/// Reads a body in JSON or YAML within these limits.
pub fn read_body(bytes: &[u8], limits: &Limits) -> Result<Body, String> {
    let document = Document { start: 0, bytes };
    let told = |fault: crate::fault::Fault| fault.message;
    encoding::check_file(bytes, limits).map_err(told)?;
    let text = encoding::check_document(bytes, 0).map_err(told)?;
    documents::check_density(&document, limits.max_nodes).map_err(told)?;
    let node = yaml::load(text, 0, 1, limits).map_err(told)?;
    let mut duplicates = Vec::new();
    find_duplicates(&node, "", &mut duplicates);
    Ok(Body { value: to_json(&node)?, duplicates })
}

/// Reads a body in Kubernetes' protobuf form, of an object of this kind or of a `Scale`.
pub fn read_protobuf_body(kind: &str, bytes: &[u8]) -> Result<Body, String> {
    let structure = match kind {
        "Scale" => Some(&table::SCALE),
        kind => kind_named(kind).map(|kind| kind.structure),
    };
    let structure = structure.ok_or_else(|| format!("kind {kind} is not read here"))?;
    let value = protobuf::read(bytes, structure).map_err(|error| error.to_string())?;
    Ok(Body { value, duplicates: Vec::new() })
}

/// The JSON of a tree, nulls included. Of keys that occur twice the last one counts.
pub(super) fn to_json(node: &Node) -> Result<Json, String> {
    Ok(match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => Json::Number(number.clone()),
        Value::String(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Value::Map(entries) => {
            let pairs = entries.iter().map(|entry| Ok((entry.key.clone(), to_json(&entry.value)?)));
            Json::Object(pairs.collect::<Result<Map<_, _>, String>>()?)
        }
        Value::Unsupported(what) => return Err(format!("{what} is not supported")),
    })
}

/// A tree without places.
pub(super) fn to_node(value: &Json) -> Node {
    let value = match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.clone()),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(to_node).collect()),
        Json::Object(map) => {
            let entry = |(key, value): (&String, &Json)| Entry {
                key: key.clone(),
                key_at: None,
                value: to_node(value),
                duplicate_of: None,
            };
            Value::Map(map.iter().map(entry).collect())
        }
    };
    Node { at: None, value }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn find_duplicates(node: &Node, path: &str, found: &mut Vec<String>) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                let inner = below(path, &entry.key);
                find_duplicates(&entry.value, &inner, found);
                if entry.duplicate_of.is_some() {
                    found.push(inner);
                }
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                find_duplicates(item, &format!("{path}[{index}]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {}
    }
}

/// Removes the fields that an object of this kind does not have, and returns their paths.
pub fn drop_unknown_fields(kind: &str, value: &mut Json) -> Vec<String> {
    let mut dropped = Vec::new();
    if let Some(kind) = kind_named(kind) {
        drop_unknown(value, &Type::Object(kind.structure), "", &mut dropped);
    }
    dropped
}

fn drop_unknown(value: &mut Json, ty: &Type, path: &str, dropped: &mut Vec<String>) {
    match value {
        Json::Object(map) => {
            if let Type::Object(structure) = ty {
                map.retain(|key, _| {
                    let is_known = structure.field(key).is_some();
                    if !is_known {
                        dropped.push(below(path, key));
                    }
                    is_known
                });
            }
            for (key, value) in map {
                drop_unknown(value, ty.of_key(key), &below(path, key), dropped);
            }
        }
        Json::Array(items) => {
            let inner = ty.of_items().unwrap_or(&Type::Any);
            for (index, item) in items.iter_mut().enumerate() {
                drop_unknown(item, inner, &format!("{path}[{index}]"), dropped);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
