//! The visitor that builds nodes, the same for YAML and JSON, under a node and depth budget.

use super::place::Place;
use super::scalar;
use crate::Limits;
use crate::fault::{Fault, code};
use crate::node::{Entry, Node, Value};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde_json::Number;
use std::fmt;

/// Language of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Yaml,
    /// As kyaml reads objects: of the words for booleans, only `true` and `false` are no strings.
    Kyaml,
    /// Strings are always quoted, and `<<` is a key like any other.
    Json,
}

/// The state of loading one document.
#[derive(Debug)]
pub(super) struct Loader<'a> {
    start: usize,
    language: Language,
    place: Place<'a>,
    nodes_left: u32,
    max_nodes: u32,
    depth_left: u32,
    max_depth: u32,
    /// Reason why loading stopped, if it was not a parser error.
    fault: Option<Fault>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(text: &'a str, start: usize, limits: &Limits, language: Language) -> Self {
        // What is written out never has more nodes than bytes, so only aliases meet this bound.
        let max_nodes = u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(1000).min(limits.max_nodes);
        // Both parsers stop at 128.
        let max_depth = limits.max_depth.min(120);
        let place = Place::new(text);
        Self { start, language, place, nodes_left: max_nodes, max_nodes, depth_left: max_depth, max_depth, fault: None }
    }

    /// Reason why loading stopped.
    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    fn in_file(&self, at: Option<usize>) -> Option<u32> {
        at.and_then(|at| u32::try_from(self.start + at).ok())
    }

    /// The scalar at that byte of the file stands in quotes.
    fn is_quoted(&self, at: Option<u32>) -> bool {
        at.and_then(|at| (at as usize).checked_sub(self.start)).is_some_and(|at| self.place.is_quote(at))
    }

    fn stop<E: Error>(&mut self, message: String, hint: &str) -> E {
        let fault = Fault {
            code: code::TOO_COMPLEX,
            at: self.in_file(Some(self.place.reached())),
            field: String::new(),
            message,
            hint: Some(hint.to_owned()),
        };
        self.fault = Some(fault);
        E::custom("stopped")
    }

    fn spend<E: Error>(&mut self) -> Result<(), E> {
        match self.nodes_left.checked_sub(1) {
            Some(left) => {
                self.nodes_left = left;
                Ok(())
            }
            None => {
                let message = format!("the document expands to more than {} values", self.max_nodes);
                Err(self.stop(message, "write the values out instead of nesting aliases"))
            }
        }
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => {
                let message = format!("lists and mappings are nested more than {} levels deep", self.max_depth);
                Err(self.stop(message, "no field of a Pod, ConfigMap or Secret is that deep"))
            }
        }
    }

    fn leave(&mut self) {
        self.depth_left += 1;
    }

    fn unquoted(&mut self, value: Value) -> Node {
        let at = self.place.unquoted(&value);
        Node { at: self.in_file(at), value }
    }

    /// An integer of more than 64 bits: go-yaml takes one that names its base for a string.
    fn large(&mut self, value: f64) -> Node {
        let text = self.place.number_with_base().map(str::to_owned);
        self.unquoted(text.map_or_else(|| scalar::from_float(value), Value::String))
    }

    fn borrowed(&mut self, text: &str) -> Node {
        let found = self.place.borrowed(text);
        let value = match (self.language, found.quoted, found.tag) {
            (Language::Json, _, _) | (Language::Yaml | Language::Kyaml, true, None) => Value::String(text.to_owned()),
            (Language::Yaml, false, None) => scalar::plain(text),
            (Language::Kyaml, false, None) => match scalar::plain(text) {
                Value::Bool(_) => Value::String(text.to_owned()),
                value @ (Value::Null
                | Value::Number(_)
                | Value::String(_)
                | Value::List(_)
                | Value::Map(_)
                | Value::Unsupported(_)) => value,
            },
            (Language::Yaml | Language::Kyaml, _, Some(tag)) => tagged(tag, text),
        };
        Node { at: self.in_file(found.at), value }
    }

    fn owned(&mut self, text: String) -> Node {
        let found = self.place.owned(&text);
        let tag = found.and_then(|(_, tag)| tag);
        let value = match (self.language, tag) {
            (Language::Yaml | Language::Kyaml, Some(tag)) => tagged(tag, &text),
            (Language::Yaml | Language::Kyaml | Language::Json, _) => Value::String(text),
        };
        Node { at: self.in_file(found.map(|(at, _)| at)), value }
    }
}

/// A string under a tag that the parser does not resolve itself.
fn tagged(tag: &str, text: &str) -> Value {
    match tag {
        "!!str" | "!!timestamp" | "!" => Value::String(text.to_owned()),
        _ => Value::Unsupported(format!("the tag {tag}")),
    }
}

/// Loads one value.
pub(super) struct Seed<'l, 'a> {
    loader: &'l mut Loader<'a>,
}

