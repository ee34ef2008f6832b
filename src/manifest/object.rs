//! Kind, version and identity of a document, and the items of a list.

use super::fault::{Fault, code, quoted};
use super::foreign::{self, Foreign};
use super::kind::{self, Kind, LIST, LIST_VERSION, PATCH, PATCH_VERSION};
use super::node::{Entry, Node, Value};
use super::{ObjectKey, schema};
use std::collections::BTreeMap;

/// Kind of a document or list item.
#[derive(Debug)]
pub(super) enum Told {
    Object(Kind),
    /// A change of objects.
    Patch,
    /// A list; of a typed list, what its items are.
    List {
        of: Option<Kind>,
    },
    /// Objects that are not read.
    Foreign(Foreign),
}

impl Told {
    /// The version of such a document.
    fn version(&self) -> &'static str {
        match self {
            Told::Object(kind) | Told::List { of: Some(kind) } => kind.version,
            Told::List { of: None } => LIST_VERSION,
            Told::Patch => PATCH_VERSION,
            Told::Foreign(_) => "",
        }
    }
}

/// Identifies the document that begins at byte `at`; `of` is the kind that an item of a typed list has when it does not say
/// so itself. On failure, everything that is wrong with apiVersion and kind, or with the list around the items.
pub(super) fn tell(node: &Node, at: u32, of: Option<Kind>) -> (Option<Told>, Vec<Fault>) {
    if !matches!(node.value, Value::Map(_)) {
        let message = "not a Kubernetes object: expected a mapping with apiVersion, kind and metadata";
        let hint = "keep other files out of the manifest directory, or begin their names with a dot";
        return (None, vec![Fault::at(code::NOT_AN_OBJECT, node.at.unwrap_or(at), message).hint(hint)]);
    }
    if let Some(foreign) = foreign::foreign(node) {
        return (Some(Told::Foreign(foreign)), Vec::new());
    }
    let mut faults = Vec::new();
    let kind = text(node, "kind", at, &mut faults);
    let version = text(node, "apiVersion", at, &mut faults);
    let told = match (kind, of) {
        (Written::Nothing, Some(kind)) => Some(Told::Object(kind)),
        (Written::Nothing, None) if matches!(version, Written::Nothing) => {
            let hint = match is_compose(node) {
                true => "it looks like a compose file: podstead import compose makes manifests of it",
                false => "a Pod begins with `apiVersion: v1` and `kind: Pod`",
            };
            let what = "not a Kubernetes object: it has neither apiVersion nor kind";
            faults.push(Fault::at(code::NOT_AN_OBJECT, at, what).hint(hint));
            return (None, faults);
        }
        (Written::Nothing, None) => {
            faults.push(missing("kind", at, "the kind of the object, such as Pod or Deployment"));
            None
        }
        (Written::Wrong, _) => None,
        (Written::Text(kind, kind_at), of) => kind_of(node, kind, kind_at, of, &mut faults),
    };
    match (&told, version, of) {
        (_, Written::Wrong, _) | (Some(_), Written::Nothing, Some(_)) | (None, _, Some(_)) => {}
        (Some(told), Written::Nothing, None) => {
            faults.push(missing("apiVersion", at, &format!("`apiVersion: {}`", told.version())))
        }
        (None, Written::Nothing, None) => faults.push(missing("apiVersion", at, "`apiVersion: v1`")),
        // A wrong kind with its own version is told once.
        (None, Written::Text(_, _), None) => {}
        (Some(told), Written::Text(version, _), _) if version == told.version() => {}
        (Some(told), Written::Text(version, version_at), _) => {
            let message = format!("{} is not the version of a {}", quoted(version), kind_name(node));
            let fault = Fault::at(code::UNSUPPORTED_KIND, version_at, message).field("apiVersion");
            faults.push(fault.hint(format!("write {}", told.version())));
        }
    }
    if matches!(told, Some(Told::List { .. })) {
        faults.extend(list_faults(node, at));
    }
    (told, faults)
}

