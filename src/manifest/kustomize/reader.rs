//! Strict reading of nodes as structs: unknown fields and wrong types are faults at their own place. As in Go's JSON, the case of a
//! field's name does not matter, and null is as if the field were missing.

use super::CODE;
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value};
use std::cell::RefCell;

/// A string and the place that it is written at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) at: u32,
}

impl Text {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Warnings of fields that are written twice.
pub(super) fn repeated(node: &Node, path: &str, faults: &mut Vec<Fault>) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                let path = join(path, &entry.key);
                if let (Some(_), Some(at)) = (entry.duplicate_of, entry.key_at) {
                    faults
                        .push(Fault::at(code::DUPLICATE_KEY, at, "the field is repeated: only the last one counts").field(&*path));
                }
                repeated(&entry.value, &path, faults);
            }
        }
        Value::List(items) => {
            items.iter().enumerate().for_each(|(index, item)| repeated(item, &format!("{path}[{index}]"), faults));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {}
    }
}

/// Strings by name, sorted.
pub(super) type Pairs = Vec<(String, Text)>;

/// A lenient reading, as that of plugins' configurations is: unknown fields are ignored with a warning.
#[derive(Debug, Default)]
pub(super) struct Lenient {
    pub(super) warnings: RefCell<Vec<Fault>>,
    /// Numbers and booleans are strings where strings are wanted.
    pub(super) converts: bool,
}

/// A value and its field path.
#[derive(Clone, Debug)]
pub(super) struct Item<'n> {
    pub(super) node: &'n Node,
    pub(super) path: String,
    /// Place of the value, or of what it belongs to.
    pub(super) at: u32,
    lenient: Option<&'n Lenient>,
}

/// The entries of a mapping whose fields are known.
#[derive(Debug)]
pub(super) struct Fields<'n> {
    path: String,
    pub(super) at: u32,
    lenient: Option<&'n Lenient>,
    entries: Vec<(&'static str, &'n Entry)>,
}

impl<'n> Item<'n> {
    /// A whole document, which is read strictly.
    pub(super) fn root(node: &'n Node, at: u32) -> Self {
        Self { node, path: String::new(), at, lenient: None }
    }

    /// A whole document, which is read leniently.
    pub(super) fn lenient_root(node: &'n Node, at: u32, lenient: &'n Lenient) -> Self {
        Self { lenient: Some(lenient), ..Self::root(node, at) }
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::at(CODE, self.at, message).field(self.path.clone())
    }

    fn wrong(&self, wanted: &str) -> Fault {
        let found = match &self.node.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) => format!("the string {}", quoted(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Unsupported(what) => what.clone(),
        };
        let fault = Fault::at(code::WRONG_TYPE, self.at, format!("expected {wanted}, found {found}")).field(self.path.clone());
        let needs_quotes = wanted == "a string" && matches!(&self.node.value, Value::Bool(_) | Value::Number(_));
        if needs_quotes { fault.hint("put quotes around it") } else { fault }
    }

