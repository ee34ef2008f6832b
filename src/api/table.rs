//! Kubernetes' `Table`: what kubectl asks for when it prints columns.

use super::show::age_since;
use jiff::Timestamp;
use serde_json::{Value, json};

/// One column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Heading.
    pub(super) name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub(super) kind: &'static str,
    /// `name` for the column that names the object.
    pub(super) format: &'static str,
    /// Description of the column.
    pub(super) description: &'static str,
    /// Shown with `-o wide` only.
    pub(super) wide: bool,
}

/// Time since an object's source first had it; see [`age_of`].
pub(super) const AGE: Column = Column::text("Age", "Time since the object was first seen");

/// The age of an object as kubectl writes it; `<unknown>` without a time of creation.
pub(super) fn age_of(object: &Value, now: Timestamp) -> Value {
    json!(age_since(object["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok()), now))
}

impl Column {
    /// A column of text that is always shown.
    pub(super) const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "string", format: "", description, wide: false }
    }

    /// A column of numbers that is always shown.
    pub(super) const fn number(name: &'static str, description: &'static str) -> Self {
        Self { kind: "integer", ..Self::text(name, description) }
    }

    /// The column that names the object.
    pub(super) const fn name() -> Self {
        Self { format: "name", ..Self::text("Name", "Name of the object") }
    }

    /// The same, with `-o wide` only.
    pub(super) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// Content of `object` in each row (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncludeObject {
    /// Nothing.
    None,
    /// Metadata only.
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// From the query parameter; anything else is the default, metadata.
    pub(super) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// One row; `object` is made only when it is asked for.
pub(super) fn row(
    cells: Vec<Value>,
    include: IncludeObject,
    metadata: impl FnOnce() -> Value,
    object: impl FnOnce() -> Value,
) -> Value {
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial(&metadata()),
        IncludeObject::Object => object(),
    };
    json!({"cells": cells, "object": object})
}

/// An object with only its metadata.
pub(super) fn partial(metadata: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

/// A table.
pub(super) fn table(columns: &[Column], rows: Vec<Value>, version: u64) -> Value {
    let definition = |column: &Column| {
        json!({
            "name": column.name,
            "type": column.kind,
            "format": column.format,
            "description": column.description,
            "priority": u8::from(column.wide),
        })
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version.to_string()},
        "columnDefinitions": columns.iter().map(definition).collect::<Vec<_>>(),
        "rows": rows,
    })
}
