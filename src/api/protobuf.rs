//! Bodies in Kubernetes' protobuf form: `k8s\0`, then an envelope (`runtime.Unknown`) with type and message. kubectl since 1.32 sends them for what it makes
//! itself, without falling back to JSON. One walk over a table of fields makes JSON of them. **Pure**.

use serde_json::{Map, Value};

/// The beginning of a body.
const MAGIC: &[u8] = b"k8s\0";
/// Messages in messages.
const MAX_DEPTH: usize = 32;
/// Values in one body.
const MAX_VALUES: usize = 100_000;

/// Type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// A message.
    Message(&'static Message),
}

/// A message: numbers, JSON names and types of its fields. A field that is not in it is skipped, as protobuf has it.
#[derive(Debug)]
pub(super) struct Message(pub(super) &'static [(u32, &'static str, Kind)]);

/// Errors of reading a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProtobufError {
    #[error("the body does not begin with k8s and a zero byte")]
    Magic,
    #[error("the body ends in the middle of a value")]
    Short,
    #[error("field {0} has a wire type that no field of its number has")]
    WireType(u32),
    #[error("field {0} is not UTF-8")]
    Text(u32),
    #[error("messages are nested deeper than {MAX_DEPTH}")]
    Deep,
    #[error("the body has more than {MAX_VALUES} values")]
    Many,
}

/// A value as it is on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Number,
    Bytes(&'a [u8]),
    Fixed,
}

/// Reports whether a content type is protobuf.
pub(super) fn is_protobuf(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim() == "application/vnd.kubernetes.protobuf")
}

/// The envelope: type (`runtime.TypeMeta`) and encoded object.
const ENVELOPE_TYPE: u32 = 1;
const ENVELOPE_RAW: u32 = 2;
static TYPE_META: Message = Message(&[(1, "apiVersion", Kind::Text), (2, "kind", Kind::Text)]);

/// Reads an object whose message is `message`.
pub(super) fn read(body: &[u8], message: &'static Message) -> Result<Value, ProtobufError> {
    let mut rest = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    let mut reader = Reader { values: 0 };
    let (mut kind, mut object) = (Map::new(), Map::new());
    while let Some((number, wire)) = reader.field(&mut rest)? {
        match (number, wire) {
            (ENVELOPE_TYPE, Wire::Bytes(bytes)) => reader.message(bytes, &TYPE_META, &mut kind, 0)?,
            (ENVELOPE_RAW, Wire::Bytes(bytes)) => reader.message(bytes, message, &mut object, 0)?,
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
        Message(fields): &'static Message,
        into: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        if depth > MAX_DEPTH {
            return Err(ProtobufError::Deep);
        }
        while let Some((number, wire)) = self.field(&mut bytes)? {
            let Some((_, name, kind)) = fields.iter().find(|(known, _, _)| *known == number) else { continue };
            let Wire::Bytes(value) = wire else { return Err(ProtobufError::WireType(number)) };
            match kind {
                Kind::Text => {
                    let text = std::str::from_utf8(value).map_err(|_| ProtobufError::Text(number))?;
                    into.insert((*name).to_owned(), Value::from(text));
                }
                // A message that comes twice is merged, as protobuf has it.
                Kind::Message(inner) => {
                    let mut members = match into.remove(*name) {
                        Some(Value::Object(members)) => members,
                        Some(_) | None => Map::new(),
                    };
                    self.message(value, inner, &mut members, depth + 1)?;
                    into.insert((*name).to_owned(), Value::Object(members));
                }
            }
        }
        Ok(())
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
            0 => {
                number(bytes)?;
                Wire::Number
            }
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
mod tests {
    use super::*;
    use serde_json::json;

    static INNER: Message = Message(&[(1, "name", Kind::Text), (2, "self", Kind::Message(&INNER))]);

    fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        let mut length = value.len();
        while length > 0x7f {
            field.push(length as u8 & 0x7f | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(value);
        field
    }

    fn body(object: &[u8]) -> Vec<u8> {
        let kind = [bytes(1, b"v1"), bytes(2, b"Thing")].concat();
        [MAGIC.to_vec(), bytes(1, &kind), bytes(2, object)].concat()
    }

    #[test]
    fn fields_are_read_by_number() {
        // Field 9 is unknown, a number.
        let object = [bytes(1, b"a"), vec![9 << 3, 0x96, 0x01], bytes(2, &bytes(1, b"b"))].concat();
        let expected = json!({"apiVersion": "v1", "kind": "Thing", "name": "a", "self": {"name": "b"}});
        assert_eq!(read(&body(&object), &INNER), Ok(expected));
    }

    #[test]
    fn broken_bodies_are_errors() {
        let whole = body(&bytes(1, b"a"));
        for length in 1..whole.len() {
            // A cut between fields is a shorter message, any other one an error; never a panic.
            drop(read(&whole[..length], &INNER));
        }
        assert_eq!(read(b"{}", &INNER), Err(ProtobufError::Magic));
        assert_eq!(read(&[MAGIC, &[0x12, 0xff]].concat(), &INNER), Err(ProtobufError::Short));
        assert_eq!(read(&body(&bytes(1, b"\xff")), &INNER), Err(ProtobufError::Text(1)));
        assert_eq!(read(&body(&[1 << 3, 1]), &INNER), Err(ProtobufError::WireType(1)));
        assert_eq!(read(&body(&[1 << 3 | 3]), &INNER), Err(ProtobufError::WireType(1)));
        let deep = (0..1000).fold(Vec::new(), |inner, _| bytes(2, &inner));
        assert_eq!(read(&body(&deep), &INNER), Err(ProtobufError::Deep));
        assert_eq!(read(&body(&[9 << 3, 0].repeat(MAX_VALUES)), &INNER), Err(ProtobufError::Many));
    }
}

#[cfg(test)]
mod properties {
    use super::*;
    use proptest::prelude::*;

    static ANY: Message = Message(&[(1, "a", Kind::Text), (2, "b", Kind::Message(&ANY)), (3, "c", Kind::Message(&ANY))]);

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let body = [MAGIC, &bytes].concat();
            drop(read(&body, &ANY));
            drop(read(&bytes, &ANY));
        }
    }
}
