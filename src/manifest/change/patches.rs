//! Patches of JSON objects, as clients of the API send them.

use super::LIMITS;
use super::body::{to_json, to_node};
use crate::kind::kind_named;
use crate::node::{Node, Value};
use crate::patch::json::{self, Change, Needs, Operation, Pointer};
use crate::patch::strategic;
use crate::patch::tree::{fits, without_nulls};
use crate::schema::Type;
use serde_json::{Map, Value as Json};

/// Operations of one JSON patch.
const MAX_OPERATIONS: usize = 1000;

/// Form of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchForm {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// That of Kubernetes.
    Strategic,
}

/// Errors of patches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch of its form.
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the object.
    #[error("{0}")]
    Unfit(String),
}

/// Applies a patch to an object of this kind.
pub fn patched(kind: &str, object: &Json, patch: &Json, form: PatchForm) -> Result<Json, PatchError> {
    let node = match form {
        PatchForm::Merge => {
            let mut merged = object.clone();
            if !patch.is_object() {
                return Err(PatchError::Malformed("a merge patch is an object".to_owned()));
            }
            merge(&mut merged, patch);
            to_node(&merged)
        }
        PatchForm::Strategic => {
            let (Value::Map(entries), Value::Map(patch)) = (to_node(object).value, to_node(patch).value) else {
                return Err(PatchError::Malformed("a strategic merge patch is an object".to_owned()));
            };
            let ty = kind_named(kind).map_or(Type::Any, |kind| Type::Object(kind.structure));
            let merged = strategic::merge(entries, patch, &ty).map_err(|fault| {
                let field = if fault.field.is_empty() { String::new() } else { format!("{}: ", fault.field) };
                PatchError::Malformed(format!("{field}{}", fault.message))
            })?;
            Node { at: None, value: Value::Map(merged) }
        }
        PatchForm::Json => {
            let Json::Array(operations) = patch else {
                return Err(PatchError::Malformed("a JSON patch is a list of operations".to_owned()));
            };
            if operations.len() > MAX_OPERATIONS {
                return Err(PatchError::Malformed(format!("the patch has more than {MAX_OPERATIONS} operations")));
            }
            let mut node = to_node(object);
            for operation in operations {
                let operation = read_operation(operation).map_err(PatchError::Malformed)?;
                let may_grow = operation.change.may_grow();
                json::apply(&mut node, operation).map_err(|fault| PatchError::Unfit(fault.message))?;
                if may_grow && !fits(&node, LIMITS.max_nodes, LIMITS.max_depth) {
                    return Err(too_large());
                }
            }
            node
        }
    };
    if !fits(&node, LIMITS.max_nodes, LIMITS.max_depth) {
        return Err(too_large());
    }
    to_json(&without_nulls(node)).map_err(PatchError::Unfit)
}

fn too_large() -> PatchError {
    PatchError::Unfit("the patched object is too large".to_owned())
}

fn merge(object: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Json::Object(Map::new());
    }
    let Json::Object(object) = object else { return };
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Json::Null), value);
        }
    }
}

fn read_operation(operation: &Json) -> Result<Operation, String> {
    let text = |name: &str| operation[name].as_str();
    let op = text("op").ok_or("an operation of the patch has no op")?;
    let pointer = |name: &str| {
        let text = text(name).ok_or_else(|| format!("the operation {op} has no {name}"))?;
        Pointer::parse(text).map_err(|message| format!("{name} {text:?}: {message}"))
    };
    let needs = json::needs(op).ok_or_else(|| format!("{op:?} is not an operation of a JSON patch"))?;
    let change = match (op, needs) {
        (_, Needs::Value) => {
            // Without a value it is null, as for Kubernetes.
            let value = to_node(&operation["value"]);
            match op {
                "add" => Change::Add(value),
                "replace" => Change::Replace(value),
                _ => Change::Test(value),
            }
        }
        ("move", _) => Change::Move { from: pointer("from")? },
        (_, Needs::From) => Change::Copy { from: pointer("from")? },
        (_, Needs::Nothing) => Change::Remove,
    };
    Ok(Operation { at: 0, change, path: pointer("path")? })
}
