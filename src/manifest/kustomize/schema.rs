//! Schemas that say which lists a strategic merge merges by keys: the built-in one, and that of `openapi`.

use super::CODE;
use super::merge_keys::{self, Link};
use super::reader::Text;
use crate::fault::{Fault, quoted};
use crate::node::{Node, Value};
use std::collections::BTreeMap;

/// The version of the built-in schema.
const BUILT_IN: &str = "v1.21.2";
/// References that lead to each other.
const MAX_REFERENCES: usize = 32;

/// Use of the built-in schema before one of `openapi` was set, on which it depends whether it is known afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuiltIn {
    Unused,
    /// Asked for the scope of a kind that it does not have: read later, over the other one.
    Asked,
    /// Read for a merge: the other one is read over it.
    Read,
}

/// The schemas of a build. The first one that a kustomization sets is that of all.
#[derive(Debug)]
pub(super) struct Schemas {
    custom: Option<Custom>,
    /// A version was named, so that no other schema is set any more.
    is_fixed: bool,
    built_in: BuiltIn,
}

/// The schema of `openapi`.
#[derive(Debug)]
struct Custom {
    root: Node,
    /// Index of each definition.
    definitions: BTreeMap<String, usize>,
    /// Index of the definition of each kind, by version and kind.
    kinds: BTreeMap<(String, String), usize>,
}

/// `openapi` of a kustomization.
#[derive(Debug)]
pub(super) struct OpenApi {
    pub(super) path: Option<Text>,
    pub(super) version: Option<Text>,
}

/// Part of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'s> {
    BuiltIn(&'static merge_keys::Shape),
    Custom(Part<'s>),
}

/// Part of a kind of the schema of `openapi`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'s> {
    schema: &'s Custom,
    node: &'s Node,
    built_in: BuiltIn,
}

impl OpenApi {
    /// Refuses what upstream refuses.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let Some(version) = self.version.as_ref() else { return Ok(()) };
        let fault = |message: String| Err(Fault::at(CODE, version.at, message).field("openapi.version"));
        if self.path.is_some() {
            return fault("a schema has a path or a version, not both".to_owned());
        }
        match version.text.as_str() {
            "" | BUILT_IN => Ok(()),
            other => fault(format!("the schema of Kubernetes {} is not known, only that of {BUILT_IN}", quoted(other))),
        }
    }
}

impl Schemas {
    pub(super) fn new() -> Self {
        Self { custom: None, is_fixed: false, built_in: BuiltIn::Unused }
    }

    /// Reports whether a schema can still be set.
    pub(super) fn is_open(&self) -> bool {
        self.custom.is_none() && !self.is_fixed
    }

    /// Keeps the built-in schema, whatever follows.
    pub(super) fn fix(&mut self) {
        self.is_fixed = true;
    }

    /// Sets the schema of `openapi`, of which `at` is the place.
    pub(super) fn set(&mut self, root: Node, at: u32) -> Result<(), Fault> {
        let wrong = |at: Option<u32>| {
            let fault = Fault::at(CODE, at.unwrap_or_default(), "expected a document of OpenAPI with definitions").field("openapi");
            Err(fault.hint("write one with `kubectl get --raw /openapi/v2`"))
        };
        if !matches!(root.value, Value::Map(_)) {
            return wrong(root.at.or(Some(at)));
        }
        let entries = match root.entry("definitions").map(|entry| &entry.value) {
            Some(Node { value: Value::Map(entries), .. }) => entries.as_slice(),
            None | Some(Node { value: Value::Null, .. }) => &[],
            Some(node) => return wrong(node.at.or(Some(at))),
        };
        let (mut definitions, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for (index, entry) in entries.iter().enumerate() {
            if !matches!(entry.value.value, Value::Map(_)) {
                return wrong(entry.value.at.or(entry.key_at).or(Some(at)));
            }
            definitions.insert(entry.key.clone(), index);
            let known = entry.value.entry("x-kubernetes-group-version-kind").map(|entry| &entry.value.value);
            let Some(Value::List(known)) = known else { continue };
            for kind in known {
                let text = |name: &str| kind.entry(name).and_then(|entry| entry.value.as_str()).unwrap_or_default();
                let (group, version) = (text("group"), text("version"));
                let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
                kinds.insert((version, text("kind").to_owned()), index);
            }
        }
        self.custom = Some(Custom { root, definitions, kinds });
        Ok(())
    }

    /// Notes that an object of a kind was read.
    pub(super) fn note_kind(&mut self, api_version: &str, kind: &str) {
        if self.custom.is_none() && self.built_in == BuiltIn::Unused && merge_keys::shape_of(api_version, kind).is_none() {
            self.built_in = BuiltIn::Asked;
        }
    }

    /// Notes that objects are merged.
    pub(super) fn note_merge(&mut self) {
        if self.custom.is_none() {
            self.built_in = BuiltIn::Read;
        }
    }

    /// The shape of a kind, when it is known.
    pub(super) fn shape_of(&self, api_version: &str, kind: &str) -> Option<Shape<'_>> {
        let built_in = || merge_keys::shape_of(api_version, kind).map(Shape::BuiltIn);
        let Some(schema) = &self.custom else { return built_in() };
        let custom = || {
            let index = schema.kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
            Some(Shape::Custom(Part { schema, node: schema.definition(*index)?, built_in: self.built_in }))
        };
        match self.built_in {
            BuiltIn::Unused => custom(),
            BuiltIn::Asked => built_in().or_else(custom),
            BuiltIn::Read => custom().or_else(built_in),
        }
    }
}

