//! Bodies in Kubernetes' protobuf form: `k8s\0`, then an envelope (`runtime.Unknown`) with type and message. kubectl since 1.32 sends them for what it
//! makes itself, without falling back to JSON. One walk over the [schema table](crate::schema::table) and the [`numbers`] of its fields makes JSON of
//! them. **Pure**.

mod numbers;

use crate::schema::{Struct, Type};
use base64::Engine as _;
use jiff::Timestamp;
use numbers::{Form, Number, numbers_of};
use serde_json::{Map, Value};

/// The beginning of a body.
const MAGIC: &[u8] = b"k8s\0";
/// Messages in messages.
const MAX_DEPTH: usize = 32;
/// Values in one body.
const MAX_VALUES: usize = 100_000;

/// Errors of reading a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// It has another form.
    #[error("the body does not begin with k8s and a zero byte")]
    Magic,
    /// It is cut.
    #[error("the body ends in the middle of a value")]
    Short,
    /// A field has a value of another type.
    #[error("field {0} has a wire type that no field of its number has")]
    WireType(u32),
    /// A string is none.
    #[error("field {0} is not UTF-8")]
    Text(u32),
    /// A time is none.
    #[error("field {0} is not a time")]
    Time(u32),
    /// A field that the API of this host does not have, with a value.
    #[error("field {1} of {0} is not known here: send the object as JSON to learn its name")]
    Unknown(&'static str, u32),
    /// Too many levels.
    #[error("messages are nested deeper than {MAX_DEPTH}")]
    Deep,
    /// Too many values.
    #[error("the body has more than {MAX_VALUES} values")]
    Many,
    /// The envelope is encoded, e.g. compressed.
    #[error("the envelope has an encoding, which is not supported")]
    Encoding,
}

/// A value as it is on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

impl Wire<'_> {
    fn is_empty(self) -> bool {
        match self {
            Self::Number(number) => number == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Fixed => false,
        }
    }
}

/// Numbers in the envelope, and in its type (`runtime.TypeMeta`).
const ENVELOPE_TYPE: u32 = 1;
const ENVELOPE_RAW: u32 = 2;
const ENVELOPE_ENCODING: u32 = 3;
const TYPE_VERSION: u32 = 1;
const TYPE_KIND: u32 = 2;

/// Reads an object of this structure, as the JSON that the same client would send. Version and kind are those of the envelope.
pub fn read(body: &[u8], structure: &'static Struct) -> Result<Value, ProtobufError> {
    let mut rest = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let mut reader = Reader { values: 0 };
    let (mut kind, mut object) = (Map::new(), Map::new());
    while let Some((number, wire)) = reader.field(&mut rest)? {
        match (number, wire) {
            (ENVELOPE_TYPE, Wire::Bytes(mut bytes)) => {
                while let Some((number, wire)) = reader.field(&mut bytes)? {
                    let name = match number {
                        TYPE_VERSION => "apiVersion",
                        TYPE_KIND => "kind",
                        _ => continue,
                    };
                    kind.insert(name.to_owned(), text(number, wire)?);
                }
            }
            (ENVELOPE_RAW, Wire::Bytes(bytes)) => {
                reader.message(bytes, structure, numbers_of(structure.name), &mut object, 0)?;
            }
            (ENVELOPE_ENCODING, wire) if !wire.is_empty() => return Err(ProtobufError::Encoding),
            (_, _) => {}
        }
    }
    object.extend(kind);
    Ok(Value::Object(object))
}

struct Reader {
    values: usize,
}

impl Reader {
    fn message(
        &mut self,
        mut bytes: &[u8],
        structure: &'static Struct,
        numbers: &'static [Number],
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        if depth > MAX_DEPTH {
            return Err(ProtobufError::Deep);
        }
        while let Some((number, wire)) = self.field(&mut bytes)? {
            let Some(field) = numbers.iter().find(|field| field.number == number) else {
                // Newer clients always send some of their fields, empty.
                if wire.is_empty() {
                    continue;
                }
                return Err(ProtobufError::Unknown(structure.name, number));
            };
            if field.form == Form::Inline {
                let Wire::Bytes(inner) = wire else { return Err(ProtobufError::WireType(number)) };
                self.message(inner, structure, numbers_of(field.name), into, depth + 1)?;
                continue;
            }
            let Some(known) = structure.field(field.name) else { continue };
            let before = into.remove(field.name);
            let after = self.value(&known.ty, number, wire, before, depth)?;
            if !(after.is_null() || field.form == Form::Elided && is_empty(&after)) {
                into.insert(field.name.to_owned(), after);
            }
        }
        Ok(())
    }

