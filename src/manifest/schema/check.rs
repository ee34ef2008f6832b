//! Check of one object against its structure: reports all faults at once and records the positions of all fields.

use super::literal::{self, Objection};
use super::suggest::{Ancestor, suggest};
use super::{Struct, Type, mismatch};
use crate::fault::{Fault, code, quoted};
use crate::node::{Entry, Node, Value};
use crate::places::Places;
use crate::positions::{PathHash, PositionMapBuilder};
use std::fmt::Write as _;

/// Result of the check.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Everything that is wrong.
    pub(crate) faults: Vec<Fault>,
    /// Positions of the fields.
    pub(crate) positions: PositionMapBuilder,
}

/// Completeness of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every required field is there.
    Whole,
    /// Any field may be missing, as in a patch.
    Part,
}

/// Holds `object` against `structure`. `prefix` is the object's path in its document, `at` where it begins, `max_faults` when to
/// stop telling.
pub(crate) fn check(
    object: &Node,
    structure: &'static Struct,
    extent: Extent,
    prefix: &str,
    at: u32,
    places: Places<'_>,
    max_faults: usize,
) -> Checked {
    let mut walk =
        Walk { places, extent, prefix, path: Vec::new(), ancestors: Vec::new(), max_faults, checked: Checked::default() };
    walk.value(object, &Type::Object(structure), PathHash::ROOT, at);
    walk.checked
}

/// A step of a field path.
#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

struct Walk<'a> {
    places: Places<'a>,
    extent: Extent,
    prefix: &'a str,
    path: Vec<Segment<'a>>,
    ancestors: Vec<Ancestor>,
    max_faults: usize,
    checked: Checked,
}

impl<'a> Walk<'a> {
    /// `at` is the place of the field's key or of what is around it.
    fn value(&mut self, node: &'a Node, ty: &Type, path: PathHash, at: u32) {
        let here = match node.value {
            // A list or mapping is best shown at its key.
            Value::List(_) | Value::Map(_) => at,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => node.at.unwrap_or(at),
        };
        if path != PathHash::ROOT {
            self.checked.positions.record(path, self.places.place(here));
        }
        match (&node.value, ty) {
            (Value::Unsupported(what), _) => {
                self.report(code::UNSUPPORTED_YAML, here, format!("{what} is not supported"), None);
            }
            (Value::Map(entries), Type::Object(structure)) => self.object(entries, structure, path, node.at.unwrap_or(at)),
            (Value::Map(entries), Type::Map(inner)) => self.entries(entries, inner, path, at),
            (Value::Map(entries), Type::Any) => self.entries(entries, ty, path, at),
            (Value::List(items), Type::List(inner)) => self.items(items, inner, path, at),
            (Value::List(items), Type::Any) => self.items(items, ty, path, at),
            (_, Type::Any) | (Value::String(_), Type::Str | Type::IntOrString) | (Value::Bool(_), Type::Bool) => {}
            (Value::String(text), Type::Quantity) => self.literal(literal::quantity(text), here),
            (Value::String(text), Type::Time) => self.literal(literal::time(text), here),
            (Value::String(text), Type::Base64) => self.literal(literal::base64(text), here),
            (Value::Number(_), Type::Quantity) => {}
            (Value::Number(number), Type::Int64) if number.is_i64() => {}
            (Value::Number(number), Type::Int32 | Type::IntOrString)
                if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {}
            (
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::List(_) | Value::Map(_),
                Type::Str
                | Type::Bool
                | Type::Int32
                | Type::Int64
                | Type::IntOrString
                | Type::Quantity
                | Type::Time
                | Type::Base64
                | Type::List(_)
                | Type::Map(_)
                | Type::Object(_),
            ) => {
                let (message, hint) = mismatch::explain(node, ty, node.at.and_then(|at| self.places.word(at)));
                self.report(code::WRONG_TYPE, here, message, hint);
            }
        }
    }

