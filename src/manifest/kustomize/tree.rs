//! Objects as trees that keep the text of their scalars, as kustomize does: `1.10` stays `1.10` until the object is printed.

use crate::node::Value as Plain;
use crate::yaml::plain;
use std::collections::BTreeMap;

/// Levels of a tree. Copies into each other could make it deeper than the stack is.
const MAX_DEPTH: usize = 256;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// Offset in the texts that were read ([`super::texts`]); 0 when it is unknown.
    pub(super) at: u32,
    pub(super) value: Value,
}

/// Value of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Tree>),
    /// In the order of writing.
    Map(Vec<Field>),
}

/// A scalar with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) tag: Tag,
    /// Written in quotes or as a block, which a new text keeps. Of null: written as nothing in braces. kyaml prints that as an empty string in the
    /// end.
    pub(super) styled: bool,
    pub(super) share: Share,
}

/// Tie between fields of one object that hold the same value. Upstream writes one label to all of its fields by reference, so that a patch or
/// a label of an overlay that changes one of them changes all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Share {
    #[default]
    None,
    /// Tied to the fields with the same number.
    With(u32),
    /// Tied, and written: the others follow with [`Tree::settle`].
    Written(u32),
}

/// Type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    String,
    Time,
}

/// An entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) key: String,
    pub(super) at: u32,
    pub(super) value: Tree,
}

/// Returns the type of an unquoted scalar by the rules of YAML 1.2 as go-yaml 3 has them: `yes` is a string, a date is a time.
pub(super) fn tag_of(text: &str) -> Tag {
    match plain(text) {
        Plain::Null => Tag::Null,
        Plain::Bool(_) if matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") => Tag::Bool,
        Plain::Number(_) => {
            let unsigned = text.trim_start_matches(['+', '-']);
            let is_float = !unsigned.starts_with("0x") && !unsigned.starts_with("0X") && unsigned.contains(['.', 'e', 'E']);
            if is_float { Tag::Float } else { Tag::Int }
        }
        Plain::String(_) if super::time::parse(text).is_some() => Tag::Time,
        Plain::Bool(_) | Plain::String(_) | Plain::List(_) | Plain::Map(_) | Plain::Unsupported(_) => Tag::String,
    }
}

impl Scalar {
    /// The scalar that this text is without quotes.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        let tag = tag_of(&text);
        Self { text, tag, styled: false, share: Share::None }
    }

    /// A string, whatever its text looks like.
    pub(super) fn string(text: impl Into<String>) -> Self {
        Self { text: text.into(), tag: Tag::String, styled: true, share: Share::None }
    }

    /// A scalar of that type, written without quotes.
    pub(super) fn tagged(text: impl Into<String>, tag: Tag) -> Self {
        Self { text: text.into(), tag, styled: false, share: Share::None }
    }

    /// Reports whether it is null until it is printed as an empty string.
    pub(super) fn is_blank(&self) -> bool {
        self.tag == Tag::Null && self.styled
    }

    /// Takes another value, and stays tied to the same fields.
    pub(super) fn write(&mut self, value: Self) {
        let share = match self.share {
            Share::None => Share::None,
            Share::With(number) | Share::Written(number) => Share::Written(number),
        };
        *self = Self { share, ..value };
    }
}

impl Tree {
    pub(super) fn scalar(at: u32, scalar: Scalar) -> Self {
        Self { at, value: Value::Scalar(scalar) }
    }

    /// A string, whatever its text looks like.
    pub(super) fn string(at: u32, text: impl Into<String>) -> Self {
        Self::scalar(at, Scalar::string(text))
    }

    pub(super) fn map(at: u32) -> Self {
        Self { at, value: Value::Map(Vec::new()) }
    }

    pub(super) fn null(at: u32) -> Self {
        Self::scalar(at, Scalar::tagged("null", Tag::Null))
    }