impl<'l, 'a> Seed<'l, 'a> {
    pub(super) fn new(loader: &'l mut Loader<'a>) -> Self {
        Self { loader }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.loader.spend()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(self.loader.unquoted(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(self.loader.unquoted(Value::Number(Number::from(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(self.loader.unquoted(Value::Number(Number::from(value))))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Node, E> {
        Ok(self.loader.large(value as f64))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Node, E> {
        Ok(self.loader.large(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(self.loader.unquoted(scalar::from_float(value)))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        self.visit_unit()
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(self.loader.unquoted(Value::Null))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Node, E> {
        Ok(self.loader.borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(self.loader.owned(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node, E> {
        Ok(self.loader.owned(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.loader.enter()?;
        self.loader.place.begin_collection();
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Seed::new(self.loader))? {
            items.push(item);
        }
        self.loader.place.end_collection();
        self.loader.leave();
        Ok(Node { at: items.first().and_then(|item| item.at), value: Value::List(items) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.loader.enter()?;
        self.loader.place.begin_collection();
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        while let Some(key) = access.next_key_seed(KeySeed { loader: self.loader })? {
            let value = access.next_value_seed(Seed::new(self.loader))?;
            match key.merge {
                true => merged.push((key, value)),
                false => entries.push(Entry { key: key.name, key_at: key.at, value, duplicate_of: None }),
            }
        }
        mark_duplicates(&mut entries);
        if !merged.is_empty() {
            merge(&mut entries, merged);
        }
        self.loader.place.end_collection();
        self.loader.leave();
        Ok(Node { at: entries.first().and_then(|entry| entry.key_at), value: Value::Map(entries) })
    }

    /// A value with a tag of its author's own.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Node, A::Error> {
        let (tag, content) = access.variant::<String>()?;
        let node = content.newtype_variant_seed(Seed::new(self.loader))?;
        Ok(Node { at: node.at, value: Value::Unsupported(format!("the tag !{tag}")) })
    }
}

/// The key of a mapping's entry.
struct Key {
    name: String,
    at: Option<u32>,
    /// `<<`, unquoted.
    merge: bool,
}

struct KeySeed<'l, 'a> {
    loader: &'l mut Loader<'a>,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        let place = self.loader.place.reached();
        self.loader.place.expect_key(true);
        let Node { at, value } = Seed::new(self.loader).deserialize(deserializer)?;
        self.loader.place.expect_key(false);
        let found = match value {
            Value::String(name) => {
                let merge = name == "<<" && self.loader.language != Language::Json && !self.loader.is_quoted(at);
                return Ok(Key { name, at, merge });
            }
            Value::Bool(key) => return Ok(Key { name: key.to_string(), at, merge: false }),
            Value::Number(key) => return Ok(Key { name: key.to_string(), at, merge: false }),
            Value::Null => "nothing".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Unsupported(what) => what,
        };
        let at = at.or(self.loader.in_file(Some(place))).unwrap_or(0);
        let fault = Fault::at(code::UNSUPPORTED_YAML, at, format!("a key cannot be {found}"));
        self.loader.fault = Some(fault.hint("keys must be strings; `{{ ... }}` of a template must be rendered or quoted"));
        Err(D::Error::custom("stopped"))
    }
}

/// Notes which entries repeat a key.
fn mark_duplicates(entries: &mut [Entry]) {
    const FEW: usize = 10;
    if entries.len() <= FEW {
        for at in 1..entries.len() {
            let (before, rest) = entries.split_at_mut(at);
            let first = before.iter().find(|entry| entry.key == rest[0].key);
            rest[0].duplicate_of = first.map(|entry| entry.key_at);
        }
        return;
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
    for pair in order.windows(2) {
        if entries[pair[0]].key == entries[pair[1]].key {
            entries[pair[1]].duplicate_of = Some(entries[pair[0]].key_at);
        }
    }
}

/// Adds the entries of `<<`: an entry that is written in the mapping itself wins, then the earlier of the merged mappings.
fn merge(entries: &mut Vec<Entry>, merged: Vec<(Key, Node)>) {
    let mut names: std::collections::HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for (key, node) in merged {
        let wrong = |at, found: &str| Entry {
            key: "<<".to_owned(),
            key_at: key.at,
            value: Node { at, value: Value::Unsupported(format!("`<<` with {found}")) },
            duplicate_of: None,
        };
        let mappings = match node.value {
            Value::Map(_) => vec![node],
            Value::List(items) => items,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {
                entries.push(wrong(node.at, "something that is not a mapping"));
                continue;
            }
        };
        for mapping in mappings {
            match mapping.value {
                Value::Map(inherited) => {
                    entries.extend(inherited.into_iter().filter(|entry| names.insert(entry.key.clone())));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::List(_) | Value::Unsupported(_) => {
                    entries.push(wrong(mapping.at, "a list of things that are not mappings"));
                }
            }
        }
    }
}
