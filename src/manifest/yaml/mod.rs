//! One document's text to a tree of nodes, with the semantics of sigs.k8s.io/yaml over `serde_yaml`.
//!
//! And back: [`to_yaml`] writes values so that they are read as the same values.
//!
//! A document that begins with `{` is read as JSON, as Kubernetes does, and as YAML when it is not JSON.

mod anchors;
mod loader;
mod place;
mod scalar;
mod syntax;
mod write;

pub(super) use scalar::plain;
pub use write::{to_manifest, to_yaml};

use super::Limits;
use super::fault::{Fault, code};
use super::node::{Node, Value};
use loader::{Loader, Seed};
use serde::de::DeserializeSeed;

/// Loads a document that begins at byte `start` of its file, in line `line`. An empty one is [`Value::Null`].
pub(super) fn load(text: &str, start: usize, line: u32, limits: &Limits) -> Result<Node, Fault> {
    load_as(loader::Language::Yaml, text, start, line, limits)
}

/// As [`load`], with the semantics of kyaml, which reads the objects of a kustomization.
pub(super) fn load_kyaml(text: &str, start: usize, line: u32, limits: &Limits) -> Result<Node, Fault> {
    load_as(loader::Language::Kyaml, text, start, line, limits)
}

fn load_as(language: loader::Language, text: &str, start: usize, line: u32, limits: &Limits) -> Result<Node, Fault> {
    if !text.trim_start().starts_with('{') {
        return load_yaml(language, text, start, line, limits);
    }
    let json_fault = match load_json(text, start, limits) {
        Ok(node) => return Ok(node),
        Err(fault) if fault.code != code::JSON_SYNTAX => return Err(fault),
        Err(fault) => fault,
    };
    let quoted_key_follows = text.trim_start()[1..].trim_start().starts_with('"');
    match load_yaml(language, text, start, line, limits) {
        Ok(node) => Ok(node),
        Err(_) if quoted_key_follows => Err(json_fault),
        Err(fault) => Err(fault),
    }
}

fn load_json(text: &str, start: usize, limits: &Limits) -> Result<Node, Fault> {
    let mut loader = Loader::new(text, start, limits, loader::Language::Json);
    let mut json = serde_json::Deserializer::from_str(text);
    match Seed::new(&mut loader).deserialize(&mut json).and_then(|node| json.end().map(|()| node)) {
        Ok(node) => Ok(node),
        Err(error) => Err(loader.take_fault().unwrap_or_else(|| syntax::json_fault(&error, text, start))),
    }
}

fn load_yaml(language: loader::Language, text: &str, start: usize, line: u32, limits: &Limits) -> Result<Node, Fault> {
    // Where the other names lead to an error, it is told about the text as it is written.
    if let Some(distinct) = anchors::distinct(text)
        && let Ok(node) = parse(language, &distinct.text, start, line, limits)
        && let Some(node) = distinct.restored(node, start)
    {
        return Ok(node);
    }
    parse(language, text, start, line, limits)
}

fn parse(language: loader::Language, text: &str, start: usize, line: u32, limits: &Limits) -> Result<Node, Fault> {
    let mut loader = Loader::new(text, start, limits, language);
    let mut documents = serde_yaml::Deserializer::from_str(text);
    let mut first = None;
    // The text was cut at document markers, so there is one document; a second can only come of what follows a `...` line.
    for document in documents.by_ref().take(2) {
        let node = match Seed::new(&mut loader).deserialize(document) {
            Ok(node) => node,
            Err(error) => return Err(loader.take_fault().unwrap_or_else(|| syntax::yaml_fault(&error, text, start, line))),
        };
        match &first {
            None => first = Some(node),
            Some(_) => {
                let fault = Fault::at(code::YAML_SYNTAX, start as u32, "text follows the end of the document");
                return Err(fault.hint("separate documents with a line `---`"));
            }
        }
    }
    Ok(first.unwrap_or(Node { at: None, value: Value::Null }))
}

#[cfg(test)]
mod tests;