    /// The entries of a mapping; none for anything else.
    pub(super) fn fields(&self) -> &[Field] {
        match &self.value {
            Value::Map(fields) => fields,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }

    /// The items of a list; none for anything else.
    pub(super) fn items(&self) -> &[Tree] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        self.fields().iter().find(|field| field.key == key).map(|field| &field.value)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Tree> {
        match &mut self.value {
            Value::Map(fields) => fields.iter_mut().find(|field| field.key == key).map(|field| &mut field.value),
            Value::Scalar(_) | Value::List(_) => None,
        }
    }

    /// Sets an entry of a mapping; anything else stays as it is.
    pub(super) fn set(&mut self, key: &str, value: Tree) {
        if let Value::Map(fields) = &mut self.value {
            match fields.iter_mut().find(|field| field.key == key) {
                Some(field) => field.value = value,
                None => fields.push(Field { key: key.to_owned(), at: value.at, value }),
            }
        }
    }

    /// Removes an entry of a mapping.
    pub(super) fn remove(&mut self, key: &str) -> Option<Tree> {
        match &mut self.value {
            Value::Map(fields) => {
                let index = fields.iter().position(|field| field.key == key)?;
                Some(fields.remove(index).value)
            }
            Value::Scalar(_) | Value::List(_) => None,
        }
    }

    /// The entry of that name, which is made when it is missing or null.
    pub(super) fn get_or_make(&mut self, key: &str, at: u32) -> Option<&mut Tree> {
        if self.get(key).is_none_or(Tree::is_null) {
            self.set(key, Tree::map(at));
        }
        self.get_mut(key)
    }

    /// Text of a scalar; nothing for anything else.
    pub(super) fn text(&self) -> &str {
        match &self.value {
            Value::Scalar(scalar) => &scalar.text,
            Value::List(_) | Value::Map(_) => "",
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(Scalar { tag: Tag::Null, .. }))
    }

    /// Null, `{}` or `[]`.
    pub(super) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) => scalar.tag == Tag::Null,
            Value::List(items) => items.is_empty(),
            Value::Map(fields) => fields.is_empty(),
        }
    }

    pub(super) fn is_scalar(&self) -> bool {
        matches!(self.value, Value::Scalar(_))
    }

    /// Description for messages.
    pub(super) fn kind_of_value(&self) -> &'static str {
        match &self.value {
            Value::Scalar(Scalar { tag: Tag::Null, .. }) => "null",
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// Gives a scalar a new text. Its type is that of the new text, unless the old one was written in quotes.
    pub(super) fn set_text(&mut self, at: u32, text: impl Into<String>) {
        let text = text.into();
        let scalar = match &self.value {
            Value::Scalar(Scalar { styled: true, .. }) => Scalar::string(text),
            Value::Scalar(_) | Value::List(_) | Value::Map(_) => Scalar::plain(text),
        };
        self.write(at, scalar);
    }

    /// Becomes a scalar. One that was a scalar stays tied to the same fields.
    pub(super) fn write(&mut self, at: u32, scalar: Scalar) {
        match &mut self.value {
            Value::Scalar(known) => known.write(scalar),
            Value::List(_) | Value::Map(_) => self.value = Value::Scalar(scalar),
        }
        self.at = at;
    }

    /// Reports whether other fields have to follow what was written.
    pub(super) fn is_unsettled(&self) -> bool {
        matches!(&self.value, Value::Scalar(Scalar { share: Share::Written(_), .. }))
    }

    /// Gives all fields that are tied to a written one its value.
    pub(super) fn settle(&mut self) {
        let mut written = BTreeMap::new();
        self.each_share(&mut |tree, number, is_written| {
            if is_written {
                written.insert(number, tree.clone());
            }
        });
        if written.is_empty() {
            return;
        }
        self.each_share(&mut |tree, number, _| {
            if let Some(value) = written.get(&number) {
                tree.clone_from(value);
            }
            if let Value::Scalar(scalar) = &mut tree.value {
                scalar.share = Share::With(number);
            }
        });
    }

    /// Unties all fields.
    pub(super) fn untie(&mut self) {
        self.each_share(&mut |tree, _, _| {
            if let Value::Scalar(scalar) = &mut tree.value {
                scalar.share = Share::None;
            }
        });
    }

    /// Calls `see` for each tied scalar, with its number and whether it was written.
    fn each_share(&mut self, see: &mut dyn FnMut(&mut Tree, u32, bool)) {
        match &mut self.value {
            Value::Scalar(scalar) => match scalar.share {
                Share::None => {}
                Share::With(number) => see(self, number, false),
                Share::Written(number) => see(self, number, true),
            },
            Value::List(items) => items.iter_mut().for_each(|item| item.each_share(see)),
            Value::Map(fields) => fields.iter_mut().for_each(|field| field.value.each_share(see)),
        }
    }

    /// Number of values and keys, at most `most` + 1. That is the number of a tree that is too deep, too.
    pub(super) fn count(&self, most: usize) -> usize {
        fn walk(tree: &Tree, depth: usize, left: &mut usize) -> Option<()> {
            *left = left.checked_sub(1)?;
            let depth = depth.checked_sub(1)?;
            match &tree.value {
                Value::Scalar(_) => Some(()),
                Value::List(items) => items.iter().try_for_each(|item| walk(item, depth, left)),
                Value::Map(fields) => fields.iter().try_for_each(|field| walk(&field.value, depth, left)),
            }
        }
        let mut left = most;
        match walk(self, MAX_DEPTH, &mut left) {
            Some(()) => most - left,
            None => most + 1,
        }
    }
}
