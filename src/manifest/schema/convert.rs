//! A checked document to the JSON value that the typed object is made of.

use super::{Struct, Type};
use crate::node::{Node, Value};
use serde_json::{Map, Value as Json};

/// The JSON of an object that [`super::check`] found good: without nulls, which mean absence, and with quantities as strings.
pub(crate) fn into_json(node: Node, structure: &'static Struct) -> Json {
    convert(node, &Type::Object(structure)).unwrap_or(Json::Null)
}

fn convert(node: Node, ty: &Type) -> Option<Json> {
    Some(match node.value {
        Value::Null | Value::Unsupported(_) => return None,
        Value::Bool(value) => Json::Bool(value),
        Value::Number(number) if matches!(ty, Type::Quantity) => Json::String(number.to_string()),
        Value::Number(number) => Json::Number(number),
        Value::String(text) if matches!(ty, Type::Base64) => Json::String(text.replace(['\n', '\r'], "")),
        Value::String(text) => Json::String(text),
        Value::List(items) => {
            let inner = ty.of_items().unwrap_or(&Type::Any);
            items.into_iter().filter_map(|item| convert(item, inner)).collect()
        }
        Value::Map(entries) => {
            let mut map = Map::new();
            for entry in entries {
                let inner = ty.of_key(&entry.key);
                if let Some(value) = convert(entry.value, inner) {
                    map.insert(entry.key, value);
                }
            }
            Json::Object(map)
        }
    })
}
