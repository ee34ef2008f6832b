//! Objects as text.

use super::{NetworkKind, NetworkObject};
use crate::PackedText;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A [`NetworkObject`] as text. A typed object is mostly empty fields, and takes thirty times the memory. There are many of them, and few
/// readers: each reads an object when it has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedObject {
    kind: NetworkKind,
    /// Time of its creation, which is not in the text.
    created_at: Option<Time>,
    /// JSON.
    text: PackedText,
}

impl PackedObject {
    /// The object, to be read again. Two that are the same have the same text, since fields and keys have an order.
    pub fn new(mut object: NetworkObject) -> Self {
        let created_at = object.metadata_mut().creation_timestamp.take();
        let text = match &object {
            NetworkObject::Service(object) => serde_json::to_vec(object),
            NetworkObject::EndpointSlice(object) => serde_json::to_vec(object),
            NetworkObject::Namespace(object) => serde_json::to_vec(object),
            NetworkObject::NetworkPolicy(object) => serde_json::to_vec(object),
        };
        // These types have string keys only: they are always texts.
        Self { kind: object.kind(), created_at, text: PackedText::new(&text.unwrap_or_default()) }
    }

    /// Its kind.
    pub const fn kind(&self) -> NetworkKind {
        self.kind
    }

    /// The time at which its source first had it.
    pub const fn created_at(&self) -> Option<&Time> {
        self.created_at.as_ref()
    }

    /// Sets that time.
    pub fn set_created_at(&mut self, time: Option<Time>) {
        self.created_at = time;
    }

    /// The typed object.
    pub fn unpack(&self) -> NetworkObject {
        fn read<T: for<'de> Deserialize<'de> + Default>(text: &[u8]) -> Box<T> {
            // The text is that of such an object.
            serde_json::from_slice(text).unwrap_or_default()
        }
        let text = self.text.read();
        let mut object = match self.kind {
            NetworkKind::Service => NetworkObject::Service(read(&text)),
            NetworkKind::EndpointSlice => NetworkObject::EndpointSlice(read(&text)),
            NetworkKind::Namespace => NetworkObject::Namespace(read(&text)),
            NetworkKind::NetworkPolicy => NetworkObject::NetworkPolicy(read(&text)),
        };
        object.metadata_mut().creation_timestamp.clone_from(&self.created_at);
        object
    }

    /// The object as the API has it, with `apiVersion` and `kind`.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        self.unpack().to_json()
    }
}

/// In records it is the typed object.
impl Serialize for PackedObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.unpack().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PackedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NetworkObject::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, object: serde_json::Value) -> NetworkObject {
        serde_json::from_value(json!({ kind: object })).unwrap()
    }

    #[test]
    fn packed_object_is_read_as_it_was() {
        let metadata = json!({"name": "a", "namespace": "b", "labels": {"c": ""}, "creationTimestamp": "2026-01-02T03:04:05Z"});
        let all = [
            object("Service", json!({"metadata": metadata, "spec": {"ports": [{"port": 80, "targetPort": "x"}], "selector": {}}})),
            object(
                "EndpointSlice",
                json!({"metadata": metadata, "addressType": "IPv4", "endpoints": [{"addresses": ["::1"]}], "ports": []}),
            ),
            object("Namespace", json!({"metadata": metadata})),
            object("NetworkPolicy", json!({"metadata": metadata, "spec": {"podSelector": {}, "ingress": [{}]}})),
        ];
        for object in all {
            let packed = PackedObject::new(object.clone());
            assert_eq!((packed.unpack(), packed.kind()), (object.clone(), object.kind()));
            assert_eq!(packed.created_at(), object.metadata().creation_timestamp.as_ref());
            assert_eq!(serde_json::to_value(&packed).unwrap(), serde_json::to_value(&object).unwrap());
            assert_eq!(serde_json::from_value::<PackedObject>(json!(object)).unwrap(), packed);
        }
    }
}