    fn object(&mut self, entries: &'a [Entry], structure: &'static Struct, path: PathHash, at: u32) {
        self.ancestors.push(Ancestor { structure, depth: self.path.len() });
        let mut mistyped: Vec<&'static str> = Vec::new();
        for entry in entries {
            let key_at = entry.key_at.unwrap_or(at);
            self.path.push(Segment::Field(&entry.key));
            match structure.field(&entry.key) {
                _ if entry.duplicate_of.is_some() => self.duplicate(entry, key_at),
                // Null is absence, for whatever type.
                Some(_) if entry.value.value == Value::Null => {}
                Some(field) => self.value(&entry.value, &field.ty, path.child(&entry.key), key_at),
                None => mistyped.extend(self.unknown(entry, key_at)),
            }
            self.path.pop();
        }
        let extent = self.extent;
        for field in structure.fields.iter().filter(|field| field.required && extent == Extent::Whole) {
            let present = entries.iter().any(|entry| entry.key == field.name && entry.value.value != Value::Null);
            if !present && !mistyped.contains(&field.name) {
                self.path.push(Segment::Field(field.name));
                self.report(code::MISSING_FIELD, at, "is required".to_owned(), None);
                self.path.pop();
            }
        }
        self.ancestors.pop();
    }

    fn entries(&mut self, entries: &'a [Entry], inner: &Type, path: PathHash, at: u32) {
        for entry in entries {
            let key_at = entry.key_at.unwrap_or(at);
            self.path.push(Segment::Key(&entry.key));
            match entry.duplicate_of {
                Some(_) => self.duplicate(entry, key_at),
                None => self.value(&entry.value, inner, path.child(&entry.key), key_at),
            }
            self.path.pop();
        }
    }

    fn items(&mut self, items: &'a [Node], inner: &Type, path: PathHash, at: u32) {
        for (index, item) in items.iter().enumerate() {
            self.path.push(Segment::Index(index));
            self.value(item, inner, path.index(index), item.at.unwrap_or(at));
            self.path.pop();
        }
    }

    fn literal(&mut self, outcome: Result<(), Objection>, at: u32) {
        if let Err((message, hint)) = outcome {
            self.report(code::INVALID_VALUE, at, message, hint);
        }
    }

    fn duplicate(&mut self, entry: &Entry, at: u32) {
        let first = match entry.duplicate_of.flatten() {
            Some(first) => format!(", first in line {}", self.places.place(first).position.line),
            None => String::new(),
        };
        let message = format!("duplicate key {}{first}", quoted(&entry.key));
        self.report(code::DUPLICATE_KEY, at, message, Some("keep one of the two".to_owned()));
    }

    /// Reports an unknown field; returns the field of this structure that it seems to be.
    fn unknown(&mut self, entry: &Entry, at: u32) -> Option<&'static str> {
        // A suggestion costs much more than the fault that nobody will see.
        if self.checked.faults.len() >= self.max_faults {
            return None;
        }
        let path = |ancestor: &Ancestor| self.path_text(&self.path[..ancestor.depth]);
        let suggestion = suggest(&entry.key, &self.ancestors, path);
        let (hint, field) = suggestion.map_or((None, None), |suggestion| (Some(suggestion.hint), suggestion.field));
        self.report(code::UNKNOWN_FIELD, at, "unknown field".to_owned(), hint);
        field
    }

    fn report(&mut self, code: &'static str, at: u32, message: String, hint: Option<String>) {
        if self.checked.faults.len() < self.max_faults {
            let field = self.path_text(&self.path);
            self.checked.faults.push(Fault { code, at: Some(at), field, message, hint });
        }
    }

    fn path_text(&self, path: &[Segment<'_>]) -> String {
        let mut text = self.prefix.to_owned();
        for segment in path {
            let written = match segment {
                Segment::Field(name) if text.is_empty() => write!(text, "{name}"),
                Segment::Field(name) => write!(text, ".{name}"),
                Segment::Key(key) => write!(text, "[{key}]"),
                Segment::Index(index) => write!(text, "[{index}]"),
            };
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        text
    }
}
