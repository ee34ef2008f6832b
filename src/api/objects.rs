//! ConfigMaps and Secrets, read-only. Of a Secret only keys and sizes are shown, never values.

use super::key::SOURCE_ANNOTATION;
use super::table::{AGE, Column, age_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use podstead_pod::SourceId;
pub use podstead_pod::annotations::KEYS as KEYS_ANNOTATION;
use podstead_pod::objects::{Held, Object, ObjectKind, ObjectName, Objects};
use serde_json::{Value, json};

/// Columns of ConfigMaps.
pub(super) const CONFIG_MAP_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Data", "Number of keys"),
    AGE,
    Column::text("Source", "Source that the object comes from").wide(),
    Column::text("Keys", "The keys").wide(),
];
/// Columns of Secrets.
pub(super) const SECRET_COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Type", "Type of the Secret"),
    Column::text("Data", "Number of keys"),
    AGE,
    Column::text("Source", "Source that the object comes from").wide(),
    Column::text("Keys", "The keys, with the sizes of their values").wide(),
];

/// The objects of a kind as they are shown.
pub(super) fn shown_of(objects: &Objects, kind: ObjectKind) -> Vec<Value> {
    objects.iter().filter(|(name, _)| name.kind == kind).map(|(name, held)| shown(name, held)).collect()
}

/// The cells of a ConfigMap.
pub(super) fn config_map_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let fields = ["data", "binaryData"].into_iter().filter_map(|field| object[field].as_object());
    let keys: Vec<&str> = fields.flat_map(|field| field.keys().map(String::as_str)).collect();
    let (count, keys) = (json!(keys.len().to_string()), json!(keys.join(", ")));
    vec![object["metadata"]["name"].clone(), count, age_of(object, now), source_of(object), keys]
}

/// The cells of a Secret.
pub(super) fn secret_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let keys = &object["metadata"]["annotations"][KEYS_ANNOTATION];
    let count = keys.as_str().unwrap_or_default().split(", ").filter(|key| !key.is_empty()).count();
    let (name, kind, age) = (object["metadata"]["name"].clone(), object["type"].clone(), age_of(object, now));
    vec![name, kind, json!(count.to_string()), age, source_of(object), keys.clone()]
}

fn source_of(object: &Value) -> Value {
    object["metadata"]["annotations"][SOURCE_ANNOTATION].clone()
}

fn type_of(secret: &Secret) -> &str {
    secret.type_.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("Opaque")
}

/// The object as shown: with its source, and a Secret without its data.
fn shown(name: &ObjectName, held: &Held) -> Value {
    let mut value = match &held.object {
        Object::ConfigMap(config_map) => json!(config_map),
        Object::PersistentVolumeClaim(claim) => json!(claim),
        Object::Network(object) => json!(object.to_json().unwrap_or_default()),
        Object::Secret(secret) => {
            let size = |bytes: usize| if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") };
            let keys = held.object.files().into_iter().map(|(key, value)| format!("{key} ({})", size(value.len())));
            let keys = keys.collect::<Vec<_>>().join(", ");
            let Secret { metadata, immutable, type_: _, data: _, string_data: _ } = &**secret;
            let mut metadata = metadata.clone();
            // What applied it elsewhere may have left a copy of everything in there.
            metadata.annotations.get_or_insert_default().retain(|name, _| name != LAST_APPLIED);
            metadata.annotations.get_or_insert_default().insert(KEYS_ANNOTATION.to_owned(), keys);
            let bare = Secret { metadata, immutable: *immutable, type_: Some(type_of(secret).to_owned()), ..Secret::default() };
            json!(bare)
        }
    };
    value["metadata"]["namespace"] = json!(name.namespace);
    value["metadata"]["uid"] = json!(stable_uid(&held.source, name));
    value["metadata"]["annotations"][SOURCE_ANNOTATION] = json!(held.source.as_str());
    value
}

/// The UID of an object of a source: the same as long as the source has an object of this name, also after a restart.
pub(super) fn stable_uid(source: &SourceId, name: &ObjectName) -> String {
    let ObjectName { kind, namespace, name } = name;
    let text = [source.as_str(), kind.as_str(), namespace, name].join("\0");
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_ref()[..16]);
    // Version 8 of RFC 9562: made from what the application chooses.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
