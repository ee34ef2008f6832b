//! Fields and types of the kinds that podstead reads: a table made from k8s-openapi's schema, the walk that
//! holds a document against it, and the hints for what does not fit.

mod check;
mod convert;
mod literal;
mod mismatch;
mod suggest;
pub mod table;

pub(super) use check::{Extent, check};
pub(super) use convert::into_json;
pub(super) use suggest::close_to;

/// A structure of the API: its fields, sorted by name.
#[derive(Debug)]
pub struct Struct {
    /// Its name in the API, e.g. `Container`.
    pub name: &'static str,
    /// Its fields, sorted by name.
    pub fields: &'static [Field],
}

/// One field.
#[derive(Debug)]
pub struct Field {
    /// As written in a manifest.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// The API refuses an object without it.
    pub required: bool,
}

/// Type of a field.
#[derive(Debug)]
pub enum Type {
    /// A string.
    Str,
    /// A boolean.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A whole number of 32 bits or a string, e.g. a port or its name.
    IntOrString,
    /// An amount, e.g. `64Mi`; a bare number too.
    Quantity,
    /// An RFC 3339 time.
    Time,
    /// Bytes as base64.
    Base64,
    /// Whatever JSON has.
    Any,
    /// A list.
    List(&'static Type),
    /// A mapping with keys of the author's choice.
    Map(&'static Type),
    /// A mapping with these fields.
    Object(&'static Struct),
}

impl Type {
    /// The type of what a mapping has under `key`; [`Type::Any`] where it has nothing of that name, or is no mapping.
    pub fn of_key(&self, key: &str) -> &Type {
        match self {
            Type::Object(structure) => structure.field(key).map_or(&Type::Any, |field| &field.ty),
            Type::Map(inner) => inner,
            Type::Str
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::IntOrString
            | Type::Quantity
            | Type::Time
            | Type::Base64
            | Type::Any
            | Type::List(_) => &Type::Any,
        }
    }

    /// The type of a list's items; `None` where it is no list.
    pub fn of_items(&self) -> Option<&'static Type> {
        if let Type::List(inner) = self { Some(inner) } else { None }
    }
}

impl Struct {
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.binary_search_by(|field| field.name.cmp(name)).ok().map(|at| &self.fields[at])
    }
}

impl Type {
    /// The structure at the end of lists and maps, if there is one.
    pub fn structure(&self) -> Option<&'static Struct> {
        match self {
            Self::List(inner) | Self::Map(inner) => inner.structure(),
            Self::Object(structure) => Some(structure),
            Self::Str
            | Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::IntOrString
            | Self::Quantity
            | Self::Time
            | Self::Base64
            | Self::Any => None,
        }
    }
}

/// An optional field.
const fn o(name: &'static str, ty: Type) -> Field {
    Field { name, ty, required: false }
}

/// A required field.
const fn r(name: &'static str, ty: Type) -> Field {
    Field { name, ty, required: true }
}
