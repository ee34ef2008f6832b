//! OpenAPI version 2 in the protobuf form that kubectl asks for: field numbers of gnostic's `OpenAPIv2.proto`. Only what
//! [`super::document`] writes is encoded: head, paths, patches, query parameters, schemas and extensions. **Pure**.

use super::document::PATCH_PARAMETERS;
use serde_json::Value;

/// A message under way.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// A field of bytes: a text, or another message.
    fn with(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.number(u64::from(number) << 3 | 2);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn query_parameter(name: &str) -> Message {
    let schema = Message::default().with(2, "query").with(4, name).with(6, "string");
    // ParametersItem, Parameter, NonBodyParameter.
    let kinds = [3, 2, 1];
    kinds.into_iter().fold(schema, |inner, number| Message::default().with(number, inner))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A name with a value.
fn named(name: &str, value: impl AsRef<[u8]>) -> Message {
    Message::default().with(1, name).with(2, value)
}

/// JSON is YAML.
fn extension(name: &str, value: &Value) -> Message {
    named(name, Message::default().with(2, value.to_string()))
}

fn patch(operation: &Value) -> Message {
    let parameters = PATCH_PARAMETERS.into_iter().map(query_parameter);
    let message = parameters.fold(Message::default(), |message, parameter| message.with(8, parameter));
    let name = "x-kubernetes-group-version-kind";
    message.with(9, "").with(13, extension(name, &operation[name]))
}

fn schema(schema: &Value) -> Message {
    let mut message = Message::default();
    for (name, value) in schema.as_object().into_iter().flatten() {
        message = match name.as_str() {
            "$ref" => message.with(1, text(value)),
            "format" => message.with(2, text(value)),
            "description" => message.with(4, text(value)),
            "required" => value.as_array().into_iter().flatten().fold(message, |message, field| message.with(19, text(field))),
            "additionalProperties" => message.with(21, Message::default().with(1, self::schema(value))),
            "type" => message.with(22, Message::default().with(1, text(value))),
            "items" => message.with(23, Message::default().with(1, self::schema(value))),
            "properties" => message.with(25, schemas(value)),
            extension_name => message.with(31, extension(extension_name, value)),
        };
    }
    message
}

/// Schemas by their names.
fn schemas(schemas: &Value) -> Message {
    let members = schemas.as_object().into_iter().flatten();
    members.fold(Message::default(), |message, (name, value)| message.with(1, named(name, schema(value))))
}

/// The document as a message.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let info = Message::default().with(1, text(&document["info"]["title"])).with(2, text(&document["info"]["version"]));
    let items = document["paths"].as_object().into_iter().flatten();
    let paths = items.fold(Message::default(), |paths, (path, item)| {
        let item = Message::default().with(8, patch(&item["patch"]));
        paths.with(2, named(path, item))
    });
    let message = Message::default().with(1, text(&document["swagger"])).with(2, info).with(8, paths);
    message.with(9, schemas(&document["definitions"])).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::document::version_2;

    #[test]
    fn lengths_are_varints() {
        assert_eq!(Message::default().with(1, "ab").0, [0x0a, 2, b'a', b'b']);
        assert_eq!(Message::default().with(16, [0_u8; 200]).0[..4], [0x82, 0x01, 0xc8, 0x01]);
    }

    #[test]
    fn document_has_its_paths() {
        let bytes = encode(&version_2());
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(bytes[..5], [0x0a, 3, b'2', b'.', b'0']);
        assert!(text.contains("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"));
        assert!(text.contains("#/definitions/apps.v1.PodSpec") && text.contains("x-kubernetes-patch-merge-key"));
        assert_eq!(text.matches("fieldValidation").count(), version_2()["paths"].as_object().unwrap().len());
    }
}