    /// The fields of a mapping; only those in `known` may be there.
    pub(super) fn fields(&self, known: &[&'static str]) -> Result<Fields<'n>, Fault> {
        let Value::Map(found) = &self.node.value else { return Err(self.wrong("a mapping")) };
        let mut entries: Vec<(&'static str, &Entry)> = Vec::new();
        for entry in found {
            let at = entry.key_at.unwrap_or(self.at);
            let path = join(&self.path, &entry.key);
            let Some(name) = known.iter().copied().find(|name| name.eq_ignore_ascii_case(&entry.key)) else {
                let fault = Fault::at(code::UNKNOWN_FIELD, at, "unknown field").field(path);
                let near = known.iter().map(|name| (strsim::damerau_levenshtein(name, &entry.key), name)).min();
                let fault = match near {
                    Some((distance, name)) if distance <= 3 => fault.hint(format!("did you mean \"{name}\"?")),
                    Some(_) | None => fault,
                };
                let Some(lenient) = self.lenient else { return Err(fault) };
                lenient.warnings.borrow_mut().push(Fault { message: "unknown field, which is ignored".to_owned(), ..fault });
                continue;
            };
            // The last one counts, as upstream has it.
            entries.retain(|(other, _)| *other != name);
            entries.push((name, entry));
        }
        Ok(Fields { path: self.path.clone(), at: self.at, lenient: self.lenient, entries })
    }

    pub(super) fn string(&self) -> Result<Text, Fault> {
        let converts = self.lenient.is_some_and(|lenient| lenient.converts);
        // Go writes other numbers with exponents.
        let is_short = |number: &serde_json::Number| {
            let magnitude = number.as_f64().unwrap_or_default().abs();
            number.is_i64() || number.is_u64() || (1e-4..1e6).contains(&magnitude)
        };
        let text = match &self.node.value {
            Value::String(text) => text.clone(),
            Value::Bool(value) if converts => value.to_string(),
            Value::Number(number) if converts && is_short(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) | Value::Unsupported(_) => {
                return Err(self.wrong("a string"));
            }
        };
        Ok(Text { text, at: self.at })
    }

    pub(super) fn bool(&self) -> Result<bool, Fault> {
        let Value::Bool(value) = &self.node.value else { return Err(self.wrong("true or false")) };
        Ok(*value)
    }

    pub(super) fn integer(&self) -> Result<i64, Fault> {
        let Value::Number(number) = &self.node.value else { return Err(self.wrong("an integer")) };
        number.as_i64().ok_or_else(|| self.wrong("an integer"))
    }

    /// The items of a list.
    pub(super) fn list(&self) -> Result<Vec<Item<'n>>, Fault> {
        let Value::List(items) = &self.node.value else { return Err(self.wrong("a list")) };
        let item = |(index, node): (usize, &'n Node)| Item {
            node,
            path: format!("{}[{index}]", self.path),
            at: node.at.unwrap_or(self.at),
            lenient: self.lenient,
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Strings by name.
    pub(super) fn pairs(&self) -> Result<Pairs, Fault> {
        let Value::Map(entries) = &self.node.value else { return Err(self.wrong("a mapping of strings")) };
        let mut pairs = Vec::with_capacity(entries.len());
        for entry in entries {
            let at = entry.value.at.or(entry.key_at).unwrap_or(self.at);
            let item = Item { node: &entry.value, path: join(&self.path, &entry.key), at, lenient: self.lenient };
            pairs.retain(|(key, _): &(String, Text)| *key != entry.key);
            let text = if item.node.value == Value::Null { Text { text: String::new(), at } } else { item.string()? };
            pairs.push((entry.key.clone(), text));
        }
        pairs.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(pairs)
    }
}

impl<'n> Fields<'n> {
    /// A field that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<Item<'n>> {
        let (_, entry) = self.entries.iter().find(|(known, entry)| *known == name && entry.value.value != Value::Null)?;
        let at = entry.value.at.or(entry.key_at).unwrap_or(self.at);
        Some(Item { node: &entry.value, path: join(&self.path, name), at, lenient: self.lenient })
    }

    /// Reports whether no field says anything, of all that are not in `except`. A list without items says something, as upstream has it.
    pub(super) fn is_unset_but_for(&self, except: &[&str]) -> bool {
        let is_unset = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::List(_) | Value::Map(_) | Value::Bool(_) | Value::Number(_) | Value::Unsupported(_) => false,
        };
        self.entries.iter().all(|(name, entry)| except.contains(name) || is_unset(&entry.value.value))
    }

    pub(super) fn string(&self, name: &str) -> Result<Text, Fault> {
        self.get(name).map_or_else(|| Ok(Text { text: String::new(), at: self.at }), |item| item.string())
    }

    pub(super) fn bool(&self, name: &str) -> Result<bool, Fault> {
        self.get(name).map_or(Ok(false), |item| item.bool())
    }

    pub(super) fn pairs(&self, name: &str) -> Result<Pairs, Fault> {
        self.get(name).map_or_else(|| Ok(Vec::new()), |item| item.pairs())
    }

    pub(super) fn list(&self, name: &str) -> Result<Vec<Item<'n>>, Fault> {
        self.get(name).map_or_else(|| Ok(Vec::new()), |item| item.list())
    }

    pub(super) fn strings(&self, name: &str) -> Result<Vec<Text>, Fault> {
        self.list(name)?.iter().map(Item::string).collect()
    }

    /// Reads each item of a list.
    pub(super) fn each<T>(&self, name: &str, read: impl Fn(&Item<'n>) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        self.list(name)?.iter().map(read).collect()
    }

    pub(super) fn fault(&self, name: &str, message: impl Into<String>) -> Fault {
        let at = self.get(name).map_or(self.at, |item| item.at);
        Fault::at(CODE, at, message).field(join(&self.path, name))
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