/// A scalar field of the document's top.
enum Written<'a> {
    Text(&'a str, u32),
    Nothing,
    /// Not a string; reported as a problem.
    Wrong,
}

/// Reports whether a document without a kind has services with images or builds, as docker compose wants them.
fn is_compose(node: &Node) -> bool {
    let services = node.entry("services").map(|entry| entry.value.entries()).unwrap_or_default();
    services.iter().any(|service| ["image", "build"].iter().any(|field| service.value.entry(field).is_some()))
}

fn text<'a>(node: &'a Node, name: &str, at: u32, faults: &mut Vec<Fault>) -> Written<'a> {
    let Some(entry) = node.entry(name) else { return Written::Nothing };
    let place = entry.value.at.or(entry.key_at).unwrap_or(at);
    match &entry.value.value {
        Value::String(text) => Written::Text(text, place),
        Value::Null => Written::Nothing,
        Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) | Value::Unsupported(_) => {
            faults.push(Fault::at(code::WRONG_TYPE, place, "expected a string").field(name));
            Written::Wrong
        }
    }
}

fn missing(field: &str, at: u32, write: &str) -> Fault {
    Fault::at(code::MISSING_FIELD, at, "is required").field(field).hint(format!("write {write}"))
}

fn kind_name(node: &Node) -> &str {
    node.entry("kind").and_then(|entry| entry.value.as_str()).unwrap_or("Kubernetes object")
}

fn kind_of(node: &Node, kind: &str, at: u32, of: Option<Kind>, faults: &mut Vec<Fault>) -> Option<Told> {
    if let Some(found) = kind::kind_named(kind) {
        if let Some(of) = of.filter(|of| of.name != found.name) {
            let message = format!("a {} cannot be an item of a {}", found.name, of.list);
            faults.push(Fault::at(code::UNSUPPORTED_KIND, at, message).field("kind").hint("use `kind: List` for a mixed list"));
            return None;
        }
        return Some(Told::Object(found));
    }
    if kind == PATCH && of.is_none() {
        return Some(Told::Patch);
    }
    let of_list = kind::kind_of_list(kind);
    if kind == LIST || of_list.is_some() {
        return Some(Told::List { of: of_list });
    }
    let message = format!("the kind {} is not supported", quoted(kind));
    faults.push(Fault::at(code::UNSUPPORTED_KIND, at, message).field("kind").hint(hint_for_unknown(node, kind)));
    None
}

/// Remedy for a kind that nobody knows: most likely a slip.
fn hint_for_unknown(node: &Node, kind: &str) -> String {
    let names = kind::names().chain(foreign::names());
    match schema::close_to(kind, names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if node.entry("apiVersion").is_none() => "write the apiVersion, without which a kind is not known".to_owned(),
        None => {
            "podstead reads Pods, workloads such as Deployment and Job, Services, ConfigMaps, Secrets and PersistentVolumeClaims"
                .to_owned()
        }
    }
}

/// The items of a list, and the place of the word `items`.
pub(super) fn into_items(node: Node) -> (Vec<Node>, Option<u32>) {
    let Value::Map(entries) = node.value else { return (Vec::new(), None) };
    match entries.into_iter().find(|entry| entry.key == "items").map(|entry| (entry.value.value, entry.key_at)) {
        Some((Value::List(items), at)) => (items, at),
        Some(_) | None => (Vec::new(), None),
    }
}

/// The labels of an object without faults.
pub(super) fn labels_of(node: &Node) -> BTreeMap<String, String> {
    let labels = node.entry("metadata").and_then(|metadata| metadata.value.entry("labels"));
    let entries = labels.map_or(&[][..], |labels| labels.value.entries());
    entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.as_str()?.to_owned()))).collect()
}