    /// One value of a field, together with those `before` it: lists and maps grow, messages are merged. Null where JSON has nothing.
    fn value(
        &mut self,
        ty: &Type,
        number: u32,
        wire: Wire<'_>,
        before: Option<Value>,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        match (ty, wire) {
            (Type::List(inner), _) => {
                let mut items = match before {
                    Some(Value::Array(items)) => items,
                    Some(_) | None => Vec::new(),
                };
                items.push(self.value(inner, number, wire, None, depth)?);
                Ok(Value::Array(items))
            }
            (Type::Map(inner), Wire::Bytes(bytes)) => {
                let mut members = members(before);
                let (key, value) = self.entry(bytes, inner, number, depth)?;
                members.insert(key, value);
                Ok(Value::Object(members))
            }
            (Type::Object(structure), Wire::Bytes(bytes)) => {
                let mut members = members(before);
                self.message(bytes, structure, numbers_of(structure.name), &mut members, depth + 1)?;
                Ok(Value::Object(members))
            }
            (Type::Str, _) => text(number, wire),
            (Type::Base64, Wire::Bytes(bytes)) => Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into()),
            (Type::Bool, Wire::Number(value)) => Ok((value != 0).into()),
            // Negative numbers are sent as those of 64 bits.
            (Type::Int32, Wire::Number(value)) => Ok((value as i32).into()),
            (Type::Int64, Wire::Number(value)) => Ok((value as i64).into()),
            (Type::IntOrString, Wire::Bytes(bytes)) => self.number_or_text(bytes),
            (Type::Quantity, Wire::Bytes(bytes)) => self.quantity(bytes),
            (Type::Time, Wire::Bytes(bytes)) => self.time(bytes, number),
            // Sets of managed fields.
            (Type::Any, _) => Ok(Value::Null),
            (
                Type::Map(_)
                | Type::Object(_)
                | Type::Base64
                | Type::Bool
                | Type::Int32
                | Type::Int64
                | Type::IntOrString
                | Type::Quantity
                | Type::Time,
                _,
            ) => Err(ProtobufError::WireType(number)),
        }
    }

    /// Key and value of a map.
    fn entry(&mut self, mut bytes: &[u8], ty: &Type, number: u32, depth: usize) -> Result<(String, Value), ProtobufError> {
        if depth > MAX_DEPTH {
            return Err(ProtobufError::Deep);
        }
        let (mut key, mut value) = (String::new(), Value::String(String::new()));
        while let Some((part, wire)) = self.field(&mut bytes)? {
            match part {
                1 => key = string(number, wire)?,
                2 => value = self.value(ty, number, wire, None, depth + 1)?,
                _ => {}
            }
        }
        Ok((key, value))
    }

    fn number_or_text(&mut self, mut bytes: &[u8]) -> Result<Value, ProtobufError> {
        let (mut is_text, mut whole, mut told) = (false, 0, String::new());
        while let Some((number, wire)) = self.field(&mut bytes)? {
            match (number, wire) {
                (1, Wire::Number(value)) => is_text = value != 0,
                (2, Wire::Number(value)) => whole = value as i32,
                (3, wire) => told = string(3, wire)?,
                (_, _) => {}
            }
        }
        Ok(if is_text { told.into() } else { whole.into() })
    }

    fn quantity(&mut self, mut bytes: &[u8]) -> Result<Value, ProtobufError> {
        let mut told = String::new();
        while let Some((number, wire)) = self.field(&mut bytes)? {
            if number == 1 {
                told = string(1, wire)?;
            }
        }
        Ok(told.into())
    }

    /// A time, in whole seconds as in JSON; null for none.
    fn time(&mut self, mut bytes: &[u8], field: u32) -> Result<Value, ProtobufError> {
        let mut seconds = None;
        while let Some((number, wire)) = self.field(&mut bytes)? {
            if let (1, Wire::Number(value)) = (number, wire) {
                seconds = Some(value as i64);
            }
        }
        let Some(seconds) = seconds else { return Ok(Value::Null) };
        let time = Timestamp::from_second(seconds).map_err(|_| ProtobufError::Time(field))?;
        Ok(time.to_string().into())
    }

    /// The next field; `None` at the end.
    fn field<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<(u32, Wire<'a>)>, ProtobufError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(ProtobufError::Many);
        }
        let tag = number(bytes)?;
        let field = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Short)?;
        let wire = match tag & 7 {
            0 => Wire::Number(number(bytes)?),
            1 => {
                take(bytes, 8)?;
                Wire::Fixed
            }
            2 => {
                let length = number(bytes)?;
                Wire::Bytes(take(bytes, length)?)
            }
            5 => {
                take(bytes, 4)?;
                Wire::Fixed
            }
            _ => return Err(ProtobufError::WireType(field)),
        };
        Ok(Some((field, wire)))
    }
}

fn members(before: Option<Value>) -> Map<String, Value> {
    match before {
        Some(Value::Object(members)) => members,
        Some(_) | None => Map::new(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn string(number: u32, wire: Wire<'_>) -> Result<String, ProtobufError> {
    let Wire::Bytes(bytes) = wire else { return Err(ProtobufError::WireType(number)) };
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Text(number))
}

fn text(number: u32, wire: Wire<'_>) -> Result<Value, ProtobufError> {
    string(number, wire).map(Value::from)
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], ProtobufError> {
    let length = usize::try_from(length).map_err(|_| ProtobufError::Short)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(ProtobufError::Short)?;
    *bytes = rest;
    Ok(taken)
}

/// A number of seven bits per byte, at most ten of them.
fn number(bytes: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(ProtobufError::Short)?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(ProtobufError::Short)
}

#[cfg(test)]
mod tests;
