//! Patches of a kustomization: strategic ones and JSON patches, for one object or for all that a target selects.

use super::CODE;
use super::id::Id;
use super::kustomization::Patch;
use super::reader::Text;
use super::resource::{ALLOW_KIND_CHANGE, ALLOW_NAME_CHANGE, ENABLED, Pairs, Resource};
use super::resources::{self, resources_of};
use super::schema::Schemas;
use super::select::Selector;
use super::texts::{Place, Texts};
use super::tree::{Field, Scalar, Tag, Tree, Value};
use super::{BuildLimits, merge};
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value as Plain};
use crate::patch::json::{self, Change, Needs, Operation, Pointer};
use crate::patch::tree::fits;
use crate::yaml;

/// Operations of one patch: each may copy the whole object.
const MAX_OPERATIONS: usize = 1000;

/// Rules by which a patch is applied.
#[derive(Clone, Copy)]
pub(super) struct Rules<'b> {
    pub(super) limits: &'b BuildLimits,
    pub(super) schemas: &'b Schemas,
}

/// A text that holds a patch, and its place.
pub(super) struct PatchText {
    pub(super) bytes: Vec<u8>,
    pub(super) place: Place,
    /// Place that names it.
    pub(super) at: u32,
}

/// Content of a patch.
enum Content {
    Strategic(Vec<Resource>),
    Json(Vec<Operation>),
}

/// Applies an entry of `patches`.
pub(super) fn apply(
    resources: &mut Vec<Resource>,
    patch: &Patch,
    text: &PatchText,
    texts: &Texts<'_>,
    rules: Rules<'_>,
) -> Result<(), Fault> {
    match (content(text, texts, rules)?, &patch.target) {
        (Content::Strategic(mut patches), target) => {
            for resource in &mut patches {
                for (allowed, key) in [(patch.allow_name_change, ALLOW_NAME_CHANGE), (patch.allow_kind_change, ALLOW_KIND_CHANGE)] {
                    if allowed {
                        resource.set_annotation(key, ENABLED);
                    }
                }
            }
            match (target, &patches[..]) {
                (_, []) => Ok(()),
                (Some(target), [patch]) => {
                    let selected: Vec<Id> =
                        resources.iter().filter(|resource| target.selects(resource)).map(Resource::id).collect();
                    merge_into(resources, &selected, patch, rules)
                }
                (Some(target), _) => {
                    let message = "a patch of several documents cannot have a target: each document names its own object";
                    Err(Fault::at(CODE, target.at, message)
                        .field("target")
                        .hint("remove the target, or write one patch for each document"))
                }
                (None, patches) => patches.iter().try_for_each(|patch| merge_by_id(resources, patch, rules, false)),
            }
        }
        (Content::Json(_), None) => {
            let fault = Fault::at(CODE, patch.at, "a JSON patch must have a target").field("target");
            Err(fault.hint("name the object, e.g. target: {kind: Deployment, name: web}"))
        }
        (Content::Json(operations), Some(target)) => {
            for resource in resources.iter_mut().filter(|resource| target.selects(resource)) {
                resource.store_id();
                apply_json(resource, &operations, rules)?;
            }
            Ok(())
        }
    }
}

/// Applies an entry of `patchesJson6902`.
pub(super) fn apply_legacy_json(
    resources: &mut [Resource],
    target: &Selector,
    text: &PatchText,
    texts: &Texts<'_>,
    rules: Rules<'_>,
) -> Result<(), Fault> {
    if target.name_text.is_empty() {
        return Err(Fault::at(CODE, target.at, "the target must have a name").field("target.name"));
    }
    check_json(text)?;
    let operations = operations(&texts.plain(&text.bytes, text.place)?, text.at)?;
    if operations.is_empty() {
        return Err(Fault::at(CODE, text.at, "the patch is empty"));
    }
    for resource in resources.iter_mut().filter(|resource| target.selects(resource)) {
        apply_json(resource, &operations, rules)?;
    }
    Ok(())
}

