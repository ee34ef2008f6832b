//! A `Patch` document to a [`Patch`], with each of its problems reported at its place.

use super::json::{self, Needs, Operation, Pointer};
use super::target::Target;
use super::tree::{find, placed};
use super::{Change, Patch, directive};
use crate::fault::{Fault, code, quoted};
use crate::kind::{self, Kind};
use crate::node::{Node, Value};

use crate::places::Places;
use crate::schema::{self, Extent, Field, Struct, Type};
use crate::{LabelSelector, Limits, ObjectKey};
use podstead_pod::{Origin, Position};

static PATCH: Struct = Struct {
    name: "Patch",
    fields: &[
        field("apiVersion", Type::Str, true),
        field("json", Type::List(&Type::Object(&OPERATION)), false),
        field("kind", Type::Str, true),
        field("metadata", Type::Object(&METADATA), true),
        field("strategicMerge", Type::Any, false),
        field("target", Type::Object(&TARGET), true),
    ],
};

static METADATA: Struct = Struct { name: "PatchMetadata", fields: &[field("name", Type::Str, true)] };

static TARGET: Struct = Struct {
    name: "PatchTarget",
    fields: &[
        field("kind", Type::Str, true),
        field("labelSelector", Type::Str, false),
        field("name", Type::Str, false),
        field("namespace", Type::Str, false),
    ],
};

static OPERATION: Struct = Struct {
    name: "PatchOperation",
    fields: &[
        field("from", Type::Str, false),
        field("op", Type::Str, true),
        field("path", Type::Str, true),
        field("value", Type::Any, false),
    ],
};

/// Operations of one patch: each may copy the whole object.
const MAX_OPERATIONS: usize = 1000;

const fn field(name: &'static str, ty: Type, required: bool) -> Field {
    Field { name, ty, required }
}

/// Content of a patch document, as far as it is valid.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Its identity; `None` where it has no name.
    pub(crate) key: Option<ObjectKey>,
    /// Its target; `None` if it is not valid.
    pub(crate) target: Option<Target>,
    /// Its problems, in no order. Their fields have `prefix`.
    pub(crate) faults: Vec<Fault>,
    change: Option<Change>,
}

/// Reads a document of kind `Patch`.
pub(crate) fn read(node: &Node, prefix: &str, at: u32, places: Places<'_>, limits: &Limits) -> Reading {
    let path = |field: &str| if prefix.is_empty() { field.to_owned() } else { format!("{prefix}.{field}") };
    let mut faults = schema::check(node, &PATCH, Extent::Whole, prefix, at, places, limits.max_problems).faults;
    let name = node.entry("metadata").and_then(|metadata| find(metadata.value.entries(), "name")?.as_str());
    if name == Some("") {
        faults.push(Fault::at(code::MISSING_FIELD, at, "is required").field(path("metadata.name")));
    }
    let key = name.filter(|name| !name.is_empty()).map(|name| ObjectKey {
        kind: kind::PATCH.into(),
        namespace: "default".into(),
        name: name.into(),
    });
    let told = node.entry("target").map(|entry| target(&entry.value, &path("target"), entry.key_at.unwrap_or(at)));
    let target = match told {
        Some(Ok(told)) => Some(told),
        Some(Err(fault)) => {
            faults.extend(fault);
            None
        }
        None => None,
    };
    let forms = (node.entry("strategicMerge"), node.entry("json"));
    let change = match forms {
        (Some(_), Some(json)) => {
            let fault = Fault::at(code::INVALID_VALUE, json.key_at.unwrap_or(at), "a patch has strategicMerge or json, not both");
            faults.push(fault.field(path("json")).hint("write two patches"));
            None
        }
        (Some(entry), None) => {
            let (at, path) = (entry.key_at.unwrap_or(at), path("strategicMerge"));
            let kind = target.as_ref().and_then(|target| kind::kind_named(target.kind));
            kind.and_then(|kind| strategic(&entry.value, kind, &path, at, places, limits, &mut faults))
        }
        (None, Some(entry)) => operations(&entry.value, &path("json"), &mut faults),
        (None, None) => {
            let fault = Fault::at(code::MISSING_FIELD, at, "a patch must have strategicMerge or json");
            faults.push(fault.field(prefix));
            None
        }
    };
    Reading { key, target, faults, change }
}

impl Reading {
    /// The patch, if nothing is wrong with it.
    pub(crate) fn into_patch(self, origin: Origin, places: Places<'_>) -> Option<Patch> {
        let (Some(key), Some(target), Some(change), true) = (self.key, self.target, self.change, self.faults.is_empty()) else {
            return None;
        };
        let mut table: Vec<Position> = Vec::new();
        let mut note = |at: u32| {
            table.push(places.place(at).position);
            (table.len() - 1) as u32
        };
        let change = match change {
            Change::Strategic(node) => Change::Strategic(placed(node, &mut note)),
            Change::Json(operations) => {
                Change::Json(operations.into_iter().map(|operation| super::placed_operation(operation, &mut note)).collect())
            }
        };
        Some(Patch { key, origin, target, change, places: table })
    }
}

