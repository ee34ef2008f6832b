//! Content of one object.

use super::PackedObject;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Object beside the pods.
#[derive(Clone)]
pub enum Object {
    /// `data` is text, `binaryData` is not.
    ConfigMap(Arc<ConfigMap>),
    /// All of it is in `data`: `stringData` was merged into it when the object was accepted.
    Secret(Arc<Secret>),
    /// Holds no keys: a directory of this host stands for it.
    PersistentVolumeClaim(Arc<PersistentVolumeClaim>),
    /// Holds no keys: it says how pods are reached.
    Network(Arc<PackedObject>),
}

/// A value that is no text, or holds a NUL character: it cannot be that of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotText;

impl Object {
    /// Returns true if pods see the same in both. The metadata, such as the time of creation, is nothing that they see.
    pub fn has_content_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Object::ConfigMap(one), Object::ConfigMap(other)) => {
                (&one.data, &one.binary_data, one.immutable) == (&other.data, &other.binary_data, other.immutable)
            }
            (Object::Secret(one), Object::Secret(other)) => {
                (&one.data, &one.type_, one.immutable) == (&other.data, &other.type_, other.immutable)
            }
            (Object::PersistentVolumeClaim(one), Object::PersistentVolumeClaim(other)) => one == other,
            (Object::Network(one), Object::Network(other)) => one == other,
            (Object::ConfigMap(_) | Object::Secret(_) | Object::PersistentVolumeClaim(_) | Object::Network(_), _) => false,
        }
    }

    /// Value of a key, as the value of a variable; `None` when there is no such key. `binaryData` is not looked at, as in the kubelet.
    pub fn text(&self, key: &str) -> Option<Result<&str, NotText>> {
        match self {
            Object::ConfigMap(config_map) => config_map.data.as_ref()?.get(key).map(|value| as_text(value.as_bytes())),
            Object::Secret(secret) => secret.data.as_ref()?.get(key).map(|value| as_text(&value.0)),
            Object::PersistentVolumeClaim(_) | Object::Network(_) => None,
        }
    }

    /// All that may be values of variables, by key.
    pub fn texts(&self) -> BTreeMap<&str, Result<&str, NotText>> {
        match self {
            Object::ConfigMap(config_map) => {
                config_map.data.iter().flatten().map(|(key, value)| (key.as_str(), as_text(value.as_bytes()))).collect()
            }
            Object::Secret(secret) => secret.data.iter().flatten().map(|(key, value)| (key.as_str(), as_text(&value.0))).collect(),
            Object::PersistentVolumeClaim(_) | Object::Network(_) => BTreeMap::new(),
        }
    }

    /// All that may be files, by key.
    pub fn files(&self) -> BTreeMap<&str, &[u8]> {
        match self {
            Object::ConfigMap(config_map) => {
                let texts = config_map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.as_bytes()));
                let others = config_map.binary_data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice()));
                texts.chain(others).collect()
            }
            Object::Secret(secret) => secret.data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.as_slice())).collect(),
            Object::PersistentVolumeClaim(_) | Object::Network(_) => BTreeMap::new(),
        }
    }
}

fn as_text(value: &[u8]) -> Result<&str, NotText> {
    std::str::from_utf8(value).ok().filter(|text| !text.contains('\0')).ok_or(NotText)
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        // The same allocation is the usual case: most objects do not change.
        match (self, other) {
            (Object::ConfigMap(one), Object::ConfigMap(other)) => Arc::ptr_eq(one, other) || one == other,
            (Object::Secret(one), Object::Secret(other)) => Arc::ptr_eq(one, other) || one == other,
            (Object::PersistentVolumeClaim(one), Object::PersistentVolumeClaim(other)) => Arc::ptr_eq(one, other) || one == other,
            (Object::Network(one), Object::Network(other)) => Arc::ptr_eq(one, other) || one == other,
            (Object::ConfigMap(_) | Object::Secret(_) | Object::PersistentVolumeClaim(_) | Object::Network(_), _) => false,
        }
    }
}

impl fmt::Debug for Object {
    /// Keys and sizes, never values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Object::ConfigMap(_) => "ConfigMap",
            Object::Secret(_) => "Secret",
            Object::PersistentVolumeClaim(_) => "PersistentVolumeClaim",
            Object::Network(object) => object.kind().as_str(),
        };
        write!(f, "{name} ")?;
        f.debug_map().entries(self.files().into_iter().map(|(key, value)| (key, format!("{} bytes", value.len())))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_gives_its_data_as_text_and_all_of_it_as_files() {
        let object = Object::ConfigMap(Arc::new(serde_yaml::from_str("{data: {a: one}, binaryData: {b: /wA=}}").unwrap()));
        assert_eq!(object.text("a"), Some(Ok("one")));
        assert_eq!(object.text("b"), None);
        assert_eq!(object.texts().len(), 1);
        assert_eq!(object.files(), BTreeMap::from([("a", &b"one"[..]), ("b", &[255, 0][..])]));
    }

    #[test]
    fn bytes_that_are_no_text_are_told_apart() {
        let object = Object::Secret(Arc::new(serde_yaml::from_str("{data: {a: b25l, b: /w==, c: AA==}}").unwrap()));
        assert_eq!(
            (object.text("a"), object.text("b"), object.text("c")),
            (Some(Ok("one")), Some(Err(NotText)), Some(Err(NotText)))
        );
    }

    #[test]
    fn debug_shows_no_value() {
        let object = Object::Secret(Arc::new(serde_yaml::from_str("{data: {password: aHVudGVyMg==}}").unwrap()));
        assert_eq!(format!("{object:?}"), "Secret {\"password\": \"7 bytes\"}");
    }
}