/// Applies the objects of `patchesStrategicMerge`, of which `at` is the place.
pub(super) fn apply_legacy_strategic(
    resources: &mut Vec<Resource>,
    patches: &[Resource],
    at: u32,
    rules: Rules<'_>,
) -> Result<(), Fault> {
    if patches.is_empty() {
        let fault = Fault::at(CODE, at, "the patches are empty").field("patchesStrategicMerge");
        return Err(fault.hint("write an object with the fields to change, or remove the entry"));
    }
    patches.iter().try_for_each(|patch| merge_by_id(resources, patch, rules, true))
}

/// Reports whether a text of `patchesStrategicMerge` is a patch, and not the path of one.
pub(super) fn is_inline(text: &Text, texts: &Texts<'_>) -> Option<Vec<Tree>> {
    let trees = texts.documents(text.text.as_bytes(), texts.place_of_string(text.at, text.text.len())).ok()?;
    trees.iter().all(|tree| matches!(tree.value, Value::Map(_))).then_some(trees)
}

fn content(text: &PatchText, texts: &Texts<'_>, rules: Rules<'_>) -> Result<Content, Fault> {
    let trees = texts.documents(&text.bytes, text.place)?;
    if trees.first().is_some_and(|tree| matches!(tree.value, Value::List(_))) {
        check_json(text)?;
        return operations(&texts.plain(&text.bytes, text.place)?, text.at).map(Content::Json);
    }
    Ok(Content::Strategic(resources_of(trees, rules.limits)?))
}

/// Refuses a JSON patch that begins with `[` and is no JSON: upstream takes only other texts for YAML.
fn check_json(text: &PatchText) -> Result<(), Fault> {
    if !text.bytes.starts_with(b"[") {
        return Ok(());
    }
    let error = serde_json::from_slice::<serde::de::IgnoredAny>(&text.bytes).err();
    error.map_or(Ok(()), |error| {
        let fault = Fault::at(CODE, text.at, format!("a JSON patch that begins with [ must be JSON: {error}"));
        Err(fault.hint("write it in block style, e.g. - op: remove"))
    })
}

/// Merges a patch into the object that it names.
fn merge_by_id(resources: &mut Vec<Resource>, patch: &Resource, rules: Rules<'_>, legacy: bool) -> Result<(), Fault> {
    let id = patch.original_id();
    let index = resources::find(resources, &id).map_err(|message| {
        let fault = Fault::at(CODE, patch.tree.at, format!("{message}, which the patch is for"));
        fault.hint("kind, apiVersion, name and namespace must be those of an object in resources")
    })?;
    if legacy {
        let selected = [resources[index].id()];
        return merge_into(resources, &selected, patch, rules);
    }
    if !merge_one(&mut resources[index], patch, rules)? {
        resources.remove(index);
    }
    Ok(())
}

/// Merges a patch into all objects with these identities.
fn merge_into(resources: &mut Vec<Resource>, selected: &[Id], patch: &Resource, rules: Rules<'_>) -> Result<(), Fault> {
    // As strings, as upstream has it: a null in them is a text here.
    let mut patch = patch.clone();
    let (labels, annotations): (Pairs, Pairs) = (patch.labels(), patch.annotations());
    patch.set_pairs("labels", labels);
    patch.set_pairs("annotations", annotations);
    let mut merged = Vec::with_capacity(resources.len());
    for mut resource in resources.drain(..) {
        if !selected.contains(&resource.id()) {
            merged.push(resource);
            continue;
        }
        let mut patch = patch.clone();
        let at = patch.tree.at;
        if let Some(version) = resource.tree.get("apiVersion") {
            let version = Tree { at, ..version.clone() };
            patch.tree.set("apiVersion", version);
        }
        if merge_one(&mut resource, &patch, rules)? {
            merged.push(resource);
        }
    }
    for resource in merged {
        resources::append(resources, resource)?;
    }
    Ok(())
}

