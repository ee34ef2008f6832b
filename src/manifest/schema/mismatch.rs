//! Messages for values of the wrong type: the value found, the expected type and the remedy.

use super::Type;
use crate::fault::quoted;
use crate::node::{Node, Value};

/// Message and hint for `node` where `ty` belongs. `raw` is how an unquoted scalar is written.
pub(super) fn explain(node: &Node, ty: &Type, raw: Option<&str>) -> (String, Option<String>) {
    (format!("expected {}, found {}", expected(ty), found(node, raw)), hint(node, ty, raw))
}

/// Describes the expected value of a type.
fn expected(ty: &Type) -> &'static str {
    match ty {
        Type::Str => "a string",
        Type::Bool => "true or false",
        Type::Int32 | Type::Int64 => "a whole number",
        Type::IntOrString => "a whole number or a string",
        Type::Quantity => "a quantity like 500m or 64Mi",
        Type::Time => "a time like 2006-01-02T15:04:05Z",
        Type::Base64 => "base64 text",
        Type::Any => "a value",
        Type::List(_) => "a list",
        Type::Map(_) | Type::Object(_) => "a mapping",
    }
}

/// Describes the value that was found.
pub(crate) fn found(node: &Node, raw: Option<&str>) -> String {
    match &node.value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => match raw {
            Some(raw) if raw != value.to_string() => format!("the boolean {value} (YAML reads unquoted {raw} as a boolean)"),
            Some(_) | None => format!("the boolean {value}"),
        },
        Value::Number(number) => match raw {
            Some(raw) if raw.bytes().all(|byte| byte.is_ascii_digit()) && !raw.starts_with('0') => format!("the number {raw}"),
            Some(raw) if raw != number.to_string() => format!("the number {number} (YAML reads unquoted {raw} as a number)"),
            Some(_) | None => format!("the number {number}"),
        },
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
        Value::Unsupported(what) => what.clone(),
    }
}

fn hint(node: &Node, ty: &Type, raw: Option<&str>) -> Option<String> {
    match (ty, &node.value) {
        (Type::Str | Type::Time | Type::Base64, Value::Bool(value)) => {
            Some(format!("quote it: \"{}\"", raw.unwrap_or(if *value { "true" } else { "false" })))
        }
        (Type::Str | Type::Time | Type::Base64, Value::Number(number)) => {
            Some(format!("quote it: \"{}\"", raw.map_or_else(|| number.to_string(), str::to_owned)))
        }
        (Type::Str, Value::Null) => Some("write \"\" for an empty string, or remove it".to_owned()),
        (_, Value::Null) => Some("remove it, or give it a value".to_owned()),
        (Type::Bool, Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some("write true without quotes".to_owned()),
            "false" | "no" | "off" | "0" => Some("write false without quotes".to_owned()),
            _ => None,
        },
        (Type::Bool, Value::Number(_)) => Some("write true or false".to_owned()),
        (Type::Int32 | Type::Int64, Value::String(text)) if text.parse::<i64>().is_ok() => {
            Some(format!("write {text} without quotes"))
        }
        (Type::Int32 | Type::Int64 | Type::IntOrString, Value::Number(_)) => Some(limits(ty).to_owned()),
        (Type::List(inner), Value::Map(_)) => Some(match inner {
            Type::Object(_) => "begin each item with `- `".to_owned(),
            _ => "write its items as `- item`, each on a line of its own".to_owned(),
        }),
        (Type::List(Type::Str), Value::String(text)) => Some(format!("write [{text:?}] or `- ` items")),
        (Type::Map(_), Value::List(_)) => Some("write `key: value` lines without `- `".to_owned()),
        (Type::Object(_), Value::List(_)) => Some("write its fields without `- `".to_owned()),
        (Type::Map(_) | Type::Object(_), Value::String(_) | Value::Bool(_) | Value::Number(_)) => {
            Some("write its fields on the lines below, indented deeper".to_owned())
        }
        (Type::Str, Value::List(_) | Value::Map(_)) => Some("a text with `[`, `{` or `: ` in it needs quotes".to_owned()),
        _ => None,
    }
}

fn limits(ty: &Type) -> &'static str {
    match ty {
        Type::Int32 | Type::IntOrString => "a whole number from -2147483648 to 2147483647",
        Type::Str
        | Type::Bool
        | Type::Int64
        | Type::Quantity
        | Type::Time
        | Type::Base64
        | Type::Any
        | Type::List(_)
        | Type::Map(_)
        | Type::Object(_) => "a whole number from -9223372036854775808 to 9223372036854775807",
    }
}
