//! ConfigMaps and Secrets, as the API server checks them when they are created.

use super::names::{config_key, dns_subdomain};
use crate::containers::text;
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::HashSet;

/// Bytes of all values of one object.
const MAX_BYTES: usize = 1 << 20;

/// Reports what is wrong with a ConfigMap.
pub(crate) fn config_map(config_map: &ConfigMap, problems: &mut Problems) {
    name(&config_map.metadata, problems);
    let (texts, others) = (config_map.data.iter().flatten(), config_map.binary_data.iter().flatten());
    let mut seen = HashSet::new();
    let keys = texts.clone().map(|(key, _)| ("data", key)).chain(others.clone().map(|(key, _)| ("binaryData", key)));
    for (field, key) in keys {
        let path = FieldPath::root(field).key(key);
        problems.required_text(&path, key, config_key);
        if !seen.insert(key) {
            problems.duplicate(&path, key);
        }
    }
    let bytes = texts.map(|(_, value)| value.len()).sum::<usize>() + others.map(|(_, value)| value.0.len()).sum::<usize>();
    size("data", bytes, problems);
}

/// Reports what is wrong with a Secret whose `stringData` is merged. Never says what it holds.
pub(crate) fn secret(secret: &Secret, problems: &mut Problems) {
    name(&secret.metadata, problems);
    let data = || secret.data.iter().flatten();
    for (key, _) in data() {
        problems.required_text(&FieldPath::root("data").key(key), key, config_key);
    }
    size("data", data().map(|(_, value)| value.0.len()).sum(), problems);
    let required: &[&str] = match text(&secret.type_) {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    for key in required.iter().filter(|key| data().all(|(present, _)| present != **key)) {
        problems.required(&FieldPath::root("data").key(key), &format!("every Secret of type {} must have it", text(&secret.type_)));
    }
}

fn name(metadata: &ObjectMeta, problems: &mut Problems) {
    problems.required_text(&FieldPath::root("metadata").child("name"), text(&metadata.name), dns_subdomain);
}

fn size(field: &str, bytes: usize, problems: &mut Problems) {
    if bytes > MAX_BYTES {
        problems.too_long(&FieldPath::root(field), MAX_BYTES, "bytes");
    }
}