/// Merges a patch into an object. False when this removes it.
fn merge_one(resource: &mut Resource, patch: &Resource, rules: Rules<'_>) -> Result<bool, Fault> {
    let (name, namespace, kind) = (resource.name().to_owned(), resource.namespace().to_owned(), resource.kind().to_owned());
    let (may_rename, may_change_kind) = (patch.is_enabled(ALLOW_NAME_CHANGE), patch.is_enabled(ALLOW_KIND_CHANGE));
    if may_rename || may_change_kind {
        resource.store_id();
    }
    let object = resource.tree.clone();
    let Some(tree) =
        merge::merge(object, &patch.tree, rules.schemas, rules.limits.manifest.max_nodes as usize)?.filter(|tree| !tree.is_empty())
    else {
        return Ok(false);
    };
    resource.tree = tree;
    if !may_change_kind {
        resource.set_kind(&kind);
    }
    if !may_rename {
        resource.set_name(&name);
    }
    resource.set_namespace(&namespace);
    Ok(true)
}

fn apply_json(resource: &mut Resource, operations: &[Operation], rules: Rules<'_>) -> Result<(), Fault> {
    let own = resource.annotations();
    let mut node = to_node(&resource.tree);
    let id = resource.id().text();
    for (index, operation) in operations.iter().enumerate() {
        let (at, may_grow) = (operation.at, operation.change.may_grow());
        let place = |fault: Fault| {
            let message = format!("{}, in {id}", fault.message);
            Fault { message, code: CODE, ..fault.field(format!("[{index}]")) }
        };
        let operation = as_upstream(&node, operation);
        json::apply(&mut node, operation).map_err(place)?;
        if may_grow && !fits(&node, rules.limits.manifest.max_nodes, rules.limits.manifest.max_depth) {
            return Err(place(Fault::at(code::TOO_COMPLEX, at, "the patched object is too large")));
        }
    }
    round_integers(&mut node);
    resource.tree = from_node(node, resource.tree.at);
    let mut annotations = resource.annotations();
    let is_internal = |key: &str| {
        key.starts_with("internal.config.kubernetes.io/")
            || matches!(key, "config.kubernetes.io/path" | "config.kubernetes.io/index" | "config.k8s.io/id")
    };
    annotations.extend(own.into_iter().filter(|(key, _)| is_internal(key)));
    resource.set_pairs("annotations", annotations);
    Ok(())
}

/// Rounds integers of more than 53 bits: upstream's library reads all numbers of the object as floating-point ones.
fn round_integers(node: &mut Node) {
    /// The magnitude up to which every integer is a floating-point number.
    const EXACT: u64 = 1 << 53;
    match &mut node.value {
        Plain::Number(number) => {
            let is_exact = |magnitude: u64| magnitude <= EXACT;
            let exact = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64()).is_none_or(is_exact);
            if !exact && let Some(rounded) = number.as_f64().and_then(serde_json::Number::from_f64) {
                *number = rounded;
            }
        }
        Plain::List(items) => items.iter_mut().for_each(round_integers),
        Plain::Map(entries) => entries.iter_mut().for_each(|entry| round_integers(&mut entry.value)),
        Plain::Null | Plain::Bool(_) | Plain::String(_) | Plain::Unsupported(_) => {}
    }
}

/// An operation as upstream's library understands it, which is less strict than the standard.
fn as_upstream(node: &Node, operation: &Operation) -> Operation {
    let adds = matches!(operation.change, Change::Add(_) | Change::Move { .. } | Change::Copy { .. });
    let path = json::resolved(node, &operation.path, adds);
    let change = match &operation.change {
        // A key that is missing is added.
        Change::Replace(value) if json::is_missing_key(node, &path) => Change::Add(value.clone()),
        Change::Copy { from } if json::is_missing_key(node, from) => Change::Add(Node { at: None, value: Plain::Null }),
        Change::Copy { from } => Change::Copy { from: json::resolved(node, from, false) },
        Change::Move { from } => Change::Move { from: json::resolved(node, from, false) },
        change @ (Change::Add(_) | Change::Remove | Change::Replace(_) | Change::Test(_)) => change.clone(),
    };
    Operation { at: operation.at, change, path }
}

