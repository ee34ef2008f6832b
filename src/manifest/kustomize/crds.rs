//! `crds`: definitions of custom resources in OpenAPI, whose properties say which of them are annotations, labels or names of other
//! objects.

use super::CODE;
use super::config::{Config, FieldSpec, NameReference, merge};
use super::id::Gvk;
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value};

const ANNOTATION: &str = "x-kubernetes-annotation";
const LABEL_SELECTOR: &str = "x-kubernetes-label-selector";
const IDENTITY: &str = "x-kubernetes-identity";
const VERSION: &str = "x-kubernetes-object-ref-api-version";
const KIND: &str = "x-kubernetes-object-ref-kind";
const NAME_KEY: &str = "x-kubernetes-object-ref-name-key";

/// Definitions that refer to each other: upstream never ends where they form a cycle.
const MAX_DEPTH: usize = 32;
/// Properties of all definitions, each time counted.
const MAX_PROPERTIES: usize = 100_000;

/// The fields that a file of definitions names.
pub(super) fn read(node: &Node, at: u32) -> Result<Config, Fault> {
    let wrong = |at: u32| {
        let fault = Fault::at(CODE, at, "expected definitions in OpenAPI by their names, each with a Schema").field("crds");
        fault.hint("list a CustomResourceDefinition under resources, and name its fields in a file of configurations")
    };
    let definitions = match &node.value {
        Value::Map(entries) => entries.as_slice(),
        Value::Null => &[],
        Value::List(_) | Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Unsupported(_) => return Err(wrong(at)),
    };
    for Entry { value, key_at, .. } in definitions {
        if !matches!(value.value, Value::Map(_) | Value::Null) {
            return Err(wrong(value.at.or(*key_at).unwrap_or(at)));
        }
    }
    let mut reader = Reader { definitions, config: Config::empty(), at, left: MAX_PROPERTIES, kind: "" };
    for Entry { key, value, .. } in definitions {
        let is_object = |name: &&str| properties(value).iter().any(|property| property.key == **name);
        if ["kind", "apiVersion", "metadata"].iter().all(is_object) {
            reader.kind = key.rsplit('.').next().unwrap_or(key);
            reader.definition(value, &mut Vec::new())?;
        }
    }
    Ok(reader.config)
}

fn field(node: &Node, is_name: impl Fn(&str) -> bool) -> Option<&Node> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().rev().find(|entry| is_name(&entry.key)).map(|entry| &entry.value)
}

fn text<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    field(node, |key| key == name)?.as_str()
}

/// The properties of a definition.
fn properties(definition: &Node) -> &[Entry] {
    let schema = field(definition, |key| key.eq_ignore_ascii_case("Schema"));
    match schema.and_then(|schema| field(schema, |key| key == "properties")).map(|properties| &properties.value) {
        Some(Value::Map(entries)) => entries,
        Some(_) | None => &[],
    }
}

struct Reader<'n> {
    definitions: &'n [Entry],
    config: Config,
    /// Place of the file.
    at: u32,
    left: usize,
    kind: &'n str,
}

impl<'n> Reader<'n> {
    fn spec(&self, path: &[&str]) -> FieldSpec {
        let gvk = Gvk { kind: self.kind.to_owned(), ..Gvk::default() };
        FieldSpec { gvk, path: path.join("/"), create: false }
    }

    fn definition(&mut self, definition: &'n Node, path: &mut Vec<&'n str>) -> Result<(), Fault> {
        for Entry { key, value, key_at, .. } in properties(definition) {
            let at = key_at.unwrap_or(self.at);
            let too_complex = |message: &str| Fault::at(code::TOO_COMPLEX, at, format!("{}: {message}", quoted(key))).field("crds");
            self.left = self.left.checked_sub(1).ok_or_else(|| too_complex("there are too many properties"))?;
            path.push(key);
            self.property(value, path)?;
            if let Some(name) = text(value, "$ref") {
                let definition = self.definitions.iter().rev().find(|known| known.key == name);
                if path.len() >= MAX_DEPTH {
                    return Err(too_complex("the definitions refer to each other without an end"));
                }
                if let Some(Entry { value, .. }) = definition {
                    self.definition(value, path)?;
                }
            }
            path.pop();
        }
        Ok(())
    }

    fn property(&mut self, property: &'n Node, path: &[&str]) -> Result<(), Fault> {
        let (spec, at) = (self.spec(path), property.at.unwrap_or(self.at));
        for (name, specs) in [
            (ANNOTATION, &mut self.config.common_annotations),
            (LABEL_SELECTOR, &mut self.config.common_labels),
            (IDENTITY, &mut self.config.name_prefix),
        ] {
            if text(property, name).is_some() {
                merge(specs, std::slice::from_ref(&spec), at)?;
            }
        }
        let (Some(version), Some(kind)) = (text(property, VERSION), text(property, KIND)) else { return Ok(()) };
        let gvk = Gvk { group: String::new(), version: version.to_owned(), kind: kind.to_owned() };
        let name_key = text(property, NAME_KEY).unwrap_or("name");
        let referrers = vec![FieldSpec { path: format!("{}/{name_key}", spec.path), ..spec }];
        let mut more = Config::empty();
        more.name_references.push(NameReference { gvk, referrers });
        self.config.merge(&more, at)
    }
}