impl Custom {
    fn definition(&self, index: usize) -> Option<&Node> {
        match &self.root.entry("definitions")?.value.value {
            Value::Map(entries) => entries.get(index).map(|entry| &entry.value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::List(_) | Value::Unsupported(_) => None,
        }
    }

    fn definition_of(&self, name: &str) -> Option<&Node> {
        self.definition(*self.definitions.get(name)?)
    }
}

impl<'s> Part<'s> {
    /// Meaning of a schema inside of this one, which may be a reference.
    fn resolved(self, mut node: &'s Node) -> Option<Shape<'s>> {
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = text(node, "$ref").filter(|reference| !reference.is_empty()) else {
                return Some(Shape::Custom(Part { node, ..self }));
            };
            let name = reference.strip_prefix("#/definitions/")?.replace("~1", "/").replace("~0", "~");
            let built_in = || merge_keys::definition(&name).map(Shape::BuiltIn);
            let custom = self.schema.definition_of(&name);
            match (self.built_in, custom) {
                (BuiltIn::Unused | BuiltIn::Read, Some(found)) => node = found,
                (BuiltIn::Unused, None) => return None,
                (BuiltIn::Read | BuiltIn::Asked, None) => return built_in(),
                (BuiltIn::Asked, Some(found)) => match built_in() {
                    Some(shape) => return Some(shape),
                    None => node = found,
                },
            }
        }
        None
    }
}

fn text<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    node.entry(name)?.value.as_str()
}

impl<'s> Shape<'s> {
    /// Keys of a list whose elements are merged, none when these are single values; `None` for any other list.
    pub(super) fn merge_keys(self) -> Option<Vec<&'s str>> {
        let part = match self {
            Self::BuiltIn(merge_keys::Shape::List { keys, .. }) => return Some(keys.to_vec()),
            Self::BuiltIn(merge_keys::Shape::Object(_)) => return None,
            Self::Custom(part) => part,
        };
        let strategies = text(part.node, "x-kubernetes-patch-strategy")?;
        if !strategies.split(',').any(|strategy| strategy == "merge") {
            return None;
        }
        match part.node.entry("x-kubernetes-list-map-keys").map(|entry| &entry.value.value) {
            Some(Value::List(keys)) => Some(keys.iter().filter_map(Node::as_str).collect()),
            Some(_) | None => Some(text(part.node, "x-kubernetes-patch-merge-key").into_iter().collect()),
        }
    }

    /// Shape of the elements of a list.
    pub(super) fn element(self) -> Option<Shape<'s>> {
        match self {
            Self::BuiltIn(merge_keys::Shape::List { element, .. }) => element.map(Self::BuiltIn),
            Self::BuiltIn(merge_keys::Shape::Object(_)) => None,
            Self::Custom(part) => {
                let node = part.node;
                let is_list = match &node.entry("type")?.value.value {
                    Value::String(kind) => kind == "array",
                    Value::List(kinds) => kinds.len() == 1 && kinds[0].as_str() == Some("array"),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Map(_) | Value::Unsupported(_) => false,
                };
                let items = node.entry("items").map(|entry| &entry.value).filter(|items| matches!(items.value, Value::Map(_)))?;
                is_list.then_some(())?;
                part.resolved(items)
            }
        }
    }

    /// Shape of a field.
    pub(super) fn field(self, name: &str) -> Option<Shape<'s>> {
        match self {
            Self::BuiltIn(merge_keys::Shape::Object(links)) => {
                links.iter().find(|Link(known, _)| *known == name).map(|Link(_, shape)| Self::BuiltIn(shape))
            }
            Self::BuiltIn(merge_keys::Shape::List { .. }) => None,
            Self::Custom(part) => {
                let node = part.node;
                let is_schema = |node: &&Node| matches!(node.value, Value::Map(_));
                let property = node.entry("properties").and_then(|entry| entry.value.entry(name)).map(|entry| &entry.value);
                let others = || node.entry("additionalProperties").map(|entry| &entry.value).filter(is_schema);
                part.resolved(property.or_else(others)?)
            }
        }
    }
}