/// Reads the operations of a JSON patch.
fn operations(node: &Node, at: u32) -> Result<Vec<Operation>, Fault> {
    let Plain::List(items) = &node.value else {
        return Err(Fault::at(CODE, node.at.unwrap_or(at), "a JSON patch must be a list of operations"));
    };
    if items.len() > MAX_OPERATIONS {
        let message = format!("a patch may have at most {MAX_OPERATIONS} operations");
        return Err(Fault::at(code::TOO_COMPLEX, at, message));
    }
    let read = |(index, item): (usize, &Node)| {
        operation(item, at).map_err(|fault| {
            let field = if fault.field.is_empty() { format!("[{index}]") } else { format!("[{index}].{}", fault.field) };
            fault.field(field)
        })
    };
    items.iter().enumerate().map(read).collect()
}

fn operation(item: &Node, at: u32) -> Result<Operation, Fault> {
    let at = item.at.unwrap_or(at);
    let text = |name: &str| {
        let entry = item.entry(name);
        let value = entry.and_then(|entry| entry.value.as_str());
        let at = entry.and_then(|entry| entry.value.at.or(entry.key_at)).unwrap_or(at);
        value.map(|value| (value, at)).ok_or_else(|| Fault::at(code::MISSING_FIELD, at, "a string is required").field(name))
    };
    let pointer = |name: &str| {
        let (text, at) = text(name)?;
        // As upstream's library has it, what stands before the first slash does not count.
        let text = text.find('/').map_or(text, |slash| &text[slash..]);
        Pointer::parse(text).map_err(|message| Fault::at(CODE, at, format!("{}: {message}", quoted(text))).field(name))
    };
    let (word, word_at) = text("op")?;
    let needs = json::needs(word).ok_or_else(|| json::unknown_operation(word, word_at).field("op"))?;
    let value = || {
        let missing = || Fault::at(code::MISSING_FIELD, at, "a value is required").field("value");
        item.entry("value").map(|entry| entry.value.clone()).ok_or_else(missing)
    };
    let change = match (needs, word) {
        (Needs::Nothing, _) => Change::Remove,
        (Needs::From, "move") => Change::Move { from: pointer("from")? },
        (Needs::From, _) => Change::Copy { from: pointer("from")? },
        (Needs::Value, "add") => Change::Add(value()?),
        (Needs::Value, "replace") => Change::Replace(value()?),
        (Needs::Value, _) => Change::Test(value()?),
    };
    Ok(Operation { at, change, path: pointer("path")? })
}

/// The values of a tree as JSON has them.
pub(super) fn to_node(tree: &Tree) -> Node {
    let value = match &tree.value {
        Value::Scalar(scalar) => match scalar.tag {
            Tag::Null if scalar.is_blank() => Plain::String(String::new()),
            Tag::Null => Plain::Null,
            Tag::Bool => Plain::Bool(scalar.text.starts_with(['t', 'T'])),
            Tag::Int | Tag::Float => yaml::plain(&scalar.text),
            Tag::Time => Plain::String(super::time::parse(&scalar.text).unwrap_or_else(|| scalar.text.clone())),
            Tag::String => Plain::String(scalar.text.clone()),
        },
        Value::List(items) => Plain::List(items.iter().map(to_node).collect()),
        Value::Map(fields) => {
            let entry = |field: &Field| Entry {
                key: field.key.clone(),
                key_at: Some(field.at).filter(|at| *at > 0),
                value: to_node(&field.value),
                duplicate_of: None,
            };
            Plain::Map(fields.iter().map(entry).collect())
        }
    };
    Node { at: Some(tree.at).filter(|at| *at > 0), value }
}

pub(super) fn from_node(node: Node, at: u32) -> Tree {
    let at = node.at.unwrap_or(at);
    let value = match node.value {
        Plain::Null => return Tree::null(at),
        Plain::Bool(value) => Value::Scalar(Scalar::tagged(value.to_string(), Tag::Bool)),
        Plain::Number(number) => Value::Scalar(Scalar::plain(number.to_string())),
        Plain::String(text) | Plain::Unsupported(text) => Value::Scalar(Scalar::string(text)),
        Plain::List(items) => Value::List(items.into_iter().map(|item| from_node(item, at)).collect()),
        Plain::Map(entries) => {
            let field = |entry: Entry| Field { key: entry.key, at: entry.key_at.unwrap_or(at), value: from_node(entry.value, at) };
            Value::Map(entries.into_iter().map(field).collect())
        }
    };
    Tree { at, value }
}