/// Returns the problems of a list, apart from its items.
fn list_faults(node: &Node, at: u32) -> Vec<Fault> {
    const FIELDS: [&str; 4] = ["apiVersion", "items", "kind", "metadata"];
    let mut faults = Vec::new();
    for entry in node.entries() {
        let key_at = entry.key_at.unwrap_or(at);
        if entry.duplicate_of.is_some() {
            let fault = Fault::at(code::DUPLICATE_KEY, key_at, format!("duplicate key {}", quoted(&entry.key)));
            faults.push(fault.field(&entry.key).hint("keep one of the two"));
        } else if !FIELDS.contains(&entry.key.as_str()) {
            let fault = Fault::at(code::UNKNOWN_FIELD, key_at, "unknown field").field(&entry.key);
            faults.push(match schema::close_to(&entry.key, FIELDS.into_iter()) {
                Some(near) => fault.hint(format!("did you mean \"{near}\"?")),
                None => fault.hint("a list has apiVersion, kind, metadata and items"),
            });
        }
    }
    match node.entry("items").map(|entry| (&entry.value.value, entry)) {
        Some((Value::List(_), _)) => {}
        Some((_, entry)) => {
            let fault = Fault::at(code::WRONG_TYPE, entry.key_at.unwrap_or(at), "expected a list").field("items");
            faults.push(fault.hint("an empty list is `items: []`"));
        }
        None => faults.push(missing("items", at, "`items: []` for an empty list")),
    }
    faults
}

/// Returns the key of the object, which is in `default_namespace` if it is written without a namespace; `None` when its name or namespace
/// cannot be determined.
pub(super) fn key_of(node: &Node, kind: Kind, default_namespace: &str) -> Option<ObjectKey> {
    let metadata = &sole(node, "metadata")??.value;
    let name = sole(metadata, "name")??.value.as_str().filter(|name| !name.is_empty())?;
    let namespace = match sole(metadata, "namespace")? {
        None => "",
        Some(entry) if entry.value.value == Value::Null => "",
        Some(entry) => entry.value.as_str()?,
    };
    let namespace = if namespace.is_empty() { default_namespace } else { namespace };
    Some(ObjectKey { kind: kind.name.into(), namespace: namespace.into(), name: name.into() })
}

/// The only entry of that name: `None` when there are two, `Some(None)` when there is none.
fn sole<'a>(node: &'a Node, name: &str) -> Option<Option<&'a Entry>> {
    let mut entries = node.entries().iter().filter(|entry| entry.key == name);
    let first = entries.next();
    entries.next().is_none().then_some(first)
}

/// Returns violations of requirements of the API that the schema does not express.
pub(super) fn required_faults(node: &Node, kind: Kind, prefix: &str, at: u32) -> Vec<Fault> {
    let path = |field: &str| if prefix.is_empty() { field.to_owned() } else { format!("{prefix}.{field}") };
    let mut faults = Vec::new();
    let metadata = node.entry("metadata").filter(|entry| entry.value.value != Value::Null);
    match metadata.map(|entry| (&entry.value.value, entry)) {
        // Its type is told by the walk.
        Some((Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::List(_) | Value::Null | Value::Unsupported(_), _)) => {}
        Some((Value::Map(_), entry)) => {
            let name = entry.value.entry("name").filter(|name| name.value.value != Value::Null);
            if name.is_none() || name.is_some_and(|name| name.value.as_str() == Some("")) {
                let place = name.and_then(|name| name.value.at).or(entry.key_at).unwrap_or(at);
                let fault = Fault::at(code::MISSING_FIELD, place, "is required").field(path("metadata.name"));
                faults.push(match entry.value.entry("generateName") {
                    Some(_) => fault.hint("generateName is not supported; write a name"),
                    None => fault.hint(format!("every {} needs a name", kind.name)),
                });
            }
        }
        // The walk tells that metadata is missing.
        None => {}
    }
    if let Some(hint) = kind.spec
        && node.entry("spec").is_none_or(|entry| entry.value.value == Value::Null)
    {
        faults.push(Fault::at(code::MISSING_FIELD, at, "is required").field(path("spec")).hint(hint));
    }
    faults
}