/// Parses a target. `Err(None)`: the schema check has reported the problem.
fn target(node: &Node, path: &str, at: u32) -> Result<Target, Option<Fault>> {
    let Value::Map(_) = node.value else { return Err(None) };
    let text = |name: &str| match find(node.entries(), name) {
        None | Some(Node { value: Value::Null, .. }) => Ok(None),
        Some(node) => node.as_str().map(Some).ok_or(None),
    };
    let place = |name: &str| node.entry(name).and_then(|entry| entry.value.at.or(entry.key_at)).unwrap_or(at);
    let fault = |name: &str, message: String, hint: &str| {
        Some(Fault::at(code::INVALID_VALUE, place(name), message).field(format!("{path}.{name}")).hint(hint))
    };
    let kind = text("kind")?.ok_or(None)?;
    let Some(kind) = kind::kind_named(kind) else {
        return Err(fault(
            "kind",
            format!("{} cannot be patched", quoted(kind)),
            "write a kind that podstead reads, such as Pod, Deployment, ConfigMap or Secret",
        ));
    };
    let name = text("name")?;
    if let Some(name) = name {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '*');
        if name.is_empty() || !name.chars().all(allowed) || name.contains(".*") {
            let hint = "write a name, in which * matches any text (web-*); regular expressions are not supported";
            return Err(fault("name", format!("{} is not a name", quoted(name)), hint));
        }
    }
    let namespace = text("namespace")?;
    if namespace.is_some_and(|namespace| namespace.is_empty() || namespace.contains('*')) {
        return Err(fault("namespace", "is not a namespace".to_owned(), "omit it to patch objects of all namespaces"));
    }
    let selector = text("labelSelector")?;
    let labels = LabelSelector::parse(selector.unwrap_or_default())
        .map_err(|error| fault("labelSelector", error.to_string(), "write key=value, key!=value, key in (a,b), key or !key"))?;
    Ok(Target {
        kind: kind.name,
        name: name.map(str::to_owned),
        namespace: namespace.map(str::to_owned),
        labels,
        label_selector: selector.map(str::to_owned),
    })
}

fn strategic(
    node: &Node,
    kind: Kind,
    path: &str,
    at: u32,
    places: Places<'_>,
    limits: &Limits,
    faults: &mut Vec<Fault>,
) -> Option<Change> {
    if !matches!(node.value, Value::Map(_)) {
        faults.push(Fault::at(code::WRONG_TYPE, at, "expected a mapping").field(path));
        return None;
    }
    let stripped = directive::stripped(node, &Type::Object(kind.structure), path, at, faults);
    faults.extend(schema::check(&stripped, kind.structure, Extent::Part, path, at, places, limits.max_problems).faults);
    Some(Change::Strategic(node.clone()))
}

fn operations(node: &Node, path: &str, faults: &mut Vec<Fault>) -> Option<Change> {
    let Value::List(items) = &node.value else { return None };
    if items.len() > MAX_OPERATIONS {
        let message = format!("has more than {MAX_OPERATIONS} operations");
        faults.push(Fault::at(code::TOO_COMPLEX, node.at.unwrap_or_default(), message).field(path));
        return None;
    }
    let each = items.iter().enumerate();
    let read = |(index, item)| operation(item, &format!("{path}[{index}]"), node.at.unwrap_or_default(), faults);
    let operations: Vec<Option<Operation>> = each.map(read).collect();
    operations.into_iter().collect::<Option<_>>().map(Change::Json)
}

fn operation(item: &Node, path: &str, at: u32, faults: &mut Vec<Fault>) -> Option<Operation> {
    let at = item.at.unwrap_or(at);
    let place = |name: &str| item.entry(name).and_then(|entry| entry.value.at.or(entry.key_at)).unwrap_or(at);
    let text = |name: &str| find(item.entries(), name).and_then(Node::as_str);
    let mut pointer = |name: &str| match Pointer::parse(text(name)?) {
        Ok(pointer) => Some(pointer),
        Err(message) => {
            faults.push(Fault::at(code::INVALID_VALUE, place(name), message).field(format!("{path}.{name}")));
            None
        }
    };
    let (way, from) = (pointer("path"), pointer("from"));
    let op = text("op")?;
    let Some(needs) = json::needs(op) else {
        faults.push(json::unknown_operation(op, place("op")).field(format!("{path}.op")));
        return None;
    };
    let value = item.entry("value").map(|entry| entry.value.clone());
    for (name, is_there, is_wanted) in
        [("value", value.is_some(), needs == Needs::Value), ("from", item.entry("from").is_some(), needs == Needs::From)]
    {
        if is_there != is_wanted {
            let message = if is_wanted { format!("{op} requires a {name}") } else { format!("{op} must not have a {name}") };
            faults.push(Fault::at(code::INVALID_VALUE, place(name), message).field(format!("{path}.{name}")));
        }
    }
    let change = match op {
        "add" => json::Change::Add(value?),
        "replace" => json::Change::Replace(value?),
        "test" => json::Change::Test(value?),
        "move" => json::Change::Move { from: from? },
        "copy" => json::Change::Copy { from: from? },
        _ => json::Change::Remove,
    };
    Some(Operation { at, change, path: way? })
}
