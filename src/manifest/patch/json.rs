//! JSON patches (RFC 6902) with JSON pointers (RFC 6901).

use super::tree::{find, find_mut, put, same, take};
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value};
use std::fmt;

/// A way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<String>);

impl Pointer {
    /// Reads `/spec/containers/0`; `~1` is `/` and `~0` is `~`. The whole document has no pointer here.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let Some(steps) = text.strip_prefix('/') else { return Err("a path must start with /, e.g. /spec/containers/0/image") };
        let step = |step: &str| {
            let escapes_are_whole = step.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
            escapes_are_whole.then(|| step.replace("~1", "/").replace("~0", "~"))
        };
        steps.split('/').map(step).collect::<Option<_>>().map(Self).ok_or("write ~ as ~0, and / in a name as ~1")
    }

    fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    pub(crate) at: u32,
    pub(crate) change: Change,
    pub(crate) path: Pointer,
}

/// Change of an operation at its path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Add(Node),
    Remove,
    Replace(Node),
    Move { from: Pointer },
    Copy { from: Pointer },
    Test(Node),
}

impl Change {
    /// Reports whether it may add more than the patch itself contains.
    pub(crate) fn may_grow(&self) -> bool {
        match self {
            Self::Copy { .. } => true,
            Self::Add(_) | Self::Remove | Self::Replace(_) | Self::Move { .. } | Self::Test(_) => false,
        }
    }
}

/// Applies one operation.
pub(crate) fn apply(root: &mut Node, operation: Operation) -> Result<(), Fault> {
    let Operation { at, change, path } = operation;
    let fail = |message: String| Fault::at(CODE, at, message);
    match change {
        Change::Add(value) => add(root, &path, value, at).map_err(fail),
        Change::Remove => remove(root, &path).map(|_| ()).map_err(fail),
        Change::Replace(value) => match get_mut(root, &path.0) {
            Some(known) => {
                *known = value;
                Ok(())
            }
            None => Err(fail(nothing_at(&path))),
        },
        Change::Move { from } => {
            if path != from && path.starts_with(&from) {
                return Err(fail(format!("{from} cannot be moved into itself")));
            }
            let value = remove(root, &from).map_err(fail)?;
            add(root, &path, value, at).map_err(fail)
        }
        Change::Copy { from } => {
            let value = get(root, &from.0).cloned().ok_or_else(|| fail(nothing_at(&from)))?;
            add(root, &path, value, at).map_err(fail)
        }
        Change::Test(value) => match get(root, &path.0) {
            // What is not there is null, as for Kubernetes.
            None if value.value == Value::Null => Ok(()),
            None => Err(fail(format!("test failed: {}", nothing_at(&path)))),
            // What is there may be secret.
            Some(known) if !same(known, &value) => Err(fail(format!("test failed: {path} has another value"))),
            Some(_) => Ok(()),
        },
    }
}

/// The class of patches that do not fit their object.
pub(super) const CODE: &str = "patch-failed";

fn nothing_at(path: &Pointer) -> String {
    format!("{path} does not exist")
}

/// The index of an item that is there.
fn index(step: &str, length: usize) -> Option<usize> {
    let is_number = step == "0" || (!step.starts_with('0') && step.bytes().all(|byte| byte.is_ascii_digit()));
    step.parse().ok().filter(|index| is_number && *index < length)
}

fn get<'a>(root: &'a Node, steps: &[String]) -> Option<&'a Node> {
    steps.iter().try_fold(root, |node, step| match &node.value {
        Value::Map(entries) => find(entries, step),
        Value::List(items) => items.get(index(step, items.len())?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => None,
    })
}

fn get_mut<'a>(root: &'a mut Node, steps: &[String]) -> Option<&'a mut Node> {
    steps.iter().try_fold(root, |node, step| match &mut node.value {
        Value::Map(entries) => find_mut(entries, step),
        Value::List(items) => {
            let index = index(step, items.len())?;
            items.get_mut(index)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => None,
    })
}

/// Reports whether a mapping is at the end of a path, without the key that the path names.
pub(crate) fn is_missing_key(root: &Node, path: &Pointer) -> bool {
    let Some((last, parents)) = path.0.split_last() else { return false };
    match get(root, parents).map(|parent| &parent.value) {
        Some(Value::Map(entries)) => find(entries, last).is_none(),
        Some(_) | None => false,
    }
}

/// A path with the indices that it means in this document: `-1` is the last item, and `01` the second one. The last step of an addition
/// counts the item that it adds.
pub(crate) fn resolved(root: &Node, path: &Pointer, adds: bool) -> Pointer {
    let mut found = Some(root);
    let mut steps = Vec::with_capacity(path.0.len());
    for (index, step) in path.0.iter().enumerate() {
        let length = match found.map(|node| &node.value) {
            Some(Value::List(items)) => Some(items.len() + usize::from(adds && index + 1 == path.0.len())),
            Some(_) | None => None,
        };
        let step = match (length, step.parse::<i64>()) {
            (Some(length), Ok(number)) if number < 0 => (number + length as i64).to_string(),
            (Some(_), Ok(number)) => number.to_string(),
            (_, _) => step.clone(),
        };
        found = found.and_then(|node| get(node, std::slice::from_ref(&step)));
        steps.push(step);
    }
    Pointer(steps)
}

fn add(root: &mut Node, path: &Pointer, value: Node, at: u32) -> Result<(), String> {
    let Some((last, parents)) = path.0.split_last() else { return Err(nothing_at(path)) };
    let parent = get_mut(root, parents).ok_or_else(|| nothing_at(&Pointer(parents.to_vec())))?;
    match &mut parent.value {
        Value::Map(entries) => {
            put(entries, Entry { key: last.clone(), key_at: Some(at), value, duplicate_of: None });
            Ok(())
        }
        Value::List(items) => {
            let index = if last == "-" { Some(items.len()) } else { index(last, items.len() + 1) };
            let index =
                index.ok_or_else(|| format!("{} is not an index of the list, which has {} items", quoted(last), items.len()))?;
            items.insert(index, value);
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {
            Err(format!("{} is neither a mapping nor a list", Pointer(parents.to_vec())))
        }
    }
}

fn remove(root: &mut Node, path: &Pointer) -> Result<Node, String> {
    let Some((last, parents)) = path.0.split_last() else { return Err(nothing_at(path)) };
    let removed = get_mut(root, parents).and_then(|parent| match &mut parent.value {
        Value::Map(entries) => take(entries, last).map(|entry| entry.value),
        Value::List(items) => index(last, items.len()).map(|index| items.remove(index)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => None,
    });
    removed.ok_or_else(|| nothing_at(path))
}

/// Returns the operand that an operation needs.
pub(crate) fn needs(op: &str) -> Option<Needs> {
    match op {
        "add" | "replace" | "test" => Some(Needs::Value),
        "remove" => Some(Needs::Nothing),
        "move" | "copy" => Some(Needs::From),
        _ => None,
    }
}

/// Operand of an operation in addition to its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Value,
    From,
}

/// For a name that is none of an operation.
pub(super) const OPERATIONS: &str = "add, remove, replace, move, copy or test";

/// The fault of a word that is no operation.
pub(crate) fn unknown_operation(op: &str, at: u32) -> Fault {
    Fault::at(code::INVALID_VALUE, at, format!("{} is not an operation", quoted(op))).hint(format!("write {OPERATIONS}"))
}
